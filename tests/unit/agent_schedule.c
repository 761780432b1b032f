/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/schedule.h"

#define SEC  1000000000LL
#define WALL (1700000000 * SEC)

static int setup(void **state)
{
	(void)state;
	return sodium_init() < 0;
}

/*
 * Ends always fall on the node's phase, and touching intervals cover the time without gap or
 * overlap.
 */
static void test_steady_clock(void **state)
{
	struct schedule s;
	int64_t mono = 7 * SEC, start, end, previous = 0;

	(void)state;
	schedule_start(&s, "node-a", 5 * SEC, mono, WALL);
	for (int i = 0; i < 10; i++) {
		int64_t due = s.due_mono_ns;

		assert_false(schedule_due(&s, due - 1));
		assert_true(schedule_due(&s, due));
		mono = due;
		schedule_end(&s, mono, WALL + mono - 7 * SEC, &start, &end);
		assert_int_equal((uint64_t)end % (5 * SEC), s.node_hash % (5 * SEC));
		if (previous) {
			assert_int_equal(start, previous);
			assert_int_equal(end - start, 5 * SEC);
		}
		previous = end;
	}
}

static void test_phases_spread(void **state)
{
	unsigned int tenths[10] = {0};
	struct schedule s;
	char name[32];

	(void)state;
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "node-%d", i);
		schedule_start(&s, name, 5 * SEC, 0, WALL);
		tenths[s.due_mono_ns * 10 / (5 * SEC + 1)]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(tenths[i], 400, 600);
}

/*
 * A tick that comes just before the phase ends the interval there; the next is a whole one, not a
 * sliver.
 */
static void test_no_slivers(void **state)
{
	struct schedule s;
	int64_t start, end;

	(void)state;
	schedule_start(&s, "node-a", 5 * SEC, 0, WALL);
	schedule_end(&s, s.due_mono_ns - SEC / 100, WALL + s.due_mono_ns - SEC / 100, &start, &end);
	assert_true(s.due_mono_ns - s.begin_mono_ns >= 5 * SEC / 4);
}

static void test_clock_set(void **state)
{
	static const int64_t jumps[] = {3600 * SEC, -3600 * SEC, 2 * SEC, -2 * SEC};

	(void)state;
	for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		struct schedule s;
		int64_t start, end, mono, length;

		schedule_start(&s, "node-a", 5 * SEC, 0, WALL);
		schedule_end(&s, s.due_mono_ns, WALL + s.due_mono_ns, &start, &end);
		mono = s.due_mono_ns;
		length = mono - s.begin_mono_ns;
		schedule_end(&s, mono, WALL + mono + jumps[i], &start, &end);
		/* The new time at once, and the length that really passed. */
		assert_int_equal(end, WALL + mono + jumps[i]);
		assert_int_equal(end - start, length);
	}
}

static void test_interval_ordered(void **state)
{
	struct schedule s;
	int64_t start, end, mono;

	(void)state;
	schedule_start(&s, "node-a", 5 * SEC, 0, WALL);
	schedule_set_interval(&s, SEC);
	mono = s.due_mono_ns;
	schedule_end(&s, mono, WALL + mono, &start, &end);
	assert_in_range(s.due_mono_ns - mono, SEC / 4, SEC + SEC / 4);
}

/*
 * An interval ends at the tick that is nearest to its due time. However slow the ticks, and
 * wherever they fall, there are as many intervals as there should be, each as long as it should be
 * within a tick.
 */
static void test_slow_ticks(void **state)
{
	static const struct {
		int64_t tick_ns, interval_ns;
	} cases[] = {
		{SEC / 10, SEC}, {SEC / 10, 5 * SEC}, {SEC / 2, SEC},  {SEC, SEC},
		{SEC, 2 * SEC},	 {SEC, 5 * SEC},      {SEC, 15 * SEC}, {SEC / 3, SEC},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t tick = cases[i].tick_ns, interval = cases[i].interval_ns;

		for (int64_t offset = 0; offset < SEC; offset += SEC / 50) {
			struct schedule s;
			int64_t count = 0, start, end, first = 0;

			schedule_start(&s, "node-a", interval, 0, WALL + offset);
			for (int64_t mono = tick; count < 101; mono += tick) {
				if (!schedule_due(&s, mono + tick / 2))
					continue;
				schedule_end(&s, mono, WALL + offset + mono, &start, &end);
				if (!count++)
					first = end;
				else
					assert_true(llabs(end - start - interval) <= tick + 1);
			}
			assert_in_range(end - first, 100 * interval - tick - 1000,
					100 * interval + tick + 1000);
		}
	}
}

/* An order that ends: the configured length again, at the node's own phase. */
static void test_order_ends(void **state)
{
	struct schedule s;
	int64_t start, end, mono = 0;

	(void)state;
	schedule_start(&s, "node-a", 5 * SEC, 0, WALL);
	for (int i = 0; i < 20; i++) {
		schedule_set_interval(&s, i < 10 ? SEC : 5 * SEC);
		mono = s.due_mono_ns;
		schedule_end(&s, mono, WALL + mono, &start, &end);
	}
	assert_int_equal(end - start, 5 * SEC);
	assert_int_equal((uint64_t)end % (5 * SEC), s.node_hash % (5 * SEC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steady_clock),	 cmocka_unit_test(test_phases_spread),
		cmocka_unit_test(test_no_slivers),	 cmocka_unit_test(test_clock_set),
		cmocka_unit_test(test_interval_ordered), cmocka_unit_test(test_slow_ticks),
		cmocka_unit_test(test_order_ends),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
