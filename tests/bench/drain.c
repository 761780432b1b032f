/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a joint drain plan costs, from the view to the wave: 1000, 5000 and 15,000 nodes of 30 pods
 * with zone spread, host anti-affinity and the cap of real use, every node a candidate; the
 * benchmark of cluster-autoscaler (2000 nodes of 40 pods of 1 %, of which 1200 must go); and how
 * many pods leave per node that goes, fullest first against cyclic. Reading the view into the
 * placement core is told apart: whoever plans again and again only brings it up to date. CPU time
 * of the one thread it needs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "aggregator/policy/drain/drain.h"
#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

enum { PODS = 30, REPLICAS = 50, ZONES = 3, REPEAT = 3 };

#define NOW VIEW_FIXTURE_NOW_NS

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

struct shape {
	int nodes, pods;
	bool rules; /* zone spread and host anti-affinity */
	bool measured;
	bool uneven; /* fills of 5 to 85 %, else all pods ask for 1 % */
};

static void put_node(struct model *m, int i)
{
	char *json = mem_printf("{\"metadata\":{\"name\":\"node-%05d\",\"labels\":{"
				"\"kubernetes.io/hostname\":\"node-%05d\","
				"\"topology.kubernetes.io/zone\":\"zone-%d\"}},\"status\":{"
				"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],"
				"\"allocatable\":{\"cpu\":\"16\",\"memory\":\"64Gi\","
				"\"pods\":\"110\"}}}",
				i, i, i % ZONES);

	model_put(m, model_fixture_object(OBJECT_NODE, json));
	free(json);
}

static void put_owner(struct model *m, int app)
{
	char *json = mem_printf("{\"metadata\":{\"namespace\":\"production\",\"name\":\"app-%05d\","
				"\"uid\":\"app-%05d\"},\"spec\":{\"replicas\":%d},"
				"\"status\":{\"replicas\":%d}}",
				app, app, REPLICAS, REPLICAS);

	model_put(m, model_fixture_object(OBJECT_REPLICA_SET, json));
	free(json);
}

#define SELECTOR "\"labelSelector\":{\"matchLabels\":{\"app\":\"app-%05d\"}}"

static char *rules_of(int app)
{
	return mem_printf(",\"affinity\":{\"podAntiAffinity\":{"
			  "\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
			  "\"topologyKey\":\"kubernetes.io/hostname\"," SELECTOR "}]}},"
			  "\"topologySpreadConstraints\":[{\"maxSkew\":5,"
			  "\"topologyKey\":\"topology.kubernetes.io/zone\","
			  "\"whenUnsatisfiable\":\"DoNotSchedule\"," SELECTOR "}]",
			  app, app);
}

/* Nodes in runs of fifty are filled alike, from 5 to 85 %. */
static int cpu_of(const struct shape *s, int node)
{
	int fill = node / REPLICAS * 37 % 81;

	return s->uneven ? (5 + fill) * 16000 / 100 / s->pods : 160;
}

static void put_pod(struct model *m, const struct shape *s, int i)
{
	int node = i % s->nodes, app = i / REPLICAS;
	char *more = s->rules ? rules_of(app) : mem_strdup("");
	char *json = mem_printf(
		"{\"metadata\":{\"namespace\":\"production\",\"name\":\"pod-%06d\","
		"\"uid\":\"uid-%06d\",\"labels\":{\"app\":\"app-%05d\"},\"ownerReferences\":[{"
		"\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"app-%05d\","
		"\"uid\":\"app-%05d\",\"controller\":true}]},\"spec\":{"
		"\"nodeName\":\"node-%05d\",\"containers\":[{\"name\":\"c\",\"resources\":{"
		"\"requests\":{\"cpu\":\"%dm\",\"memory\":\"64Mi\"}}}]%s},\"status\":{"
		"\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
		i, i, app, app, app, node, cpu_of(s, node), more);

	model_put(m, model_fixture_object(OBJECT_POD, json));
	free(json);
	free(more);
}

/* Nodes use a little beside their pods, which count as what they request. */
static struct node_stats **node_stats(const struct shape *s)
{
	struct node_stats **all = mem_zalloc((size_t)s->nodes + 1, sizeof(struct node_stats *));

	for (int i = 0; i < s->nodes; i++) {
		char name[32];
		struct node_stats stats;

		snprintf(name, sizeof(name), "node-%05d", i);
		stats = view_fixture_node(name, NOW - NS_PER_SEC, 3600, 400, 50);
		for (int w = 0; w < WINDOWS; w++)
			stats.usage.windows[w].counts.pressure[CONTENTION_CPU] = 0;
		all[i] = node_stats_new(&stats);
	}
	return all;
}

static struct view *cluster(const struct shape *s)
{
	struct node_stats **heard = s->measured ? node_stats(s) : NULL;
	struct model *m = model_new();
	struct join *j = join_new();
	struct view *v;

	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	for (int i = 0; i < s->nodes; i++)
		put_node(m, i);
	for (int i = 0; i < s->nodes * s->pods / REPLICAS; i++)
		put_owner(m, i);
	for (int i = 0; i < s->nodes * s->pods; i++)
		put_pod(m, s, i);
	v = join_view(j, heard, heard ? (size_t)s->nodes : 0, model_cluster(m), NOW);
	for (int i = 0; heard && i < s->nodes; i++)
		node_stats_drop(heard[i]);
	free(heard);
	join_free(j);
	model_free(m);
	return v;
}

