/* SPDX-License-Identifier: Apache-2.0 */
/* Time-weighted mean and variance of a rate, one pass, mergeable. */
#pragma once

#include <stdint.h>

/*
 * Weighted Welford (D. H. D. West, CACM 22(9), 1979): with W' = W + w,
 *   mean' = mean + (w / W') (x - mean),   M2' = M2 + w (x - mean)(x - mean').
 * Merging two sets (Chan, Golub, LeVeque 1979): d = mean_b - mean_a,
 *   mean = mean_a + d W_b / W,   M2 = M2_a + M2_b + d^2 W_a W_b / W.
 * The variance is the population's, M2 / W. An empty set has samples = 0 and every other member 0.
 */
struct moments {
	uint64_t samples;
	double weight; /* seconds covered */
	double mean;
	double m2;
	double min;
	double max;
	double last;
};

/* The packed form on the wire and in memory: 28 bytes. */
struct moments32 {
	uint32_t samples;
	float weight;
	float mean;
	float m2;
	float min;
	float max;
	float last;
};

/* Adds a value for weight seconds; ignores weight <= 0 and values that are not finite. */
void moments_add(struct moments *m, double value, double weight);
/* Adds `from`, which is later (its last counts), to into. An empty set changes nothing. */
void moments_merge(struct moments *into, const struct moments *from);
/* Standard deviation; 0 for an empty set, never negative, never NaN. */
double moments_stddev(const struct moments *m);

struct moments32 moments_pack(const struct moments *m);
struct moments moments_unpack(const struct moments32 *m);
