/* SPDX-License-Identifier: Apache-2.0 */
/* What may go now, how much of it, and in what order. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/drain/drain_select.h"
#include "aggregator/policy/drain/drain_internal.h"
#include "tests/drain_fixture.h"

#define SEC INT64_C(1000000000)

enum { NODES_MAX = 16 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct scene {
	struct drain_options options;
	struct drain_groups groups;
	struct object *node;
	struct drain_timer timer;
	struct drain_removable nodes[NODES_MAX];
	size_t count;
	struct drain_choice choice;
};

static void start(struct scene *s, enum drain_variant variant, const struct drain_group_rule *rules,
		  size_t count)
{
	memset(s, 0, sizeof(*s));
	drain_options_default(&s->options);
	s->options.variant = variant;
	drain_groups_init(&s->groups, rules, count);
	s->node = drain_fixture_object(OBJECT_NODE, "{'metadata':{'name':'n'}}");
	s->timer = (struct drain_timer){.since_ns = DRAIN_NOW_NS - 3600 * SEC};
}

static void add(struct scene *s, const char *group, size_t movable, size_t waiting)
{
	uint32_t at = drain_groups_find(&s->groups, group);

	drain_groups_count(&s->groups, at, false);
	s->nodes[s->count++] = (struct drain_removable){
		.node = (struct kube_node *)s->node,
		.timer = &s->timer,
		.group = at,
		.gives = {1, 1000, 10},
		.movable = movable,
		.waiting = waiting,
	};
}

static void choose(struct scene *s)
{
	drain_choice_fini(&s->choice);
	drain_select(&s->options, &s->groups, s->nodes, s->count, DRAIN_NOW_NS, &s->choice);
}

static void stop(struct scene *s)
{
	drain_choice_fini(&s->choice);
	drain_groups_fini(&s->groups);
	object_drop(s->node);
}

static void check_reasons(const struct scene *s, const enum drain_reason *want, size_t count)
{
	assert_int_equal(s->count, count);
	for (size_t i = 0; i < count; i++)
		if (s->nodes[i].reason != want[i])
			fail_msg("node %zu: %s (%s)", i, drain_reason_name(s->nodes[i].reason),
				 s->nodes[i].error.text);
}

/* An incomplete atomic group takes no room from others. */
static void test_what_fails_takes_no_room(void **state)
{
	static const struct drain_group_rule rules[] = {{"all", 0, -1, true},
							{"one", 0, -1, false}};
	static const enum drain_reason upstream[] = {DRAIN_ATOMIC_FAILED, DRAIN_MINIMAL_LIMIT};
	static const enum drain_reason corrected[] = {DRAIN_ATOMIC_FAILED, DRAIN_NONE};

	(void)state;
	for (int v = DRAIN_CORRECTED; v <= DRAIN_UPSTREAM; v++) {
		struct scene s;

		start(&s, (enum drain_variant)v, rules, 2);
		add(&s, "all", 0, 0);
		drain_groups_count(&s.groups, drain_groups_find(&s.groups, "all"), false);
		add(&s, "one", 0, 0);
		s.groups.left.nodes = 1;
		choose(&s);
		check_reasons(&s, v == DRAIN_UPSTREAM ? upstream : corrected, COUNT(upstream));
		stop(&s);
	}
}

/* A whole group waits for the pods of one of its nodes. */
static void test_an_atomic_group_waits_together(void **state)
{
	static const struct drain_group_rule rules[] = {{"all", 0, -1, true}};
	static const enum drain_reason upstream[] = {DRAIN_NONE, DRAIN_ON_COMPLETION};
	static const enum drain_reason corrected[] = {DRAIN_ON_COMPLETION, DRAIN_ON_COMPLETION};

	(void)state;
	for (int v = DRAIN_CORRECTED; v <= DRAIN_UPSTREAM; v++) {
		struct scene s;

		start(&s, (enum drain_variant)v, rules, 1);
		add(&s, "all", 0, 0);
		add(&s, "all", 1, 2);
		choose(&s);
		check_reasons(&s, v == DRAIN_UPSTREAM ? upstream : corrected, COUNT(upstream));
		assert_string_equal(s.nodes[1].error.text,
				    "2 of its pods are to end by themselves first");
		stop(&s);
	}
}

static void test_an_atomic_group_has_room_for_all_or_none(void **state)
{
	static const struct drain_group_rule rules[] = {{"all", 0, -1, true},
							{"one", 0, -1, false}};
	static const enum drain_reason none[] = {DRAIN_MINIMAL_LIMIT, DRAIN_MINIMAL_LIMIT,
						 DRAIN_NONE};
	struct scene s;

	(void)state;
	start(&s, DRAIN_CORRECTED, rules, 2);
	add(&s, "all", 0, 0);
	add(&s, "all", 3, 0);
	add(&s, "one", 1, 0);
	s.groups.left.cpu_milli = 1999;
	choose(&s);
	check_reasons(&s, none, COUNT(none));
	assert_string_equal(s.nodes[0].error.text,
			    "1000 millicores would go, and only 999 more may");
	assert_int_equal(s.groups.left.cpu_milli, 999);
	assert_true(s.choice.empty_count == 0 && s.choice.drain_count == 1);
	stop(&s);
}

