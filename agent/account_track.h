/* SPDX-License-Identifier: Apache-2.0 */
/* One cgroup's counters from tick to tick: what was used since the one before, with everything below it. Pure. */
#ifndef EVENKEEL_AGENT_ACCOUNT_TRACK_H
#define EVENKEEL_AGENT_ACCOUNT_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/topology.h"
#include "agent/workload.h"

enum counter {
	COUNTER_CPU,
	COUNTER_THROTTLED,
	COUNTER_PERIODS,
	COUNTER_THROTTLED_PERIODS,
	COUNTER_OOM,
	COUNTER_PSI_CPU,
	COUNTER_PSI_MEM,
	COUNTERS,
};

struct track {
	uint64_t serial; /* of the cgroup */
	int parent; /* index of its track */
	bool at_start;
	bool slow_seen; /* a slow tick has read it */
	bool cpu_local; /* its last CPU reading covered its own tasks only */
	uint32_t based; /* bit per enum counter: `last` holds a reading */
	uint64_t last[COUNTERS];
	int64_t cpu_at_ns; /* monotonic time up to which its CPU use has been sampled */
	struct kernel_limits own;
	struct kernel_limits effective; /* with all ancestors */
	struct workload *workload; /* borrowed; NULL: not listed */

	/* What this tick brought; after the roll-up with everything below. */
	uint32_t have; /* enum reading_have: which of these are known */
	uint64_t used[COUNTERS];
	uint64_t oom_below;
	uint64_t mem_bytes;
	uint64_t inactive_file_bytes;
	bool inactive_whole; /* the kernel's value covered what is below already */
	bool cpu_whole; /* the same for CPU time */
};

/* first_ns: the time its first sample counts from. */
void track_init(struct track *tr, const struct cgroup *c, int64_t first_ns);
/*
 * Takes the newest reading. A life whose beginning we have not seen (at_start) begins with the first reading, any
 * other with 0. A counter that went back began a new life at 0; one that now means something else (own tasks
 * instead of the subtree, after a change of tier) begins with this reading, and its use since the last is lost.
 */
void track_read(struct track *tr, const struct reading *r, bool slow);
/* Limits from the reading; what it does not have is kept. parent: its track, already up to date; NULL for the root. */
void track_read_limits(struct track *tr, const struct reading *r, const struct track *parent);
/* Once everything below tr has been added to it: adds it to its parent. */
void track_roll_up(const struct track *tr, struct track *parent);
/* Once everything below has been added. */
void track_finish(struct track *tr);
/* True when CPU time is read for its whole subtree at once. */
bool track_cpu_is_whole(const struct track *tr);
/* Usage less inactive file pages; false when it is not known in this tick. */
bool track_working_set(const struct track *tr, uint64_t *bytes);

#endif
