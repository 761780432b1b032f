/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes in deletion, nodes that are not ready, and the schedules that count them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

static int setup(void **unused)
{
	(void)unused;
	drain_world_init(&w);
	w.config.assume_unneeded_ns = 30 * MINUTE;
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	drain_world_fini(&w);
	return 0;
}

static void put_many(int count)
{
	drain_world_owner(&w, "web", 4 * count);
	for (int i = 0; i < count; i++) {
		char name[16], pod[16];

		snprintf(name, sizeof(name), "n%02d", i);
		snprintf(pod, sizeof(pod), "web-%d", i);
		drain_world_node(&w, name);
		drain_world_pod(&w, pod, "web", name, 100);
	}
	drain_world_node(&w, "full");
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "db-1", "db", "full", 2100);
	w.config.rules.owner_share = 1;
}

static void put_away(const char *name, const char *taints, const char *ready)
{
	char *json = mem_printf("{'metadata':{'name':'%s'},'spec':{'taints':[%s]},'status':{"
				"'allocatable':{'cpu':'4','memory':'8Gi','pods':'110'},"
				"'conditions':[{'type':'Ready','status':'%s'}]}}",
				name, taints, ready);

	place_fixture_put(&w.cluster, OBJECT_NODE, json);
	free(json);
}

#define DISRUPTED "{'key':'karpenter.sh/disrupted','effect':'NoSchedule'}"

/* A node in deletion is drained if a pod on it has to move. */
static void nodes_in_deletion_are_on_their_way(void **unused)
{
	static const struct {
		const char *kind, *annotations, *phase;
		int drains;
	} pods[] = {
		{"ReplicaSet", "", "Running", 1},
		{"DaemonSet", "", "Running", 0},
		{"ReplicaSet", "'kubernetes.io/config.mirror':'x'", "Running", 0},
		{"ReplicaSet", "", "Succeeded", 0},
		{"ReplicaSet", "'kubernetes.io/config.source':'api'", "Running", 1},
	};

	(void)unused;
	put_away("0-gone", DISRUPTED, "True");
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	w.config.rules.max_parallelism = 2;
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
		char *json = mem_printf(
			"{'metadata':{'namespace':'default','name':'p','uid':'p','annotations':{%s}"
			",'ownerReferences':[{'apiVersion':'apps/v1','kind':'%s','name':'o','uid':"
			"'o','controller':true}]},'spec':{'nodeName':'0-gone','containers':[{'name'"
			":"
			"'c'}]},'status':{'phase':'%s'}}",
			pods[i].annotations, pods[i].kind, pods[i].phase);

		place_fixture_put(&w.cluster, OBJECT_POD, json);
		free(json);
		drain_world_step(&w, NOW + (int64_t)i * MINUTE);
		assert_int_equal(w.plan->wave.node_count, 1);
		assert_int_equal(w.plan->throttle.used, 2);
		assert_int_equal(w.plan->throttle.drains_used, pods[i].drains);
	}
}

