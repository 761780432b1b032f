/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What scores read of nodes that the API knows: requests, limits, pods just placed, and nodes
 * without an agent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/score/score.h"
#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/score_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS
#define GIB (1LL << 30)

static struct model *model;
static struct join *join;
static struct view *view;
static struct score_args args;
static struct score_query query;

static int setup(void **state)
{
	(void)state;
	model = model_new();
	join = join_new();
	model_fixture_sync(model, OBJECT_NODE);
	model_fixture_sync(model, OBJECT_POD);
	model_put(model, model_fixture_node("n", 10, 10));
	score_args_default(&args, SCORE_CORRECTED);
	query = (struct score_query){.variant = SCORE_CORRECTED, .args = &args};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	view_drop(view);
	view = NULL;
	join_free(join);
	model_free(model);
	return 0;
}

static void put(struct model_fixture_pod p)
{
	if (!p.node)
		p.node = "n";
	model_put(model, model_fixture_pod(&p));
}

/* "n" with these pods measured, then "other" without any. */
static void look(const struct pod_stats *pods, size_t count)
{
	struct node_stats *node_stats[] = {join_fixture_stats("n", NOW, pods, count),
					   join_fixture_stats("other", NOW, NULL, 0)};

	view_drop(view);
	view = join_view(join, node_stats, 2, model_cluster(model), NOW);
	node_stats_drop(node_stats[0]);
	node_stats_drop(node_stats[1]);
}

static struct score_node read_node(const char *name)
{
	struct score_node node;

	score_node_from_view(view, view_find(view, name), NOW, &query, &node);
	return node;
}

static void requests_and_limits_are_the_apis(void **state)
{
	struct score_node node;

	(void)state;
	put((struct model_fixture_pod){.name = "x", .cpu = "1", .memory = "1Gi", .cpu_limit = "2"});
	put((struct model_fixture_pod){.name = "y", .cpu = "500m"});
	look(NULL, 0);
	node = read_node("n");
	assert_true(node.load.requests_known && node.load.limits_known);
	assert_int_equal(node.load.of[SCORE_CPU].requests, 1500);
	assert_int_equal(node.load.of[SCORE_CPU].limits, 2000);
	assert_int_equal(node.load.of[SCORE_CPU].unlimited, 1);
	assert_int_equal(node.load.of[SCORE_CPU].unlimited_requests, 500);
	assert_int_equal(node.load.of[SCORE_MEMORY].requests, GIB);
	assert_int_equal(node.cpu_capacity_milli, 10000);
	assert_int_equal(node.cpu_allocatable_milli, 9000);
	assert_true(node.cpu.mean == 10); /* 1000 of the API's 10000, not of the 4000 measured */
	node = read_node("other"); /* an agent on a machine that is not in the cluster */
	assert_true(node.load.limits_known && !node.load.requests_known);
}

/* Other pods cannot use them, so they count as used; upstream's plugins do not know of them. */
static void exclusive_cpus_and_protected_memory_count(void **state)
{
	static const struct kernel_limits limits = {.cpu_milli = 2000, .cpu_exclusive_milli = 2000};
	struct pod_stats pod = join_fixture_pod("x", "uid-x", NOW, 900, 300, (double)GIB);

	(void)state;
	pod.limits = &limits;
	pod.usage.latest.cpu_milli = (struct latest){300, 0, true};
	pod.usage.latest.mem_bytes = (struct latest){(float)(3 * GIB), 0, true};
	pod.usage.latest.working_set_bytes = (struct latest){(float)GIB, 0, true};
	pod.usage.latest.mem_protected_bytes = (struct latest){(float)(2 * GIB), 0, true};
	look(&pod, 1);
	assert_int_equal(read_node("n").unseen[SCORE_CPU], 1700);
	assert_int_equal(read_node("n").unseen[SCORE_MEMORY], GIB);
	/* Recent use contains the peaks of before. */
	pod.usage.cpu_milli[WINDOW_5M].max = 1500;
	pod.usage.working_set_bytes[WINDOW_5M].max = (float)(3 * GIB);
	look(&pod, 1);
	assert_int_equal(read_node("n").unseen[SCORE_CPU], 500);
	assert_int_equal(read_node("n").unseen[SCORE_MEMORY], 0);
	query.variant = SCORE_UPSTREAM;
	assert_int_equal(read_node("n").unseen[SCORE_CPU], 0);
}

