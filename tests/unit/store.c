/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store and its thread on real files: what is saved is read by the next, what was begun is not,
 * and whatever stands where the database should be, the store says so and goes on when it can.
 * Disks that are full or read-only need a mount: see tests/faults/store_disk.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aggregator/edge/store/database.h"
#include "aggregator/edge/store/store.h"
#include "aggregator/state/usage_node.h"
#include "aggregator/state/usage_pack.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/usage_fixture.h"

#define LONG_NS (20 * NS_PER_SEC)
#define T0	(1700000010LL * NS_PER_SEC)

struct scene {
	char *folder, *dir, *path;
	sem_t woken;
	struct store *store;
	uint64_t save;
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));

	s->folder = folder_make();
	s->dir = mem_printf("%s/state", s->folder);
	s->path = database_file_path(s->dir);
	sem_init(&s->woken, 0, 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	store_stop(s->store);
	folder_remove(s->folder);
	sem_destroy(&s->woken);
	free(s->dir);
	free(s->path);
	free(s);
	return 0;
}

static void wake(void *ctx)
{
	sem_post(ctx);
}

static struct store *start(struct scene *s)
{
	struct store_config config = {
		.dir = s->dir,
		.nodes_max = 5000,
		.busy_ms = 1,
		.retry_ns = 20 * NS_PER_MS,
		.wake = wake,
		.ctx = &s->woken,
	};
	struct store *store;

	assert_int_equal(store_start(&store, &config, NULL), 0);
	return store;
}

static struct store_event *next(struct store *store, enum store_event_kind kind)
{
	struct store_event *e = store_take(store, LONG_NS);

	assert_non_null(e);
	if (e->kind != kind)
		fail_msg("event %d, not %d: %s", e->kind, kind, e->error.text);
	return e;
}

/* The next that does not say again that the database cannot be opened. */
static struct store_event *next_but_refusals(struct store *store, enum store_event_kind kind)
{
	struct store_event *e = store_take(store, LONG_NS);

	assert_non_null(e);
	while (e->kind == STORE_NOT_OPENED) {
		store_event_free(e);
		e = store_take(store, LONG_NS);
		assert_non_null(e);
	}
	assert_int_equal(e->kind, kind);
	return e;
}

static void expect_next(struct store *store, enum store_event_kind kind)
{
	store_event_free(next(store, kind));
}

/* s->store, with what was in the database still in the event. */
static struct store_event *open_store(struct scene *s)
{
	s->store = start(s);
	return next(s->store, STORE_OPENED);
}

static void stop(struct scene *s)
{
	store_stop(s->store);
	s->store = NULL;
}

static struct usage_row make_row(const char *name, uint64_t sequence, int64_t heard_ns)
{
	static const uint8_t run[FRAME_RUN_LEN] = {1};
	struct usage_fixture f = {
		.sequence = sequence, .end_ns = heard_ns, .seconds = 5, .seed = (uint32_t)sequence};
	struct interval *i = usage_fixture_new(&f);
	struct usage_node *n = usage_node_new(name, T0);
	struct usage_row row = {.name = mem_strdup(name), .heard_ns = heard_ns};

	usage_node_apply(n, run, i, 1, 10);
	n->heard_ns = heard_ns;
	usage_node_pack(n, &row.packed);
	usage_node_free(n);
	interval_free(i);
	return row;
}

/* Names in order, one row each. */
static struct store_batch *make_batch(uint64_t save, const char *names, uint64_t sequence)
{
	struct store_batch *b = store_batch_new(save);

	for (; *names; names++) {
		char name[2] = {*names, '\0'};

		b->rows[b->count++] = make_row(name, sequence, T0);
	}
	b->forget_before_ns = T0;
	return b;
}

static void put(struct scene *s, const char *names, uint64_t sequence, bool last)
{
	struct store_batch *b = make_batch(s->save, names, sequence);

	b->last = last;
	store_put(s->store, b);
	expect_next(s->store, last ? STORE_SAVED : STORE_WRITTEN);
}

static void save(struct scene *s, const char *names, uint64_t sequence)
{
	s->save++;
	put(s, names, sequence, true);
}

