/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beta distribution against values computed with 40 digits (mpmath), and against what must hold
 * for any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "aggregator/policy/score/plugin.h"
#include "aggregator/policy/score/risk.h"
#include "tests/usage_fixture.h"

static void test_distribution(void **state)
{
	static const struct {
		double a, b, x, p;
	} cases[] = {
		{2, 2, 0.5, 0.5},
		{0.5, 0.5, 0.1, 0.20483276469913346},
		{1, 3, 0.2, 0.488},
		{5, 2, 0.9, 0.88573500000000004},
		{30, 70, 0.25, 0.13581490428342744},
		{392, 19207, 0.021, 0.84118708992374345},
		{12.5, 29.2, 0.375, 0.85505559762463076},
		{0.01, 0.02, 0.3, 0.66117842725110733},
		{3, 500000, 1e-05, 0.87535092835476373},
		/* steep */
		{1e4, 2e4, 0.334, 0.59724642295333413},
		{2e6, 3e6, 0.4003, 0.91453993206837446},
		{1e7, 1e7, 0.49995, 0.32736042462364854},
		/* far out */
		{900, 1100, 0.2, 1.9248421510125698e-140},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double got = beta_distribution((struct beta){cases[i].a, cases[i].b}, cases[i].x);

		if (!(fabs(got - cases[i].p) <= 1e-11 * cases[i].p))
			fail_msg("case %zu: %.17g", i, got);
	}
}

static void test_edges(void **state)
{
	static const struct beta none[] = {{0, 1}, {1, 0}, {-1, 1}, {NAN, 1}, {INFINITY, INFINITY}};
	static const double moments[][2] = {
		{-1, 0.1}, {2, 0.1}, {0.5, -1}, {0.5, 0.25}, {NAN, 0.1}};
	struct beta fit;
	static const struct beta some[] = {{1e-300, 2}, {1, 1e300}, {5e-324, 5e-324}, {1e9, 1e-9}};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_true(beta_distribution(none[i], 0.5) == 0);
	}
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
		for (int x = 0; x <= 10; x++) {
			double p = beta_distribution(some[i], x / 10.0);

			assert_true(p >= 0 && p <= 1);
		}
	for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++)
		assert_false(beta_match(moments[i][0], moments[i][1], &fit));
	assert_true(beta_distribution((struct beta){2, 2}, NAN) == 0);
	assert_true(beta_distribution((struct beta){2, 2}, -1) == 0);
	assert_true(beta_distribution((struct beta){2, 2}, 2) == 1);
}

/*
 * Any fitted distribution has the moments it was fitted to, never falls, and mirrors itself; also
 * where the way of computing it changes.
 */
static void test_any(void **state)
{
	uint32_t seed = 7;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		double mean = fixture_random(&seed), last = 0, sum;
		double variance =
			beta_variance_max(mean) * 0.99 * pow(10, -7 * fixture_random(&seed));
		struct beta d;

		assert_true(beta_match(mean, variance, &d));
		sum = d.a + d.b;
		assert_true(fabs(d.a / sum - mean) < 1e-12);
		assert_true(fabs(d.a / sum * (d.b / sum) / (sum + 1) - variance) < 1e-12);
		for (int z = -40; z <= 40; z++) {
			double x = mean + z / 8.0 * sqrt(variance);
			double p = beta_distribution(d, x);
			double q = beta_distribution((struct beta){d.b, d.a}, 1 - x);

			if (!(x > 0 && x < 1))
				continue;
			if (!(p >= last - 1e-10 && fabs(p + q - 1) < 1e-8))
				fail_msg("%.17g %.17g at %.17g: %g after %g, %g", d.a, d.b, x, p,
					 last, q);
			last = p;
		}
	}
}

/* Measurements beyond the capacity, or below nothing, count as the whole of it, or nothing. */
static void test_variation_bounds(void **state)
{
	static const struct {
		struct resource_stats stats; /* capacity, request, mean and standard deviation */
		double mu, sigma;
	} cases[] = {
		{{1, 0, 0.25, 0.25}, 0.25, 0.25},
		{{1, -5, 0.25, 0.25}, 0.25, 0.25},
		{{1, 0.25, 0.25, 0}, 0.5, 0},
		{{4, 0, -1, -1}, 0, 0},
		{{4, 0, 5, 5}, 1, 1},
		{{4, 3, 3, 1}, 1, 0.25},
		{{0, 1, 1, 1}, 0, 0},
	};
	struct score_args args;

	(void)state;
	score_args_default(&args, SCORE_CORRECTED);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct variation_risk risk;

		variation_risk(SCORE_CORRECTED, &args, &cases[i].stats, &risk);
		if (risk.mu != cases[i].mu || risk.sigma != cases[i].sigma)
			fail_msg("case %zu: %g, %g", i, risk.mu, risk.sigma);
	}
}

/* More variance than any distribution has between 0 and 1: the mean decides, but for upstream. */
static void test_impossible_variance(void **state)
{
	static const struct {
		enum score_variant variant;
		double mu, threshold, want;
	} cases[] = {{SCORE_CORRECTED, 0.5, 0.6, 1},
		     {SCORE_CORRECTED, 0.5, 0.4, 0},
		     {SCORE_UPSTREAM, 0.5, 0.6, 0}};
	struct beta fit;
	bool fitted;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(commitment_probability(cases[i].variant, cases[i].mu, 0.6,
						   cases[i].threshold, &fitted,
						   &fit) == cases[i].want);
		assert_false(fitted);
	}
	assert_int_equal(score_round(-1.5), -2);
	assert_int_equal(score_round(2e6 + 0.5), 2000001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distribution),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_variation_bounds),
		cmocka_unit_test(test_impossible_variance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
