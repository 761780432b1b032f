/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What slack costs: 5000 nodes with 30 pods each, 5 % of what is requested as units and 200
 * workloads that are mirrored, a quarter of which keep their pods apart, and a quarter of which
 * spread them over zones. A step from scratch, against one after a hundredth of the pods were
 * replaced. Then 1000 nodes, where nobody asks for slack, and where all of 2000 workloads do. CPU
 * time of the one thread it needs.
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

enum { ROUNDS = 20 };

#define NOW 1769860800000000000LL

struct size {
	uint32_t nodes, pods, replicas,
		asking; /* pods of a node, and of a workload; workloads that ask */
};

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

static void put_node(struct model *m, uint32_t i)
{
	put(m, OBJECT_NODE,
	    mem_printf("{\"metadata\":{\"name\":\"node-%05u\",\"labels\":{"
		       "\"kubernetes.io/hostname\":\"node-%05u\","
		       "\"topology.kubernetes.io/zone\":\"zone-%u\"}},\"status\":{"
		       "\"allocatable\":{\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\"},"
		       "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
		       i, i, i % 3));
}

/* What workloads ask of others, by turns. */
static char *rules_of(uint32_t app)
{
	switch (app % 4) {
	case 0:
		return mem_printf("\"affinity\":{\"podAntiAffinity\":{"
				  "\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
				  "\"topologyKey\":\"kubernetes.io/hostname\","
				  "\"labelSelector\":{\"matchLabels\":{\"app\":"
				  "\"app-%05u\"}}}]}},",
				  app);
	case 1:
		return mem_printf("\"topologySpreadConstraints\":[{\"maxSkew\":5,"
				  "\"topologyKey\":\"topology.kubernetes.io/zone\","
				  "\"whenUnsatisfiable\":\"DoNotSchedule\",\"labelSelector\":{"
				  "\"matchLabels\":{\"app\":\"app-%05u\"}}}],",
				  app);
	default:
		return mem_strdup("");
	}
}

static void put_workload(struct model *m, const struct size *size, uint32_t app)
{
	char *rules = rules_of(app);

	put(m, OBJECT_REPLICA_SET,
	    mem_printf("{\"metadata\":{\"namespace\":\"production\",\"name\":\"app-%05u\","
		       "\"uid\":\"rs-%05u\",\"annotations\":{\"evenkeel.io/slack\":\"10%%\"}},"
		       "\"spec\":{\"replicas\":%u,\"template\":{\"metadata\":{\"labels\":{"
		       "\"app\":\"app-%05u\"}},\"spec\":{%s\"containers\":[{\"name\":\"c\","
		       "\"resources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"2Gi\"}}}]}}}}",
		       app, app, size->replicas, app, rules));
	free(rules);
}

/* Nodes are filled unevenly, at 20 to 90 %. */
static void put_pod(struct model *m, const struct size *size, uint32_t i)
{
	uint32_t app = i / size->replicas, node = draw(size->nodes);

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
	struct size size;
	struct model *model;
	struct join *join;
	struct slack_options options;
};

static void open_scene(struct scene *s, const struct size *size)
{
	*s = (struct scene){.size = *size, .model = model_new(), .join = join_new()};
	slack_options_default(&s->options);
	s->options.rate_ppm = 50000;
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(s->model, (enum object_kind)kind);
	for (uint32_t i = 0; i < size->nodes; i++)
		put_node(s->model, i);
	for (uint32_t app = 0; app < size->asking; app++)
		put_workload(s->model, size, app);
	for (uint32_t i = 0; i < size->nodes * size->pods; i++)
		put_pod(s->model, size, i);
}

static void close_scene(struct scene *s)
{
	join_free(s->join);
	model_free(s->model);
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

static void measure(const struct size *size, struct costs *c)
{
	struct slack_state *state = slack_state_new();
	uint32_t pods = size->nodes * size->pods;
	double updates[ROUNDS], steps[ROUNDS];
	struct slack_result result;
	struct place *p;
	struct scene s;
	struct view *v;
	int64_t start;

	open_scene(&s, size);
	v = view_of(s.join, s.model);
	start = cpu_ns();
	p = new_place(v);
	*c = (struct costs){.load = (double)(cpu_ns() - start) / NS_PER_SEC};
	c->first = step(&s, state, p, v, &result);
	c->placed = result.placed_count;
	slack_result_fini(&result);
	view_drop(v);
	for (int round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < pods / 100; i++)
			put_pod(s.model, size, draw(pods));
		v = view_of(s.join, s.model);
		start = cpu_ns();
		place_update(p, v, NOW);
		updates[round] = (double)(cpu_ns() - start) / NS_PER_SEC;
		steps[round] = step(&s, state, p, v, &result);
		c->moved += result.move_count;
		slack_result_fini(&result);
		view_drop(v);
	}
	c->update = bench_median(updates, ROUNDS);
	c->again = bench_median(steps, ROUNDS);
	place_free(p);
	slack_state_free(state);
	close_scene(&s);
}

static void measure_large(void)
{
	static const struct size size = {5000, 30, 50, 200};
	struct costs c;

	measure(&size, &c);
	bench_row("placeholders on 5000 nodes with 150,000 pods", "", NAN, 0, (double)c.placed);
	bench_row("from scratch: read the cluster", "s", NAN, 0, c.load);
	bench_row("from scratch: place all", "s", NAN, 0, c.first);
	bench_row("after 1 % churn: follow the view", "s", NAN, 0, c.update);
	bench_row("after 1 % churn: a step", "s", NAN, 0, c.again);
	bench_row("a step after 1 % churn against all from scratch", "x", 1, 0,
		  (c.update + c.again) / (c.load + c.first));
	bench_row("placeholders moved by 1 % churn", "%", NAN, 0,
		  100.0 * (double)c.moved / ROUNDS / (double)c.placed);
}

static void measure_asking(void)
{
	static const struct size none = {1000, 30, 15, 0}, all = {1000, 30, 15, 2000};
	struct costs plain, c;

	measure(&none, &plain);
	measure(&all, &c);
	bench_row("placeholders of 2000 workloads on 1000 nodes", "", NAN, 0, (double)c.placed);
	bench_row("from scratch: place all", "s", NAN, 0, c.first);
	bench_row("after 1 % churn: a step", "s", 1, 0, c.again);
	bench_row("against nobody asking: from scratch", "x", NAN, 0,
		  (c.load + c.first) / (plain.load + plain.first));
	bench_row("against nobody asking: after 1 % churn", "x", NAN, 0,
		  (c.update + c.again) / (plain.update + plain.again));
}

int main(void)
{
	bench_begin("slack");
	measure_large();
	measure_asking();
	bench_end();
	return 0;
}