/* A sum over pods that are not all known is no sum. */
static void without_all_pods_requests_are_unknown(void **state)
{
	static const struct {
		enum source_state source;
		bool known;
	} cases[] = {{SOURCE_NONE, false},   {SOURCE_LISTING, false},	{SOURCE_SYNCED, true},
		     {SOURCE_STALE, true},   {SOURCE_FORBIDDEN, false}, {SOURCE_ABSENT, false},
		     {SOURCE_SNAPSHOT, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct model_source source = {.state = cases[i].source};

		model_set_source(model, OBJECT_POD, &source);
		look(NULL, 0);
		assert_int_equal(read_node("n").load.requests_known, cases[i].known);
		assert_true(read_node("n").load.limits_known);
	}
}

/* The allocatable of a resource that a node lacks is 0; a pod that ended has no limits. */
static void other_resources_are_the_apis(void **state)
{
	struct score_other others[SCORE_OTHERS_MAX];

	(void)state;
	args.limit_others[0].name = "memory";
	args.limit_others[1].name = "x/gpu";
	args.limit_other_count = 2;
	put((struct model_fixture_pod){.name = "x", .memory_limit = "1Gi"});
	put((struct model_fixture_pod){.name = "y", .memory_limit = "2Gi", .phase = "Succeeded"});
	look(NULL, 0);
	assert_true(score_others_read(view, view_find(view, "n"), &args, others));
	assert_int_equal(others[0].allocatable, 9 * GIB);
	assert_int_equal(others[0].load.limits, GIB);
	assert_int_equal(others[1].allocatable, 0);
	assert_int_equal(others[1].load.limits, 0);
	assert_false(score_others_read(view, view_find(view, "other"), &args, others));
}

/* --- pods just placed ------------------------------------------------------------------------- */

static void a_new_pod_counts_as_far_as_it_is_not_measured(void **state)
{
	static const struct {
		double measured; /* seconds, of 15 minutes */
		int64_t cpu, mem;
	} cases[] = {
		{0, 400 / 9, GIB / 9}, {90, 180, GIB / 40 * 9}, {450, 100, GIB / 8}, {900, 0, 0}};

	(void)state;
	put((struct model_fixture_pod){.name = "x",
				       .uid = "uid-x",
				       .cpu = "400m",
				       .memory = "1Gi",
				       .scheduled_ns = NOW - 800 * NS_PER_SEC});
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pod_stats pod =
			join_fixture_pod("k/x", "uid-x", NOW, cases[i].measured, 200, GIB / 4.0);
		struct score_node node;

		look(&pod, cases[i].measured > 0);
		node = read_node("n");
		/* A bucket of the pod's windows keeps its start in steps of 1/16 s. */
		assert_in_range(node.pending_cpu_milli, cases[i].cpu, cases[i].cpu + 1);
		assert_in_range(node.pending_mem_bytes - cases[i].mem + 1000000, 0, 2000000);
		assert_int_equal(node.load.of[SCORE_CPU].requests, 400);
	}
}

static void a_new_pod_is_expected_to_use_what_its_owners_others_use(void **state)
{
	struct pod_stats old = join_fixture_pod("k/o", "uid-o", NOW, 900, 70, 1);

	(void)state;
	put((struct model_fixture_pod){
		.name = "o", .uid = "uid-o", .owner_kind = "ReplicaSet", .owner_uid = "uid-rs"});
	put((struct model_fixture_pod){
		.name = "x", .owner_kind = "ReplicaSet", .owner_uid = "uid-rs", .cpu = "400m"});
	put((struct model_fixture_pod){.name = "y",
				       .owner_kind = "ReplicaSet",
				       .owner_name = "other",
				       .owner_uid = "uid-other",
				       .cpu = "400m"});
	put((struct model_fixture_pod){.name = "z"});
	look(&old, 1);
	/* Its owner's mean, a request, the default; and what they may well use. */
	assert_int_equal(read_node("n").pending_cpu_milli, 70 + 400 + 100);
	assert_true(read_node("n").pending_high_cpu_milli >= 70 + 500 + 500);
	assert_int_equal(read_node("n").unseen[SCORE_CPU], 70 + 400 + 100);
	args.default_requests_cpu_milli = 10;
	args.default_requests_multiplier = 2;
	assert_int_equal(read_node("n").pending_cpu_milli, 70 + 800 + 10);
	query.variant = SCORE_KEP;
	assert_int_equal(read_node("n").pending_cpu_milli, 70 + 800 + 10);
}

