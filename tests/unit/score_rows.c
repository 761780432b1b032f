/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that are kept with a view say the same as the view itself, to the last bit: for random
 * clusters that change from view to view, at any time, in every variant, with usual arguments and
 * others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/api/prefetcher.h"
#include "aggregator/policy/score/plugin.h"
#include "aggregator/policy/score/score_rows.h"
#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/usage_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS

/* More nodes than a block of score_scale.c has. */
enum { NODES = 72, VIEWS = 90, TIMES = 2 };

static uint32_t seed = 7;

static int any(int below)
{
	return (int)(fixture_random(&seed) * below);
}

static bool maybe(int percent)
{
	return any(100) < percent;
}

static void name_of(int node, char name[16])
{
	snprintf(name, 16, "node-%02d", node);
}

/* Stats of any age, with any windows, also without some. */
static struct node_stats *any_stats(const char *name, int64_t now_ns)
{
	static const int ages[] = {0, 1, 29, 30, 31, 200, 301, -3};
	int64_t end_ns = now_ns - ages[any(8)] * NS_PER_SEC - any(1000);
	struct node_stats stats = view_fixture_node(name, end_ns, maybe(80) ? 3600 : 40 + any(900),
						    any(4000), any(500));
	struct pod_stats pod = join_fixture_pod("p", "uid-p", end_ns, 900, any(100), 1e8);

	stats.aside_ns = maybe(10) ? any(40) * NS_PER_SEC : 0;
	if (maybe(10))
		for (int w = 0; w < WINDOWS; w++)
			stats.usage.windows[w].mem_bytes.known = false;
	stats.pods = &pod;
	stats.pod_count = 1;
	return node_stats_new(&stats);
}

static void put_any_pod(struct model *m, int64_t now_ns)
{
	char node[16], name[16], owner[16];

	name_of(any(NODES), node);
	snprintf(name, sizeof(name), "pod-%d", any(60));
	snprintf(owner, sizeof(owner), "owner-%d", any(3));
	model_put(m, model_fixture_pod(&(struct model_fixture_pod){
			     .name = name,
			     .uid = maybe(20) ? "uid-p" : NULL,
			     .node = node,
			     .owner_kind = maybe(30) ? "DaemonSet" : "ReplicaSet",
			     .owner_name = owner,
			     .owner_uid = owner,
			     .cpu = maybe(80) ? "300m" : NULL,
			     .memory = "1Gi",
			     .cpu_limit = maybe(50) ? "1" : NULL,
			     .scheduled_ns = now_ns - any(1200) * NS_PER_SEC}));
}

/* What may change between two views. */
static void change_any(struct model *m, struct node_stats **node_stats, int64_t now_ns)
{
	const struct model_source source = {.state = maybe(80) ? SOURCE_SYNCED : SOURCE_LISTING};
	char name[16];
	int node;

	for (int i = any(6); i > 0; i--) {
		node = any(NODES);
		name_of(node, name);
		node_stats_drop(node_stats[node]);
		node_stats[node] = maybe(85) ? any_stats(name, now_ns) : NULL;
	}
	for (int i = any(4); i > 0; i--)
		put_any_pod(m, now_ns);
	name_of(any(NODES), name);
	if (maybe(30))
		model_put(m, model_fixture_node(name, 2 + any(8), 4 + any(20)));
	else if (maybe(10))
		model_remove(m, OBJECT_NODE, "", name);
	if (maybe(10))
		model_set_source(m, OBJECT_POD, &source);
}

/* Bit by bit: no number is near enough, and unknown ones are alike. */
static bool same(double a, double b)
{
	uint64_t x, y;

	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	return x == y;
}

static void assert_metric(const struct score_metric *a, const struct score_metric *b)
{
	assert_int_equal(a->known, b->known);
	assert_true(same(a->mean, b->mean) && same(a->stddev, b->stddev));
}