struct result {
	double load_sec, step_sec, again_sec, moved;
	size_t unneeded, wave;
};

static size_t moves_of(const struct drain_plan *plan)
{
	size_t moves = 0;

	for (size_t i = 0; i < plan->node_count; i++)
		moves += plan->nodes[i].move_count;
	return moves;
}

static struct drain_plan *step(struct drain_state *s, struct place *p, struct view *v,
			       const struct drain_config *c, double *seconds)
{
	const struct drain_input in = {.place = p, .view = v, .now_ns = NOW};
	int64_t start = cpu_ns();
	struct drain_plan *plan = drain_step(s, &in, c);

	*seconds = fmin(*seconds, (double)(cpu_ns() - start) / NS_PER_SEC);
	return plan;
}

static struct result plan_once(struct place *p, struct view *v, const struct drain_config *c)
{
	struct result r = {.step_sec = INFINITY, .again_sec = INFINITY};
	struct drain_state *s = drain_state_new();
	struct drain_plan *plan = step(s, p, v, c, &r.step_sec);

	r.unneeded = plan->unneeded;
	r.wave = plan->wave.node_count;
	r.moved = (double)moves_of(plan) / (double)(r.unneeded ? r.unneeded : 1);
	drain_plan_free(plan);
	drain_plan_free(step(s, p, v, c, &r.again_sec));
	drain_state_free(s);
	return r;
}

static struct result measure(struct view *v, const struct drain_config *c, int repeat)
{
	struct place_options o;
	struct place *p;
	int64_t start = cpu_ns();
	struct result best;
	double load;

	place_options_default(&o);
	o.now_ns = NOW;
	p = place_new(v, &o);
	load = (double)(cpu_ns() - start) / NS_PER_SEC;
	best = plan_once(p, v, c);
	for (int i = 1; i < repeat; i++) {
		struct result r = plan_once(p, v, c);

		best.step_sec = fmin(best.step_sec, r.step_sec);
		best.again_sec = fmin(best.again_sec, r.again_sec);
	}
	best.load_sec = load;
	place_free(p);
	return best;
}

static void config_all(struct drain_config *c)
{
	drain_config_default(c);
	c->rules.utilization = 1;
	c->assume_unneeded_ns = 3600 * NS_PER_SEC;
}

static double large(int nodes, double budget)
{
	const struct shape s = {nodes, PODS, true, true, true};
	struct view *v = cluster(&s);
	struct drain_config c;
	struct result r;
	char row[96];

	config_all(&c);
	r = measure(v, &c, nodes > 10000 ? 1 : REPEAT);
	snprintf(row, sizeof(row), "plan of %d nodes of %d pods, with rules and cap", nodes, PODS);
	bench_row(row, "s", budget, 0, r.step_sec);
	bench_row("  the same again, with hints", "s", budget, 0, r.again_sec);
	bench_row("  reading the view", "s", NAN, 0, r.load_sec);
	bench_row("  nodes that could go", "nodes", NAN, 0, (double)r.unneeded);
	bench_row("  of them now", "nodes", NAN, 0, (double)r.wave);
	view_drop(v);
	return r.step_sec;
}

static void like_upstream(void)
{
	const struct shape s = {2000, 40, false, false, false};
	struct view *v = cluster(&s);
	struct drain_config c;
	struct result r;

	config_all(&c);
	r = measure(v, &c, REPEAT);
	bench_row("2000 nodes of 40 pods of 1 %: nodes that could go", "nodes", 1200, 1,
		  (double)r.unneeded);
	bench_row("  at most what fits", "nodes", 1200, 0, (double)r.unneeded);
	bench_row("  plan", "s", NAN, 0, r.step_sec);
	view_drop(v);
}

static void orders(void)
{
	const struct shape s = {5000, PODS, false, false, true};
	struct view *v = cluster(&s);
	struct drain_config c;
	struct result fullest, cyclic;

	config_all(&c);
	c.rules.utilization = 0.5;
	fullest = measure(v, &c, 1);
	drain_config_upstream(&c);
	c.rules.max_parallelism = 100000;
	cyclic = measure(v, &c, 1);
	bench_row("nodes at most half full, fullest first: could go", "nodes", NAN, 0,
		  (double)fullest.unneeded);
	bench_row("  pods moved per node", "pods", NAN, 0, fullest.moved);
	bench_row("the same, upstream's cyclic order: could go", "nodes", NAN, 0,
		  (double)cyclic.unneeded);
	bench_row("  pods moved per node", "pods", NAN, 0, cyclic.moved);
	view_drop(v);
}

int main(void)
{
	double small, middle, many;

	bench_begin("drain");
	small = large(1000, NAN);
	middle = large(5000, 0.5);
	many = large(15000, 3);
	bench_row("5000 nodes against 1000, a node each", "x", 3, 0, middle / small / 5);
	bench_row("15,000 nodes against 5000, a node each", "x", 3, 0, many / middle / 3);
	like_upstream();
	orders();
	bench_end();
	return 0;
}
