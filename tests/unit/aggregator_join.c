/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/usage_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

enum { NODES = 6, PODS = 4, OWNERS = 3, STEPS = 3000, PODS_MAX = NODES * PODS };

static struct model *model;
static struct join *join;
static struct node_stats *node_stats[NODES]; /* sorted; NULL: the node is not heard */

static int setup(void **state)
{
	(void)state;
	model = model_new();
	join = join_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	join_free(join);
	model_free(model);
	for (int i = 0; i < NODES; i++) {
		node_stats_drop(node_stats[i]);
		node_stats[i] = NULL;
	}
	return 0;
}

static void hear(int node, const struct pod_stats *pods, size_t count)
{
	char name[16];

	snprintf(name, sizeof(name), "n%d", node);
	node_stats_drop(node_stats[node]);
	node_stats[node] = join_fixture_stats(name, NOW, pods, count);
}

static struct view *view_by(struct join *j, bool standalone)
{
	struct node_stats *heard[NODES];
	size_t count = 0;

	for (int i = 0; i < NODES; i++)
		if (node_stats[i])
			heard[count++] = node_stats[i];
	return join_view(j, heard, count, standalone ? NULL : model_cluster(model), NOW);
}

static struct view *view(void)
{
	return view_by(join, false);
}

static void put_pod(const char *name, const char *node, const char *owner)
{
	model_put(model, model_fixture_pod(&(struct model_fixture_pod){
				 .name = name,
				 .node = node,
				 .uid = name,
				 .owner_kind = owner ? "ReplicaSet" : NULL,
				 .owner_uid = owner}));
}

static struct pod_stats measured(const char *uid, double cpu)
{
	return join_fixture_pod(uid, uid, NOW, 900, cpu, 1000 * cpu);
}

/* Nothing of it is seen before its end, and what is left undone then is done. */
static void a_view_is_made_in_steps(void **state)
{
	struct pod_stats pod = measured("x", 100);
	static struct node_stats *heard[2];
	struct view *first, *v;

	(void)state;
	hear(0, NULL, 0);
	hear(1, &pod, 1);
	model_put(model, model_fixture_node("n1", 4, 8));
	model_put(model, model_fixture_node("n2", 4, 8));
	put_pod("x", "n1", "owner");
	first = view();
	hear(1, &pod, 1);
	heard[0] = node_stats[0];
	heard[1] = node_stats[1];
	join_begin(join, heard, 2, model_cluster(model), NOW + 1);
	assert_true(join_step(join, 1));
	assert_true(join_step(join, 1));
	assert_int_equal(first->node_count, 3);
	assert_ptr_not_equal(view_fixture_stats(first, "n1"), node_stats[1]);
	assert_false(join_step(join, 1));
	v = join_end(join);
	assert_int_equal(v->version, 2);
	assert_int_equal(v->time_ns, NOW + 1);
	assert_int_equal(v->node_count, 3);
	assert_ptr_equal(v->nodes[0], first->nodes[0]);
	assert_ptr_equal(view_fixture_stats(v, "n1"), node_stats[1]);
	assert_int_equal(view_owner(v, "owner")->pods, 1);
	assert_int_equal(v->node_set_version, first->node_set_version);
	view_drop(first);
	view_drop(v);
	/* One that is under way at the end is no leak. */
	join_begin(join, heard, 1, model_cluster(model), NOW + 2);
	assert_true(join_step(join, 1));
}

static void a_view_has_the_nodes_of_both(void **state)
{
	struct view *v;

	(void)state;
	hear(0, NULL, 0);
	hear(2, NULL, 0);
	model_put(model, model_fixture_node("n1", 4, 8));
	model_put(model, model_fixture_node("n2", 4, 8));
	put_pod("x", "zz", NULL);
	v = view();
	assert_int_equal(v->version, 1);
	assert_int_equal(v->time_ns, NOW);
	assert_int_equal(v->node_count, 4);
	assert_null(view_find(v, "n0")->model);
	assert_int_equal(node_stats_freshness(view_fixture_stats(v, "n1"), NOW), NEVER);
	assert_non_null(view_find(v, "n2")->model->node);
	assert_ptr_equal(view_fixture_stats(v, "n2"), node_stats[2]);
	assert_null(view_find(v, "zz")->model->node);
	assert_null(v->owners);
	view_drop(v);
	v = view_by(join, true);
	assert_int_equal(v->version, 2);
	assert_int_equal(v->node_count, 2);
	assert_null(v->nodes[1]->model);
	view_drop(v);
}