static void assert_same(const struct score_node *a, const struct score_node *b)
{
	assert_ptr_equal(a->name, b->name);
	assert_int_equal(a->cpu_capacity_milli, b->cpu_capacity_milli);
	assert_int_equal(a->mem_capacity_bytes, b->mem_capacity_bytes);
	assert_int_equal(a->cpu_allocatable_milli, b->cpu_allocatable_milli);
	assert_int_equal(a->mem_allocatable_bytes, b->mem_allocatable_bytes);
	assert_int_equal(a->measured, b->measured);
	assert_metric(&a->cpu, &b->cpu);
	assert_metric(&a->mem, &b->mem);
	assert_int_equal(a->fallback, b->fallback);
	assert_string_equal(a->window, b->window);
	assert_true(same(a->age_seconds, b->age_seconds));
	assert_int_equal(a->pending_cpu_milli, b->pending_cpu_milli);
	assert_int_equal(a->pending_mem_bytes, b->pending_mem_bytes);
	assert_int_equal(a->assumed_pods, b->assumed_pods);
	assert_int_equal(a->pending_high_cpu_milli, b->pending_high_cpu_milli);
	assert_memory_equal(a->unseen, b->unseen, sizeof(a->unseen));
	for (int r = 0; r < SCORE_RESOURCES; r++)
		assert_true(same(a->p99[r], b->p99[r]));
	assert_true(same(a->widening, b->widening));
	assert_int_equal(a->load.requests_known, b->load.requests_known);
	assert_int_equal(a->load.limits_known, b->load.limits_known);
	assert_memory_equal(a->load.of, b->load.of, sizeof(a->load.of));
	assert_true(same(a->contention, b->contention));
	assert_int_equal(a->oom_kills, b->oom_kills);
	assert_ptr_equal(a->power, b->power);
}

static void compare(const struct view *v, int64_t now_ns, const struct score_query *q)
{
	const struct score_rows *rows = score_rows_of(v);

	for (size_t i = 0; i < v->node_count; i++) {
		struct score_node kept, direct;

		score_rows_read(rows, v, i, now_ns, q, &kept);
		score_node_from_view(v, v->nodes[i], now_ns, q, &direct);
		assert_same(&kept, &direct);
	}
}

/* Every estimate is below every measurement, unless that has nothing to take away. */
static void assert_guesses_stay_below(const struct score_query *q, enum score_plugin_id plugin,
				      const struct score_node *nodes, size_t count,
				      const int64_t *scores)
{
	int64_t measured = INT64_MAX, guessed = -1;

	for (size_t i = 0; i < count; i++) {
		if (score_plugin_estimates(plugin, q->variant, &nodes[i]))
			guessed = scores[i] > guessed ? scores[i] : guessed;
		else if (nodes[i].measured)
			measured = scores[i] < measured ? scores[i] : measured;
	}
	if (measured < INT64_MAX && guessed >= 0)
		assert_true(guessed < measured);
}

/* Some have pods on their way, and some a model of their power. */
static void change_nodes(struct score_node *nodes, size_t count, const struct score_query *q)
{
	static const struct power_model model = {"", 400, -90, -0.07};

	for (size_t i = 0; i < count; i++) {
		const struct score_assumed assumed = {.pods = 2,
						      .request_cpu_milli = any(3000),
						      .request_mem_bytes = (int64_t)any(64) << 24,
						      .cpu_milli = any(3000),
						      .cpu_high_milli = any(3000),
						      .mem_bytes = (int64_t)any(64) << 24,
						      .namespace = "ns",
						      .name = "name"};

		if (q->variant != SCORE_UPSTREAM && maybe(20))
			score_node_assume(&nodes[i], &assumed);
		nodes[i].power = maybe(70) ? &model : NULL;
	}
}

/*
 * What is worked out for all nodes at once, from what was worked out before the pod was known, is
 * what each of them gets by itself when all is told, in every plugin.
 */
static void compare_columns(const struct view *v, int64_t now_ns, struct score_query q)
{
	struct score_node nodes[NODES];
	int64_t scores[SCORE_PLUGINS * NODES];
	enum score_plugin_id plugins[SCORE_PLUGINS];
	struct score_scale scales[SCORE_PLUGINS];
	struct container_spec container = {.requests = {{{true, true}}, {{700, 1 << 29}}}};
	struct pod_spec pod = {.container_count = 1, .containers = &container};
	const struct score_rows *rows = score_rows_of(v);
	struct score_pod sums;
	size_t count = 0;

	q.pod = &pod;
	for (enum score_plugin_id p = 0; p < SCORE_PLUGINS; p++)
		if (score_plugin_has(p, q.variant))
			plugins[count++] = p;
	for (size_t i = 0; i < v->node_count; i++)
		score_rows_read(rows, v, i, now_ns, &q, &nodes[i]);
	change_nodes(nodes, v->node_count, &q);
	if (q.variant != SCORE_UPSTREAM)
		score_nodes_estimate(nodes, v->node_count);
	score_pod_read(&q, &sums);
	q.sums = &sums;
	score_columns(&q, plugins, count, nodes, v->node_count, scales, scores);
	q.sums = NULL;
	for (size_t p = 0; p < count; p++) {
		assert_guesses_stay_below(&q, plugins[p], nodes, v->node_count,
					  scores + p * v->node_count);
		for (size_t i = 0; i < v->node_count; i++) {
			struct score_result r;

			score_node_by(&q, plugins[p], &scales[p], &nodes[i], SCORE_TERMS, &r);
			assert_int_equal(scores[p * v->node_count + i], r.score);
		}
	}
}

