/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stats keep from the one before what has not changed since. Here two nodes are told the same,
 * while things start, leave, come back, are bounded otherwise and begin new runs; of one of them
 * nothing is kept, and the stats of both must say the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/usage_node.h"
#include "tests/stats_equal.h"
#include "tests/usage_fixture.h"
#include "tests/usage_story.h"

enum { THINGS = 14, STEPS = 1500, PODS_MAX = 2048 };

/* What runs on the machine: of three each a pod, its container, and a unit whose name another has. */
struct thing {
	uint32_t ref; /* 0: it does not run */
	int64_t cpu_limit_milli;
	bool told;
};

struct world {
	struct thing things[THINGS];
	struct usage_node *kept, *fresh;
	struct stats_scratch scratch;
	uint32_t seed, next_ref;
	uint64_t sequence;
	int end;
	char run;
};

static uint32_t draw(struct world *w, uint32_t below)
{
	return (uint32_t)(fixture_random(&w->seed) * below);
}

static void begin_thing(struct world *w, int i)
{
	w->things[i] = (struct thing){
		.ref = ++w->next_ref,
		.cpu_limit_milli = draw(w, 2) ? 500 : LIMIT_NONE,
	};
}

static void begin_run(struct world *w)
{
	w->run++;
	w->sequence = w->next_ref = 0;
	for (int i = 0; i < THINGS; i++)
		if (w->things[i].ref)
			begin_thing(w, i);
}

/* Most of the time nothing. */
static void change(struct world *w)
{
	int i = (int)draw(w, THINGS);
	struct thing *t = &w->things[i];

	switch (draw(w, 12)) {
	case 0:
		begin_thing(w, i); /* for the first time, or as another life of it */
		break;
	case 1:
		t->ref = 0;
		break;
	case 2:
		t->cpu_limit_milli = 100 + (int64_t)draw(w, 3) * 400;
		t->told = false;
		break;
	case 3:
		t->told = false; /* told again, which is no news */
		break;
	case 4:
		if (draw(w, 10) == 0)
			begin_run(w);
		break;
	default:
		break;
	}
}

static void tell_who(const struct world *w, int i, struct entry *e)
{
	static const enum entity_kind kinds[] = {ENTITY_POD, ENTITY_CONTAINER, ENTITY_UNIT};
	struct entity *who;
	char name[32];

	/* Not in the order of references; units 2 and 8, 5 and 11 are called the same. */
	snprintf(name, sizeof(name), "k/%c", i % 3 == 2 ? '0' + i / 3 % 2 : 'a' + i * 5 % THINGS);
	who = story_name(e, kinds[i % 3], name);
	if (i % 3 == 0)
		snprintf(who->pod_uid, sizeof(who->pod_uid), "uid-%d", i);
	if (i % 3 == 1)
		who->parent = w->things[i - 1].ref;
	e->limits.cpu_milli = w->things[i].cpu_limit_milli;
}

static int compare_refs(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->ref > y->ref) - (x->ref < y->ref);
}

static struct interval *take(struct world *w)
{
	struct interval *i = story_interval(++w->sequence, w->end, w->end + 5, THINGS);
	size_t count = 0;

	w->end += 5;
	for (int t = 0; t < THINGS; t++) {
		struct thing *thing = &w->things[t];
		struct entry *e = &i->entries[count];

		if (!thing->ref)
			continue;
		e->ref = thing->ref;
		e->usage.cpu_milli.mean = (float)draw(w, 4000);
		if (!thing->told || t % 3 == 1) /* a container's pod may have become another */
			tell_who(w, t, e);
		thing->told = true;
		count++;
	}
	i->entry_count = count;
	qsort(i->entries, count, sizeof(*i->entries), compare_refs);
	return i;
}

static void expect_same_layout(const struct node_stats *a, const struct node_stats *b)
{
	assert_int_equal(a->pod_count, b->pod_count);
	assert_ptr_equal(a->names, b->names);
	for (size_t i = 0; i < a->pod_count; i++) {
		const struct pod_stats *x = &a->pods[i], *y = &b->pods[i];

		assert_ptr_equal(x->name, y->name);
		assert_ptr_equal(x->uid, y->uid);
		assert_ptr_equal(x->limits, y->limits);
		assert_int_equal(x->container_count, y->container_count);
		for (uint32_t c = 0; c < x->container_count; c++) {
			assert_ptr_equal(x->containers[c].id, y->containers[c].id);
			assert_ptr_equal(x->containers[c].limits, y->containers[c].limits);
		}
	}
}

static void step(struct world *w, size_t *same)
{
	struct usage_node *const nodes[] = {w->kept, w->fresh};
	struct node_stats *before = w->kept->stats ? node_stats_hold(w->kept->stats) : NULL;
	struct interval *i;

	change(w);
	i = take(w);
	for (int n = 0; n < 2; n++)
		usage_node_apply(nodes[n], story_run(w->run), i, w->sequence + w->run * 100000ull,
				 PODS_MAX);
	interval_free(i);
	w->fresh->order.layout = w->fresh->head.layout = 0;
	for (int n = 0; n < 2; n++)
		nodes[n]->stats = usage_node_stats(nodes[n], &w->scratch);
	stats_equal_check(w->kept->stats, w->fresh->stats);
	if (before && before->layout == w->kept->stats->layout) {
		expect_same_layout(before, w->kept->stats);
		++*same;
	}
	node_stats_drop(before);
}

