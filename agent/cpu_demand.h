/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demand for CPU of a workload: its use, and what throttling cut off. Pure.
 *
 * The rate of a sample is its use divided by its time, as all rates are. Throttled time is read once
 * a second, with the slow values, for the samples since the last slow reading:
 *
 *	T   mean time of a sample		k  throttled periods
 *	P   period of the quota, 0.1 s unless known
 *	t   throttled time, the sum over the CPUs whose run queues waited for the next period
 *	n = ceil(k P / T), at least 1, at most the number of samples
 *	U   mean rate of the n samples with the highest rates
 *	W = t / max(n T, k P)  CPUs that waited, on average over these samples
 *	c = ceil(U + W)        the least number of CPUs that this takes
 *	d = U / (c - W)        share of its unthrottled time in which it had work, at most 1
 *
 *	demand = U + d W	in these n samples; in the others it is their rate
 *
 * A cgroup is throttled when its quota is used up, so the samples with the highest rates are the
 * throttled ones, and differ only by where they begin within a period. In a period of length P in
 * which c CPUs ran it for r each until the quota was used up, its use is c d r and t is c (P - r):
 * with the same d it would have used c d P. So a workload that always has work (d = 1) is measured
 * exactly, whatever its quota, and so is one with short gaps if it needs all of c. Readings are up to
 * a twentieth off: c is a twentieth of a CPU less, and c - W a twentieth of c less. The kernel counts
 * throttling at the end of a period, so k P may be longer than the time between two readings.
 *
 * Bounds: demand is at least the use and at most the machine's capacity. It is too high for work
 * that would have ended within the period, since the rest of the work is in the sample after as well,
 * and for a workload with gaps on more CPUs than c.
 * Throttling by the quota of a cgroup above is not counted.
 */
#pragma once

#include <stdint.h>

#include "shared/buf.h"
#include "shared/histogram.h"

enum { DEMAND_SAMPLES = 24 }; /* between two slow readings, at most */

/* All zero: nothing yet. */
struct demand {
	uint32_t count; /* of milli: samples since the last slow reading */
	float milli[DEMAND_SAMPLES];
	struct histogram histogram; /* of the interval, without those */
};

/* Readings of a workload's throttling since the last slow one. */
struct demand_throttle {
	uint64_t throttled_ns, throttled_periods;
	int64_t period_ns; /* of the quota; 0: unknown */
	int64_t dt_ns; /* since the last slow reading */
};

/* Adds the rate of a sample. */
void demand_add(struct demand *d, double milli);
/* Corrects and counts the samples since the last call; capacity_milli 0: unknown, no bound. */
void demand_settle(struct demand *d, const struct demand_throttle *t, int64_t capacity_milli);
/* Appends the interval's histogram (shared/demand.h) and begins the next one. */
void demand_publish(struct demand *d, struct buf *out);