static void change_any_argument(struct score_args *args)
{
	args->smoothing_window_size = 1 + any(5);
	args->safe_variance_sensitivity = any(4);
	args->safe_variance_margin = any(3);
	args->risk_limit_weights[SCORE_CPU] = (double)any(11) / 10;
	args->allocatable_mode = maybe(50) ? ALLOCATABLE_LEAST : ALLOCATABLE_MOST;
	args->limit_weights[SCORE_MEMORY] = any(3);
	args->unlimited[SCORE_CPU] = maybe(50) ? any(2000) : 0;
	args->quantiles = maybe(50);
}

static void compare_any(const struct view *v, int64_t now_ns)
{
	struct score_args args;
	struct score_query q = {.args = &args};

	for (int variant = SCORE_CORRECTED; variant <= SCORE_KEP; variant++) {
		q.variant = (enum score_variant)variant;
		score_args_default(&args, q.variant);
		compare(v, now_ns, &q);
		compare_columns(v, now_ns, q);
		args.use_limits = true;
		compare(v, now_ns, &q);
		score_args_default(&args, q.variant);
		args.default_requests_cpu_milli = 250;
		compare(v, now_ns, &q);
		compare_columns(v, now_ns, q);
		args.default_requests_multiplier = 3;
		compare(v, now_ns, &q);
		change_any_argument(&args);
		compare_columns(v, now_ns, q);
	}
}

static struct view *next_view(struct join *j, struct model *m, struct node_stats *const *node_stats,
			      int64_t now_ns)
{
	struct node_stats *there[NODES];
	size_t count = 0;

	for (int i = 0; i < NODES; i++)
		if (node_stats[i])
			there[count++] = node_stats[i];
	return join_view(j, there, count, model_cluster(m), now_ns);
}

static void kept_rows_are_what_the_view_says(void **state)
{
	struct node_stats *node_stats[NODES] = {NULL};
	struct model *m = model_new();
	struct join *j = join_new();
	int64_t now_ns = NOW;

	(void)state;
	model_fixture_sync(m, OBJECT_NODE);
	model_fixture_sync(m, OBJECT_POD);
	for (int i = 0; i < VIEWS; i++) {
		struct view *v;

		change_any(m, node_stats, now_ns);
		v = next_view(j, m, node_stats, now_ns);
		/* Of some nobody asks, so that the next is made of an older one. */
		for (int t = 0; t < TIMES && i % 3; t++)
			compare_any(v, now_ns + (any(400) - 50) * NS_PER_SEC + any(1000));
		view_drop(v);
		now_ns += any(5) * NS_PER_SEC;
	}
	for (int i = 0; i < NODES; i++)
		node_stats_drop(node_stats[i]);
	join_free(j);
	model_free(m);
}

static void names_are_found_whoever_comes_and_goes(void **state)
{
	struct node_stats *node_stats[NODES] = {NULL};
	struct model *m = model_new();
	struct join *j = join_new();
	const struct node_index *last = NULL;
	size_t kept = 0;

	(void)state;
	model_fixture_sync(m, OBJECT_NODE);
	for (int i = 0; i < VIEWS; i++) {
		const struct node_index *x;
		struct view *v;

		if (i % 2)
			change_any(m, node_stats, NOW);
		v = next_view(j, m, node_stats, NOW);
		x = node_index_of(v);
		for (size_t n = 0; n < v->node_count; n++)
			assert_int_equal(node_index_find(x, v->nodes[n]->name), n);
		assert_int_equal(node_index_find(x, "node-"), v->node_count);
		assert_int_equal(node_index_find(x, ""), v->node_count);
		kept += x == last;
		last = x;
		view_drop(v);
	}
	assert_true(kept > VIEWS / 3); /* the join holds the view before */
	for (int i = 0; i < NODES; i++)
		node_stats_drop(node_stats[i]);
	join_free(j);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_rows_are_what_the_view_says),
		cmocka_unit_test(names_are_found_whoever_comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
