/* SPDX-License-Identifier: Apache-2.0 */
/* Log-bucket histogram: percentiles within 10 %, mostly 1 %, from 180 counters. Part of the wire format. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Bucket 0 has values below x0 (of a rate: none); bucket i >= 1 has x0 * g^(i-1) <= x < x0 * g^i, g
 * = 1.1; the last bucket is open. Within its bucket a percentile assumes evenly spread samples on
 * the logarithmic scale, within [min, max].
 */
enum { HISTOGRAM_BUCKETS = 180 };

#define HISTOGRAM_GROWTH    1.1
#define HISTOGRAM_CPU_X0    1.0 /* millicores */
#define HISTOGRAM_MEMORY_X0 1048576.0 /* bytes */

struct histogram {
	uint32_t count[HISTOGRAM_BUCKETS]; /* samples, saturating */
};

/* The bucket of a value; negative and NaN count as 0. */
unsigned int histogram_bucket(double value, double x0);
void histogram_add(struct histogram *h, double value, double x0);
void histogram_merge(struct histogram *into, const struct histogram *from);
uint64_t histogram_total(const struct histogram *h);
/*
 * The value below which a share q (0..1) of the samples lies: the bucket of sample ceil(q * total),
 * at least the first. 0 for an empty histogram.
 */
double histogram_quantile(const struct histogram *h, double q, double x0, double min, double max);
/* For `count` ascending shares, in one pass. False, without a result, for an empty histogram. */
bool histogram_quantiles(const struct histogram *h, const double q[], double out[],
			 unsigned int count, double x0, double min, double max);
/*
 * The percentile, or the mean of the same samples if that is larger and in the same bucket: then
 * the samples are not even there. So no percentile from the 95th on is below the mean by less than
 * a bucket.
 */
double histogram_at_least_mean(double percentile, double mean, double x0);