static void test_min_sizes(void **state)
{
	static const struct drain_group_rule rules[] = {{"g", 1, -1, false}};
	static const enum drain_reason want[] = {DRAIN_GROUP_MIN_SIZE, DRAIN_NONE,
						 DRAIN_GROUP_MIN_SIZE};
	struct scene s;

	(void)state;
	start(&s, DRAIN_CORRECTED, rules, 1);
	add(&s, "g", 2, 0);
	add(&s, "g", 0, 0); /* empty ones come first */
	add(&s, "g", 1, 0);
	s.groups.of[0].in_deletion = 1;
	choose(&s);
	check_reasons(&s, want, COUNT(want));
	assert_string_equal(s.nodes[0].error.text, "group \"g\" must keep 1 node, and has 1 left");
	stop(&s);
}

static void test_time(void **state)
{
	static const struct drain_group_rule rules[] = {{"g", 0, -1, false}};
	struct scene s;

	(void)state;
	start(&s, DRAIN_CORRECTED, rules, 1);
	add(&s, "g", 0, 0);
	s.timer.since_ns = DRAIN_NOW_NS - 600 * SEC;
	choose(&s);
	assert_int_equal(s.nodes[0].reason, DRAIN_NOT_UNNEEDED_LONG_ENOUGH);
	assert_string_equal(s.nodes[0].error.text,
			    "it has been unneeded for 600 s, and must be for more than 600 s");
	s.timer.since_ns--;
	choose(&s);
	assert_int_equal(s.nodes[0].reason, DRAIN_NONE);
	s.nodes[0].timer = NULL;
	choose(&s);
	assert_int_equal(s.nodes[0].reason, DRAIN_NOT_UNNEEDED_OTHER);
	stop(&s);
}

static void test_risky_drains_come_last(void **state)
{
	static const struct drain_group_rule rules[] = {{"g", 0, -1, false}};
	struct scene s;

	(void)state;
	start(&s, DRAIN_CORRECTED, rules, 1);
	add(&s, "g", 1, 0);
	add(&s, "g", 1, 0);
	add(&s, "g", 1, 0);
	s.nodes[0].risky = true;
	choose(&s);
	assert_int_equal(s.choice.drain_count, 3);
	assert_true(s.choice.drain[0] == 1 && s.choice.drain[1] == 2 && s.choice.drain[2] == 0);
	stop(&s);
}

static void test_groups(void **state)
{
	static const char *const labels[] = {"pool", "other"};
	static const struct drain_group_rule bad[] = {{"a", 3, 2, false}};
	static const struct drain_group_rule twice[] = {{"a", 0, -1, false}, {"a", 0, -1, false}};
	static const struct {
		const char *node, *group;
	} nodes[] = {
		{"{'metadata':{'name':'n'}}", ""},
		{"{'metadata':{'name':'n','labels':{'other':'x'}}}", "x"},
		{"{'metadata':{'name':'n','labels':{'other':'x','pool':'y'}}}", "y"},
		{"{'metadata':{'name':'n','labels':{'pool':'y',"
		 "'node-role.kubernetes.io/control-plane':''}}}",
		 NULL},
	};
	struct error why;

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		struct object *o = drain_fixture_object(OBJECT_NODE, nodes[i].node);
		const char *got = drain_group_name((const struct kube_node *)o, labels, 2);

		if (nodes[i].group)
			assert_string_equal(got, nodes[i].group);
		else
			assert_null(got);
		object_drop(o);
	}
	assert_int_equal(drain_groups_check(bad, 1, &why), -EINVAL);
	assert_string_equal(why.text, "group \"a\": min 3 must be 0 to max");
	assert_int_equal(drain_groups_check(twice, 2, &why), -EINVAL);
	assert_string_equal(why.text, "group \"a\" is there twice");
	assert_int_equal(drain_groups_check(twice, 1, &why), 0);
}

/* --- budgets */

static uint32_t next(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % below;
}

/*
 * More than the budget goes only with one atomic group that began within it, and groups go whole or
 * not at all.
 */
