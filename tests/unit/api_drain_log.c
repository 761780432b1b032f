/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of decisions: its bound, its numbers, and what comes back from a database before what was
 * decided since.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/drain_log.h"
#include "shared/mem.h"

static struct drain_log *decisions;

static int setup(void **state)
{
	(void)state;
	decisions = drain_log_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	drain_log_free(decisions);
	return 0;
}

/* Nodes n<from> to n<to>, one row each. */
static void add(int from, int to)
{
	for (int i = from; i <= to; i++) {
		char node[16];

		snprintf(node, sizeof(node), "n%d", i);
		drain_log_add(decisions,
			      &(struct drain_record){.time_ns = i,
						     .event = DRAIN_EVENT_NEEDED,
						     .reason = DRAIN_NO_PLACE,
						     .node = node,
						     .text = (char *)"why"},
			      1);
	}
}

static void expect(uint64_t behind, uint64_t first, size_t count, const char *oldest,
		   const char *newest)
{
	struct drain_rows rows;

	drain_log_read(decisions, behind, &rows);
	assert_int_equal(rows.count, count);
	if (count) {
		assert_int_equal(rows.first, first);
		assert_string_equal(rows.of[0]->node, oldest);
		assert_string_equal(rows.of[count - 1]->node, newest);
	}
	drain_rows_fini(&rows);
}

static void test_says_what_was_added(void **state)
{
	struct drain_rows rows;

	(void)state;
	expect(0, 0, 0, "", "");
	add(1, 3);
	expect(0, 1, 3, "n1", "n3");
	expect(2, 3, 1, "n3", "n3");
	expect(3, 0, 0, "", "");
	expect(UINT64_MAX - 1, 0, 0, "", "");
	drain_log_read(decisions, 2, &rows);
	assert_int_equal(rows.of[0]->time_ns, 3);
	assert_string_equal(rows.of[0]->event, "needed");
	assert_string_equal(rows.of[0]->reason, "NoPlaceToMovePods");
	assert_string_equal(rows.of[0]->text, "why");
	/* It stays for its reader. */
	add(4, 4 + DRAIN_LOG_MAX);
	assert_string_equal(rows.of[0]->node, "n3");
	drain_rows_fini(&rows);
}

static void test_keeps_the_newest(void **state)
{
	(void)state;
	add(1, DRAIN_LOG_MAX);
	expect(0, 1, DRAIN_LOG_MAX, "n1", "n10000");
	add(DRAIN_LOG_MAX + 1, DRAIN_LOG_MAX + 7);
	expect(0, 8, DRAIN_LOG_MAX, "n8", "n10007");
}

static void restore(size_t count, uint64_t last)
{
	struct drain_row **rows = mem_zalloc(count + 1, sizeof(struct drain_row *));

	for (size_t i = 0; i < count; i++) {
		char node[16];

		snprintf(node, sizeof(node), "old%zu", i);
		rows[i] = drain_row_new(&(struct drain_row){.time_ns = 0, "gone", "", node, ""});
	}
	drain_log_restore(decisions, rows, count, last);
	free(rows);
}

static void test_what_was_saved_comes_before(void **state)
{
	(void)state;
	add(1, 2);
	restore(3, 500);
	expect(0, 498, 5, "old0", "n2");
	expect(500, 501, 2, "n1", "n2");
	add(3, 3);
	expect(500, 501, 3, "n1", "n3");
}

/* The other aggregator told of the wave before the database was read. */
static void test_a_wave_stays_once(void **state)
{
	const struct drain_row told = {.time_ns = 1,
				       .event = DRAIN_WAVE_REPORT,
				       .reason = "",
				       .node = "wave",
				       .text = "wave w-1\n{}"};
	struct drain_row *saved = drain_row_new(&told);

	(void)state;
	add(1, 1);
	drain_log_put(decisions, &told);
	drain_log_restore(decisions, &saved, 1, 7);
	expect(0, 7, 2, "wave", "n1");
}

static void test_nothing_was_saved(void **state)
{
	(void)state;
	add(1, 2);
	restore(0, 0);
	expect(0, 1, 2, "n1", "n2");
}

static void test_more_than_there_is_room_for(void **state)
{
	(void)state;
	add(1, 4);
	restore(DRAIN_LOG_MAX, DRAIN_LOG_MAX);
	expect(0, 5, DRAIN_LOG_MAX, "old4", "n4");
	expect(DRAIN_LOG_MAX, DRAIN_LOG_MAX + 1, 4, "n1", "n4");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_says_what_was_added),		TEST(test_keeps_the_newest),
		TEST(test_what_was_saved_comes_before), TEST(test_a_wave_stays_once),
		TEST(test_nothing_was_saved),		TEST(test_more_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
