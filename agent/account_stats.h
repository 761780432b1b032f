/* SPDX-License-Identifier: Apache-2.0 */
/* The running sums of a workload, or of the node, since the last publish. Pure. */
#pragma once

#include <stdint.h>

#include "shared/interval.h"
#include "shared/moments.h"

/* A gauge. `last` outlives the interval, for one without a new value. */
struct gauge_sum {
	double sum; /* value * seconds */
	double weight; /* seconds */
	double max;
	double last;
};

/* The values of a slow tick. Contention is PSI some, with throttled time. */
struct slow_use {
	uint32_t have; /* enum usage_have: all but CPU and MEMORY */
	uint64_t working_set_bytes;
	USAGE_COUNTER_UNION(USAGE_MEMBER);
};

struct stats {
	uint32_t have; /* enum usage_have, of this interval */
	uint32_t slow_have; /* of the last slow tick, for an interval without one */
	double seconds;
	struct moments cpu_milli;
	/*
	 * CPU time that belongs to the samples but is not in them; negative: too much is in them.
	 */
	double unsettled_ns;
	struct gauge_sum mem_bytes;
	struct gauge_sum working_set_bytes;
	/*
	 * CPU contention is PSI less throttled time, possibly negative (as int64_t): the kernel
	 * updates PSI every 2 s and throttled time at its end, so the other side follows. Newest
	 * values outlive the interval, too.
	 */
	USAGE_COUNTER_UNION(USAGE_MEMBER);
};

/*
 * Adds one sample of used_ns of CPU time over dt_ns (> 0) of wall time; returns the rate in
 * millicores. Time beyond the capacity (a cgroup found late, jitter of the tick) is left unsettled.
 * capacity_milli 0: unknown, no bound.
 */
double stats_add_cpu(struct stats *s, double used_ns, int64_t dt_ns, int64_t capacity_milli);
/*
 * Before packing: spreads the unsettled time over the samples; what would move their mean beyond 0
 * or the capacity stays for the next interval.
 */
void stats_settle(struct stats *s, int64_t capacity_milli);
void stats_add_memory(struct stats *s, uint64_t bytes, int64_t dt_ns);
void stats_add_throttle(struct stats *s, uint64_t throttled_ns, uint64_t periods,
			uint64_t throttled_periods);
/* dt_ns: since the slow tick before. */
void stats_add_slow(struct stats *s, const struct slow_use *use, int64_t dt_ns);
void stats_pack(const struct stats *s, struct usage *usage);
/* Begins the next interval. */
void stats_next(struct stats *s);
