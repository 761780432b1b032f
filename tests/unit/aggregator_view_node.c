/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/view.h"
#include "shared/clock.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS
#define GIB (1LL << 30)

static struct model *model;

static int setup(void **state)
{
	(void)state;
	model = model_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	model_free(model);
	return 0;
}

static void put(struct model_fixture_pod p)
{
	if (!p.node)
		p.node = "n";
	model_put(model, model_fixture_pod(&p));
}

/* The node "n" with these pods measured; stats_pods NULL: never heard. */
static struct view_node *join(const struct pod_stats *stats_pods, size_t count)
{
	struct cluster *c = model_cluster(model);
	struct node_stats *stats =
		stats_pods ? join_fixture_stats("n", NOW, stats_pods, count) : NULL;
	struct view_node *n = view_node_renew(NULL, stats, c->nodes[0]);

	cluster_drop(c);
	node_stats_drop(stats);
	return n;
}

static struct pod_stats measured(const char *name, const char *uid)
{
	return join_fixture_pod(name, uid, NOW, 900, 100, 1 << 20);
}

/* "namespace/name=cgroup", "-" where there is none. */
static const char *describe(const struct view_node *n)
{
	static char text[1024];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n->pod_count; i++) {
		const struct view_pod *p = &n->pods[i];

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s/%s=%s ",
					p->pod ? p->pod->object.namespace : "-",
					p->pod ? p->pod->object.name : "-",
					p->use ? p->use->name : "-");
		assert_ptr_equal(view_node_find_pod(n, view_pod_namespace(p), view_pod_name(p)), p);
	}
	assert_null(view_node_find_pod(n, "default", "nobody"));
	return text;
}

static void pods_are_joined_by_uid(void **state)
{
	const struct pod_stats pods[] = {measured("k/a", "uid-1"), measured("k/b", "uid-2"),
					 measured("k/c", "uid-3"), measured("system.slice", "")};
	struct view_node *n;

	(void)state;
	put((struct model_fixture_pod){.namespace = "shop", .name = "web", .uid = "uid-2"});
	put((struct model_fixture_pod){.namespace = "base", .name = "zz", .uid = "uid-1"});
	put((struct model_fixture_pod){.namespace = "shop", .name = "new", .uid = "uid-4"});
	n = join(pods, 4);
	assert_string_equal(describe(n), "-/-=k/c -/-=system.slice base/zz=k/a shop/new=- "
					 "shop/web=k/b ");
	assert_string_equal(view_pod_name(&n->pods[0]), "k/c");
	assert_string_equal(view_pod_uid(&n->pods[0]), "uid-3");
	assert_string_equal(view_pod_uid(&n->pods[3]), "uid-4");
	view_node_drop(n);
}

static void static_pods_are_joined_by_their_hash(void **state)
{
	const struct pod_stats pods[] = {measured("k/a", "0123456789abcdef0123456789abcdef"),
					 measured("k/b", "uid-2")};
	struct view_node *n;

	(void)state;
	put((struct model_fixture_pod){.name = "apiserver",
				       .uid = "uid-1",
				       .config_hash = "0123456789abcdef0123456789abcdef"});
	put((struct model_fixture_pod){.name = "other", .config_hash = "unheard of"});
	/* Its image's own uid would do, too. */
	put((struct model_fixture_pod){.name = "zz", .uid = "uid-2", .config_hash = "none"});
	n = join(pods, 2);
	assert_string_equal(describe(n), "default/apiserver=k/a default/other=- default/zz=k/b ");
	view_node_drop(n);
}

