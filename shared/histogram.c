/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bucket borders are a table of powers, made by repeated multiplication, and a binary search finds
 * a value's bucket. Both ends of the wire then agree at every border, which log() of two libraries
 * would not guarantee.
 */
#include "shared/histogram.h"

#include <math.h>
#include <pthread.h>

#include "shared/arith.h"

/* border[i] = g^i: bucket i + 1 begins at x0 * border[i]. */
static double border[HISTOGRAM_BUCKETS - 1];
static pthread_once_t border_once = PTHREAD_ONCE_INIT;

static void build_borders(void)
{
	double power = 1;

	for (int i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		border[i] = power;
		power *= HISTOGRAM_GROWTH;
	}
}

unsigned int histogram_bucket(double value, double x0)
{
	unsigned int low = 0, high = HISTOGRAM_BUCKETS - 1;

	pthread_once(&border_once, build_borders);
	/* How many borders are <= value. */
	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (value >= x0 * border[middle])
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void histogram_add(struct histogram *h, double value, double x0)
{
	uint32_t *count = &h->count[histogram_bucket(value, x0)];

	*count = add_saturating_u32(*count, 1);
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->count[i] = add_saturating_u32(into->count[i], from->count[i]);
}

uint64_t histogram_total(const struct histogram *h)
{
	uint64_t total = 0;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		total += h->count[i];
	return total;
}

/*
 * Interpolates in the part of bucket i between min and max, on the logarithmic scale; part: share
 * of its samples, above 0, at most 1.
 */
static double value_within(int i, double part, double x0, double min, double max)
{
	double low, high = max, value = 0;

	if (i) {
		low = fmax(x0 * border[i - 1], min);
		if (i < HISTOGRAM_BUCKETS - 1)
			high = fmin(nextafter(x0 * border[i], 0), max);
		value = high > low ? fmin(low * pow(high / low, part), high) : high;
	}
	return fmin(fmax(value, min), max);
}

bool histogram_quantiles(const struct histogram *h, const double q[], double out[],
			 unsigned int count, double x0, double min, double max)
{
	uint64_t total = histogram_total(h), seen = h->count[0];
	int i = 0;

	if (!total)
		return false;
	pthread_once(&border_once, build_borders);
	for (unsigned int k = 0; k < count; k++) {
		double wanted = fmax(ceil(fmin(fmax(q[k], 0), 1) * (double)total), 1), before;

		while (i < HISTOGRAM_BUCKETS - 1 && (double)seen < wanted)
			seen += h->count[++i];
		before = (double)(seen - h->count[i]);
		out[k] = value_within(i, (wanted - before) / h->count[i], x0, min, max);
	}
	return true;
}

double histogram_quantile(const struct histogram *h, double q, double x0, double min, double max)
{
	double value = 0;

	histogram_quantiles(h, &q, &value, 1, x0, min, max);
	return value;
}

double histogram_at_least_mean(double percentile, double mean, double x0)
{
	return mean > percentile && histogram_bucket(mean, x0) == histogram_bucket(percentile, x0)
		       ? mean
		       : percentile;
}
