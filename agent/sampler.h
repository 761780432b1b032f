/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of the sampling tiers: each fills the readings of a topology. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/cgroupfs.h"
#include "agent/topology.h"
#include "shared/interval.h"
#include "shared/error.h"

enum pass_kind {
	PASS_FAST, /* CPU time, memory usage */
	PASS_SLOW, /* the fast values and limits, throttling, working set, events, pids, PSI */
	/* A slow pass without the hierarchies that have no fast value; their last readings stay. */
	PASS_BRIEF,
};

struct pass_result {
	uint32_t records; /* readings filled */
	uint32_t unknown; /* cgroups missing in the topology: rescan */
	uint32_t missing; /* cgroups of the topology that the pass did not meet: rescan */
	uint32_t overflow; /* beyond the record array, lost */
};

/*
 * The last values of a removed cgroup's own counters (v2; on v1 the counters of its ancestors have
 * them). Children are removed first.
 */
struct removal {
	uint64_t id, parent_id;
	uint32_t have; /* enum reading_have: of HAVE_CPU, HAVE_THROTTLE */
	uint64_t cpu_ns; /* own tasks only */
	uint64_t throttled_ns, periods, throttled_periods;
};

struct sampler; /* one open tier */

void sampler_close(struct sampler *s);
enum sampler_tier sampler_tier(const struct sampler *s);
/*
 * One pass over all hierarchies into the readings of t; sets seen_pass of each cgroup it meets to
 * `pass`. 0, or -errno: the tier failed and must be closed.
 */
int sampler_pass(struct sampler *s, struct topology *t, enum pass_kind kind, uint64_t pass,
		 struct pass_result *result, struct error *error);
/*
 * Whether cgroups were made or removed since the last call; always false for tiers that cannot
 * tell.
 */
int sampler_topology_changed(struct sampler *s);
bool sampler_tells_changes(const struct sampler *s); /* whether the tier can tell */

/*
 * The cgroups removed since the last call, at most max, oldest first; call again while it returns
 * max. *lost grows by overwritten ones. None for tiers whose counters include descendants.
 */
size_t sampler_take_removals(struct sampler *s, struct removal *out, size_t max, uint64_t *lost);

/*
 * Opens the best tier of T0, T1, T2, T3 that passes the self-test: a slow pass meets cgroups, and
 * the CPU time, memory, throttling and limits of some lie between two reads of the kernel's files
 * around it. `only`: just this tier, or -1. Logs the choice, and the failures of better tiers, in
 * one line. The passes have numbers above the caller's, which count from 1.
 */
int sampler_choose(struct sampler **s, int only, const struct cgroupfs *fs, struct topology *t,
		   struct error *error);
/* The same among the tiers below one that failed (not T3). */
int sampler_choose_below(struct sampler **s, enum sampler_tier failed, const struct cgroupfs *fs,
			 struct topology *t, struct error *error);
const char *sampler_tier_name(enum sampler_tier tier); /* "T1" */