/*
 * "a1 b2 ": names and sequences that the next store finds, from a database of which it says whether
 * it is empty.
 */
static void expect_found(struct store_event *e, const char *want)
{
	char found[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < e->node_count && len < sizeof(found); i++)
		len += (size_t)snprintf(found + len, sizeof(found) - len, "%s%u ",
					e->nodes[i]->name,
					(unsigned int)e->nodes[i]->counted.sequence);
	assert_string_equal(found, want);
	store_event_free(e);
}

static void expect_in_database(struct scene *s, const char *want)
{
	struct store_event *e = open_store(s);

	assert_string_equal(e->note.text, "");
	assert_int_equal(e->empty, !*want);
	expect_found(e, want);
	stop(s);
}

/* --- saving and reading ----------------------------------------------------------------------- */

static void saves_are_read_again(void **state)
{
	struct scene *s = *state;
	struct store_event *e = open_store(s);
	struct stat st;

	assert_true(e->empty);
	expect_found(e, "");
	save(s, "bca", 1);
	save(s, "c", 2);
	/* In several batches. */
	s->save++;
	put(s, "a", 3, false);
	put(s, "d", 3, false);
	put(s, "", 0, true);
	assert_int_equal(stat(s->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(s->dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	stop(s);
	expect_in_database(s, "a3 b1 c2 d3 ");
}

static void a_save_tells_what_it_did(void **state)
{
	struct scene *s = *state;
	struct store_batch *b;
	struct store_event *e;
	int woken;

	store_event_free(open_store(s));
	b = make_batch(7, "ab", 1);
	b->last = true;
	store_put(s->store, b);
	e = next(s->store, STORE_SAVED);
	assert_int_equal(e->save, 7);
	assert_true(e->took_ns > 0);
	assert_true(e->bytes >= 4096);
	assert_int_equal(e->aside, 0);
	store_event_free(e);
	stop(s);
	sem_getvalue(&s->woken, &woken);
	assert_int_equal(woken, 2);
}

static void unfinished_saves_come_to_nothing(void **state)
{
	struct scene *s = *state;

	store_event_free(open_store(s));
	save(s, "ab", 1);
	s->save++;
	put(s, "abc", 2, false);
	stop(s);
	expect_in_database(s, "a1 b1 ");
	store_event_free(open_store(s));
	s->save++;
	put(s, "b", 3, false);
	/* Another save begins instead. */
	s->save++;
	put(s, "a", 4, true);
	stop(s);
	expect_in_database(s, "a4 b1 ");
}

static void silent_nodes_are_deleted(void **state)
{
	struct scene *s = *state;
	struct store_batch *b;

	store_event_free(open_store(s));
	save(s, "ab", 1);
	b = store_batch_new(++s->save);
	b->rows[b->count++] = make_row("b", 2, T0 + 1);
	b->rows[b->count++] = make_row("c", 2, T0 + 5);
	b->forget_before_ns = T0 + 1;
	b->last = true;
	store_put(s->store, b);
	expect_next(s->store, STORE_SAVED);
	stop(s);
	expect_in_database(s, "b2 c2 ");
}

/* A process that dies in the middle of a save that already fills the log. */
static void killed_in_the_middle_of_a_save(void **state)
{
	struct scene *s = *state;
	char *wal = mem_printf("%s-wal", s->path);
	struct stat st;
	int status;
	pid_t pid;

	store_event_free(open_store(s));
	save(s, "ab", 1);
	stop(s);
	pid = fork();
	if (pid == 0) {
		store_event_free(open_store(s));
		s->save++;
		/* More than SQLite keeps in memory. */
		for (int i = 0; i < 400; i++) {
			struct store_batch *b = make_batch(s->save, "ab", 9);

			for (; b->count < STORE_BATCH_ROWS; b->count++) {
				char name[32];

				snprintf(name, sizeof(name), "n%d-%zu", i, b->count);
				b->rows[b->count] = make_row(name, 9, T0);
			}
			store_put(s->store, b);
			expect_next(s->store, STORE_WRITTEN);
		}
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(stat(wal, &st), 0);
	assert_true(st.st_size > 1024 * 1024);
	free(wal);
	expect_in_database(s, "a1 b1 ");
}

/* --- what cannot be used is set aside --------------------------------------------------------- */

static void write_file(const char *path, const char *content, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, len), len);
	close(fd);
}

static struct buf read_file(const char *path)
{
	struct buf b = BUF_INIT;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	assert_true(fd >= 0);
	while ((got = read(fd, buf_reserve(&b, 65536), 65536)) > 0)
		b.len += (size_t)got;
	close(fd);
	return b;
}

static void sql(const char *path, const char *statement)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, statement, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", statement, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static void make_text(const char *path)
{
	char text[5000];

	memset(text, 'x', sizeof(text));
	write_file(path, text, sizeof(text));
}

static void make_short(const char *path)
{
	assert_int_equal(truncate(path, 4096 + 100), 0);
}

static void damage_page(const char *path, size_t number)
{
	struct buf b = read_file(path);

	assert_true(b.len >= number * 4096);
	memset(b.data + (number - 1) * 4096, 0xff, 4096);
	write_file(path, b.data, b.len);
	buf_fini(&b);
}

/* The page that the rows are in. */
static void damage_rows(const char *path)
{
	damage_page(path, 2);
}

/* That of the index of names, without which every row is read all the same. */
static void damage_index(const char *path)
{
	damage_page(path, 3);
}

/* A bit within a value: SQLite does not see that. */
static void damage_value(const char *path)
{
	sql(path, "UPDATE node SET state = CAST(substr(state, 1, 99) || x'aa' || "
		  "substr(state, 101) AS BLOB) WHERE name = 'b'");
}

static void make_newer(const char *path)
{
	sql(path, "PRAGMA user_version = 4; ALTER TABLE node ADD COLUMN more INTEGER");
}

static void make_foreign(const char *path)
{
	sql(path, "PRAGMA user_version = 0; DROP TABLE node; CREATE TABLE song(title TEXT)");
}

static void drop_column(const char *path)
{
	sql(path, "DROP INDEX node_heard; ALTER TABLE node DROP COLUMN heard_ns");
}

static void drop_plans(const char *path)
{
	sql(path, "DROP TABLE plan_state");
}

static void name_strangely(const char *path)
{
	sql(path, "UPDATE node SET name = 'a/b' WHERE name = 'b'");
}

static void make_huge(const char *path)
{
	sql(path, "UPDATE node SET state = zeroblob(2000000) WHERE name = 'b'");
}

/* The file that was set aside: its path, which the caller frees. */
static char *aside_of(const char *note)
{
	static const char mark[] = "; it was set aside as ";
	const char *at = strstr(note, mark);

	if (!at)
		fail_msg("nothing was set aside: \"%s\"", note);
	return mem_strdup(at + strlen(mark));
}

static void unusable_databases_are_set_aside(void **state)
{
	static const struct {
		void (*spoil)(const char *path);
		const char *note;
		const char *kept; /* of a1 b1 */
	} cases[] = {
		{make_text, "is damaged (file is not a database)", ""},
		{make_short, "is damaged (", ""},
		{damage_rows, "is damaged (", ""},
		{damage_index, "is damaged (", ""},
		{damage_value, "is damaged (the row of node \"b\"): its checksum is wrong", "a1 "},
		{make_newer, "is of version 4, newer than this program, which knows 3", ""},
		{make_foreign, "is a database of something else", ""},
		{drop_column, "is damaged (", ""},
		{drop_plans, "is damaged (no such table: plan_state)", ""},
		{name_strangely, "is damaged (the row of node \"a/b\"): no node has such a name",
		 "a1 "},
		{make_huge, "is damaged (string or blob too big)", "a1 "},
	};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf before, after;
		struct store_event *e;
		char *aside;

		store_event_free(open_store(s));
		save(s, "ab", 1);
		stop(s);
		cases[i].spoil(s->path);
		before = read_file(s->path);
		e = open_store(s);
		if (!strstr(e->note.text, cases[i].note) ||
		    strncmp(e->note.text, s->path, strlen(s->path)) != 0)
			fail_msg("\"%s\", not \"%s\"", e->note.text, cases[i].note);
		assert_true(e->empty);
		assert_int_equal(e->aside, 1);
		aside = aside_of(e->note.text);
		expect_found(e, cases[i].kept);
		/* It is kept as it was, and the new one works. */
		after = read_file(aside);
		assert_int_equal(after.len, before.len);
		assert_memory_equal(after.data, before.data, before.len);
		save(s, "c", 2);
		stop(s);
		expect_in_database(s, "c2 ");
		assert_int_equal(unlink(aside), 0);
		assert_int_equal(unlink(s->path), 0);
		buf_fini(&before);
		buf_fini(&after);
		free(aside);
	}
}

/* The log goes along, so that nothing of a newer program's database is missing. */
static void its_log_is_set_aside_too(void **state)
{
	struct scene *s = *state;
	struct store_event *e;
	char *aside, *wal;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		sqlite3 *db;

		mkdir(s->dir, 0700);
		sqlite3_open(s->path, &db);
		sqlite3_exec(db,
			     "PRAGMA journal_mode=WAL; CREATE TABLE t(x); PRAGMA user_version=9; "
			     "INSERT INTO t VALUES(42)",
			     NULL, NULL, NULL);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	e = open_store(s);
	assert_non_null(strstr(e->note.text, "is of version 9"));
	aside = aside_of(e->note.text);
	wal = mem_printf("%s-wal", aside);
	assert_int_equal(access(wal, R_OK), 0);
	sql(aside, "SELECT x / (x = 42) FROM t; INSERT INTO t SELECT x FROM t");
	free(wal);
	free(aside);
	store_event_free(e);
}

static void not_for_ever(void **state)
{
	struct scene *s = *state;
	struct store_event *e;

	assert_int_equal(mkdir(s->dir, 0700), 0);
	for (size_t i = 0; i < DATABASE_ASIDE_MAX; i++) {
		make_text(s->path);
		e = open_store(s);
		assert_int_equal(e->aside, i + 1);
		store_event_free(e);
		stop(s);
	}
	make_text(s->path);
	s->store = start(s);
	e = next(s->store, STORE_NOT_OPENED);
	assert_non_null(strstr(e->error.text, "8 were set aside already"));
	store_event_free(e);
	assert_int_equal(access(s->path, F_OK), 0);
}

/* --- what is in the way
 * ---------------------------------------------------------------------------------------------- */

static void make_dir_a_file(struct scene *s)
{
	write_file(s->dir, "x", 1);
}

static void remove_dir_file(struct scene *s)
{
	assert_int_equal(unlink(s->dir), 0);
}

static void make_path_a_dir(struct scene *s)
{
	assert_int_equal(mkdir(s->dir, 0700), 0);
	assert_int_equal(mkdir(s->path, 0700), 0);
}

static void remove_path_dir(struct scene *s)
{
	assert_int_equal(rmdir(s->path), 0);
}

static void make_path_a_link(struct scene *s)
{
	assert_int_equal(mkdir(s->dir, 0700), 0);
	assert_int_equal(symlink("/dev/null", s->path), 0);
}

static void remove_link(struct scene *s)
{
	assert_int_equal(unlink(s->path), 0);
}

static void remove_parent(struct scene *s)
{
	assert_int_equal(rmdir(s->folder), 0);
}

static void make_parent(struct scene *s)
{
	assert_int_equal(mkdir(s->folder, 0700), 0);
}

/* It says what, fails saves at once, and goes on when the way is free. */
static void obstacles(void **state)
{
	static const struct {
		void (*make)(struct scene *s);
		void (*clear)(struct scene *s);
		const char *reason;
	} cases[] = {
		{make_dir_a_file, remove_dir_file, "is no directory"},
		{make_path_a_dir, remove_path_dir, "is no file: move it away"},
		{make_path_a_link, remove_link, "is no file: move it away"},
		{remove_parent, make_parent, "cannot be made: No such file or directory"},
	};
	struct scene *s = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store_batch *b;
		struct store_event *e;

		cases[i].make(s);
		s->store = start(s);
		e = next(s->store, STORE_NOT_OPENED);
		if (!strstr(e->error.text, cases[i].reason))
			fail_msg("\"%s\", not \"%s\"", e->error.text, cases[i].reason);
		store_event_free(e);
		b = make_batch(1, "a", 1);
		b->last = true;
		store_put(s->store, b);
		e = next_but_refusals(s->store, STORE_FAILED);
		assert_non_null(strstr(e->error.text, cases[i].reason));
		store_event_free(e);
		cases[i].clear(s);
		e = next_but_refusals(s->store, STORE_OPENED);
		store_event_free(e);
		s->save = 1;
		save(s, "a", 2);
		stop(s);
		expect_in_database(s, "a2 ");
		assert_int_equal(unlink(s->path), 0);
		assert_int_equal(rmdir(s->dir), 0);
	}
}

