/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/moments.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define assert_near(got, want)                                                                     \
	assert_true(fabs((double)(got) - (double)(want)) <= 1e-9 * fmax(1, fabs((double)(want))))

enum { SAMPLES = 1000 };

struct sample {
	double value, weight;
};

static uint64_t random_state = 88172645463325252ULL;

static double random_unit(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (double)(random_state >> 11) / 9007199254740992.0;
}

static void fill(struct sample *s, size_t count)
{
	for (size_t i = 0; i < count; i++)
		s[i] = (struct sample){random_unit() * 4000 + (i % 50 ? 0 : 60000),
				       0.01 + random_unit()};
}

/* Two passes over the data, by the definition. */
static struct moments by_definition(const struct sample *s, size_t count)
{
	struct moments m = {.samples = count, .min = INFINITY, .max = -INFINITY};

	for (size_t i = 0; i < count; i++) {
		m.weight += s[i].weight;
		m.mean += s[i].value * s[i].weight;
		m.min = fmin(m.min, s[i].value);
		m.max = fmax(m.max, s[i].value);
		m.last = s[i].value;
	}
	m.mean /= m.weight;
	for (size_t i = 0; i < count; i++)
		m.m2 += s[i].weight * (s[i].value - m.mean) * (s[i].value - m.mean);
	return m;
}

static void assert_same(const struct moments *got, const struct moments *want)
{
	assert_int_equal(got->samples, want->samples);
	assert_near(got->weight, want->weight);
	assert_near(got->mean, want->mean);
	assert_near(got->m2, want->m2);
	assert_near(got->min, want->min);
	assert_near(got->max, want->max);
	assert_near(got->last, want->last);
}

static struct moments in_one_pass(const struct sample *s, size_t count)
{
	struct moments m;

	m = (struct moments){0};
	for (size_t i = 0; i < count; i++)
		moments_add(&m, s[i].value, s[i].weight);
	return m;
}

static void test_one_pass_equals_the_definition(void **state)
{
	struct sample samples[SAMPLES];
	struct moments got, want;

	(void)state;
	fill(samples, SAMPLES);
	for (size_t count = 1; count <= SAMPLES; count += 37) {
		got = in_one_pass(samples, count);
		want = by_definition(samples, count);
		assert_same(&got, &want);
		assert_near(moments_stddev(&got), sqrt(want.m2 / want.weight));
	}
}

static void test_merge_equals_one_pass(void **state)
{
	static const size_t cuts[] = {0, 1, 2, 500, 998, 999, 1000};
	struct sample samples[SAMPLES];
	struct moments want;

	(void)state;
	fill(samples, SAMPLES);
	want = by_definition(samples, SAMPLES);
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		struct moments a = in_one_pass(samples, cuts[i]);
		struct moments b = in_one_pass(samples + cuts[i], SAMPLES - cuts[i]);

		moments_merge(&a, &b);
		assert_same(&a, &want);
	}
}

static void test_many_merges_keep_the_total(void **state)
{
	struct sample samples[SAMPLES];
	struct moments want, sum;
	struct moments32 packed = {0};

	(void)state;
	fill(samples, SAMPLES);
	want = by_definition(samples, SAMPLES);
	sum = (struct moments){0};
	for (size_t i = 0; i < SAMPLES; i += 10) {
		struct moments part = in_one_pass(samples + i, 10), kept = moments_unpack(&packed);

		moments_merge(&sum, &part);
		moments_merge(&kept, &part);
		packed = moments_pack(&kept);
	}
	assert_same(&sum, &want);
	/* Rounded to float after each of the 100 merges. */
	assert_true(fabs((double)packed.mean * (double)packed.weight / (want.mean * want.weight) -
			 1) < 1e-5);
}

static void test_values_that_do_not_count(void **state)
{
	static const struct sample ignored[] = {
		{1, 0}, {1, -1}, {1, NAN}, {1, INFINITY}, {NAN, 1}, {INFINITY, 1}, {-INFINITY, 1},
	};
	static const struct moments empty;
	struct moments m, before;

	(void)state;
	m = (struct moments){0};
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		moments_add(&m, ignored[i].value, ignored[i].weight);
	assert_memory_equal(&m, &empty, sizeof(m));
	assert_true(moments_stddev(&m) == 0);
	moments_add(&m, -5, 2);
	before = m;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		moments_add(&m, ignored[i].value, ignored[i].weight);
	assert_memory_equal(&m, &before, sizeof(m));
	assert_near(m.min, -5);
	assert_near(m.max, -5);
}

static void test_merging_the_empty(void **state)
{
	struct moments empty = {0}, m, before;
	/* Not made by moments_add; a peer may send it. */
	struct moments weightless = {.samples = 3, .mean = 7, .min = 1, .max = 9, .last = 2};

	(void)state;
	m = (struct moments){0};
	moments_add(&m, 3, 1);
	before = m;
	moments_merge(&m, &empty);
	assert_memory_equal(&m, &before, sizeof(m));
	moments_merge(&empty, &m);
	assert_memory_equal(&empty, &m, sizeof(m));
	moments_merge(&m, &weightless);
	assert_memory_equal(&m, &before, sizeof(m));
	moments_merge(&weightless, &weightless);
	assert_true(isfinite(weightless.mean));
	moments_merge(&weightless, &m);
	assert_memory_equal(&weightless, &m, sizeof(m));
}

static void test_no_variance_from_rounding(void **state)
{
	struct moments m;

	(void)state;
	m = (struct moments){0};
	for (int i = 0; i < 1000; i++)
		moments_add(&m, 0.1, 0.1);
	assert_true(moments_stddev(&m) == 0);
	assert_near(m.mean, 0.1);
	/* A negative M2 cannot come out of it, but can come in. */
	m.m2 = -1e-9;
	assert_true(moments_stddev(&m) == 0);
}

static void test_packing(void **state)
{
	struct moments m = {.samples = 1ULL << 40,
			    .weight = 0.1,
			    .mean = 1.25,
			    .m2 = 3,
			    .min = -1,
			    .max = 1e30,
			    .last = 2};
	struct moments32 packed = moments_pack(&m);
	struct moments back = moments_unpack(&packed);

	(void)state;
	assert_int_equal(sizeof(packed), 28);
	assert_int_equal(back.samples, UINT32_MAX);
	assert_true(fabs(back.weight - 0.1) < 1e-8);
	assert_near(back.mean, 1.25);
	assert_near(back.m2, 3);
	assert_near(back.min, -1);
	assert_true(fabs(back.max / 1e30 - 1) < 1e-7);
	assert_near(back.last, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_pass_equals_the_definition),
		cmocka_unit_test(test_merge_equals_one_pass),
		cmocka_unit_test(test_many_merges_keep_the_total),
		cmocka_unit_test(test_values_that_do_not_count),
		cmocka_unit_test(test_merging_the_empty),
		cmocka_unit_test(test_no_variance_from_rounding),
		cmocka_unit_test(test_packing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
