/* SPDX-License-Identifier: Apache-2.0 */
/* Drains of nodes with pods of groups that do no work below a minimum: all of a group moves, or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/drain_world.h"
#include "tests/view_fixture.h"

#define NOW    VIEW_FIXTURE_NOW_NS
#define MINUTE (60 * NS_PER_SEC)

static struct drain_world w;

static void put_group(int min)
{
	char *json = mem_printf("{'metadata':{'namespace':'default','name':'train'},'spec':{"
				"'schedulingPolicy':{'gang':{'minCount':%d}}}}",
				min);

	place_fixture_put(&w.cluster, OBJECT_POD_GROUP, json);
	free(json);
}

/* Of an owner of its own; more: members of its metadata, with a comma behind. */
static void put(const char *name, const char *node, int cpu_milli, const char *more,
		const char *spec)
{
	char *pod = mem_printf(
		"{'metadata':{'namespace':'default','name':'%s','uid':'uid-%s',%s'labels':{'app':"
		"'train'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':"
		"'%s','uid':'rs-%s','controller':true}]},'spec':{'nodeName':'%s','containers':[{"
		"'name':'c','resources':{'requests':{'cpu':'%dm','memory':'128Mi'}}}]%s},'status':{"
		"'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}}",
		name, name, more, name, name, node, cpu_milli, spec);

	drain_world_owner(&w, name, 1);
	place_fixture_put(&w.cluster, OBJECT_POD, pod);
	free(pod);
}

static void put_member(const char *name, const char *node, int cpu_milli)
{
	put(name, node, cpu_milli, "", ",'schedulingGroup':{'podGroupName':'train'}");
}

static void put_other(const char *name, const char *node, int cpu_milli)
{
	put(name, node, cpu_milli, "", "");
}

static const char *slack_keeps; /* a node that no wave may have */

static bool slack_holds(const struct slack_result *result, struct place *p, const place_pod *pods,
			const place_node *gone, size_t count, struct error *error)
{
	(void)result;
	(void)pods;
	error_set(error, "units have no place");
	return !slack_keeps || strcmp(place_node_name(p, gone[count - 1]), slack_keeps) != 0;
}