static void upstream_counts_a_pod_in_full_for_a_minute(void **state)
{
	static const struct {
		int64_t ago;
		double measured;
		int64_t pending;
	} cases[] = {{-5, 0, 900}, {10, 0, 900}, {59, 59, 900}, {60, 60, 0}, {600, 0, 0}};

	(void)state;
	query.variant = SCORE_UPSTREAM;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pod_stats pod =
			join_fixture_pod("k/x", "uid-x", NOW, cases[i].measured, 1, 1);

		put((struct model_fixture_pod){.name = "x",
					       .uid = "uid-x",
					       .cpu = "100m",
					       .cpu_limit = "900m",
					       .memory = "1Gi",
					       .scheduled_ns = NOW - cases[i].ago * NS_PER_SEC});
		look(&pod, cases[i].measured > 0);
		assert_int_equal(read_node("n").pending_cpu_milli, cases[i].pending);
		assert_int_equal(read_node("n").pending_mem_bytes, 0);
	}
}

static struct window_stats level(double mean)
{
	return (struct window_stats){.known = true, .percentiles = true, .mean = mean, .p99 = mean};
}

/* A window of 15 minutes says 1000m of 10; what the last half minute shows counts where it is more. */
static void a_node_that_turned_hot_counts_as_hot(void **state)
{
	struct node_stats stats = view_fixture_node("n", NOW, 3600, 1000, 100);
	struct view_node n = view_fixture_around(&stats);
	const struct view standalone = {.version = 1};
	struct score_node node;

	(void)state;
	n.cpu_capacity_milli = 10000;
	n.mem_capacity_bytes = 10 * GIB;
	score_node_from_view(&standalone, &n, NOW, &query, &node);
	assert_true(node.cpu.mean == 10 && isnan(node.p99[SCORE_CPU]));
	stats.recent = (struct window_recent){level(9000), level(8 * GIB)};
	score_node_from_view(&standalone, &n, NOW, &query, &node);
	assert_true(node.cpu.mean == 90 && node.mem.mean == 80);
	assert_true(node.p99[SCORE_CPU] == 90 && node.p99[SCORE_MEMORY] == 80);
	stats.recent = (struct window_recent){level(500), level(GIB / 1024.0)};
	score_node_from_view(&standalone, &n, NOW, &query, &node);
	assert_true(node.cpu.mean == 10 && node.p99[SCORE_CPU] == 5);
	/* Not for upstream. */
	stats.recent = (struct window_recent){level(9000), level(8 * GIB)};
	query.variant = SCORE_UPSTREAM;
	score_node_from_view(&standalone, &n, NOW, &query, &node);
	assert_true(node.cpu.mean == 10);
}

static void assumed_pods_are_part_of_every_sum(void **state)
{
	struct score_node node;

	(void)state;
	look(NULL, 0);
	node = read_node("n");
	score_node_assume(&node, &(struct score_assumed){.pods = 1,
							 .request_cpu_milli = 400,
							 .request_mem_bytes = GIB,
							 .cpu_milli = 600,
							 .cpu_high_milli = 700,
							 .mem_bytes = 5,
							 .namespace = "",
							 .name = "p"});
	assert_int_equal(node.pending_cpu_milli, 600);
	assert_int_equal(node.pending_high_cpu_milli, 700);
	assert_int_equal(node.pending_mem_bytes, 5);
	assert_int_equal(node.unseen[SCORE_CPU], 600);
	assert_int_equal(node.unseen[SCORE_MEMORY], 5);
	assert_int_equal(node.load.of[SCORE_CPU].requests, 400);
	assert_int_equal(node.load.of[SCORE_CPU].limits, 400);
	assert_int_equal(node.load.of[SCORE_MEMORY].requests, GIB);
	score_node_assume(&node, &(struct score_assumed){.pods = 1,
							 .request_cpu_milli = INT64_MAX,
							 .request_mem_bytes = INT64_MAX,
							 .cpu_milli = INT64_MAX,
							 .cpu_high_milli = INT64_MAX,
							 .mem_bytes = INT64_MAX,
							 .namespace = "",
							 .name = "p"});
	assert_int_equal(node.pending_cpu_milli, INT64_MAX);
	assert_int_equal(node.pending_high_cpu_milli, INT64_MAX);
	assert_int_equal(node.unseen[SCORE_MEMORY], INT64_MAX);
	assert_int_equal(node.load.of[SCORE_MEMORY].limits, INT64_MAX);
}