static void stats_do_not_depend_on_those_before(void **state)
{
	struct world w = {.seed = 1, .run = 'a' - 1};
	size_t same = 0;

	(void)state;
	w.kept = usage_node_new("n", T0);
	w.fresh = usage_node_new("n", T0);
	for (int i = 0; i < THINGS; i++)
		begin_thing(&w, i);
	begin_run(&w);
	for (int s = 0; s < STEPS; s++)
		step(&w, &same);
	assert_in_range(same, STEPS / 3, STEPS * 9 / 10);
	stats_scratch_free_members(&w.scratch);
	usage_node_free(w.kept);
	usage_node_free(w.fresh);
}

/* A run that starts with nothing runs is not what was there before it. */
static void an_empty_run_empties_the_stats(void **state)
{
	struct usage_node *n = usage_node_new("n", T0);
	struct stats_scratch scratch = {0};
	struct interval *i = story_interval(1, 0, 5, 1);

	(void)state;
	story_name(&i->entries[0], ENTITY_UNIT, "a");
	usage_node_apply(n, story_run('a'), i, 1, PODS_MAX);
	interval_free(i);
	n->stats = usage_node_stats(n, &scratch);
	assert_int_equal(n->stats->pod_count, 1);
	i = story_interval(1, 5, 10, 0);
	usage_node_apply(n, story_run('b'), i, 2, PODS_MAX);
	interval_free(i);
	n->stats = usage_node_stats(n, &scratch);
	assert_int_equal(n->stats->pod_count, 0);
	stats_scratch_free_members(&scratch);
	usage_node_free(n);
}

/* Two lives of a unit are one pod, and places behind it are one lower than references. */
static void containers_are_found_behind_two_lives(void **state)
{
	struct usage_node *n = usage_node_new("n", T0);
	struct stats_scratch scratch = {0};
	const struct pod_stats *pods;

	(void)state;
	for (int s = 0; s < 2; s++) { /* as found, and as kept */
		struct interval *i = story_interval((uint64_t)s + 1, 5 * s, 5 * s + 5, 4);

		if (s == 0) {
			story_name(&i->entries[0], ENTITY_UNIT, "a");
			story_name(&i->entries[1], ENTITY_UNIT, "a");
			story_name(&i->entries[2], ENTITY_POD, "b");
			story_name(&i->entries[3], ENTITY_CONTAINER, "b/x")->parent = 3;
		}
		usage_node_apply(n, story_run('a'), i, (uint64_t)s + 1, PODS_MAX);
		interval_free(i);
		n->stats = usage_node_stats(n, &scratch);
		pods = n->stats->pods;
		assert_int_equal(n->stats->pod_count, 2);
		assert_int_equal(n->stats->layout, 1);
		assert_int_equal(pods[0].container_count, 0);
		assert_string_equal(pods[1].name, "b");
		assert_int_equal(pods[1].container_count, 1);
		assert_string_equal(pods[1].containers[0].name, "b/x");
	}
	stats_scratch_free_members(&scratch);
	usage_node_free(n);
}

/* The cause is a place in the stats, which follow names, not references. */
static void causes_are_places(void **state)
{
	struct usage_node *n = usage_node_new("n", T0);
	struct stats_scratch scratch = {0};
	struct interval *i = story_interval(1, 0, 5, 4);
	const struct pod_stats *pods;

	(void)state;
	story_name(&i->entries[0], ENTITY_POD, "c");
	story_name(&i->entries[1], ENTITY_POD, "b");
	story_name(&i->entries[2], ENTITY_POD, "a");
	story_name(&i->entries[3], ENTITY_POD, "d");
	i->entries[0].cause = (struct contention_cause){2, 0.75F};
	i->entries[1].cause = (struct contention_cause){CAUSE_SYSTEM, 0.5F};
	i->entries[3].cause = (struct contention_cause){99, 0.5F};
	usage_node_apply(n, story_run('a'), i, 1, PODS_MAX);
	interval_free(i);
	n->stats = usage_node_stats(n, &scratch);
	pods = n->stats->pods;
	assert_true(pods[2].cause.share == 0.75F && pods[2].cause.pod == 1);
	assert_true(pods[1].cause.share == 0.5F && pods[1].cause.pod == CAUSE_SYSTEM);
	assert_true(pods[0].cause.share == 0 && pods[3].cause.share == 0);
	stats_scratch_free_members(&scratch);
	usage_node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stats_do_not_depend_on_those_before),
		cmocka_unit_test(containers_are_found_behind_two_lives),
		cmocka_unit_test(an_empty_run_empties_the_stats),
		cmocka_unit_test(causes_are_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