/* Room is reserved for pods that a deletion evicts, and for those that it has evicted already. */
static void pods_of_a_node_in_deletion_get_room(void **unused)
{
	static const struct {
		const char *metadata, *kind;
		enum drain_variant variant;
		size_t evicted, ending;
	} rows[] = {
		{"", "ReplicaSet", DRAIN_CORRECTED, 1, 0},
		{"", "DaemonSet", DRAIN_CORRECTED, 0, 0},
		{"", "Node", DRAIN_CORRECTED, 0, 0},
		{"'annotations':{'kubernetes.io/config.source':'file'},", "ReplicaSet",
		 DRAIN_CORRECTED, 0, 0},
		{"'annotations':{'kubernetes.io/config.source':'api'},", "ReplicaSet",
		 DRAIN_CORRECTED, 1, 0},
		{"'deletionTimestamp':'2026-01-31T11:59:50Z',", "ReplicaSet", DRAIN_CORRECTED, 0,
		 1},
		{"'deletionTimestamp':'2026-01-31T11:59:50Z',", "ReplicaSet", DRAIN_UPSTREAM, 1, 0},
		{"'deletionTimestamp':'2026-01-31T11:00:00Z',", "ReplicaSet", DRAIN_CORRECTED, 0,
		 0},
	};

	(void)unused;
	put_away("0-gone",
		 "{'key':'ToBeDeletedByClusterAutoscaler','value':'1769860790','effect':'"
		 "NoSchedule'}",
		 "True");
	drain_world_node(&w, "a");
	drain_world_owner(&w, "o", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *json = mem_printf("{'metadata':{'namespace':'default','name':'p','uid':'p',%s"
					"'ownerReferences':[{'apiVersion':'apps/v1','kind':'%s',"
					"'name':'o','uid':'rs-o','controller':true}]},'spec':{"
					"'nodeName':'0-gone','containers':[{'name':'c'}]},'status':"
					"{'phase':'Running'}}",
					rows[i].metadata, rows[i].kind);

		place_fixture_put(&w.cluster, OBJECT_POD, json);
		free(json);
		w.config.rules.variant = rows[i].variant;
		drain_world_step(&w, NOW + (int64_t)i * NS_PER_SEC);
		if (w.plan->reserved.of_deletions != rows[i].evicted ||
		    w.plan->reserved.of_evictions != rows[i].ending)
			fail_msg("row %zu: %zu are to be evicted, %zu are ending", i,
				 (size_t)w.plan->reserved.of_deletions,
				 (size_t)w.plan->reserved.of_evictions);
	}
}

#define CLOSED "DisruptionBudgetReached"

/* Three empty nodes could go, and two that are drained. */
static void schedules_count_nodes_that_are_away(void **unused)
{
	static const struct {
		const char *nodes, *reason; /* of the schedule */
		int gone, unready, max, max_drain;
		int empty, drains;
		const char *held; /* why the others stay */
	} cases[] = {
		{"5", NULL, 0, 0, 10, 10, 3, 2, NULL},
		{"4", NULL, 0, 0, 10, 10, 3, 1, CLOSED},
		{"3", NULL, 0, 0, 10, 10, 3, 0, CLOSED},
		{"2", NULL, 0, 0, 10, 10, 2, 0, CLOSED},
		{"5", NULL, 1, 1, 10, 10, 3, 0, CLOSED},
		{"3", NULL, 1, 1, 10, 10, 1, 0, CLOSED},
		{"2", NULL, 1, 1, 10, 10, 0, 0, CLOSED},
		{"1", NULL, 1, 1, 10, 10, 0, 0, CLOSED},
		{"50%", NULL, 1, 1, 10, 10, 2, 0, CLOSED}, /* of 8 */
		{"4", "Underutilized", 0, 0, 10, 10, 3, 1, CLOSED},
		{"1", "Underutilized", 0, 0, 10, 10, 3, 0, CLOSED},
		{"4", "Underutilized", 1, 1, 10, 10, 3, 0, CLOSED},
		{"1", "Empty", 0, 0, 10, 10, 1, 2, CLOSED},
		{"0", "Empty", 1, 1, 10, 10, 0, 2, CLOSED},
		/* Where the limits of the planner are as strict, they are told. */
		{"4", NULL, 0, 0, 4, 4, 3, 1, "ScaleDownThrottled"},
		{"4", NULL, 0, 0, 5, 5, 3, 1, CLOSED},
		{"5", NULL, 1, 0, 5, 4, 3, 1, "ScaleDownThrottled"},
		{"5", NULL, 1, 0, 6, 6, 3, 1, CLOSED},
		{"9", NULL, 1, 0, 9, 1, 3, 1, "ParallelismLimitReached"},
		/* A pod leaves the node that is gone. */
		{"5", NULL, 2, 0, 5, 5, 3, 1, "ScaleDownThrottled"},
		{"5", NULL, 2, 0, 5, 6, 3, 1, CLOSED},
		{"5", NULL, 2, 0, 6, 4, 3, 1, CLOSED},
		{"3", "Underutilized", 2, 0, 10, 10, 3, 0, CLOSED},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct drain_window window = {.nodes = cases[i].nodes,
						    .duration_sec = -1,
						    .reasons = &cases[i].reason,
						    .reason_count = cases[i].reason != NULL};

		put_many(2);
		drain_world_node(&w, "a");
		drain_world_node(&w, "b");
		drain_world_node(&w, "c");
		if (cases[i].gone)
			put_away("0-gone", DISRUPTED, "True");
		if (cases[i].gone > 1)
			drain_world_pod(&w, "web-9", "web", "0-gone", 100);
		if (cases[i].unready)
			put_away("0-unready", "", "False");
		w.config.rules.drain_unready = false;
		w.config.windows = &window;
		w.config.window_count = 1;
		w.config.rules.max_parallelism = cases[i].max;
		w.config.rules.max_drain_parallelism = cases[i].max_drain;
		drain_world_step(&w, NOW);
		for (size_t k = 0; k < w.plan->node_count; k++)
			if (w.plan->nodes[k].verdict == DRAIN_UNNEEDED)
				assert_string_equal(drain_reason_name(
							    w.plan->nodes[k].reasons[0].code),
						    cases[i].held);
		if (w.plan->wave.empty_count != (size_t)cases[i].empty ||
		    w.plan->wave.node_count - w.plan->wave.empty_count != (size_t)cases[i].drains)
			fail_msg("case %zu: %zu nodes, %zu empty", i, w.plan->wave.node_count,
				 w.plan->wave.empty_count);
		assert_int_equal(w.plan->throttle.held,
				 cases[i].reason ? 0 : 5 - cases[i].empty - cases[i].drains);
		teardown(unused);
		setup(unused);
	}
}

