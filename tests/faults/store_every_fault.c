/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database whose disk fails at the first operation, at the second, and so on until there is no
 * further one: once and then never again, or from there on for ever; broken, full, or locked by
 * somebody else.
 *
 * a save is in it  ->  the disk begins to fail  ->  open, save another, close  ->  the disk is
 * well: open
 *
 * Rows of all kinds (windows of nodes, what planners remember, decisions about drains) are then
 * those of the one save or of the other, never of both, and of the other if it was told to be
 * saved. No failure is taken for damage: nothing is set aside. A disk that failed once is used
 * again without a word of anybody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/store/store.h"
#include "aggregator/state/usage_node.h"
#include "aggregator/state/usage_pack.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/disk_fault.h"
#include "tests/process.h"
#include "tests/usage_fixture.h"

#define LONG_NS (30 * NS_PER_SEC)
#define T0	(1700000010LL * NS_PER_SEC)

enum { NODES = 3, ATTEMPTS = 10, OPERATIONS_MAX = 2000 };

static struct {
	char *folder, *dir;
	struct store *store;
	uint64_t save;
} s;

static void wake(void *ctx)
{
	(void)ctx;
}

static void start(void)
{
	struct store_config config = {
		.dir = s.dir, .nodes_max = 100, .busy_ms = 1, .retry_ns = NS_PER_MS, .wake = wake};

	assert_int_equal(store_start(&s.store, &config, NULL), 0);
}

static void stop(void)
{
	store_stop(s.store);
	s.store = NULL;
}

static struct store_event *next(void)
{
	struct store_event *e = store_take(s.store, LONG_NS);

	assert_non_null(e);
	if (e->kind == STORE_NOT_OPENED || e->kind == STORE_FAILED)
		assert_true(*e->error.text);
	return e;
}

/* --- a save, of a generation ------------------------------------------------------------------ */

static struct usage_row make_row(char name, uint64_t generation)
{
	static const uint8_t run[FRAME_RUN_LEN] = {1};
	struct usage_fixture f = {.sequence = generation, .end_ns = T0, .seconds = 5};
	struct interval *i = usage_fixture_new(&f);
	struct usage_node *n = usage_node_new("x", T0);
	struct usage_row row = {.name = mem_printf("%c", name), .heard_ns = T0};

	usage_node_apply(n, run, i, 1, 10);
	n->heard_ns = T0;
	usage_node_pack(n, &row.packed);
	usage_node_free(n);
	interval_free(i);
	return row;
}

/* The first part has the nodes, the second the rest. */
static struct store_batch *make_batch(uint64_t generation, bool last)
{
	struct store_batch *b = store_batch_new(s.save);
	struct buf text = BUF_INIT;
	char node[16];

	b->forget_before_ns = T0;
	b->last = last;
	for (int i = 0; i < NODES && !last; i++)
		b->rows[b->count++] = make_row((char)('a' + i), generation);
	if (!last)
		return b;
	buf_printf(&text, "generation %d", (int)generation);
	b->memos[b->memo_count++] = (struct store_memo){"slack", shared_body_new(&text)};
	snprintf(node, sizeof(node), "n%d", (int)generation);
	b->decisions.first = generation;
	b->decisions.count = 1;
	b->decisions.of = mem_zalloc(1, sizeof(struct drain_row *));
	b->decisions.of[0] =
		drain_row_new(&(struct drain_row){.time_ns = T0, "needed", "", node, "because"});
	return b;
}

static bool put(uint64_t generation, bool last)
{
	struct store_event *e;
	enum store_event_kind kind;

	store_put(s.store, make_batch(generation, last));
	/* The database may have to be opened again first. */
	for (e = next(); e->kind == STORE_OPENED || e->kind == STORE_NOT_OPENED; e = next())
		store_event_free(e);
	kind = e->kind;
	store_event_free(e);
	assert_true(kind == STORE_FAILED || kind == (last ? STORE_SAVED : STORE_WRITTEN));
	return kind != STORE_FAILED;
}

static bool save(uint64_t generation)
{
	bool begun;

	s.save++;
	begun = put(generation, false);
	return put(generation, true) && begun;
}

/* --- what was in it --------------------------------------------------------------------------- */