static void one_uid_in_two_cgroups_is_listed_once_as_the_pod(void **state)
{
	const struct pod_stats pods[] = {measured("k/a", "uid-1"), measured("k/b", "uid-1"),
					 measured("k/c", "uid-1")};
	struct view_node *n;

	(void)state;
	put((struct model_fixture_pod){.name = "x", .uid = "uid-1"});
	n = join(pods, 3);
	assert_string_equal(describe(n), "-/-=k/b -/-=k/c default/x=k/a ");
	view_node_drop(n);
	/* Nor are two pods of the API given one cgroup. */
	put((struct model_fixture_pod){.name = "y", .uid = "uid-1"});
	put((struct model_fixture_pod){.name = "z", .uid = "uid-1"});
	n = join(pods, 2);
	assert_string_equal(describe(n), "default/x=k/a default/y=k/b default/z=- ");
	view_node_drop(n);
}

/* The strings of stats outlive one of them; pods that share them may still be others. */
static void a_renewed_node_lists_the_pods_of_its_stats(void **state)
{
	const struct pod_stats pods[] = {measured("k/a", "uid-1"), measured("k/b", "uid-2"),
					 measured("k/c", "uid-3")};
	struct node_stats *all = join_fixture_stats("n", NOW, pods, 3), *stats;
	struct node_stats from = *all;
	struct pod_stats some[] = {all->pods[0], all->pods[1]};
	struct view_node *n, *before;
	struct cluster *c;

	(void)state;
	put((struct model_fixture_pod){.name = "x", .uid = "uid-2"});
	put((struct model_fixture_pod){.name = "y", .uid = "uid-3", .cpu = "100m"});
	c = model_cluster(model);
	from.pods = some;
	from.pod_count = 2;
	from.layout = 1;
	stats = node_stats_new(&from);
	before = view_node_renew(NULL, stats, c->nodes[0]);
	node_stats_drop(stats);
	assert_string_equal(describe(before), "-/-=k/a default/x=k/b default/y=- ");
	some[1] = all->pods[2];
	from.layout = 2;
	stats = node_stats_new(&from);
	n = view_node_renew(before, stats, c->nodes[0]);
	view_node_drop(before);
	assert_string_equal(describe(n), "-/-=k/a default/x=- default/y=k/c ");
	assert_int_equal(n->sums.requests.of[RESOURCE_CPU], 100);
	before = n;
	n = view_node_renew(before, stats, c->nodes[0]);
	view_node_drop(before);
	assert_string_equal(describe(n), "-/-=k/a default/x=- default/y=k/c ");
	assert_int_equal(n->sums.pods, 2);
	view_node_drop(n);
	node_stats_drop(stats);
	node_stats_drop(all);
	cluster_drop(c);
}

static void a_node_without_an_agent_has_an_empty_stats(void **state)
{
	struct view_node *n;

	(void)state;
	model_put(model, model_fixture_node("n", 16, 64));
	put((struct model_fixture_pod){.name = "x"});
	n = join(NULL, 0);
	assert_string_equal(n->name, "n");
	assert_int_equal(node_stats_freshness(n->stats, NOW), NEVER);
	assert_int_equal(n->stats->cpu_capacity_milli, 0);
	assert_int_equal(n->cpu_capacity_milli, 16000);
	assert_string_equal(describe(n), "default/x=- ");
	assert_int_equal(n->recent_count, 0);
	view_node_drop(n);
}

static void a_node_without_an_api_is_its_stats(void **state)
{
	const struct pod_stats pods[] = {measured("k/a", "uid-1"), measured("unit", "")};
	struct node_stats *stats = join_fixture_stats("n", NOW, pods, 2);
	struct view_node *n = view_node_renew(NULL, stats, NULL);

	(void)state;
	node_stats_drop(stats);
	assert_string_equal(describe(n), "-/-=k/a -/-=unit ");
	assert_int_equal(n->cpu_capacity_milli, 4000);
	assert_int_equal(n->cpu_allocatable_milli, 3800);
	assert_int_equal(n->sums.kernel_unknown, 0);
	view_node_drop(n);
	view_node_drop(NULL);
}