static int setup(void **unused)
{
	(void)unused;
	drain_world_init(&w);
	w.config.assume_unneeded_ns = 30 * MINUTE;
	w.input.slack_holds = slack_holds;
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	drain_world_fini(&w);
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "VERDICT pod>node pod>node", pods by name; then a line for each reason. */
static void expect(const char *name, const char *want)
{
	const struct drain_plan_node *n = drain_world_get(&w, name);
	char *moves[8] = {NULL};
	struct buf b = BUF_INIT;

	assert_in_range(n->move_count, 0, 8);
	for (size_t i = 0; i < n->move_count; i++)
		moves[i] = mem_printf(" %s>%s", n->moves[i].pod->object.name,
				      n->moves[i].to ? n->moves[i].to : "-");
	qsort(moves, n->move_count, sizeof(char *), by_text);
	buf_add_str(&b, drain_verdict_name(n->verdict));
	for (size_t i = 0; i < n->move_count; i++) {
		buf_add_str(&b, moves[i]);
		free(moves[i]);
	}
	for (size_t i = 0; i < n->reason_count; i++)
		buf_printf(&b, "\n%s: %s", drain_reason_name(n->reasons[i].code),
			   n->reasons[i].text);
	assert_string_equal(b.data, want);
	buf_fini(&b);
}

/* bravo and charlie are used too much to be candidates; charlie has room for 1.8 CPUs. */
static void put_cluster(const char *bravo)
{
	drain_world_node(&w, "alpha");
	drain_world_node_with(&w, "bravo", "", "", bravo);
	drain_world_node(&w, "charlie");
	put_member("m1", "alpha", 500);
	put_member("m2", "bravo", 1200);
	put_member("m3", "bravo", 1200);
	put_other("x", "charlie", 2200);
}

static void all_of_a_group_that_falls_moves(void **unused)
{
	(void)unused;
	put_cluster("");
	put_group(3);
	drain_world_step(&w, NOW);
	expect("alpha", "drain m1>bravo m2>bravo m3>bravo\n"
			"PodGroupBelowMinimum: group default/train needs 3, would have 2: 2 pods "
			"of other nodes must leave, too");
	assert_int_equal(w.plan->wave.pods, 3);
}

/* They cannot start again on a cordoned node, and elsewhere is room for one of them. */
static void without_room_for_all_none_moves(void **unused)
{
	(void)unused;
	put_cluster("'unschedulable':true");
	put_group(3);
	drain_world_step(&w, NOW);
	expect("alpha", "needed\n"
			"NoPlaceToMovePods: pod default/m3 fits on no other node: "
			"1 NodeResourcesFit, 1 NodeUnschedulable; bravo: the node is cordoned\n"
			"PodGroupBelowMinimum: group default/train needs 3, would have 2: 2 pods "
			"of other nodes must leave, too");
	assert_int_equal(w.plan->wave.node_count, 0);
}

static void a_group_that_can_spare_one_moves_one(void **unused)
{
	(void)unused;
	put_cluster("'unschedulable':true");
	put_group(2);
	drain_world_step(&w, NOW);
	expect("alpha", "drain m1>charlie");
}

static void a_group_without_a_minimum_moves_as_ever(void **unused)
{
	(void)unused;
	put_cluster("'unschedulable':true");
	drain_world_step(&w, NOW);
	expect("alpha", "drain m1>charlie");
}

static void a_pod_that_must_stay_keeps_its_group(void **unused)
{
	(void)unused;
	put_cluster("");
	put("m2", "bravo", 1200,
	    "'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'},",
	    ",'schedulingGroup':{'podGroupName':'train'}");
	put_group(3);
	drain_world_step(&w, NOW);
	expect("alpha",
	       "needed\n"
	       "BlockedByPod: pod default/m2 of node bravo must stay\n"
	       "NotSafeToEvictAnnotation: it is annotated "
	       "cluster-autoscaler.kubernetes.io/safe-to-evict=false\n"
	       "PodGroupBelowMinimum: group default/train needs 3, would have 2: 2 pods of other "
	       "nodes must leave, too");
}

/* Pods of the group wait for each other: their replacements are not ready one by one. */
static void a_budget_must_allow_all_at_once(void **unused)
{
	(void)unused;
	put_cluster("");
	put_group(3);
	place_fixture_put(&w.cluster, OBJECT_POD_DISRUPTION_BUDGET,
			  "{'apiVersion':'policy/v1','metadata':{'namespace':'default','name':'one'"
			  "},'spec':{'selector':{'matchLabels':{'app':'train'}}},'status':{"
			  "'disruptionsAllowed':1,'currentHealthy':4,'desiredHealthy':3,"
			  "'expectedPods':4}}");
	drain_world_step(&w, NOW);
	assert_string_equal(drain_verdict_name(drain_world_get(&w, "alpha")->verdict), "needed");
	drain_world_reason(&w, "alpha", 1, "NotEnoughPdb",
			   "PodDisruptionBudget default/one allows 1 more disruption: 4 pods are "
			   "healthy, and 3 must be");
}

/* The first node takes what the group can spare; the second takes the rest along. */
static void nodes_of_a_wave_count_together(void **unused)
{
	(void)unused;
	put_cluster("");
	drain_world_node(&w, "delta");
	put_member("m4", "delta", 600);
	put_group(3);
	drain_world_step(&w, NOW);
	expect("alpha", "drain m1>bravo");
	expect("delta", "drain m2>bravo m3>bravo m4>bravo\n"
			"PodGroupBelowMinimum: group default/train needs 3, would have 2: 2 pods "
			"of other nodes must leave, too");
}

/* Alpha stays, for a budget or for extra capacity: the group can spare delta's member. */
static void a_node_that_stays_keeps_its_members(void **unused)
{
	for (int by_budget = 0; by_budget < 2; by_budget++) {
		put_cluster("");
		drain_world_node(&w, "aa");
		drain_world_node(&w, "delta");
		put("y1", "aa", 10, "'labels':{'app':'y'},", "");
		put("y2", "alpha", 10, "'labels':{'app':'y'},", "");
		put_member("m4", "delta", 600);
		put_other("z1", "delta", 10);
		put_other("z2", "delta", 10);
		put_group(3);
		if (by_budget)
			place_fixture_put(&w.cluster, OBJECT_POD_DISRUPTION_BUDGET,
					  "{'metadata':{'namespace':'default','name':'y'},'spec':{"
					  "'selector':{'matchLabels':{'app':'y'}}},'status':{"
					  "'disruptionsAllowed':1}}");
		slack_keeps = by_budget ? NULL : "alpha";
		drain_world_step(&w, NOW);
		slack_keeps = NULL;
		assert_string_equal(drain_verdict_name(drain_world_get(&w, "aa")->verdict),
				    "drain");
		assert_string_equal(drain_verdict_name(drain_world_get(&w, "alpha")->verdict),
				    "unneeded");
		expect("delta", "drain m4>bravo z1>bravo z2>bravo");
		teardown(unused);
		setup(unused);
	}
}

/*
 * Both could go, and only for m1 is room elsewhere: m2 starts again on bravo, which therefore
 * stays.
 */
static void who_starts_again_keeps_its_node(void **unused)
{
	(void)unused;
	drain_world_node(&w, "alpha");
	drain_world_node(&w, "bravo");
	drain_world_node(&w, "charlie");
	put_member("m1", "alpha", 500);
	put_member("m2", "bravo", 1000);
	put_other("x", "charlie", 3200);
	put_group(2);
	drain_world_step(&w, NOW);
	expect("alpha", "drain m1>charlie m2>bravo\n"
			"PodGroupBelowMinimum: group default/train needs 2, would have 1: 1 pod of "
			"other nodes must leave, too");
	assert_int_equal(w.plan->wave.node_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_of_a_group_that_falls_moves, setup, teardown),
		cmocka_unit_test_setup_teardown(without_room_for_all_none_moves, setup, teardown),
		cmocka_unit_test_setup_teardown(a_group_that_can_spare_one_moves_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_group_without_a_minimum_moves_as_ever, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_pod_that_must_stay_keeps_its_group, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_budget_must_allow_all_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(nodes_of_a_wave_count_together, setup, teardown),
		cmocka_unit_test_setup_teardown(a_node_that_stays_keeps_its_members, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_starts_again_keeps_its_node, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
