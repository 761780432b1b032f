/* SPDX-License-Identifier: Apache-2.0 */
/* Loans and fair shares; cases of other schedulers' tests where they share by the same rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/quota/quota_share.h"
#include "tests/quota_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- parts by weight -------------------------------------------------------------------------- */

enum { CLAIMANTS_MAX = 12 };

static const struct sharing {
	int64_t total, left;
	/* with the shares expected; weight and need 0: no more */
	struct quota_claimant claimants[CLAIMANTS_MAX];
} sharings[] = {
	{10, 0, {{1, 100, 5}, {1, 100, 5}}},
	{10, 0, {{1, 100, 4}, {1, 100, 3}, {1, 100, 3}}}, /* of equal rests the first */
	{10, 0, {{1, 100, 2}, {2, 100, 3}, {3, 100, 5}}}, /* 1.67, 3.33, 5 */
	{10, 0, {{0.5, 100, 5}, {0.5, 100, 5}}},
	{10, 0, {{1, 2, 2}, {1, 100, 8}}}, /* who needs less leaves the rest */
	{10, 7, {{1, 2, 2}, {1, 1, 1}}},
	{10, 10, {{0, 5, 0}}}, /* no weight, no share */
	{10, 5, {{0, 5, 0}, {1, 5, 5}}},
	{0, 0, {{1, 5, 0}}},
	{INT64_MAX, 0, {{1, INT64_MAX, INT64_MAX / 2 + 1}, {1, INT64_MAX, INT64_MAX / 2}}},
	/*
	 * What Koordinator's runtime calculator shares after each has min(request, min) or its
	 * guarantee; the bases are off.
	 */
	{45, 20, {{60, 5, 5}, {50, 20, 20}, {0, 55, 0}}}, /* case2: node2, node3, node4 */
	{15, 0, {{60, 5, 5}, {50, 20, 10}, {0, 25, 0}}}, /* case3 */
	{3,
	 0,
	 {{1, 92, 1},
	  {1, 92, 1},
	  {1, 92, 1},
	  {1, 92, 0},
	  {1, 92, 0},
	  {1, 92, 0},
	  {1, 92, 0},
	  {1, 92, 0},
	  {1, 93, 0},
	  {1, 93, 0}}}, /* IntegerDistribution */
};

static void shares_are_whole_and_by_weight(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(sharings); i++) {
		const struct sharing *s = &sharings[i];
		struct quota_claimant got[CLAIMANTS_MAX];
		size_t count = 0;

		memcpy(got, s->claimants, sizeof(got));
		while (count < CLAIMANTS_MAX && (got[count].weight > 0 || got[count].need))
			count++;
		assert_int_equal(quota_share_out(s->total, got, count), s->left);
		for (size_t k = 0; k < count; k++)
			if (got[k].share != s->claimants[k].share)
				fail_msg("sharing %zu, claimant %zu gets %lld", i, k,
					 (long long)got[k].share);
	}
}

/*
 * Nobody gets more than it needs, all is given unless nobody needs more, and no unit is lost,
 * whatever the numbers.
 */
static void random_shares_add_up(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct quota_claimant c[8];
		int64_t total, left, given = 0, unmet = 0;

		for (int i = 0; i < 8; i++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			c[i].weight = (double)(seed >> 60) / 4;
			c[i].need = (int64_t)(seed >> 33) % 1000;
		}
		total = (int64_t)(seed >> 40) % 5000;
		left = quota_share_out(total, c, 8);
		for (int i = 0; i < 8; i++) {
			assert_true(c[i].share >= 0 && c[i].share <= c[i].need);
			given += c[i].share;
			unmet += c[i].weight > 0 ? c[i].need - c[i].share : 0;
		}
		assert_int_equal(given + left, total);
		assert_true(left == 0 || unmet == 0);
	}
}

/* --- quotas ----------------------------------------------------------------------------------- */

struct lender {
	const char *namespace;
	int64_t min, max, used, pending; /* of CPU; max 0: none */
	double weight;
};

static struct quota_book *book_of(const struct lender *rows, size_t count)
{
	struct quota quotas[4];
	struct quota_options o;

	for (size_t i = 0; i < count; i++) {
		quotas[i] = (struct quota){.namespace = rows[i].namespace,
					   .name = "eq",
					   .has_min = true,
					   .has_max = rows[i].max > 0,
					   .weight = rows[i].weight};
		resources_set(&quotas[i].min, RESOURCE_CPU, rows[i].min);
		resources_set(&quotas[i].used, RESOURCE_CPU, rows[i].used);
		resources_set(&quotas[i].used, RESOURCE_MEMORY, 1); /* nobody is guaranteed any */
		resources_set(&quotas[i].pending, RESOURCE_CPU, rows[i].pending);
		if (rows[i].max)
			resources_set(&quotas[i].max, RESOURCE_CPU, rows[i].max);
	}
	quota_options_default(&o);
	return quota_fixture_book(quotas, count, &o);
}

/* Of CPU; below 0: it is not known. */
static void set_capacity(struct quota_book *b, int64_t amount)
{
	struct resources capacity = RESOURCES_NONE;

	resources_set(&capacity, RESOURCE_CPU, amount);
	if (amount >= 0)
		quota_book_set_capacity(b, &capacity);
}