/* Two on one directory: the second waits, and has the rows when the first is gone. */
static void one_at_a_time(void **state)
{
	struct scene *s = *state;
	struct store *second;
	struct store_event *e;

	store_event_free(open_store(s));
	save(s, "a", 1);
	second = start(s);
	e = next(second, STORE_NOT_OPENED);
	assert_non_null(strstr(e->error.text, "another process has it"));
	store_event_free(e);
	save(s, "b", 2);
	stop(s);
	e = next_but_refusals(second, STORE_OPENED);
	expect_found(e, "a1 b2 ");
	store_stop(second);
}

/* Saving into a file that nobody will find again is no saving. */
static void taken_away_while_in_use(void **state)
{
	struct scene *s = *state;
	struct store_batch *b;
	struct store_event *e;

	store_event_free(open_store(s));
	save(s, "a", 1);
	assert_int_equal(unlink(s->path), 0);
	b = make_batch(++s->save, "a", 2);
	store_put(s->store, b);
	/* The rest of that save fails as well. */
	b = make_batch(s->save, "b", 2);
	b->last = true;
	store_put(s->store, b);
	e = next(s->store, STORE_FAILED);
	assert_non_null(strstr(e->error.text, "was moved or removed"));
	store_event_free(e);
	expect_next(s->store, STORE_FAILED);
	e = next(s->store, STORE_OPENED);
	assert_true(e->empty);
	assert_int_equal(e->node_count, 0);
	store_event_free(e);
	/* Nor does what is left of it become a save of its own. */
	b = make_batch(s->save, "c", 2);
	b->last = true;
	store_put(s->store, b);
	expect_next(s->store, STORE_FAILED);
	save(s, "b", 3);
	stop(s);
	expect_in_database(s, "b3 ");
}