static void only_what_changed_is_made_anew(void **state)
{
	struct view *before, *after;

	(void)state;
	for (int i = 0; i < 4; i++)
		hear(i, NULL, 0);
	put_pod("x", "n1", NULL);
	put_pod("y", "n2", NULL);
	put_pod("z", "unheard", NULL);
	before = view();
	hear(0, NULL, 0);
	put_pod("x2", "n1", NULL);
	after = view();
	assert_ptr_not_equal(before->nodes[0], after->nodes[0]);
	assert_ptr_not_equal(before->nodes[1], after->nodes[1]);
	for (int i = 2; i < 5; i++)
		assert_ptr_equal(before->nodes[i], after->nodes[i]);
	assert_int_equal(before->nodes[1]->pod_count, 1);
	assert_int_equal(after->nodes[1]->pod_count, 2);
	view_drop(before);
	/* The agent of one is forgotten, another is heard for the first time. */
	node_stats_drop(node_stats[2]);
	node_stats[2] = NULL;
	hear(5, NULL, 0);
	before = after;
	after = view();
	assert_int_equal(after->node_count, 6);
	assert_ptr_not_equal(before->nodes[2], after->nodes[2]);
	assert_int_equal(node_stats_freshness(after->nodes[2]->stats, NOW), NEVER);
	assert_ptr_equal(before->nodes[3], after->nodes[3]);
	assert_ptr_equal(before->nodes[4], view_find(after, "unheard"));
	view_drop(before);
	view_drop(after);
}

static void views_outlive_everything(void **state)
{
	struct pod_stats pod = measured("x", 100);
	struct view *v;

	hear(0, &pod, 1);
	put_pod("x", "n0", "uid-o");
	v = view();
	teardown(state);
	setup(state);
	assert_string_equal(v->nodes[0]->pods[0].pod->object.name, "x");
	assert_string_equal(v->nodes[0]->pods[0].use->name, "x");
	assert_int_equal(view_owner(v, "uid-o")->pods, 1);
	assert_int_equal(v->cluster->pod_count, 1);
	view_drop(v);
}

static void assert_owner(const char *uid, uint32_t pods, double cpu)
{
	struct view *v = view();
	const struct owner_use *o = view_owner(v, uid);

	if (!pods)
		assert_null(o);
	else {
		assert_non_null(o);
		assert_int_equal(o->pods, pods);
		assert_true(o->cpu_milli == cpu);
		assert_true(o->working_set_bytes == 1000 * cpu);
	}
	view_drop(v);
}

static void owners_have_the_mean_of_their_pods(void **state)
{
	struct pod_stats pods[] = {measured("a", 100), measured("b", 300),
				   join_fixture_pod("c", "c", NOW, 59, 4000, 1), /* too short */
				   measured("d", 4000)};
	struct pod_stats there = measured("e", 500);

	(void)state;
	put_pod("a", "n0", "o1");
	put_pod("b", "n0", "o1");
	put_pod("c", "n0", "o1");
	put_pod("d", "n0", NULL);
	put_pod("e", "n1", "o1");
	assert_owner("o1", 0, 0);
	hear(0, pods, 4);
	assert_owner("o1", 2, 200);
	hear(1, &there, 1);
	assert_owner("o1", 3, 300);
	assert_owner("", 0, 0);
	pods[0] = measured("a", 400);
	hear(0, pods, 4);
	assert_owner("o1", 3, 400);
	put_pod("b", "n0", "o2"); /* adopted */
	assert_owner("o1", 2, 450);
	assert_owner("o2", 1, 300);
	assert_int_equal(model_remove(model, OBJECT_POD, "default", "a"), 0);
	assert_owner("o1", 1, 500);
	node_stats_drop(node_stats[1]);
	node_stats[1] = NULL;
	assert_owner("o1", 0, 0);
	assert_owner("o2", 1, 300);
}

static void what_was_remembered_is_in_the_next_view(void **state)
{
	static const char text[] = "{\"workloads\":[{\"key\":\"default/CronJob/report\","
				   "\"cpuMillicores\":70,\"cpuP95Millicores\":90,"
				   "\"workingSetBytes\":5,\"seen\":%lld}]}";
	struct pod_stats pod = measured("a", 100);
	struct error error = {""};
	char *now = mem_printf(text, (long long)(NOW / NS_PER_SEC));
	struct view *v;

	(void)state;
	assert_int_equal(join_recall(join, now, strlen(now), &error), 0);
	assert_true(join_recall(join, "{}", 2, &error) < 0);
	v = view();
	assert_true(view_workload(v, "default/CronJob/report")->cpu_milli == 70);
	assert_null(view_workload(v, ""));
	view_drop(v);
	/* Beside what is measured now, which is noted for later. */
	put_pod("a", "n0", "o");
	hear(0, &pod, 1);
	v = view();
	assert_int_equal(view_owner(v, "o")->pods, 1);
	assert_non_null(view_workload(v, "default/CronJob/report"));
	view_drop(v);
	free(now);
}

