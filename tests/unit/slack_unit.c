/* SPDX-License-Identifier: Apache-2.0 */
/* The size of a unit: it follows the average node late, and with the count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/slack_fixture.h"

static struct slack_fixture f;

/* Two nodes of 4000m and 16 GiB, one of which is half full. */
static int setup(void **state)
{
	(void)state;
	slack_fixture_init(&f);
	slack_fixture_node(&f, "n1", "a", "4", "16Gi", "");
	slack_fixture_node(&f, "n2", "b", "4", "16Gi", "");
	slack_fixture_pod(&f, "p1", "n2", "2", "8Gi", "");
	f.options.rate_ppm = 500000;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	slack_fixture_fini(&f);
	return 0;
}

static void expect_unit(int64_t cpu_milli, uint32_t count)
{
	const struct slack_class *c = slack_fixture_class(&f, "unit");

	assert_int_equal(f.result.unit.cpu_milli, cpu_milli);
	assert_int_equal(c->shape.cpu_milli, cpu_milli);
	assert_int_equal(c->target, count);
	assert_int_equal(c->wanted, count);
}

static void pods_of_daemon_sets_make_nodes_smaller(void **state)
{
	(void)state;
	slack_fixture_pod(&f, "d1", "n1", "400m", "1Gi",
			  ",'ownerReferences':[{'kind':'DaemonSet','name':'d','uid':'u',"
			  "'controller':true}]");
	f.options.rate_ppm = 100000;
	f.options.granularity = 1;
	slack_fixture_step(&f);
	assert_int_equal(f.result.requested.cpu_milli, 2000);
	assert_int_equal(f.result.allocatable.cpu_milli, 7600);
	assert_int_equal(f.result.unit.cpu_milli, 2000);
	slack_fixture_pod(&f, "p2", "", "4", "1Gi", "");
	slack_fixture_step(&f);
	assert_int_equal(f.result.unit.cpu_milli, 2000);
	f.now_ns += f.options.unneeded_ns;
	slack_fixture_step(&f);
	assert_int_equal(f.result.unit.cpu_milli, 3800);
}

/* The delay goes on: it neither begins anew nor is over. */
static void restart(void)
{
	struct slack_state *before = f.state;
	size_t count;
	struct slack_record *saved = slack_state_records(before, &count);

	f.state = slack_state_new();
	slack_state_restore(f.state, saved, count);
	free(saved);
	slack_state_free(before);
}

/* Half of 8000m and 32 GiB is kept; n1 and n2 are drained, and their pod goes to n4. */
static void a_unit_and_its_count_change_together_and_late(void **state)
{
	(void)state;
	slack_fixture_node(&f, "n3", "a", "8", "32Gi", "");
	slack_fixture_node(&f, "n4", "a", "8", "32Gi", "");
	slack_fixture_pod(&f, "p2", "n3", "6", "24Gi", "");
	slack_fixture_step(&f);
	expect_unit(1200, 4);
	place_fixture_remove(&f.world, OBJECT_NODE, "", "n1");
	place_fixture_remove(&f.world, OBJECT_NODE, "", "n2");
	slack_fixture_pod(&f, "p1", "n4", "2", "8Gi", "");
	slack_fixture_step(&f);
	expect_unit(1200, 4);
	f.now_ns += f.options.unneeded_ns / 2;
	slack_fixture_step(&f);
	expect_unit(1200, 4);
	restart();
	f.now_ns += f.options.unneeded_ns / 2;
	slack_fixture_step(&f);
	expect_unit(1600, 3);
}

/* No node is left that holds one: there is nothing to wait for. */
static void a_unit_that_no_node_holds_is_given_up_at_once(void **state)
{
	(void)state;
	f.options.granularity = 1;
	slack_fixture_pod(&f, "p2", "", "4", "16Gi", "");
	slack_fixture_step(&f);
	expect_unit(4000, 1);
	slack_fixture_node(&f, "n1", "a", "3", "16Gi", "");
	slack_fixture_node(&f, "n2", "b", "3", "16Gi", "");
	slack_fixture_step(&f);
	expect_unit(3000, 1);
}

/* As slack_yaml_write() describes it. */
static void put_balloon(const char *name, const char *node)
{
	char *json = mem_printf("{'metadata':{'name':'%s','namespace':'evenkeel','labels':{"
				"'evenkeel.io/slack-class':'evenkeel-slack-unit'}},'spec':{"
				"'nodeName':'%s','priority':-10,'containers':[{'name':'c',"
				"'resources':{'requests':{'cpu':'500m','memory':'4Gi'}}}]}}",
				name, node);

	place_fixture_put(&f.world, OBJECT_POD, json);
	free(json);
}

static void expect_balloons(uint32_t balloons)
{
	const struct slack_class *c = slack_fixture_class(&f, "unit");

	assert_int_equal(c->balloons, balloons);
	assert_int_equal(c->placed, c->wanted);
}

/* As they were applied when units were smaller: two hold what one of today's has. */
static void balloons_of_another_size_hold_what_they_hold(void **state)
{
	(void)state;
	slack_fixture_step(&f);
	assert_int_equal(f.result.unit.cpu_milli, 800);
	put_balloon("b1", "n2");
	put_balloon("b2", "n2");
	put_balloon("b3", "n1");
	slack_fixture_step(&f);
	expect_unit(800, 2);
	expect_balloons(1);
	put_balloon("b4", "n1");
	slack_fixture_step(&f);
	expect_balloons(2);
	assert_int_equal(f.result.placed_count, 0);
}

static bool holds_without(const char *first, const char *second, struct error *error)
{
	place_node gone[2] = {place_find_node(f.place, first), place_find_node(f.place, second)};
	place_mark m = place_fork(f.place);
	place_pod pods[8];
	bool holds;

	for (size_t i = 0; i < f.result.placed_count; i++)
		pods[i] = f.result.placed[i].pod;
	place_drain_node(f.place, gone[0]);
	if (gone[1] != PLACE_NONE)
		place_drain_node(f.place, gone[1]);
	holds = slack_holds_without(&f.result, f.place, pods, gone, 2, error);
	place_revert(f.place, m);
	return holds;
}

/* Units of 1200m have their places beside the pods of the large nodes, and one of 1600m has none. */
static void drains_are_judged_by_the_units_after_them(void **state)
{
	struct error error;

	(void)state;
	place_fixture_remove(&f.world, OBJECT_POD, "shop", "p1");
	slack_fixture_node(&f, "n3", "a", "8", "32Gi", "");
	slack_fixture_node(&f, "n4", "a", "8", "32Gi", "");
	slack_fixture_pod(&f, "p3", "n3", "6500m", "8Gi", "");
	slack_fixture_pod(&f, "p4", "n4", "6500m", "8Gi", "");
	f.options.rate_ppm = 100000;
	slack_fixture_step(&f);
	expect_unit(1200, 2);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2:; n3: unit; n4: unit;");
	assert_true(holds_without("n1", "", &error));
	assert_false(holds_without("n1", "n2", &error));
	assert_string_equal(error.text,
			    "without it a unit of extra capacity is 1600m and 6554 MiB, "
			    "and 1 of 1 would have no place");
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(pods_of_daemon_sets_make_nodes_smaller),
		test(a_unit_and_its_count_change_together_and_late),
		test(a_unit_that_no_node_holds_is_given_up_at_once),
		test(balloons_of_another_size_hold_what_they_hold),
		test(drains_are_judged_by_the_units_after_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
