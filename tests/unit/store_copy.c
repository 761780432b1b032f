/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of a database that is in use: what is in it, what is left out, and what becomes of one that
 * arrives damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/edge/store/database.h"
#include "shared/mem.h"
#include "tests/store_fixture.h"

#define SECRET "a text that no other part of a database has"

static struct store_fixture s;
static struct buf copy; /* the bytes of the one made last */

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
	buf_fini(&copy);
	return 0;
}

static struct store_event *take(enum store_event_kind want)
{
	struct store_event *e = store_take(s.store, STORE_FIXTURE_NS);

	assert_non_null(e);
	assert_int_equal(e->kind, want);
	return e;
}

/* Many times the secret, on pages of its own. */
static void save(const char *name, int times)
{
	struct store_batch *b = store_batch_new(++s.save);
	struct buf body = BUF_INIT;

	b->last = true;
	for (int i = 0; i < times; i++)
		buf_add_str(&body, SECRET);
	b->memos[b->memo_count++] = (struct store_memo){name, shared_body_new(&body)};
	store_put(s.store, b);
	store_event_free(take(STORE_SAVED));
}

static void make_copy(void)
{
	struct store_batch *b = store_batch_new(0);
	struct store_event *e;
	char chunk[4096];
	ssize_t n;

	b->copy_without = "secrets";
	store_put(s.store, b);
	e = take(STORE_COPIED);
	assert_true(e->copy >= 0);
	buf_clear(&copy);
	while ((n = read(e->copy, chunk, sizeof(chunk))) > 0)
		buf_add(&copy, chunk, (size_t)n);
	store_event_free(e);
}

static bool has_secret(void)
{
	return memmem(copy.data, copy.len, SECRET, strlen(SECRET)) != NULL;
}

static char *beside(const char *suffix)
{
	return mem_printf("%s%s", s.path, suffix);
}

static void test_without_a_state(void **state)
{
	char *left = beside(".copy");

	(void)state;
	save("secrets", 1000);
	make_copy();
	assert_false(has_secret());
	save("slack", 1000);
	make_copy();
	assert_true(has_secret());
	assert_true(access(left, F_OK) != 0);
	free(left);
	/* The original has all. */
	store_fixture_stop(&s);
	{
		struct store_event *e = store_fixture_open(&s);

		assert_int_equal(e->memo_count, 2);
		store_event_free(e);
	}
}

/* A file of that name, as a killed process leaves it, is replaced. */
static void test_leftover(void **state)
{
	char *left = beside(".copy");
	FILE *file = fopen(left, "w");

	(void)state;
	assert_non_null(file);
	fputs("half of it", file);
	fclose(file);
	make_copy();
	assert_memory_equal(copy.data, "SQLite format 3", 15);
	free(left);
}

/* --- receiving -------------------------------------------------------------------------------- */

static int fetched; /* calls */

static int fetch_nothing(void *ctx, int fd, struct error *error)
{
	(void)fd;
	fetched++;
	error_set(error, "nobody there");
	return *(int *)ctx;
}

/* The bytes of the copy, or so many of them. */
static int fetch_copy(void *ctx, int fd, struct error *error)
{
	size_t len = *(size_t *)ctx;

	(void)error;
	fetched++;
	assert_int_equal(write(fd, copy.data, len), len);
	return 0;
}

static int receive(database_fetcher *fetch, void *ctx, struct error *why)
{
	char *part = beside(".part");
	int rc = database_receive(s.dir, fetch, ctx, why);

	assert_true(access(part, F_OK) != 0);
	assert_true((access(s.path, F_OK) == 0) == (rc == 0 || rc == -EEXIST));
	free(part);
	return rc;
}

static void remove_database(void)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

	store_fixture_stop(&s);
	for (int i = 0; i < 4; i++) {
		char *path = beside(suffixes[i]);

		unlink(path);
		free(path);
	}
}

static void sql(const char *statements)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(s.path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, statements, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void test_a_database_stays(void **state)
{
	struct error why;
	int rc = -ETIMEDOUT;

	(void)state;
	fetched = 0;
	assert_int_equal(receive(fetch_nothing, &rc, &why), -EEXIST);
	assert_int_equal(fetched, 0);
}

static void test_receiving(void **state)
{
	struct store_event *e;
	struct error why;
	size_t len;
	int rc = -ETIMEDOUT;

	(void)state;
	save("slack", 1000);
	make_copy();
	remove_database();
	assert_int_equal(receive(fetch_nothing, &rc, &why), rc);
	assert_string_equal(why.text, "nobody there");
	for (len = 0; len + 4096 < copy.len; len += copy.len / 7) {
		assert_int_equal(receive(fetch_copy, &len, &why), -EBADMSG);
		assert_memory_equal(why.text, "the copy: ", 10);
	}
	assert_int_equal(receive(fetch_copy, &copy.len, &why), 0);
	e = store_fixture_open(&s);
	assert_string_equal(e->note.text, "");
	assert_int_equal(e->memo_count, 1);
	assert_int_equal(e->memos[0].len, 1000 * strlen(SECRET));
	store_event_free(e);
}

static void test_a_damaged_page(void **state)
{
	struct error why;

	(void)state;
	save("slack", 1000);
	make_copy();
	remove_database();
	memset(copy.data + 4096, 0xff, 4096);
	assert_int_equal(receive(fetch_copy, &copy.len, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "the copy: is damaged"));
}

/* Of an aggregator of a newer release. */
static void test_a_newer_version(void **state)
{
	struct error why;

	(void)state;
	store_fixture_stop(&s);
	sql("PRAGMA user_version=99; PRAGMA journal_mode=DELETE");
	{
		FILE *file = fopen(s.path, "r");
		int c;

		assert_non_null(file);
		buf_clear(&copy);
		while ((c = getc(file)) != EOF)
			buf_add_char(&copy, (char)c);
		fclose(file);
	}
	remove_database();
	assert_int_equal(receive(fetch_copy, &copy.len, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "the copy: is of version 99, newer than this program"));
	store_event_free(store_fixture_open(&s));
}

/* The directory is made, or is none. */
static void test_the_directory(void **state)
{
	struct error why;
	FILE *file;

	(void)state;
	make_copy();
	remove_database();
	assert_int_equal(rmdir(s.dir), 0);
	assert_int_equal(receive(fetch_copy, &copy.len, &why), 0);
	assert_int_equal(unlink(s.path), 0);
	assert_int_equal(rmdir(s.dir), 0);
	file = fopen(s.dir, "w");
	assert_non_null(file);
	fclose(file);
	fetched = 0;
	assert_int_equal(receive(fetch_copy, &copy.len, &why), -ENOTDIR);
	assert_int_equal(fetched, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_without_a_state), TEST(test_leftover),       TEST(test_a_database_stays),
		TEST(test_receiving),	    TEST(test_a_damaged_page), TEST(test_a_newer_version),
		TEST(test_the_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
