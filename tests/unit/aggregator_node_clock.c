/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks that are right, off, drifting and set, heard over a network that delays. Times are
 * seconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aggregator/state/node_clock.h"

#define SEC 1000000000LL
#define MS  1000000LL
#define T0  (1700000000LL * SEC)

/*
 * The interval [end - 5, end) of true time, by a clock that is `ahead`, heard `delay` after it was
 * sent at `age`.
 */
static void hear(struct node_clock *c, bool follows, double end, double ahead, double age,
		 double delay)
{
	struct interval i = {
		.start_ns = T0 + (int64_t)((end - 5 + ahead) * (double)SEC),
		.end_ns = T0 + (int64_t)((end + ahead) * (double)SEC),
		.age_ns = (int64_t)(age * (double)SEC),
		.merged = 1,
	};

	if (i.age_ns > 0)
		i.age_ns += 1;
	node_clock_hear(c, &i, follows, T0 + (int64_t)((end + age + delay) * (double)SEC));
}

/* As in a storm: of 7 s of delay 6.5 may have been our own queue. */
static void a_queue_is_not_a_clock(void **state)
{
	struct node_clock c = {0};

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct interval told = {
			.start_ns = T0 + i * 5 * SEC,
			.end_ns = T0 + (i + 1) * 5 * SEC,
			.age_ns = 1,
			.merged = 1,
			.wait_ns = i < 10 ? 6500 * MS : 1000 * MS,
		};

		node_clock_hear(&c, &told, i > 0, told.end_ns + 7 * SEC);
		/* What the queue cannot have been is the clock, once the newest 8 say so. */
		assert_int_equal(c.correction_ns, i < 17 ? 0 : 7 * SEC);
	}
}

static void expect(const struct node_clock *c, double correction)
{
	int64_t want = (int64_t)(correction * (double)SEC);

	if (c->correction_ns != want)
		fail_msg("corrected by %.3f s, not %.3f", (double)c->correction_ns / (double)SEC,
			 correction);
}

/*
 * Nothing is touched, whatever the delay, live or out of a ring: not while a clock is within 2 s.
 */
static void a_clock_that_is_kept_is_left_alone(void **state)
{
	static const double ahead[] = {0, 1.9, -1.5};

	(void)state;
	for (size_t n = 0; n < sizeof(ahead) / sizeof(ahead[0]); n++) {
		struct node_clock c = {0};
		uint32_t seed = 1;

		for (int k = 1; k <= 200; k++) {
			double age = k < 100 ? 900.0 - k * 9 : 0.01;

			seed = seed * 1664525u + 1013904223u;
			/* Every other frame waits up to 3 s more. */
			hear(&c, k > 1, k * 5, ahead[n], age,
			     0.001 + (k % 2 ? 0.4 : 0) * (seed >> 16) / 65536);
			expect(&c, 0);
		}
	}
}

/* At once, by the first interval, though it is told an hour late. */
static void a_clock_that_is_off_is_corrected(void **state)
{
	static const struct {
		double ahead, correction;
	} cases[] = {{3, -3},	    {-90, 90},	   {7200, -7200},      {-86400, 86400},
		     {100.4, -100}, {100.6, -101}, {-1000000, 1000000}};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct node_clock c = {0};
		int64_t ahead_ns;

		assert_false(node_clock_skew(&c, &ahead_ns));
		for (int k = 0; k < 20; k++) {
			hear(&c, k > 0, k * 5, cases[n].ahead, k < 10 ? 3600 : 0.02, 0.05);
			expect(&c, cases[n].correction);
		}
		assert_true(node_clock_skew(&c, &ahead_ns));
		assert_true(llabs(ahead_ns - (int64_t)(cases[n].ahead * (double)SEC)) < 60 * MS);
	}
}

/*
 * A clock that seems behind may be a frame that was long on the way: that is believed at the third
 * time.
 */
static void delay_is_not_skew(void **state)
{
	struct node_clock c = {0};
	int k = 0;

	(void)state;
	hear(&c, false, 0, 0, 0.1, 8);
	expect(&c, 0);
	hear(&c, true, 5, 0, 0.1, 8);
	expect(&c, 0);
	hear(&c, true, 10, 0, 0.1, 8);
	expect(&c, 8);
	hear(&c, true, 15, 0, 0.1, 0); /* the first quick one puts it right */
	expect(&c, 0);
	for (k = 4; k < 4 + NODE_CLOCK_SAMPLES - 1; k++) {
		hear(&c, true, k * 5, 0, 0.1, 20);
		expect(&c, 0);
	}
	hear(&c, true, k * 5, 0, 0.1, 20); /* and is forgotten after eight others */
	expect(&c, 20);
}

