/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling tiers behind one face: each fills the readings of a topology. */
#ifndef EVENKEEL_AGENT_SAMPLER_H
#define EVENKEEL_AGENT_SAMPLER_H

#include <stdint.h>

#include "agent/cgroupfs.h"
#include "agent/topology.h"
#include "shared/interval.h"
#include "shared/reason.h"

enum pass_kind {
	PASS_FAST, /* CPU time, memory usage */
	PASS_SLOW, /* the fast values and limits, throttling, working set, events, pids, PSI */
};

struct pass_result {
	uint32_t records; /* readings filled */
	uint32_t unknown; /* cgroups the topology does not know: rescan */
	uint32_t missing; /* cgroups of the topology the pass did not meet: rescan */
	uint32_t overflow; /* beyond the record array, lost */
};

struct sampler; /* opaque: one tier, opened */

/* Opens a tier. -ENOSYS/-EPERM/-ENOENT.. with the reason when it cannot work here. fs is borrowed. */
int sampler_open(struct sampler **s, enum sampler_tier tier, const struct cgroupfs *fs,
		 struct reason *reason);
void sampler_close(struct sampler *s);
enum sampler_tier sampler_tier(const struct sampler *s);
/* One pass over all hierarchies into the readings of t; sets seen_pass of what it met to `pass`. 0 or -errno: the
 * tier failed and must be given up. */
int sampler_pass(struct sampler *s, struct topology *t, enum pass_kind kind, uint64_t pass,
		 struct pass_result *result, struct reason *reason);
/* True once after cgroups were made or removed since the last call (tiers that cannot tell always say false). */
int sampler_topology_changed(struct sampler *s);

/*
 * Opens the best tier of T1, T3 that passes the self-test: a slow pass must meet > 0 cgroups and, for a sample of
 * them, CPU time and memory must lie between two reads of the kernel's own files made before and after it.
 * `only`: take just this tier, or -1. The log says which and why not the better ones. Its passes have numbers above
 * those the caller counts up from 1.
 */
int sampler_choose(struct sampler **s, int only, const struct cgroupfs *fs, struct topology *t,
		   struct reason *reason);
const char *sampler_tier_name(enum sampler_tier tier); /* "T1" */

#endif