static void the_longest_covered_window_counts(void **state)
{
	static const struct {
		double seconds, cpu; /* by the window that is taken; 0: none */
	} cases[] = {{900, 3}, {840, 3}, {839, 2}, {540, 2}, {539, 1},
		     {240, 1}, {239, 1}, {61, 1},  {59, 0}};

	(void)state;
	put_pod("a", "n0", "o");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pod_stats pod = join_fixture_pod("a", "a", NOW, cases[i].seconds, 1, 1000);

		for (int w = 0; w < WINDOWS; w++) {
			pod.usage.cpu_milli[w].mean = (float)w + 1;
			pod.usage.working_set_bytes[w].mean = 1000 * ((float)w + 1);
		}
		hear(0, &pod, 1);
		assert_owner("o", cases[i].cpu > 0, cases[i].cpu);
	}
}

static void a_table_is_shared_until_a_sum_changes(void **state)
{
	struct pod_stats pod = measured("a", 1);
	struct view *before, *after;

	(void)state;
	put_pod("a", "n0", "o");
	hear(0, &pod, 1);
	before = view();
	hear(1, NULL, 0);
	put_pod("b", "n1", "o");
	after = view();
	assert_ptr_equal(before->owners, after->owners);
	view_drop(before);
	view_drop(after);
}

/* Those of Kubernetes have 36 bytes; whatever else the API may one day use must not be mixed up. */
static void long_uids_are_left_out(void **state)
{
	static const char uid[] = "01234567890123456789012345678901234567890123";
	struct pod_stats pods[] = {measured("a", 1), measured("b", 2)};

	(void)state;
	put_pod("a", "n0", uid);
	put_pod("b", "n0", uid + 1);
	hear(0, pods, 2);
	assert_owner(uid, 0, 0);
	assert_owner(uid + 1, 1, 2);
}

/* --- random events: what was joined step by step equals what is joined at once ---------------- */

static uint32_t seed;

static int dice(int sides)
{
	return (int)(fixture_random(&seed) * sides);
}

static void hear_random(int node)
{
	struct pod_stats pods[PODS_MAX];
	char uids[PODS_MAX][16];
	size_t count = 0;

	for (int i = 10; i < 10 + PODS_MAX; i++) {
		if (dice(PODS_MAX) >= PODS)
			continue;
		snprintf(uids[count], sizeof(uids[count]), "p%d", i);
		pods[count] = join_fixture_pod(uids[count], uids[count], NOW, 1000 * dice(2),
					       4000 * fixture_random(&seed),
					       0x1p33 * fixture_random(&seed));
		count++;
	}
	hear(node, pods, count);
}

/* Nothing started or ended there; but windows may have come or gone. */
static void hear_again(int node)
{
	struct pod_stats pods[PODS_MAX];
	struct node_stats *stats;

	if (!node_stats[node])
		return;
	for (size_t i = 0; i < node_stats[node]->pod_count; i++)
		pods[i] =
			join_fixture_pod("", "", NOW, 1000 * dice(2), 4000 * fixture_random(&seed),
					 0x1p33 * fixture_random(&seed));
	stats = join_fixture_stats_after(node_stats[node], pods);
	node_stats_drop(node_stats[node]);
	node_stats[node] = stats;
}

static void random_event(void)
{
	static const char *const owners[OWNERS] = {NULL, "o1", "o2"};
	int what = dice(100), node = dice(NODES);
	char name[16], pod[16];

	snprintf(name, sizeof(name), "n%d", node);
	snprintf(pod, sizeof(pod), "p%d", 10 + dice(PODS_MAX));
	if (what < 15)
		hear_random(node);
	else if (what < 30)
		hear_again(node);
	else if (what < 35) {
		node_stats_drop(node_stats[node]);
		node_stats[node] = NULL;
	} else if (what < 75)
		put_pod(pod, name, owners[dice(OWNERS)]);
	else if (what < 90)
		model_remove(model, OBJECT_POD, "default", pod);
	else if (what < 95)
		model_put(model, model_fixture_node(name, 4 + dice(2), 8));
	else
		model_remove(model, OBJECT_NODE, "", name);
}