static void check_crop(const struct drain_budget *b, const struct drain_groups *g,
		       const struct drain_removable *nodes, const struct drain_choice *from)
{
	int64_t par = b->max - b->empty_in_progress - b->drain_in_progress;
	int64_t dr = b->max_drain - b->drain_in_progress, taken[4] = {0}, atomics = 0, single = 0;
	struct drain_choice c;

	drain_budget_crop(b, DRAIN_CORRECTED, g, nodes, from, &c);
	for (size_t i = 0; i < c.empty_count; i++)
		taken[nodes[c.empty[i]].group]++;
	for (size_t i = 0; i < c.drain_count; i++)
		taken[nodes[c.drain[i]].group]++;
	for (size_t i = 0; i < g->count; i++) {
		if (g->of[i].atomic && taken[i] > 0) {
			atomics++;
			assert_true(drain_group_is_covered(&g->of[i], taken[i]));
		} else {
			single += taken[i];
		}
	}
	if (par <= 0)
		assert_true(c.empty_count + c.drain_count == 0);
	if (dr <= 0)
		assert_true(c.drain_count == 0);
	if ((int64_t)(c.empty_count + c.drain_count) > par)
		assert_true(single == 0 || atomics == 0 || par <= 0);
	if (atomics == 0) {
		assert_true((int64_t)c.drain_count <= (dr > 0 ? dr : 0));
		assert_true((int64_t)(c.empty_count + c.drain_count) <= (par > 0 ? par : 0));
	}
	drain_choice_fini(&c);
}

static void test_random_budgets(void **state)
{
	static const struct drain_group_rule rules[] = {
		{"a", 0, -1, false}, {"b", 0, -1, true}, {"c", 0, -1, true}, {"d", 0, -1, false}};
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 5000; round++) {
		struct drain_removable nodes[24] = {0};
		size_t numbers[24];
		const struct drain_choice from = {numbers, numbers + 12, next(&seed, 12),
						  next(&seed, 12)};
		struct drain_budget b = {next(&seed, 12), next(&seed, 8), next(&seed, 6),
					 next(&seed, 6)};
		struct drain_groups g;

		drain_groups_init(&g, rules, 4);
		for (size_t i = 0; i < 24; i++) {
			numbers[i] = i;
			nodes[i].group = next(&seed, 4);
			if (i % 12 < (i < 12 ? from.empty_count : from.drain_count))
				drain_groups_count(&g, nodes[i].group, false);
		}
		check_crop(&b, &g, nodes, &from);
		drain_groups_fini(&g);
	}
}

static void test_a_budget_below_zero(void **state)
{
	static const struct drain_group_rule rules[] = {{"a", 0, -1, true}};
	const struct drain_removable nodes[2] = {{.group = 0}, {.group = 0}};
	size_t numbers[] = {0, 1};
	const struct drain_choice from = {.empty = numbers, .empty_count = 2};
	const struct drain_budget b = {.max = 10, .max_drain = 10, .empty_in_progress = 50};
	struct drain_groups g;
	struct drain_choice c;

	(void)state;
	drain_groups_init(&g, rules, 1);
	g.of[0].size = 2;
	drain_budget_crop(&b, DRAIN_UPSTREAM, &g, nodes, &from, &c);
	assert_int_equal(c.empty_count, 2);
	drain_choice_fini(&c);
	assert_int_equal(drain_budget_crop(&b, DRAIN_CORRECTED, &g, nodes, &from, &c), 2);
	assert_int_equal(c.empty_count, 0);
	drain_choice_fini(&c);
	drain_groups_fini(&g);
}

/* --- order */

static void test_order(void **state)
{
	static const struct drain_rank ranks[] = {
		{.node = "busy", .movable = 9, .cpu_milli = 10},
		{.node = "light", .movable = 3, .cpu_milli = 900},
		{.node = "lazy", .movable = 3, .cpu_milli = 100},
		{.node = "bursts", .movable = 1, .bursting = true, .before = true},
		{.node = "before", .movable = 20, .before = true},
		{.node = "waits", .waiting = 1},
		{.node = "b-empty"},
		{.node = "a-empty"},
		{.node = "fat", .movable = 3, .cpu_milli = 100, .working_set_bytes = 1},
		{.node = "gone", .movable = 10},
		{.node = "nan", .movable = 3, .cpu_milli = NAN},
	};
	static const size_t corrected[] = {7, 6, 5, 4, 2, 8, 1, 10, 0, 9, 3};
	static const size_t upstream[] = {6, 7, 5, 3, 4, 0, 1, 2, 8, 9, 10};
	size_t order[11];

	(void)state;
	drain_order(DRAIN_CORRECTED, ranks, 11, order);
	for (size_t i = 0; i < 11; i++)
		if (order[i] != corrected[i])
			fail_msg("corrected: %s is at %zu", ranks[order[i]].node, i);
	drain_order(DRAIN_UPSTREAM, ranks, 11, order);
	for (size_t i = 0; i < 11; i++)
		if (order[i] != upstream[i])
			fail_msg("upstream: %s is at %zu", ranks[order[i]].node, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_fails_takes_no_room),
		cmocka_unit_test(test_an_atomic_group_waits_together),
		cmocka_unit_test(test_an_atomic_group_has_room_for_all_or_none),
		cmocka_unit_test(test_min_sizes),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_risky_drains_come_last),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_random_budgets),
		cmocka_unit_test(test_a_budget_below_zero),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