static void the_apis_capacity_wins(void **state)
{
	static const struct {
		const char *status;
		int64_t capacity, allocatable, mem_allocatable;
	} cases[] = {
		{"\"capacity\":{\"cpu\":\"8\"},\"allocatable\":{\"cpu\":\"7\",\"memory\":\"1Gi\"}",
		 8000, 7000, GIB},
		{"\"capacity\":{\"cpu\":\"8\",\"memory\":\"2Gi\"}", 8000, 8000, 2 * GIB},
		{"\"allocatable\":{\"cpu\":\"0\"}", 4000, 0, 7 * GIB},
		{"\"phase\":\"\"", 4000, 3800, 7 * GIB},
	};
	const struct pod_stats pod = measured("k/a", "uid-1");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[256];
		struct view_node *n;

		snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"n\"},\"status\":{%s}}",
			 cases[i].status);
		model_put(model, model_fixture_object(OBJECT_NODE, text));
		n = join(&pod, 1);
		assert_int_equal(n->cpu_capacity_milli, cases[i].capacity);
		assert_int_equal(n->cpu_allocatable_milli, cases[i].allocatable);
		assert_int_equal(n->mem_allocatable_bytes, cases[i].mem_allocatable);
		view_node_drop(n);
	}
}

/* --- sums ------------------------------------------------------------------------------------- */

static void what_pods_declare_is_summed(void **state)
{
	struct view_node *n;
	const struct pod_load *cpu;

	(void)state;
	put((struct model_fixture_pod){.name = "limited",
				       .cpu = "1",
				       .memory = "1Gi",
				       .cpu_limit = "2",
				       .memory_limit = "2Gi"});
	put((struct model_fixture_pod){
		.name = "daemon", .owner_kind = "DaemonSet", .cpu = "500m", .phase = "Pending"});
	put((struct model_fixture_pod){.name = "init", .cpu = "100m", .init_cpu_limit = "3"});
	put((struct model_fixture_pod){.name = "done", .cpu = "9", .phase = "Succeeded"});
	put((struct model_fixture_pod){.name = "failed", .cpu = "9", .phase = "Failed"});
	n = join(NULL, 0);
	cpu = &n->sums.load[RESOURCE_CPU];
	assert_int_equal(n->sums.pods, 3);
	assert_int_equal(n->sums.daemon_pods, 1);
	/*
	 * An init container without requests requests its limit, and is the worst moment of its
	 * pod.
	 */
	assert_int_equal(n->sums.requests.of[RESOURCE_CPU], 1000 + 500 + 3000);
	assert_int_equal(n->sums.limits.of[RESOURCE_CPU], 2000 + 3000);
	assert_int_equal(n->sums.requests.of[RESOURCE_MEMORY], GIB);
	assert_int_equal(n->sums.load[RESOURCE_CPU].unlimited, 2);
	assert_int_equal(n->sums.load[RESOURCE_MEMORY].unlimited, 2);
	assert_int_equal(n->sums.load[RESOURCE_CPU].unlimited_requests, 600);
	assert_int_equal(cpu->requests, 4500);
	assert_int_equal(cpu->limits, 5000); /* as Kubernetes counts, and the sums above */
	assert_int_equal(cpu->limits_running, 2000); /* init containers are gone */
	assert_int_equal(cpu->limits_containers, 2000);
	assert_int_equal(cpu->requests_trimaran, 4500);
	assert_int_equal(cpu->limits_trimaran, 2000 + 500 + 3000);
	assert_int_equal(n->sums.kernel_unknown, 3);
	view_node_drop(n);
}