/* Its generation; 0: nothing is in it. Fails when it is of several. */
static uint64_t generation_of(const struct store_event *e)
{
	uint64_t generation = e->decision_last;
	char text[32];

	if (*e->note.text || e->aside)
		fail_msg("set aside: %s", e->note.text);
	if (!generation) {
		assert_true(e->empty);
		return 0;
	}
	assert_int_equal(e->decision_count, generation);
	assert_int_equal(e->node_count, NODES);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(e->nodes[i]->counted.sequence, generation);
	snprintf(text, sizeof(text), "generation %d", (int)generation);
	assert_int_equal(e->memo_count, 1);
	assert_string_equal(e->memos[0].text, text);
	return generation;
}

/*
 * Starts and opens it; while it cannot be, attempts are made, and with the last of them the disk is
 * well.
 */
static uint64_t open_at_last(void)
{
	struct store_event *e;
	uint64_t generation;
	int attempts = 0;

	start();
	for (e = next(); e->kind == STORE_NOT_OPENED; e = next()) {
		store_event_free(e);
		if (++attempts == ATTEMPTS)
			disk_fault_heal();
	}
	assert_int_equal(e->kind, STORE_OPENED);
	generation = generation_of(e);
	store_event_free(e);
	return generation;
}

/* --- every fault ------------------------------------------------------------------------------ */

struct trial {
	enum disk_fault_kind kind;
	int64_t after, times;
	uint64_t before; /* the generation that is in it; 0: there is no database yet */
};

static void fail_once(const struct trial *t)
{
	int64_t limit_ns;
	int failed = 0;

	assert_int_equal(open_at_last(), t->before);
	limit_ns = clock_mono_ns() + LONG_NS;
	while (!save(t->before + 1)) {
		assert_true(clock_mono_ns() < limit_ns);
		/* It stays open where there was no room, and costs that save alone. */
		assert_true(t->kind != DISK_FULL || ++failed == 1);
		/* It opens the database again when it has nothing else to do. */
		store_event_free(store_take(s.store, 10 * NS_PER_MS));
	}
	stop();
	disk_fault_heal();
	assert_int_equal(open_at_last(), t->before + 1);
}

static void fail_for_ever(const struct trial *t)
{
	bool saved;

	assert_int_equal(open_at_last(), t->before);
	saved = save(t->before + 1);
	stop();
	disk_fault_heal();
	assert_int_equal(open_at_last(), t->before + saved);
}

/* Whether the disk failed at all. */
static bool try_fault(const struct trial *t)
{
	int64_t met;

	s.folder = folder_make();
	s.dir = mem_printf("%s/state", s.folder);
	if (t->before) {
		assert_int_equal(open_at_last(), 0);
		assert_true(save(t->before));
		stop();
	}
	disk_fault_set(t->kind, t->after, t->times);
	if (t->times == 1)
		fail_once(t);
	else
		fail_for_ever(t);
	stop();
	met = disk_fault_met();
	folder_remove(s.folder);
	free(s.dir);
	return met > 0;
}

static void try_all(enum disk_fault_kind kind, int64_t times)
{
	int64_t after;

	for (uint64_t before = 0; before < 2; before++) {
		struct trial t = {.kind = kind, .times = times, .before = before};

		for (after = 0; after < OPERATIONS_MAX; after++) {
			t.after = after;
			if (!try_fault(&t))
				break;
		}
		print_message("%d operations, %s\n", (int)after,
			      before ? "over a database" : "of a new database");
		assert_true(after > 0 && after < OPERATIONS_MAX);
	}
}

static void test_broken_once(void **state)
{
	(void)state;
	try_all(DISK_BROKEN, 1);
}

static void test_broken_for_ever(void **state)
{
	(void)state;
	try_all(DISK_BROKEN, INT64_MAX);
}

static void test_full_once(void **state)
{
	(void)state;
	try_all(DISK_FULL, 1);
}

static void test_full_for_ever(void **state)
{
	(void)state;
	try_all(DISK_FULL, INT64_MAX);
}

static void test_locked_once(void **state)
{
	(void)state;
	try_all(DISK_LOCKED, 1);
}

static void test_locked_for_ever(void **state)
{
	(void)state;
	try_all(DISK_LOCKED, INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_broken_once), cmocka_unit_test(test_broken_for_ever),
		cmocka_unit_test(test_full_once),   cmocka_unit_test(test_full_for_ever),
		cmocka_unit_test(test_locked_once), cmocka_unit_test(test_locked_for_ever),
	};

	disk_fault_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