/* Before it is tainted the scheduler would go there, and the pods would not start. */
static void nothing_goes_to_a_node_that_is_not_ready(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	place_fixture_put(&w.cluster, OBJECT_NODE,
			  "{'metadata':{'name':'b'},'status':{'allocatable':{'cpu':'4','memory':"
			  "'8Gi','pods':'110'},'conditions':[{'type':'Ready','status':'False'}]}}");
	drain_world_owner(&w, "web", 1);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	w.config.rules.drain_unready = false;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "needed");
	drain_world_reason(&w, "a", 0, "NoPlaceToMovePods",
			   "pod default/web-1 fits on no other node: 1 NodeGone");
}

/* Sums of such nodes are as large as can be, and a floor below them holds. */
static void absurd_nodes_are_counted_without_overflow(void **unused)
{
	(void)unused;
	for (int name = 'a'; name <= 'c'; name++) {
		char *json = mem_printf(
			"{'metadata':{'name':'%c'},'status':{'allocatable':{'cpu':'9e15','memory':"
			"'9e18','pods':'110'},'capacity':{'cpu':'9e15','memory':'9e18'},"
			"'conditions':[{'type':'Ready','status':'True'}]}}",
			name);

		place_fixture_put(&w.cluster, OBJECT_NODE, json);
		free(json);
	}
	w.config.cluster_min.cpu_milli = 4000;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	assert_true(drain_world_get(&w, "b")->reason_count > 0);
	assert_int_equal(drain_world_get(&w, "b")->reasons[0].code, DRAIN_MINIMAL_LIMIT);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		STORY(nodes_in_deletion_are_on_their_way),
		STORY(pods_of_a_node_in_deletion_get_room),
		STORY(schedules_count_nodes_that_are_away),
		STORY(nothing_goes_to_a_node_that_is_not_ready),
		STORY(absurd_nodes_are_counted_without_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