/* Sums over limits stay while all they follow from does. */
static void sums_follow_what_a_node_can_give_away(void **state)
{
	const struct kernel_limits two = {2000, GIB, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0};
	struct pod_stats pod = measured("k/a", "uid-1");
	struct node_stats *stats, *smaller, from;
	struct view_node *n, *before;
	struct cluster *c;

	(void)state;
	pod.limits = &two;
	put((struct model_fixture_pod){.name = "x", .uid = "uid-1", .cpu = "100m"});
	c = model_cluster(model);
	stats = join_fixture_stats("n", NOW, &pod, 1);
	before = view_node_renew(NULL, stats, c->nodes[0]);
	n = view_node_renew(before, stats, c->nodes[0]);
	assert_int_equal(n->sums.kernel[RESOURCE_CPU].limits, 2000);
	assert_int_equal(n->sums.kernel[RESOURCE_CPU].unlimited, 0);
	assert_int_equal(n->sums.kernel_unknown, 0);
	assert_int_equal(n->sums.requests.of[RESOURCE_CPU], 100);
	view_node_drop(before);
	from = *stats; /* of the same layout, of a machine that lost CPUs */
	from.cpu_allocatable_milli = 1500;
	smaller = node_stats_new(&from);
	node_stats_drop(stats);
	before = n;
	n = view_node_renew(before, smaller, c->nodes[0]);
	assert_int_equal(n->sums.kernel[RESOURCE_CPU].limits, 0);
	assert_int_equal(n->sums.kernel[RESOURCE_CPU].unlimited, 1);
	assert_int_equal(n->sums.kernel[RESOURCE_MEMORY].limits, GIB);
	assert_int_equal(n->sums.requests.of[RESOURCE_CPU], 100);
	view_node_drop(before);
	view_node_drop(n);
	node_stats_drop(smaller);
	cluster_drop(c);
}

static void what_the_kernel_enforces_is_summed(void **state)
{
	const struct kernel_limits limits[] = {
		{1000, GIB, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0},
		{LIMIT_NONE, 100 * GIB, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0},
		{LIMIT_UNKNOWN, 2 * GIB, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0},
	};
	const struct container_stats containers[] = {{.name = "c", .limits = &limits[0]},
						     {.name = "d", .limits = &limits[0]}};
	struct pod_stats pods[] = {measured("k/a", "uid-1"), measured("k/b", "uid-2"),
				   measured("k/c", "uid-3"), measured("k/d", "uid-4"),
				   measured("slice", "")};
	struct view_node *n;

	(void)state;
	pods[0].limits = &limits[0];
	pods[1].limits = &limits[1];
	pods[1].containers = containers; /* bound by its containers together */
	pods[1].container_count = 2;
	pods[2].limits = &limits[1];
	pods[3].limits = &limits[2];
	pods[4].limits = &limits[0];
	pods[4].kind = ENTITY_SLICE;
	put((struct model_fixture_pod){.name = "x", .uid = "uid-1"});
	put((struct model_fixture_pod){.name = "not-measured", .uid = "uid-9"});
	put((struct model_fixture_pod){.name = "done", .uid = "uid-8", .phase = "Succeeded"});
	n = join(pods, 5);
	assert_int_equal(n->sums.kernel[RESOURCE_CPU].limits, 3000);
	assert_int_equal(n->sums.kernel[RESOURCE_CPU].unlimited, 1);
	assert_int_equal(n->sums.kernel[RESOURCE_MEMORY].limits, 5 * GIB);
	assert_int_equal(n->sums.kernel[RESOURCE_MEMORY].unlimited,
			 1); /* more than the node has is none */
	assert_int_equal(n->sums.kernel_unknown, 2);
	view_node_drop(n);
}

