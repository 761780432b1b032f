/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What slack costs: 5000 nodes with 30 pods each, 5 % of what is requested as units and 200 workloads that are mirrored, a quarter of which keep
 * their pods apart. A step from scratch, against one after a hundredth of the pods were replaced. CPU time of the one thread it needs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "aggregator/policy/slack/slack.h"
#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/model_fixture.h"

enum { NODES = 5000, PODS = 30, REPLICAS = 50, WORKLOADS = 200, ROUNDS = 20 };

#define ALL_PODS (NODES * PODS)
#define NOW	 1769860800000000000LL

static uint64_t random_state = 1;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(random_state >> 33) % below;
}

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static void put(struct model *m, enum object_kind kind, char *json)
{
	model_put(m, model_fixture_object(kind, json));
	free(json);
}

static void put_node(struct model *m, int i)
{
	put(m, OBJECT_NODE,
	    mem_printf("{\"metadata\":{\"name\":\"node-%05d\",\"labels\":{"
		       "\"kubernetes.io/hostname\":\"node-%05d\","
		       "\"topology.kubernetes.io/zone\":\"zone-%d\"}},\"status\":{"
		       "\"allocatable\":{\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\"},"
		       "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
		       i, i, i % 3));
}

/* The first workloads ask for slack, every fourth of them apart from its own. */
static void put_workload(struct model *m, int app)
{
	char *rules = app % 4 ? mem_strdup("")
			      : mem_printf("\"affinity\":{\"podAntiAffinity\":{"
					   "\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
					   "\"topologyKey\":\"kubernetes.io/hostname\","
					   "\"labelSelector\":{\"matchLabels\":{\"app\":"
					   "\"app-%05d\"}}}]}},",
					   app);

	put(m, OBJECT_REPLICA_SET,
	    mem_printf("{\"metadata\":{\"namespace\":\"production\",\"name\":\"app-%05d\","
		       "\"uid\":\"rs-%05d\",\"annotations\":{\"evenkeel.io/slack\":\"10%%\"}},"
		       "\"spec\":{\"replicas\":%d,\"template\":{\"metadata\":{\"labels\":{"
		       "\"app\":\"app-%05d\"}},\"spec\":{%s\"containers\":[{\"name\":\"c\","
		       "\"resources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}}}]}}}}",
		       app, app, REPLICAS, app, rules));
	free(rules);
}

/* Nodes are filled unevenly, at 20 to 90 %. */
static void put_pod(struct model *m, uint32_t i, uint32_t node)
{
	uint32_t app = i / REPLICAS;

	put(m, OBJECT_POD,
	    mem_printf("{\"metadata\":{\"namespace\":\"production\",\"name\":\"pod-%06u\","
		       "\"uid\":\"uid-%06u\",\"labels\":{\"app\":\"app-%05u\"},"
		       "\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"name\":\"app-%05u\","
		       "\"uid\":\"rs-%05u\",\"controller\":true}]},\"spec\":{"
		       "\"nodeName\":\"node-%05u\",\"containers\":[{\"name\":\"c\",\"resources\":{"
		       "\"requests\":{\"cpu\":\"%um\",\"memory\":\"%uMi\"}}}]}}",
		       i, i, app, app, app, node, 100 + app % 40 * 10, 200 + app % 37 * 40));
}

static struct view *view_of(struct join *j, struct model *m)
{
	return join_view(j, NULL, 0, model_cluster(m), NOW);
}

struct scene {
	struct model *model;
	struct join *join;
	struct slack_options options;
};

static void open_scene(struct scene *s)
{
	s->model = model_new();
	s->join = join_new();
	slack_options_default(&s->options);
	s->options.rate_ppm = 50000;
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(s->model, (enum object_kind)kind);
	for (int i = 0; i < NODES; i++)
		put_node(s->model, i);
	for (int app = 0; app < WORKLOADS; app++)
		put_workload(s->model, app);
	for (uint32_t i = 0; i < ALL_PODS; i++)
		put_pod(s->model, i, draw(NODES));
}

static struct place *new_place(struct view *v)
{
	struct place_options o;

	place_options_default(&o);
	o.now_ns = NOW;
	return place_new(v, &o);
}

static double step(struct scene *s, struct slack_state *state, struct place *p, struct view *v,
		   struct slack_result *out)
{
	int64_t start = cpu_ns();

	if (slack_step(state, p, v, NOW, &s->options, out, NULL))
		abort();
	return (double)(cpu_ns() - start) / NS_PER_SEC;
}

struct costs {
	double load, first, update, again;
	size_t placed, moved;
};

static void measure(struct scene *s, struct costs *c)
{
	struct slack_state *state = slack_state_new();
	struct view *v = view_of(s->join, s->model);
	double updates[ROUNDS], steps[ROUNDS];
	struct slack_result result;
	int64_t start = cpu_ns();
	struct place *p = new_place(v);

	c->load = (double)(cpu_ns() - start) / NS_PER_SEC;
	c->first = step(s, state, p, v, &result);
	c->placed = result.placed_count;
	slack_result_fini(&result);
	view_drop(v);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < ALL_PODS / 100; i++)
			put_pod(s->model, draw(ALL_PODS), draw(NODES));
		v = view_of(s->join, s->model);
		start = cpu_ns();
		place_update(p, v, NOW);
		updates[round] = (double)(cpu_ns() - start) / NS_PER_SEC;
		steps[round] = step(s, state, p, v, &result);
		c->moved += result.move_count;
		slack_result_fini(&result);
		view_drop(v);
	}
	c->update = bench_median(updates, ROUNDS);
	c->again = bench_median(steps, ROUNDS);
	place_free(p);
	slack_state_free(state);
}

int main(void)
{
	struct costs c = {0};
	struct scene s;

	bench_begin("slack");
	open_scene(&s);
	measure(&s, &c);
	bench_row("placeholders on 5000 nodes with 150,000 pods", "", NAN, 0, (double)c.placed);
	bench_row("from scratch: read the cluster", "s", NAN, 0, c.load);
	bench_row("from scratch: place all", "s", NAN, 0, c.first);
	bench_row("after 1 % churn: follow the view", "s", NAN, 0, c.update);
	bench_row("after 1 % churn: a step", "s", NAN, 0, c.again);
	bench_row("a step after 1 % churn against all from scratch", "x", 1, 0,
		  (c.update + c.again) / (c.load + c.first));
	bench_row("placeholders moved by 1 % churn", "%", NAN, 0,
		  100.0 * (double)c.moved / ROUNDS / (double)c.placed);
	bench_end();
	join_free(s.join);
	model_free(s.model);
	return 0;
}