/* --- nodes without an agent ------------------------------------------------------------------- */

static struct score_result score(enum score_plugin_id plugin, struct score_node *nodes,
				 size_t count, size_t which)
{
	static const struct container_spec c = {.requests = {{{true, true}}, {{1000, GIB}}},
						.limits = {{{true, true}}, {{1000, GIB}}}};
	static const struct pod_spec pod = {.container_count = 1,
					    .containers = (struct container_spec *)&c};
	struct score_scale scale;
	struct score_result r;

	query.pod = &pod;
	score_fixture_scale(&query, plugin, nodes, count, &scale);
	score_fixture_judge(&query, plugin, &scale, &nodes[which], &r);
	return r;
}

static void a_node_without_an_agent_is_estimated(void **state)
{
	struct score_node nodes[2];

	(void)state;
	model_put(model, model_fixture_node("silent", 9, 9));
	put((struct model_fixture_pod){.name = "x", .node = "silent", .cpu = "1"});
	put((struct model_fixture_pod){.name = "y", .node = "n", .cpu = "1"});
	look(NULL, 0);
	nodes[0] = read_node("n");
	nodes[1] = read_node("silent");
	score_nodes_estimate(nodes, 2);
	assert_int_equal(nodes[1].fallback, FALLBACK_NONE);
	assert_true(nodes[1].estimated && !nodes[0].estimated);
	/* Whatever it has free, it stays below the one that is measured, in every plugin. */
	for (int p = 0; p < SCORE_PLUGINS; p++) {
		struct score_result of[2];

		for (size_t i = 0; i < 2; i++)
			of[i] = score((enum score_plugin_id)p, nodes, 2, i);
		assert_true(of[1].score < of[0].score);
		assert_false(of[1].unknown);
	}
	assert_non_null(
		strstr(score(PLUGIN_LIMIT_AWARE, nodes, 2, 1).reason, "not measured (none)"));
	/* Where none is measured it is what there is: 6 of 8 CPUs are free. */
	score_nodes_estimate(&nodes[1], 1);
	assert_int_equal(nodes[1].fallback, FALLBACK_ALLOCATION);
	assert_int_equal(score(PLUGIN_TARGET_LOAD_PACKING, &nodes[1], 1, 0).score, 75);
}

/* The plugins that need an API work for real: every node is judged by all of them. */
static void every_plugin_judges_a_node_of_the_api(void **state)
{
	static const struct power_model power = {"n", 400, 90, 0.01};
	struct score_node node;

	(void)state;
	put((struct model_fixture_pod){
		.name = "x", .cpu = "1", .memory = "1Gi", .cpu_limit = "2", .memory_limit = "1Gi"});
	look(NULL, 0);
	node = read_node("n");
	node.power = &power;
	for (int p = 0; p < SCORE_PLUGINS; p++) {
		struct score_result r = score((enum score_plugin_id)p, &node, 1, 0);

		assert_false(r.outside);
		assert_in_range(r.score, 1, 100);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(requests_and_limits_are_the_apis),
		TEST(exclusive_cpus_and_protected_memory_count),
		TEST(without_all_pods_requests_are_unknown),
		TEST(other_resources_are_the_apis),
		TEST(a_new_pod_counts_as_far_as_it_is_not_measured),
		TEST(a_new_pod_is_expected_to_use_what_its_owners_others_use),
		TEST(upstream_counts_a_pod_in_full_for_a_minute),
		TEST(a_node_that_turned_hot_counts_as_hot),
		TEST(assumed_pods_are_part_of_every_sum),
		TEST(a_node_without_an_agent_is_estimated),
		TEST(every_plugin_judges_a_node_of_the_api),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