static void assert_equal_nodes(const struct view_node *a, const struct view_node *b)
{
	assert_string_equal(a->name, b->name);
	assert_ptr_equal(a->model, b->model);
	assert_int_equal(a->stats->end_ns, b->stats->end_ns);
	assert_int_equal(a->pod_count, b->pod_count);
	assert_int_equal(a->recent_count, b->recent_count);
	assert_int_equal(a->cpu_capacity_milli, b->cpu_capacity_milli);
	if (a->pod_count)
		assert_memory_equal(a->pods, b->pods, a->pod_count * sizeof(a->pods[0]));
	for (size_t i = 0; i < a->recent_count; i++) {
		assert_ptr_equal(a->recents[i].pod, b->recents[i].pod);
		assert_true(a->recents[i].uncovered == b->recents[i].uncovered);
	}
	assert_memory_equal(&a->sums, &b->sums, sizeof(a->sums));
}

static void assert_equal_views(const struct view *a, const struct view *b)
{
	assert_int_equal(a->node_count, b->node_count);
	for (size_t i = 0; i < a->node_count; i++)
		assert_equal_nodes(a->nodes[i], b->nodes[i]);
	/* A table may be there for what is remembered of workloads alone. */
	assert_int_equal(a->owners ? a->owners->count : 0, b->owners ? b->owners->count : 0);
	if (!a->owners || !b->owners)
		return;
	assert_memory_equal(a->owners->of, b->owners->of,
			    a->owners->count * sizeof(a->owners->of[0]));
}

static void steps_equal_a_fresh_join(void **state)
{
	(void)state;
	seed = 4711;
	for (int i = 0; i < STEPS; i++) {
		struct join *fresh = join_new();
		struct view *v, *want;

		for (int events = dice(4); events >= 0; events--)
			random_event();
		v = view();
		want = view_by(fresh, false);
		assert_equal_views(v, want);
		view_drop(v);
		view_drop(want);
		join_free(fresh);
	}
}

/* What a reader sees does not depend on who was told first: text of all there is. */
static char *shuffled(uint32_t order)
{
	static char text[8192];
	int turn[PODS_MAX];
	struct view *v;
	size_t len = 0;

	seed = order;
	for (int i = 0; i < PODS_MAX; i++)
		turn[i] = i;
	for (int i = PODS_MAX - 1; i > 0; i--) {
		int other = dice(i + 1), swap = turn[i];

		turn[i] = turn[other];
		turn[other] = swap;
	}
	for (int i = 0; i < PODS_MAX; i++) {
		char pod[16], node[16];
		struct pod_stats use;

		snprintf(pod, sizeof(pod), "p%d", turn[i]);
		snprintf(node, sizeof(node), "n%d", turn[i] % NODES);
		put_pod(pod, node, turn[i] % 2 ? "o1" : "o2");
		snprintf(pod, sizeof(pod), "p%d", turn[i] % NODES);
		use = measured(pod, 0.1 + turn[i] % NODES / 3.0);
		hear(turn[i] % NODES, &use, 1);
		if (i % 5 == 0)
			view_drop(view());
	}
	v = view();
	for (size_t i = 0; i < v->node_count; i++)
		for (size_t p = 0; p < v->nodes[i]->pod_count; p++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s %d\n",
						v->nodes[i]->name,
						view_pod_name(&v->nodes[i]->pods[p]),
						v->nodes[i]->pods[p].use != NULL);
	assert_non_null(v->owners);
	for (size_t i = 0; v->owners && i < v->owners->count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %u %.17g %.17g\n",
					v->owners->of[i].uid, v->owners->of[i].pods,
					v->owners->of[i].cpu_milli,
					v->owners->of[i].working_set_bytes);
	view_drop(v);
	return text;
}

static void order_does_not_matter(void **state)
{
	char *first = mem_strdup(shuffled(1));

	for (uint32_t order = 2; order < 20; order++) {
		teardown(state);
		setup(state);
		assert_string_equal(shuffled(order), first);
	}
	free(first);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_view_has_the_nodes_of_both),
		TEST(a_view_is_made_in_steps),
		TEST(only_what_changed_is_made_anew),
		TEST(views_outlive_everything),
		TEST(owners_have_the_mean_of_their_pods),
		TEST(what_was_remembered_is_in_the_next_view),
		TEST(the_longest_covered_window_counts),
		TEST(a_table_is_shared_until_a_sum_changes),
		TEST(long_uids_are_left_out),
		TEST(steps_equal_a_fresh_join),
		TEST(order_does_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