/* What is known of a pod counts beside what is not, as in the declared sums. */
static void the_kernels_limits_count_by_container(void **state)
{
	const struct kernel_limits limits[] = {
		{500, GIB, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0},
		{LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0},
		{LIMIT_UNKNOWN, LIMIT_UNKNOWN, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, 0, 0},
	};
	const struct container_stats containers[] = {{.name = "a", .limits = &limits[0]},
						     {.name = "b", .limits = &limits[1]},
						     {.name = "c", .limits = &limits[1]},
						     {.name = "d", .limits = &limits[2]}};
	struct pod_stats pods[] = {measured("k/a", "uid-1"), measured("k/b", "uid-2"),
				   measured("k/c", "uid-3")};
	struct view_node *n;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		pods[i].limits = &limits[1];
	pods[0].containers = containers; /* not the API's */
	pods[0].container_count = 4;
	pods[1].containers = containers; /* its sandbox is none of its one container */
	pods[1].container_count = 2;
	put((struct model_fixture_pod){
		.name = "limited", .uid = "uid-2", .cpu = "100m", .cpu_limit = "500m"});
	put((struct model_fixture_pod){.name = "unseen", .uid = "uid-3", .cpu = "70m"});
	n = join(pods, 3);
	assert_int_equal(n->sums.kernel[RESOURCE_CPU].limits, 1000);
	assert_int_equal(n->sums.kernel[RESOURCE_MEMORY].limits, 2 * GIB);
	assert_int_equal(n->sums.kernel[RESOURCE_CPU].unlimited, 2 + 0 + 1);
	assert_int_equal(n->sums.kernel[RESOURCE_MEMORY].unlimited, 2 + 0 + 1);
	assert_int_equal(n->sums.kernel[RESOURCE_CPU].unlimited_requests, 70);
	assert_int_equal(n->sums.kernel_unknown, 1);
	view_node_drop(n);
}

/* --- pods that the node's mean does not show -------------------------------------------------- */

static void new_pods_are_those_the_window_does_not_cover(void **state)
{
	static const struct {
		double measured; /* seconds; the node: 15 minutes */
		int64_t bound; /* seconds before now; 0: not told */
		const char *phase;
		double uncovered; /* -1: not listed */
	} cases[] = {
		{900, 0, "Running", -1},
		{900, 3600, "Running", -1},
		{300, 300, "Running", 2.0 / 3},
		{300, 0, "Running", 2.0 / 3},
		{0, 10, "Pending", 1},
		{0, 10, "Running", 1},
		{0, 0, "Running", 1},
		/* Not measured itself, it is in the node's mean since it was bound. */
		{0, 300, "Running", 2.0 / 3},
		{0, 300, "Pending", 1},
		{0, 840, "Running", 60.0 / 900},
		{0, 61, "Running", 839.0 / 900},
		{0, 59, "Running", 1},
		/*
		 * In the node's mean, though its own windows are lost; but not while it has not
		 * begun.
		 */
		{300, 3600, "Running", -1},
		{0, 3600, "Running", -1},
		{0, 3600, "Pending", 1},
		{0, 10, "Succeeded", -1},
		{50, 55, "Running", 850.0 / 900},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pod_stats pod =
			join_fixture_pod("k/a", "uid-1", NOW, cases[i].measured, 100, 100);
		struct view_node *n;

		teardown(state);
		setup(state);
		put((struct model_fixture_pod){
			.name = "x",
			.uid = "uid-1",
			.phase = cases[i].phase,
			.scheduled_ns = cases[i].bound ? NOW - cases[i].bound * NS_PER_SEC : 0});
		n = join(&pod, cases[i].measured > 0);
		if (n->recent_count != (cases[i].uncovered >= 0))
			fail_msg("case %zu: %zu recent pods", i, n->recent_count);
		if (n->recent_count)
			assert_true(n->recents[0].uncovered > cases[i].uncovered - 0.001 &&
				    n->recents[0].uncovered < cases[i].uncovered + 0.001);
		view_node_drop(n);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pods_are_joined_by_uid),
		TEST(static_pods_are_joined_by_their_hash),
		TEST(one_uid_in_two_cgroups_is_listed_once_as_the_pod),
		TEST(a_renewed_node_lists_the_pods_of_its_stats),
		TEST(a_node_without_an_agent_has_an_empty_stats),
		TEST(a_node_without_an_api_is_its_stats),
		TEST(the_apis_capacity_wins),
		TEST(what_pods_declare_is_summed),
		TEST(sums_follow_what_a_node_can_give_away),
		TEST(what_the_kernel_enforces_is_summed),
		TEST(the_kernels_limits_count_by_container),
		TEST(new_pods_are_those_the_window_does_not_cover),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