/* Three times: a clock that is ahead, or intervals that are late, by the limit, and by more. */
static void a_limit_itself_is_within(void **state)
{
	static const struct {
		int64_t sample_ns[3], correction_ns;
	} cases[] = {
		{{-2 * SEC, -2 * SEC, -2 * SEC}, 0}, {{-2 * SEC - 1}, -2 * SEC},
		{{60 * SEC, 60 * SEC, 0}, 0},	     {{60 * SEC + 1}, 60 * SEC},
		{{2 * SEC, 2 * SEC, 2 * SEC}, 0},    {{3 * SEC, 3 * SEC, 2 * SEC + 1}, 2 * SEC},
		{{2 * SEC + 1, 2 * SEC + 1, -1}, 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct node_clock c = {0};

		for (int k = 0; k < 3 && cases[n].sample_ns[k]; k++) {
			struct interval i = {
				.start_ns = T0 + k * 5 * SEC,
				.end_ns = T0 + (k + 1) * 5 * SEC,
				.age_ns = 1,
			};

			node_clock_hear(&c, &i, k > 0, i.end_ns + 1 + cases[n].sample_ns[k]);
		}
		assert_int_equal(c.correction_ns, cases[n].correction_ns);
	}
}

static void drift_moves_by_whole_seconds(void **state)
{
	struct node_clock c = {0};
	int moves = 0;

	(void)state;
	for (int k = 0; k < 1000; k++) {
		int64_t before = c.correction_ns;
		double ahead = 0.01 * k;

		hear(&c, k > 0, k * 5, ahead, 0.01, 0.01);
		moves += c.correction_ns != before;
		assert_int_equal(c.correction_ns % SEC, 0);
		assert_true(llabs(c.correction_ns + (int64_t)(ahead * (double)SEC)) < 2200 * MS);
	}
	assert_in_range(moves, 3, 5); /* of 2 s or so each */
}

static void a_clock_that_is_set_is_learned_anew(void **state)
{
	struct node_clock c = {0};
	int k;

	(void)state;
	for (k = 0; k < 20; k++)
		hear(&c, k > 0, k * 5, 0, 0.01, 0.01);
	for (; k < 40; k++) { /* forward by an hour: at once */
		hear(&c, true, k * 5, 3600, 0.01, 0.01);
		expect(&c, -3600);
	}
	for (; k < 60; k++) { /* back by two hours: at once, the samples before do not count */
		hear(&c, true, k * 5, -3600, 0.01, 0.01);
		expect(&c, 3600);
	}
	for (int n = 0; n < 5; n++, k++) { /* and by ten seconds: like a delay, the third time */
		hear(&c, true, k * 5, -3610, 0.01, 0.01);
		expect(&c, n < 2 ? 3600 : 3610);
	}
}

/* What is told again from before the clock was set lands where it did the first time. */
static void old_intervals_keep_their_clock(void **state)
{
	struct node_clock first = {0}, again = {0};

	(void)state;
	for (int k = 0; k < 40; k++) {
		double ahead = k < 20 ? 0 : 500;

		hear(&first, k > 0, k * 5, ahead, 0.01, 0.03);
		hear(&again, k > 0, k * 5, ahead, 205 - k * 5, 0.01);
		assert_int_equal(first.correction_ns, again.correction_ns);
	}
	expect(&first, -500);
}

static void without_an_age_nothing_is_learned(void **state)
{
	struct node_clock c = {0};
	int64_t ahead_ns;

	(void)state;
	for (int k = 0; k < 5; k++)
		hear(&c, k > 0, k * 5, 1000, 0, 0.01);
	expect(&c, 0);
	assert_false(node_clock_skew(&c, &ahead_ns));
	hear(&c, true, 25, 1000, 0.5, 0.01);
	expect(&c, -1000);
	hear(&c, true, 30, 1000, 0, 0.01); /* what is known stays in use */
	expect(&c, -1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_is_kept_is_left_alone),
		cmocka_unit_test(a_queue_is_not_a_clock),
		cmocka_unit_test(a_clock_that_is_off_is_corrected),
		cmocka_unit_test(delay_is_not_skew),
		cmocka_unit_test(a_limit_itself_is_within),
		cmocka_unit_test(drift_moves_by_whole_seconds),
		cmocka_unit_test(a_clock_that_is_set_is_learned_anew),
		cmocka_unit_test(old_intervals_keep_their_clock),
		cmocka_unit_test(without_an_age_nothing_is_learned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
