/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plans remember, through the store and its file: saved with the windows of nodes or not at
 * all, and read by the next process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static void add_memo(struct store_batch *b, const char *name, const char *text)
{
	struct buf body = BUF_INIT;

	if (!text)
		return;
	buf_add_str(&body, text);
	b->memos[b->memo_count++] = (struct store_memo){name, shared_body_new(&body)};
}

/* last: the save is at its end; else the batch is its first of several. */
static void save(const char *slack, const char *drain, bool last, enum store_event_kind want)
{
	struct store_batch *b = store_batch_new(++s.save);
	struct store_event *e;

	b->last = last;
	add_memo(b, "slack", slack);
	add_memo(b, "drain", drain);
	store_put(s.store, b);
	e = store_take(s.store, STORE_FIXTURE_NS);
	assert_non_null(e);
	assert_int_equal(e->kind, want);
	store_event_free(e);
}

/* "drain=.. slack=.. " of what the next process finds; it goes on. */
static void expect_after_restart(const char *want)
{
	char found[256] = "";
	struct store_event *e;
	size_t len = 0;

	store_fixture_stop(&s);
	e = store_fixture_open(&s);
	assert_string_equal(e->note.text, "");
	for (size_t i = 0; i < e->memo_count && len < sizeof(found); i++) {
		assert_int_equal(e->memos[i].len, strlen(e->memos[i].text));
		len += (size_t)snprintf(found + len, sizeof(found) - len, "%s=%s ",
					e->memos[i].name, e->memos[i].text);
	}
	assert_string_equal(found, want);
	store_event_free(e);
}

static void sql(const char *statements)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, statements, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void test_replaced_by_name(void **state)
{
	(void)state;
	expect_after_restart("");
	save("one", "timers", true, STORE_SAVED);
	expect_after_restart("drain=timers slack=one ");
	save("two", NULL, true, STORE_SAVED);
	expect_after_restart("drain=timers slack=two ");
	store_fixture_stop(&s);
	sql("UPDATE plan_state SET state = x'' WHERE name = 'slack'");
	store_event_free(store_fixture_open(&s));
	expect_after_restart("drain=timers slack= ");
}

static void test_unfinished_saves_come_to_nothing(void **state)
{
	(void)state;
	save("one", NULL, true, STORE_SAVED);
	save("two", "timers", false, STORE_WRITTEN);
	expect_after_restart("slack=one ");
	save("three", NULL, false, STORE_WRITTEN);
	/* Another save begins, and so undoes it. */
	save(NULL, "timers", true, STORE_SAVED);
	expect_after_restart("drain=timers slack=one ");
}

static void test_longest(void **state)
{
	char *text = mem_alloc(STORE_MEMO_BYTES_MAX + 1);
	struct store_event *e;

	(void)state;
	memset(text, 'x', STORE_MEMO_BYTES_MAX);
	text[STORE_MEMO_BYTES_MAX] = '\0';
	save(text, NULL, true, STORE_SAVED);
	store_fixture_stop(&s);
	e = store_fixture_open(&s);
	assert_int_equal(e->memo_count, 1);
	assert_int_equal(e->memos[0].len, STORE_MEMO_BYTES_MAX);
	assert_string_equal(e->memos[0].text, text);
	store_event_free(e);
	free(text);
}

/* As a program before there were plans left it. */
static void test_version_1_is_migrated(void **state)
{
	(void)state;
	save(NULL, NULL, true, STORE_SAVED);
	store_fixture_stop(&s);
	sql("DROP TABLE plan_state; DROP TABLE drain_decision; PRAGMA user_version = 1");
	store_event_free(store_fixture_open(&s));
	expect_after_restart("");
	save("kept", NULL, true, STORE_SAVED);
	expect_after_restart("slack=kept ");
}

/*
 * Of later programs, or by hand: more than there can be are not read, and those that are there stay
 * in the file.
 */
static void test_more_than_there_can_be(void **state)
{
	struct buf rows = BUF_INIT, want = BUF_INIT;

	(void)state;
	store_fixture_stop(&s);
	buf_add_str(&rows, "INSERT INTO plan_state VALUES");
	for (int i = 0; i < STORE_MEMOS_MAX + 2; i++) {
		buf_printf(&rows, "%s('%c', 1, x'%02x')", i ? ", " : "", 'a' + i, 'a' + i);
		if (i < STORE_MEMOS_MAX)
			buf_printf(&want, "%c=%c ", 'a' + i, 'a' + i);
	}
	sql(rows.data);
	store_event_free(store_fixture_open(&s));
	expect_after_restart(want.data);
	buf_fini(&rows);
	buf_fini(&want);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_replaced_by_name),
		TEST(test_unfinished_saves_come_to_nothing),
		TEST(test_longest),
		TEST(test_version_1_is_migrated),
		TEST(test_more_than_there_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
