/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cgroup's counters from tick to tick: its use since the tick before, with all cgroups below.
 * Pure.
 */
#pragma once

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
	TRACK_AT_REMOVAL = TRACK_OOM, /* the first so many are known at a removal */
	TRACK_COUNTERS = COUNTERS + 1,
};

static_assert(TRACKED(throttled_periods) < (int)TRACK_AT_REMOVAL &&
		      TRACKED(periods) < (int)TRACK_AT_REMOVAL,
	      "throttling is known of removed cgroups");

/* Use that is in no tick yet. */
struct remainder {
	uint32_t have; /* enum reading_have: of HAVE_CPU, HAVE_THROTTLE */
	uint64_t used[TRACK_AT_REMOVAL];
};

struct track {
	uint64_t serial; /* of the cgroup */
	uint64_t id; /* in the v2 hierarchy; 0: none */
	int parent; /* index of its track */
	bool at_start;
	bool removed; /* readings are stale until a new cgroup takes its place */
	bool slow_seen; /* a slow tick has read it */
	bool cpu_local; /* the last CPU reading is of its own tasks only */
	uint32_t based; /* bit per enum track_counter: `last` holds a reading */
	uint64_t last[TRACK_COUNTERS];
	uint64_t stale_cpu_ns; /* once removed: the last reading, which the topology still has */
	struct remainder carry; /* of removed cgroups below */
	/*
	 * Index of the cgroup whose limits bind: its own; for a pod with detached containers
	 * (account_table.c) the nearest common ancestor.
	 */
	int holder;
	uint64_t pod_id; /* of a detached container: the id of its (last) pod; else 0 */
	/* of removed detached containers: for its workload, not its ancestors */
	struct remainder adopted;
	int64_t cpu_at_ns; /* monotonic time up to which its CPU use has been sampled */
	int64_t period_ns; /* of its quota; 0: unknown */
	int64_t cpus_milli; /* of its CPUs (cpusets.h); LIMIT_NONE: all of the machine's */
	struct kernel_limits own;
	struct kernel_limits effective; /* with all ancestors */
	struct workload *workload; /* borrowed; NULL: not listed */

	/* This tick; after the roll-up with all cgroups below. */
	uint32_t have; /* enum reading_have of these */
	uint64_t used[TRACK_COUNTERS];
	uint64_t oom_below;
	uint64_t mem_bytes;
	uint64_t inactive_file_bytes;
	bool inactive_whole; /* the kernel's value covers the subtree */
	bool cpu_whole; /* the same for CPU time */
};

/* first_ns: begin of the first sample. */
void track_init(struct track *tr, const struct cgroup *c, int64_t first_ns);
/*
 * Takes the newest reading. The baseline is the first reading for a cgroup that existed at start
 * (at_start), else 0. A counter that went back began anew at 0. A counter with another meaning (own
 * tasks instead of the subtree, after a change of tier) gets a new baseline; the use since the last
 * reading is lost.
 */
void track_read(struct track *tr, const struct reading *r, bool slow);
/* Memory protection of a cgroup is at most its parent's; top-level ones have no such bound. */
void track_bound_protection(struct track *tr, const struct track *parent);
/*
 * Ends a removed cgroup: its use since the last reading becomes *rest. Later readings are ignored
 * until one belongs to another cgroup. False, without any effect, if its CPU time is read for the
 * whole subtree: the counters above have the use.
 */
bool track_remove(struct track *tr, const struct removal *d, struct remainder *rest);
/* The whole use of a cgroup without a reading. */
struct remainder remainder_of_life(const struct removal *d);
void remainder_add(struct remainder *to, const struct remainder *rest);
/*
 * Before the roll-up: adds the carried use to this tick, CPU time in any tick, throttling in slow
 * ones. Returns the CPU time. A counter of the subtree has it already.
 */
uint64_t track_join_carry(struct track *tr, bool slow);
/* After the roll-up: adds this tick of a detached container to its pod. */
void track_adopt(struct track *pod, const struct track *container);
/* The same with the use of removed detached containers. */
void track_join_adopted(struct track *tr, bool slow);
/*
 * Takes the limits of the reading and cpus_milli; others stay. parent: its track, already up to
 * date; NULL for the root.
 */
void track_read_limits(struct track *tr, const struct reading *r, const struct track *parent);
/* Adds tr to its parent, after all cgroups below tr were added to tr. */
void track_roll_up(const struct track *tr, struct track *parent);
/* After all cgroups below were added. */
void track_finish(struct track *tr);
/* True if its CPU counter covers the subtree. */
bool track_cpu_is_whole(const struct track *tr);
/* Usage less inactive file pages; false: unknown in this tick. */
bool track_working_set(const struct track *tr, uint64_t *bytes);