static const struct lending {
	int64_t capacity;
	struct lender quotas[3]; /* by namespace */
	struct quota_share expect[3]; /* min, used, wanted, borrowed, lent, fair */
	bool alarm;
} lendings[] = {
	/* One borrows of another. */
	{-1,
	 {{"a", 4000, 0, 1000, 0, 1}, {"b", 4000, 0, 6000, 0, 1}},
	 {{4000, 1000, 1000, 0, 2000, 1000}, {4000, 6000, 6000, 2000, 0, 6000}},
	 false},
	/* What is borrowed comes of both lenders, in proportion to what they leave. */
	{-1,
	 {{"a", 3000, 0, 0, 0, 1}, {"b", 1000, 0, 0, 0, 1}, {"c", 0, 0, 1000, 0, 1}},
	 {{3000, 0, 0, 0, 750, 0}, {1000, 0, 0, 0, 250, 0}, {0, 1000, 1000, 1000, 0, 1000}},
	 false},
	/*
	 * Two want what the third leaves, one with twice the weight; what waits counts as wanted.
	 */
	{-1,
	 {{"a", 3000, 0, 0, 0, 1}, {"b", 1000, 0, 4000, 3000, 1}, {"c", 1000, 0, 1000, 6000, 2}},
	 {{3000, 0, 0, 0, 3000, 0},
	  {1000, 4000, 7000, 3000, 0, 2000},
	  {1000, 1000, 7000, 0, 0, 3000}},
	 false},
	/* No more than max is wanted. */
	{-1,
	 {{"a", 3000, 0, 0, 0, 1}, {"b", 1000, 1500, 1000, 6000, 1}},
	 {{3000, 0, 0, 0, 0, 0}, {1000, 1000, 1500, 0, 0, 1500}},
	 false},
	/* Use above max stays wanted. */
	{-1,
	 {{"a", 3000, 0, 0, 0, 1}, {"b", 1000, 1500, 2000, 6000, 1}},
	 {{3000, 0, 0, 0, 1000, 0}, {1000, 2000, 2000, 1000, 0, 2000}},
	 false},
	/* 10 cores are promised, and there are 5. */
	{5000,
	 {{"a", 4000, 0, 1000, 0, 1}, {"b", 6000, 0, 3500, 0, 1}},
	 {{2000, 1000, 1000, 0, 500, 1000}, {3000, 3500, 3500, 500, 0, 3500}},
	 true},
	{10000,
	 {{"a", 4000, 0, 0, 0, 1}, {"b", 6000, 0, 0, 0, 1}},
	 {{4000, 0, 0, 0, 0, 0}, {6000, 0, 0, 0, 0, 0}},
	 false},
	/* 3999.6 and 5999.4 of it: the larger rest gets what is left. */
	{9999,
	 {{"a", 4000, 0, 0, 0, 1}, {"b", 6000, 0, 0, 0, 1}},
	 {{4000, 0, 0, 0, 0, 0}, {5999, 0, 0, 0, 0, 0}},
	 true},
};

static void same_share(size_t at, const char *namespace, const struct quota_share *got,
		       const struct quota_share *want)
{
	if (memcmp(got, want, sizeof(*got)) != 0)
		fail_msg("lending %zu, %s: min %lld used %lld wanted %lld borrowed %lld lent %lld "
			 "fair %lld",
			 at, namespace, (long long)got->min, (long long)got->used,
			 (long long)got->wanted, (long long)got->borrowed, (long long)got->lent,
			 (long long)got->fair);
}

static void loans_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(lendings); i++) {
		const struct lending *l = &lendings[i];
		struct quota_share_sum sum;
		struct quota_share got[3];
		struct quota_book *b;
		size_t count = 0;

		while (count < 3 && l->quotas[count].namespace)
			count++;
		b = book_of(l->quotas, count);
		set_capacity(b, l->capacity);
		quota_share_read(b, "cpu", got, &sum);
		for (size_t k = 0; k < count; k++)
			same_share(i, l->quotas[k].namespace, &got[k], &l->expect[k]);
		assert_int_equal(sum.alarm.text[0] != '\0', l->alarm);
		quota_book_free(b);
	}
}

static void the_alarm_has_the_numbers(void **state)
{
	const struct lending *l = &lendings[5];
	struct quota_book *b = book_of(l->quotas, 2);
	struct quota_share_sum sum;
	struct quota_share got[2];

	(void)state;
	set_capacity(b, 5000);
	quota_share_read(b, "cpu", got, &sum);
	assert_string_equal(
		sum.alarm.text,
		"cpu: quotas guarantee 10.0 together, and the cluster has 5.0: every min "
		"counts as a part of that; lower some, or add nodes");
	assert_int_equal(sum.min, 10000);
	assert_int_equal(sum.guaranteed, 5000);
	assert_int_equal(sum.borrowed, 500);
	assert_int_equal(sum.lent, 500);
	assert_int_equal(sum.unused, 1000);
	quota_share_read(b, "memory", got, &sum);
	assert_int_equal(sum.min, 0);
	assert_int_equal(got[0].used, 0);
	quota_book_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_whole_and_by_weight),
		cmocka_unit_test(random_shares_add_up),
		cmocka_unit_test(loans_are_told),
		cmocka_unit_test(the_alarm_has_the_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
