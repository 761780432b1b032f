/* SPDX-License-Identifier: Apache-2.0 */
/* What one workload, or the node, did since the last publish, while it adds up. Pure. */
#ifndef EVENKEEL_AGENT_ACCOUNT_STATS_H
#define EVENKEEL_AGENT_ACCOUNT_STATS_H

#include <stdint.h>

#include "shared/interval.h"
#include "shared/moments.h"

/*
 * A gauge while it adds up. `last` outlives the interval, so that one without a new value can
 * repeat it.
 */
struct gauge_sum {
	double sum; /* value * seconds */
	double weight; /* seconds */
	double max;
	double last;
};

/* One slow tick's part. Contention is PSI some: throttled time is not taken off yet. */
struct slow_use {
	uint32_t have; /* enum usage_have: all but CPU and MEMORY */
	uint64_t working_set_bytes;
	USAGE_COUNTER_UNION(USAGE_MEMBER);
};

struct stats {
	uint32_t have; /* enum usage_have, of this interval */
	uint32_t slow_have; /* of the last slow tick: still known when an interval has none */
	double seconds;
	struct moments cpu_milli;
	/*
	 * CPU time that belongs to the samples but is in none; negative: in them, but never used.
	 */
	double unsettled_ns;
	struct gauge_sum mem_bytes;
	struct gauge_sum working_set_bytes;
	/*
	 * Contention for CPU is PSI less throttling, possibly negative (as int64_t): the kernel
	 * brings PSI up to date every 2 s and throttled time when it ends, so what is missing on
	 * one side comes later. What is newest outlives the interval, too.
	 */
	USAGE_COUNTER_UNION(USAGE_MEMBER);
};

/*
 * used_ns of CPU time over dt_ns (> 0) of wall time, counted as one sample; returns the rate in
 * millicores. What the machine could not have done in that time (a cgroup that was found late,
 * jitter of the tick) is left unsettled. capacity_milli 0: not known, no bound.
 */
double stats_add_cpu(struct stats *s, double used_ns, int64_t dt_ns, int64_t capacity_milli);
/*
 * Before packing: spreads what is unsettled over the samples; what would take their mean beyond 0
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

#endif
