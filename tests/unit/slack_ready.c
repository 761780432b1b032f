/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes to add for classes that ask for more than CPU and memory, and who is named for asking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/slack_fixture.h"

/* Amounts stand in quotes, and so bring another resource along. */
#define GPUS(memory, count) memory "','example.com/gpu':'" count

static struct slack_fixture f;

/* A node of 4000m and 16 GiB that is full. */
static int setup(void **state)
{
	(void)state;
	slack_fixture_init(&f);
	slack_fixture_node(&f, "plain", "a", "4", "16Gi", "");
	slack_fixture_pod(&f, "full-1", "plain", "4", "1Gi", "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	slack_fixture_fini(&f);
	return 0;
}

static const char *issue_of(const char *who)
{
	for (size_t i = 0; i < f.result.issue_count; i++)
		if (strcmp(f.result.issues[i].who, who) == 0)
			return f.result.issues[i].text;
	return "";
}

static void nodes_without_a_resource_do_not_help(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "train", "1", 0, "1", GPUS("1Gi", "1"), "");
	slack_fixture_workload(&f, "web", "1", 0, "1", "1Gi", "");
	slack_fixture_step(&f);
	assert_true(slack_fixture_class(&f, "shop/ReplicaSet/train")->fits_no_node);
	assert_string_equal(issue_of("shop/ReplicaSet/train"),
			    "no node that counts and admits it could hold one, were it empty");
	assert_false(slack_fixture_class(&f, "shop/ReplicaSet/web")->fits_no_node);
	assert_int_equal(f.result.demand_count, 1);
	assert_int_equal(f.result.demand[0].count, 1);
}

/* Three of them are on two nodes of two, beside each of which a plain one has room. */
static void a_node_holds_as_many_as_it_has_of_a_resource(void **state)
{
	(void)state;
	slack_fixture_node(&f, "gpus", "a", "8", GPUS("16Gi", "2"), "");
	slack_fixture_pod(&f, "full-2", "gpus", "8", "1Gi", "");
	slack_fixture_workload(&f, "train", "3", 0, "1", GPUS("1Gi", "1"), "");
	slack_fixture_workload(&f, "web", "2", 0, "1", "1Gi", "");
	slack_fixture_step(&f);
	assert_false(slack_fixture_class(&f, "shop/ReplicaSet/train")->fits_no_node);
	assert_int_equal(f.result.demand_count, 1);
	assert_string_equal(f.result.demand[0].like, "gpus");
	assert_int_equal(f.result.demand[0].count, 2);
}

/* 110 pods, and the second class finds none left. */
static void a_node_holds_as_many_pods_as_it_may(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "a", "110", 0, "10m", "1Mi", "");
	slack_fixture_workload(&f, "b", "10", 0, "10m", "1Mi", "");
	slack_fixture_step(&f);
	assert_int_equal(f.result.demand_count, 1);
	assert_int_equal(f.result.demand[0].count, 2);
}

/* Each takes what the other needs: they are not counted into one node. */
static void two_classes_do_not_share_what_one_uses_up(void **state)
{
	(void)state;
	slack_fixture_node(&f, "gpus", "a", "8", GPUS("16Gi", "2"), "");
	slack_fixture_pod(&f, "full-2", "gpus", "8", "1Gi", "");
	slack_fixture_workload(&f, "infer", "2", 0, "1", GPUS("1Gi", "1"), "");
	slack_fixture_workload(&f, "train", "1", 0, "1", GPUS("1Gi", "2"), "");
	slack_fixture_step(&f);
	assert_int_equal(f.result.demand_count, 1);
	assert_int_equal(f.result.demand[0].count, 2);
}

static void nodes_to_add_are_told_with_their_type(void **state)
{
	(void)state;
	place_fixture_put(
		&f.world, OBJECT_NODE,
		"{'metadata':{'name':'plain','labels':{'node.kubernetes.io/instance-type':"
		"'m5'}},'status':{'allocatable':{'cpu':'4','memory':'16Gi','pods':'110'},"
		"'conditions':[{'type':'Ready','status':'True'}]}}");
	slack_fixture_workload(&f, "web", "1", 0, "1", "1Gi", "");
	slack_fixture_step(&f);
	assert_non_null(strstr(f.result.narration.data,
			       "1 more node like plain would hold what finds no place (m5)\n"));
}

static void shared_room_has_no_other_resources(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "train", "shared", 0, "1", GPUS("1Gi", "1"), "");
	slack_fixture_step(&f);
	assert_string_equal(
		issue_of("shop/ReplicaSet/train"),
		"evenkeel.io/slack: \"shared\" is room of CPU and memory alone, and its "
		"pods ask for more: say how many");
}

/* Objects that somebody cleaned of their uids are as many as they were. */
static void workloads_without_a_uid_are_told_apart(void **state)
{
	(void)state;
	for (int name = 'a'; name <= 'b'; name++) {
		char *json = mem_printf(
			"{'metadata':{'name':'%c','namespace':'shop','annotations':{"
			"'evenkeel.io/slack':'1'}},'spec':{'replicas':1,'template':{'spec':{"
			"'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]}}}}",
			name);

		place_fixture_put(&f.world, OBJECT_REPLICA_SET, json);
		free(json);
	}
	slack_fixture_step(&f);
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/a")->wanted, 1);
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/b")->wanted, 1);
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(nodes_without_a_resource_do_not_help),
		test(a_node_holds_as_many_as_it_has_of_a_resource),
		test(a_node_holds_as_many_pods_as_it_may),
		test(two_classes_do_not_share_what_one_uses_up),
		test(nodes_to_add_are_told_with_their_type),
		test(shared_room_has_no_other_resources),
		test(workloads_without_a_uid_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
