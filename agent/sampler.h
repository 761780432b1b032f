/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling tiers behind one face: each fills the readings of a topology. */
#ifndef EVENKEEL_AGENT_SAMPLER_H
#define EVENKEEL_AGENT_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/cgroupfs.h"
#include "agent/topology.h"
#include "shared/interval.h"
#include "shared/reason.h"

enum pass_kind {
	PASS_FAST, /* CPU time, memory usage */
	PASS_SLOW, /* the fast values and limits, throttling, working set, events, pids, PSI */
	/*
	 * A slow pass that leaves out hierarchies from which nothing fast is read; what they told
	 * last stays.
	 */
	PASS_BRIEF,
};

struct pass_result {
	uint32_t records; /* readings filled */
	uint32_t unknown; /* cgroups the topology does not know: rescan */
	uint32_t missing; /* cgroups of the topology the pass did not meet: rescan */
	uint32_t overflow; /* beyond the record array, lost */
};

/*
 * What a cgroup's own counters said when it was removed (v2; v1 counts the use of what is gone in
 * every ancestor). Its tasks are over by then, so these are its last values. In the order of
 * removal, which is children first.
 */
struct removal {
	uint64_t id, parent_id;
	uint32_t have; /* enum reading_have: of HAVE_CPU, HAVE_THROTTLE */
	uint64_t cpu_ns; /* own tasks only */
	uint64_t throttled_ns, periods, throttled_periods;
};

struct sampler; /* opaque: one tier, opened */

void sampler_close(struct sampler *s);
enum sampler_tier sampler_tier(const struct sampler *s);
/*
 * One pass over all hierarchies into the readings of t; sets seen_pass of what it met to `pass`. 0
 * or -errno: the tier failed and must be given up.
 */
int sampler_pass(struct sampler *s, struct topology *t, enum pass_kind kind, uint64_t pass,
		 struct pass_result *result, struct reason *reason);
/*
 * True once after cgroups were made or removed since the last call (tiers that cannot tell always
 * say false).
 */
int sampler_topology_changed(struct sampler *s);
bool sampler_tells_changes(const struct sampler *s); /* whether it can tell */

/*
 * The cgroups removed since the last call, at most max, oldest first; call again while it returns
 * max. *lost grows by those that found no room in the kernel's buffer. Tiers whose counters include
 * descendants have none.
 */
size_t sampler_take_removals(struct sampler *s, struct removal *out, size_t max, uint64_t *lost);

/*
 * Opens the best tier of T0, T1, T2, T3 that passes the self-test: a slow pass must meet > 0
 * cgroups and, for a sample of them, CPU time, memory, throttling and limits must lie between two
 * reads of the kernel's own files made before and after it. `only`: take just this tier, or -1. The
 * log says in one line which and why not the better ones. Its passes have numbers above those the
 * caller counts up from 1.
 */
int sampler_choose(struct sampler **s, int only, const struct cgroupfs *fs, struct topology *t,
		   struct reason *reason);
/* The same among those below one that failed, which is not T3. */
int sampler_choose_below(struct sampler **s, enum sampler_tier failed, const struct cgroupfs *fs,
			 struct topology *t, struct reason *reason);
const char *sampler_tier_name(enum sampler_tier tier); /* "T1" */

#endif
