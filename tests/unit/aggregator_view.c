/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/view.h"
#include "shared/mem.h"
#include "tests/view_fixture.h"

enum { READERS = 4, PUBLICATIONS = 2000, TAKES = 5000, STATS = 20 };

static struct node_stats *new_stats(const char *name, uint64_t generation)
{
	struct node_stats from = {.name = name, .generation = generation};

	return node_stats_new(&from);
}

static void nodes_are_found_by_name(void **state)
{
	static const char *const names[] = {"a", "b-1", "b-10", "b-2"};
	struct node_stats **node_stats = mem_alloc(4 * sizeof(struct node_stats *));
	struct view *v;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		node_stats[i] = new_stats(names[i], i);
	v = view_fixture_of_stats(3, 99, node_stats, 4);
	assert_int_equal(v->version, 3);
	assert_int_equal(v->time_ns, 99);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(view_fixture_stats(v, names[i])->generation, i);
	assert_null(view_find(v, ""));
	assert_null(view_find(v, "b"));
	assert_null(view_find(v, "c"));
	view_drop(v);
	view_drop(NULL);
}

static void slot_starts_empty_and_keeps_what_is_held(void **state)
{
	struct view_slot *s = view_slot_new();
	struct view *empty = view_slot_take(s), *first;
	struct node_stats **node_stats = mem_alloc(sizeof(struct node_stats *));

	(void)state;
	assert_int_equal(empty->version, 0);
	assert_int_equal(empty->node_count, 0);
	assert_null(view_find(empty, "n"));
	node_stats[0] = new_stats("n", 1);
	view_slot_publish(s, view_fixture_of_stats(1, 5, node_stats, 1));
	first = view_slot_take(s);
	view_slot_publish(s, view_new(2, 6, NULL, 0, NULL, NULL));
	assert_int_equal(empty->version, 0);
	assert_string_equal(view_find(first, "n")->name, "n");
	view_drop(empty);
	view_slot_free(s);
	assert_string_equal(first->nodes[0]->stats->name, "n");
	view_drop(first);
	view_slot_free(NULL);
}

/*
 * A view whose stats all have its version as their generation, but for the first, which every view
 * shares.
 */
static struct view *view_of_version(uint64_t version, struct node_stats *common)
{
	struct node_stats **node_stats = mem_alloc(STATS * sizeof(struct node_stats *));

	node_stats[0] = node_stats_hold(common);
	for (int i = 1; i < STATS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "node-%02d", i);
		node_stats[i] = new_stats(name, version);
	}
	return view_fixture_of_stats(version, (int64_t)version, node_stats, STATS);
}

/* What a reader saw that cannot be; 0 when all was well. */
struct reader {
	pthread_t thread;
	struct view_slot *slot;
	unsigned long wrong;
};

static void *read_views(void *arg)
{
	struct reader *r = arg;
	uint64_t newest = 0;

	for (int n = 0; n < TAKES; n++) {
		struct view *v = view_slot_take(r->slot);

		r->wrong += v->version < newest;
		newest = v->version;
		for (size_t i = 1; i < v->node_count; i++)
			r->wrong += v->nodes[i]->stats->generation != v->version;
		r->wrong += v->node_count && v->nodes[0]->stats->generation != 4711;
		view_drop(v);
	}
	return NULL;
}

static void readers_always_see_a_whole_view(void **state)
{
	struct view_slot *slot = view_slot_new();
	struct node_stats *common = new_stats("a", 4711);
	struct reader readers[READERS] = {0};

	(void)state;
	for (int i = 0; i < READERS; i++) {
		readers[i].slot = slot;
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_views, &readers[i]),
				 0);
	}
	for (uint64_t version = 1; version <= PUBLICATIONS; version++)
		view_slot_publish(slot, view_of_version(version, common));
	for (int i = 0; i < READERS; i++) {
		pthread_join(readers[i].thread, NULL);
		assert_int_equal(readers[i].wrong, 0);
	}
	view_slot_free(slot);
	assert_int_equal(common->users, 1); /* nothing was lost and nothing kept */
	node_stats_drop(common);
}

/* Who publishes, and may be late. */
struct publishing {
	struct view_slot *slot;
	struct node_stats *common;
	uint64_t tickets; /* the newest */
	bool answers;
};

static void publish_one(void *ctx, uint64_t ticket)
{
	struct publishing *p = ctx;

	p->tickets = ticket;
	if (!p->answers)
		return;
	view_slot_publish(p->slot, view_of_version(ticket, p->common));
	view_slot_answer(p->slot, ticket);
}

static void *answer_all(void *ctx)
{
	struct publishing *p = ctx;

	view_slot_publish(p->slot, view_of_version(9, p->common));
	view_slot_answer(p->slot, UINT64_MAX);
	return NULL;
}

static void a_reader_waits_for_a_newer_view_no_longer_than_it_says(void **state)
{
	struct view_slot *slot = view_slot_new();
	struct publishing p = {.slot = slot, .common = new_stats("a", 4711), .answers = true};
	pthread_t thread;
	struct view *v;

	(void)state;
	assert_false(view_slot_refresh(slot, INT64_MAX)); /* nobody would publish */
	view_slot_on_refresh(slot, publish_one, &p);
	assert_true(view_slot_refresh(slot, 0));
	v = view_slot_take(slot);
	assert_int_equal(v->version, 1);
	view_drop(v);
	p.answers = false;
	assert_false(view_slot_refresh(slot, 0)); /* long past */
	assert_int_equal(p.tickets, 2);
	assert_false(view_slot_await(slot, 1, 0));
	assert_true(view_slot_await(slot, 0, 0));
	/* An answer for later tickets serves the earlier ones. */
	assert_int_equal(pthread_create(&thread, NULL, answer_all, &p), 0);
	assert_true(view_slot_await(slot, 1, INT64_MAX));
	assert_true(view_slot_refresh(slot, INT64_MAX));
	pthread_join(thread, NULL);
	v = view_slot_take(slot);
	assert_int_equal(v->version, 9);
	view_drop(v);
	view_slot_free(slot);
	node_stats_drop(p.common);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_found_by_name),
		cmocka_unit_test(slot_starts_empty_and_keeps_what_is_held),
		cmocka_unit_test(readers_always_see_a_whole_view),
		cmocka_unit_test(a_reader_waits_for_a_newer_view_no_longer_than_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