/* Another one in its place is used, but not read: what is in memory is newer. */
static void replaced_while_in_use(void **state)
{
	struct scene *s = *state;
	char *copy = mem_printf("%s.copy", s->path);
	struct store_event *e;
	struct buf b;

	store_event_free(open_store(s));
	save(s, "a", 1);
	stop(s);
	b = read_file(s->path);
	write_file(copy, b.data, b.len);
	expect_found(open_store(s), "a1 ");
	assert_int_equal(rename(copy, s->path), 0);
	store_put(s->store, make_batch(++s->save, "b", 2));
	expect_next(s->store, STORE_FAILED);
	e = next(s->store, STORE_OPENED);
	assert_false(e->empty);
	expect_found(e, "");
	save(s, "b", 3);
	stop(s);
	expect_in_database(s, "a1 b3 ");
	buf_fini(&b);
	free(copy);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(saves_are_read_again),
		TEST(a_save_tells_what_it_did),
		TEST(unfinished_saves_come_to_nothing),
		TEST(silent_nodes_are_deleted),
		TEST(killed_in_the_middle_of_a_save),
		TEST(unusable_databases_are_set_aside),
		TEST(its_log_is_set_aside_too),
		TEST(not_for_ever),
		TEST(obstacles),
		TEST(one_at_a_time),
		TEST(taken_away_while_in_use),
		TEST(replaced_while_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
