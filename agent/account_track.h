/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cgroup's counters from tick to tick: what was used since the one before, with everything
 * below it. Pure.
 */
#ifndef EVENKEEL_AGENT_ACCOUNT_TRACK_H
#define EVENKEEL_AGENT_ACCOUNT_TRACK_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler.h"
#include "agent/topology.h"
#include "agent/workload.h"

/* CPU time, then what enum usage_counter numbers. */
#define TRACKED(member) (COUNTER_##member + 1)
enum track_counter {
	TRACK_CPU,
	TRACK_THROTTLED = TRACKED(throttled_ns),
	TRACK_OOM = TRACKED(oom_kills),
	TRACK_AT_REMOVAL = TRACK_OOM, /* the first so many are known of a removed cgroup */
	TRACK_COUNTERS = COUNTERS + 1,
};

static_assert(TRACKED(throttled_periods) < (int)TRACK_AT_REMOVAL &&
		      TRACKED(periods) < (int)TRACK_AT_REMOVAL,
	      "throttling is known of removed cgroups");

/* What was used and is in no tick yet. */
struct remainder {
	uint32_t have; /* enum reading_have: of HAVE_CPU, HAVE_THROTTLE */
	uint64_t used[TRACK_AT_REMOVAL];
};

struct track {
	uint64_t serial; /* of the cgroup */
	uint64_t id; /* in the v2 hierarchy; 0: it is not there */
	int parent; /* index of its track */
	bool at_start;
	bool removed; /* removed: what is still read is not its own any more */
	bool slow_seen; /* a slow tick has read it */
	bool cpu_local; /* its last CPU reading covered its own tasks only */
	uint32_t based; /* bit per enum track_counter: `last` holds a reading */
	uint64_t last[TRACK_COUNTERS];
	uint64_t stale_cpu_ns; /* once removed: its last reading, which the topology still shows */
	struct remainder carry; /* of what was below and removed */
	/*
	 * Its own index, but for a pod with detached containers (agent/account_table.c): that of the
	 * nearest track above all.
	 */
	int holder;
	uint64_t
		pod_id; /* of a detached container: that of its pod, or of the last it had; else 0 */
	/* of detached containers that removed: for its workload, not for what is above */
	struct remainder adopted;
	int64_t cpu_at_ns; /* monotonic time up to which its CPU use has been sampled */
	struct kernel_limits own;
	struct kernel_limits effective; /* with all ancestors */
	struct workload *workload; /* borrowed; NULL: not listed */

	/* What this tick brought; after the roll-up with everything below. */
	uint32_t have; /* enum reading_have: which of these are known */
	uint64_t used[TRACK_COUNTERS];
	uint64_t oom_below;
	uint64_t mem_bytes;
	uint64_t inactive_file_bytes;
	bool inactive_whole; /* the kernel's value covered what is below already */
	bool cpu_whole; /* the same for CPU time */
};

/* first_ns: the time its first sample counts from. */
void track_init(struct track *tr, const struct cgroup *c, int64_t first_ns);
/*
 * Takes the newest reading. A life whose beginning we have not seen (at_start) begins with the
 * first reading, any other with 0. A counter that went back began a new life at 0; one that now
 * means something else (own tasks instead of the subtree, after a change of tier) begins with this
 * reading, and its use since the last is lost.
 */
void track_read(struct track *tr, const struct reading *r, bool slow);
/*
 * The cgroup was removed: what it used since its last reading, as rest. From here on its readings
 * count nothing, until one cannot be of the life that ended. False, and nothing happens, when its
 * CPU time is read for the whole subtree: then the counters above have it.
 */
bool track_remove(struct track *tr, const struct removal *d, struct remainder *rest);
/* All that a cgroup used which nothing ever read. */
struct remainder remainder_of_life(const struct removal *d);
void remainder_add(struct remainder *to, const struct remainder *rest);
/*
 * Adds what is carried to what this tick brought, before the roll-up: CPU time in any tick,
 * throttling in slow ones. Returns the CPU time. A counter of the subtree has it already.
 */
uint64_t track_join_carry(struct track *tr, bool slow);
/* Adds, after the roll-up, what this tick brought of a detached container of this pod. */
void track_adopt(struct track *pod, const struct track *container);
/*
 * The same with what was adopted of containers that removed: CPU time in any tick, throttling in
 * slow ones.
 */
void track_join_adopted(struct track *tr, bool slow);
/*
 * Limits from the reading; what it does not have is kept. parent: its track, already up to date;
 * NULL for the root.
 */
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
