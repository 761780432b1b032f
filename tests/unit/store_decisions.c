/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions about drains as rows of the database: saved with the rest or not at all, the newest of
 * them kept, and read by the next process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "shared/mem.h"
#include "tests/store_fixture.h"

static struct store_fixture s;

static int setup(void **state)
{
	(void)state;
	store_fixture_init(&s);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	store_fixture_fini(&s);
	return 0;
}

/* The first number that the statement gives; while no store is open. */
static int64_t sql(const char *statement)
{
	sqlite3_stmt *row = NULL;
	sqlite3 *db = NULL;
	int64_t value = 0;

	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	for (const char *at = statement; *at;) {
		if (sqlite3_prepare_v2(db, at, -1, &row, &at) != SQLITE_OK)
			fail_msg("%s", sqlite3_errmsg(db));
		if (sqlite3_step(row) == SQLITE_ROW)
			value = sqlite3_column_int64(row, 0);
		sqlite3_finalize(row);
	}
	sqlite3_close(db);
	return value;
}

/* Rows of those numbers, about nodes of that letter. */
static void save(char letter, uint64_t first, uint64_t last, bool end, enum store_event_kind want)
{
	struct store_batch *b = store_batch_new(++s.save);
	struct store_event *e;

	b->last = end;
	b->decisions.first = first;
	b->decisions.of = mem_zalloc(last - first + 2, sizeof(struct drain_row *));
	for (uint64_t n = first; n <= last; n++) {
		char node[32];

		snprintf(node, sizeof(node), "%c%d", letter, (int)n);
		b->decisions.of[b->decisions.count++] =
			drain_row_new(&(struct drain_row){.time_ns = (int64_t)n * 1000,
							  "needed",
							  n % 2 ? "NoPlaceToMovePods" : "",
							  node,
							  "it's \"why\""});
	}
	store_put(s.store, b);
	e = store_take(s.store, STORE_FIXTURE_NS);
	assert_non_null(e);
	assert_int_equal(e->kind, want);
	store_event_free(e);
}

/* What the next process finds; it goes on. */
static void expect_after_restart(size_t count, uint64_t last, const char *oldest,
				 const char *newest)
{
	struct store_event *e;

	store_fixture_stop(&s);
	e = store_fixture_open(&s);
	assert_string_equal(e->note.text, "");
	assert_int_equal(e->decision_count, count);
	assert_int_equal(e->decision_last, last);
	if (count) {
		assert_string_equal(e->decisions[0]->node, oldest);
		assert_string_equal(e->decisions[count - 1]->node, newest);
	}
	store_event_free(e);
}

static void test_come_back_as_they_were(void **state)
{
	struct store_event *e;

	(void)state;
	expect_after_restart(0, 0, "", "");
	save('a', 1, 2, true, STORE_SAVED);
	store_fixture_stop(&s);
	e = store_fixture_open(&s);
	assert_int_equal(e->decision_count, 2);
	assert_int_equal(e->decisions[0]->time_ns, 1000);
	assert_string_equal(e->decisions[0]->event, "needed");
	assert_string_equal(e->decisions[0]->reason, "NoPlaceToMovePods");
	assert_string_equal(e->decisions[0]->node, "a1");
	assert_string_equal(e->decisions[0]->text, "it's \"why\"");
	assert_string_equal(e->decisions[1]->reason, "");
	store_event_free(e);
	save('a', 3, 5, true, STORE_SAVED);
	expect_after_restart(5, 5, "a1", "a5");
}

static void test_unfinished_saves_come_to_nothing(void **state)
{
	(void)state;
	save('a', 1, 2, true, STORE_SAVED);
	save('b', 3, 4, false, STORE_WRITTEN);
	expect_after_restart(2, 2, "a1", "a2");
}

/* What is told twice is the same row. */
static void test_a_number_is_one_row(void **state)
{
	(void)state;
	save('a', 1, 3, true, STORE_SAVED);
	save('b', 2, 4, true, STORE_SAVED);
	expect_after_restart(4, 4, "a1", "b4");
}

static void test_the_newest_are_kept(void **state)
{
	(void)state;
	save('a', 1, DRAIN_LOG_MAX, true, STORE_SAVED);
	save('b', DRAIN_LOG_MAX + 1, DRAIN_LOG_MAX + 3, true, STORE_SAVED);
	expect_after_restart(DRAIN_LOG_MAX, DRAIN_LOG_MAX + 3, "a4", "b10003");
	store_fixture_stop(&s);
	assert_int_equal(sql("SELECT count(*) FROM drain_decision"), DRAIN_LOG_MAX);
	assert_int_equal(sql("SELECT min(number) FROM drain_decision"), 4);
	store_event_free(store_fixture_open(&s));
}

/* As programs before there were plans, and before there were decisions, left it. */
static void test_older_versions_are_migrated(void **state)
{
	static const char *const older[] = {
		"DROP TABLE drain_decision; DROP TABLE plan_state; PRAGMA user_version = 1",
		"DROP TABLE drain_decision; PRAGMA user_version = 2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(older) / sizeof(older[0]); i++) {
		store_fixture_stop(&s);
		sql(older[i]);
		store_event_free(store_fixture_open(&s));
		expect_after_restart(0, 0, "", "");
		save('a', 1, 1, true, STORE_SAVED);
		expect_after_restart(1, 1, "a1", "a1");
	}
}

/* By hand, or by a disk. */
static void test_damaged_rows_set_the_file_aside(void **state)
{
	static const char *const damages[] = {
		"INSERT INTO drain_decision VALUES(0, 1, 'needed', '', 'n', 't')",
		"INSERT INTO drain_decision VALUES(9223372036854775807, 1, 'needed', '', 'n', 't')",
		"INSERT INTO drain_decision VALUES(7, 1, 'needed', '', 'n', hex(zeroblob(8999)))",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct store_event *e;

		store_fixture_stop(&s);
		sql(damages[i]);
		e = store_fixture_open(&s);
		assert_non_null(strstr(e->note.text, "is damaged ("));
		assert_int_equal(e->aside, i + 1);
		store_event_free(e);
		save('a', 1, 1, true, STORE_SAVED);
		expect_after_restart(1, 1, "a1", "a1");
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_come_back_as_they_were),	TEST(test_unfinished_saves_come_to_nothing),
		TEST(test_a_number_is_one_row),		TEST(test_the_newest_are_kept),
		TEST(test_older_versions_are_migrated), TEST(test_damaged_rows_set_the_file_aside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
