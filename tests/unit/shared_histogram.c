/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/histogram.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static const double origins[] = {HISTOGRAM_CPU_X0, HISTOGRAM_MEMORY_X0, 0.3};

enum { LAST = HISTOGRAM_BUCKETS - 1 };

/* Bucket i begins at x0 * g^(i-1); g^n is the n-fold product, which is what both ends compute. */
static void test_borders(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(origins) / sizeof(origins[0]); k++) {
		double x0 = origins[k], power = 1;

		for (unsigned int i = 1; i < HISTOGRAM_BUCKETS; i++) {
			double begin = x0 * power;

			assert_int_equal(histogram_bucket(begin, x0), i);
			assert_int_equal(histogram_bucket(nextafter(begin, 0), x0), i - 1);
			assert_true(fabs(begin / (x0 * pow(HISTOGRAM_GROWTH, i - 1)) - 1) < 1e-12);
			power *= HISTOGRAM_GROWTH;
		}
	}
}

static void test_edges(void **state)
{
	static const struct {
		double value;
		unsigned int bucket;
	} cases[] = {
		{0, 0}, {-0.0, 0},   {-5, 0},	     {NAN, 0},	 {-INFINITY, 0}, {0.999, 0},
		{1, 1}, {1.0999, 1}, {1.1000001, 2}, {1000, 73}, {1e12, LAST},	 {INFINITY, LAST},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(histogram_bucket(cases[i].value, 1), cases[i].bucket);
	/* Capacity: about 25,000 CPUs, or 24 TiB of memory, before the open bucket. */
	assert_true(histogram_bucket(20e6, HISTOGRAM_CPU_X0) < LAST);
	assert_true(histogram_bucket(20 * 0x1p40, HISTOGRAM_MEMORY_X0) < LAST);
}

static void test_add_and_merge(void **state)
{
	struct histogram a = {0}, b = {0};

	(void)state;
	assert_int_equal(histogram_total(&a), 0);
	histogram_add(&a, 0, 1);
	histogram_add(&a, 5, 1);
	histogram_add(&b, 5, 1);
	histogram_add(&b, 1e9, 1);
	b.count[7] = UINT32_MAX - 1;
	a.count[7] = 3;
	histogram_merge(&a, &b);
	assert_int_equal(a.count[0], 1);
	assert_int_equal(a.count[histogram_bucket(5, 1)], 2);
	assert_int_equal(a.count[LAST], 1);
	assert_int_equal(a.count[7], UINT32_MAX);
	assert_int_equal(histogram_total(&a), 4ULL + UINT32_MAX);
	a.count[0] = UINT32_MAX;
	histogram_add(&a, 0, 1);
	assert_int_equal(a.count[0], UINT32_MAX);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Against the sorted samples: within a bucket, and mostly closer. */
static void test_quantiles_of_known_samples(void **state)
{
	enum { SAMPLES = 1000 };

	static const double shares[] = {0.001, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1};
	enum { SHARES = sizeof(shares) / sizeof(shares[0]) };
	double values[SAMPLES], together[SHARES], sum = 0;
	struct histogram h = {0};
	uint64_t random = 42;

	(void)state;
	for (int i = 0; i < SAMPLES; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		values[i] = pow(10, (double)(random >> 40) / (1 << 24) * 5); /* 1..100,000 */
		histogram_add(&h, values[i], 1);
	}
	qsort(values, SAMPLES, sizeof(values[0]), compare);
	assert_true(histogram_quantiles(&h, shares, together, SHARES, 1, values[0],
					values[SAMPLES - 1]));
	for (size_t i = 0; i < SHARES; i++) {
		double want = values[(int)ceil(shares[i] * SAMPLES - 1e-9) - 1];
		double got = histogram_quantile(&h, shares[i], 1, values[0], values[SAMPLES - 1]);

		assert_true(fabs(got / want - 1) <= 0.1);
		sum += fabs(got / want - 1);
		assert_true(together[i] == got);
	}
	assert_true(sum / SHARES < 0.02);
}

/* Whatever the samples: in order, between the least and the most, and the last is the most. */
static void test_quantiles_are_in_order(void **state)
{
	static const double shares[] = {0.01, 0.5, 0.95, 0.99, 1};
	uint64_t random = 7;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		double min = INFINITY, max = 0, out[5];
		struct histogram h = {0};
		int count = 1 + round % 40;

		for (int i = 0; i < count; i++) {
			double value;

			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			value = pow(10, (double)(random >> 40) / (1 << 24) * (1 + round % 9)) - 1;
			histogram_add(&h, value, 1);
			min = fmin(min, value);
			max = fmax(max, value);
		}
		assert_true(histogram_quantiles(&h, shares, out, 5, 1, min, max));
		for (int i = 0; i < 5; i++)
			assert_true(out[i] >= (i ? out[i - 1] : min) && out[i] <= max);
		assert_true(fabs(out[4] - max) <= 1e-12 * max || max < 1); /* bucket 0 is 0 */
	}
}

static void test_quantile_edges(void **state)
{
	struct histogram h = {0};
	double untouched = 7;

	(void)state;
	assert_true(histogram_quantile(&h, 0.5, 1, 3, 9) == 0);
	assert_false(histogram_quantiles(&h, (double[]){0.5}, &untouched, 1, 1, 3, 9));
	assert_true(untouched == 7);
	histogram_add(&h, 0, 1);
	assert_true(histogram_quantile(&h, 0.5, 1, 0, 0) == 0);
	/* Below x0, but not nothing: never less than what was seen. */
	assert_true(histogram_quantile(&h, 0.5, 1, 0.4, 0.4) == 0.4);
	histogram_add(&h, 100, 1);
	histogram_add(&h, 100, 1);
	assert_true(histogram_quantile(&h, 0.5, 1, 0, 100) > 95);
	assert_true(histogram_quantile(&h, 0.5, 1, 0, 100) <= 100);
	assert_true(histogram_quantile(&h, 0, 1, 0, 100) == 0);
	assert_true(histogram_quantile(&h, -3, 1, 0, 100) == 0);
	assert_true(histogram_quantile(&h, NAN, 1, 0, 100) == 0);
	assert_true(histogram_quantile(&h, 1, 1, 0, 100) > 95);
	/* Beyond 1 is the last sample, not the open bucket. */
	assert_true(histogram_quantile(&h, 1.5, 1, 0, 1e9) < 107);
	h = (struct histogram){0};
	histogram_add(&h, 1e30, 1);
	assert_true(histogram_quantile(&h, 0.5, 1, 1e30, 1e30) == 1e30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_borders),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_add_and_merge),
		cmocka_unit_test(test_quantiles_of_known_samples),
		cmocka_unit_test(test_quantiles_are_in_order),
		cmocka_unit_test(test_quantile_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
