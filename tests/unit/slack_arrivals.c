/* SPDX-License-Identifier: Apache-2.0 */
/* What arrives while a node starts: each pod once, quiet times too, and no more than is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "aggregator/policy/slack/slack.h"

#define SECOND 1000000000LL
#define SPAN   (180 * SECOND)
#define START  (1000000 * SPAN)

static const struct slack_amount small = {500, 1000}, large = {2000, 100};

struct born {
	int64_t at_ns;
	const struct slack_amount *shape;
};

static void look(struct slack_arrivals *a, int64_t now_ns, const struct born *pods, size_t count)
{
	slack_arrivals_begin(a, now_ns);
	for (size_t i = 0; i < count; i++)
		if (pods[i].at_ns <= now_ns)
			slack_arrivals_add(a, pods[i].at_ns, pods[i].shape);
	slack_arrivals_end(a, now_ns);
}

/*
 * In one span of 40 three small pods and a large one, in two others one small: of 40 the 38th is
 * the third from the top.
 */
static void each_pod_counts_once_and_quiet_spans_count(void **state)
{
	const struct born pods[] = {
		{START - 100 * SPAN, &large},
		{START + 3 * SPAN + 7, &small},
		{START + 10 * SPAN + 1, &small},
		{START + 20 * SPAN + 1, &small},
		{START + 20 * SPAN + 90 * SECOND, &small},
		{START + 20 * SPAN + 91 * SECOND, &small},
		{START + 20 * SPAN + 92 * SECOND, &large},
	};
	int64_t end = START + 40 * SPAN + 5 * SECOND;
	struct slack_arrivals a;
	struct slack_amount p95;

	(void)state;
	slack_arrivals_init(&a, SPAN, 10000 * SPAN);
	assert_false(slack_arrivals_p95(&a, START, &p95));
	look(&a, START - 1, pods, 7);
	/* Often, so that every pod is met many times. */
	for (int64_t now = START; now <= end; now += 31 * SECOND)
		look(&a, now, pods, 7);
	look(&a, end, pods, 7);
	assert_int_equal(a.count, 4);
	assert_int_equal(slack_arrivals_spans(&a, end), 40);
	assert_true(slack_arrivals_p95(&a, end, &p95));
	assert_int_equal(p95.cpu_milli, 500);
	assert_int_equal(p95.mem_bytes, 1000);
	/* Of 20 spans the 19th is the second from the top. */
	assert_int_equal(slack_arrivals_spans(&a, START + 21 * SPAN + 5 * SECOND), 21);
	assert_true(slack_arrivals_p95(&a, START + 21 * SPAN + 5 * SECOND, &p95));
	assert_int_equal(p95.cpu_milli, 500);
	slack_arrivals_fini(&a);
}

static void what_is_old_is_forgotten(void **state)
{
	const struct born pods[] = {{START + SPAN, &small}, {START + 9 * SPAN, &large}};
	struct slack_arrivals a;
	struct slack_amount p95;
	int64_t now;

	(void)state;
	slack_arrivals_init(&a, SPAN, 5 * SPAN);
	look(&a, START, pods, 2);
	now = START + 10 * SPAN + 10 * SECOND;
	look(&a, now, pods, 2);
	assert_int_equal(slack_arrivals_spans(&a, now), 5);
	assert_int_equal(a.count, 1);
	assert_true(slack_arrivals_p95(&a, now, &p95));
	assert_int_equal(p95.cpu_milli, 2000);
	slack_arrivals_fini(&a);
}

static void more_than_is_kept_drops_the_oldest_spans(void **state)
{
	struct slack_arrivals a;
	struct slack_amount shape = {1, 1};
	int64_t now = START + 100 * SPAN;

	(void)state;
	slack_arrivals_init(&a, SPAN, 100000 * SPAN);
	look(&a, START, NULL, 0);
	slack_arrivals_begin(&a, now);
	for (int i = 0; i < SLACK_ARRIVALS_MAX + 1000; i++) {
		shape.cpu_milli = i;
		slack_arrivals_add(&a, START + (1 + i % 99) * SPAN, &shape);
	}
	slack_arrivals_end(&a, now);
	assert_in_range(a.count, SLACK_ARRIVALS_MAX * 9 / 10, SLACK_ARRIVALS_MAX);
	assert_true(a.first_span > START / SPAN + 1);
	assert_true(a.of[0].span >= a.first_span);
	slack_arrivals_fini(&a);
}

static void a_clock_that_goes_back_counts_nothing_twice(void **state)
{
	const struct born pods[] = {{START + SPAN, &small}};
	struct slack_arrivals a;

	(void)state;
	slack_arrivals_init(&a, SPAN, 100 * SPAN);
	look(&a, START, pods, 1);
	look(&a, START + 2 * SPAN, pods, 1);
	look(&a, START, pods, 1);
	look(&a, START + 3 * SPAN, pods, 1);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.of[0].count, 1);
	slack_arrivals_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pod_counts_once_and_quiet_spans_count),
		cmocka_unit_test(what_is_old_is_forgotten),
		cmocka_unit_test(more_than_is_kept_drops_the_oldest_spans),
		cmocka_unit_test(a_clock_that_goes_back_counts_nothing_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
