/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What knowing the cluster's objects costs an aggregator beside its agents' frames: 5000 nodes of
 * the made-up fleet with 30 pods each, of whose workloads one in eight asks for slack. Every node
 * is measured anew between two plans, as in a running aggregator, and no object changes; then a pod
 * in a hundred leaves each time. CPU time of the one thread that plans, and its share of a core at
 * the usual --plan-interval; and what objects, view, core and plan hold of memory.
 */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "aggregator/planner/drain_settings.h"
#include "aggregator/planner/plan.h"
#include "aggregator/api/snapshot.h"
#include "aggregator/model/object.h"
#include "aggregator/state/join.h"
#include "aggregator/state/usage.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/bench_fleet.h"
#include "tests/bench_report.h"
#include "tests/usage_view.h"

enum { NODES = 5000, PODS = 30, ROUNDS = 5, INTERVALS = 2, EVERY_S = 10 };

#define EPOCH_NS    1769860800000000000LL
#define INTERVAL_NS (5 * NS_PER_SEC)
#define FILE_MAX    ((size_t)2 << 30)

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* What is allocated and not freed. */
static double held_mib(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)(m.uordblks + m.hblkhd) / (1 << 20);
}

struct scene {
	struct bench_fleet *fleet;
	struct usage_state *usage;
	struct model *model;
	struct join *join;
	struct plan_core *core;
	struct plan_result *plan; /* the newest, as a slot would hold it */
	int64_t now_ns;
	uint64_t sequence;
};

static void die(const struct error *error)
{
	fprintf(stderr, "planner: %s\n", error->text);
	exit(1);
}

/* The objects, read as the aggregator reads a file. */
static struct model *read_objects(const struct bench_fleet *f)
{
	char path[] = "build/bench-XXXXXX";
	struct snapshot *s = snapshot_new();
	struct buf text = BUF_INIT;
	struct error error = {"no file for the objects"};
	struct model *m = NULL;
	int fd = mkstemp(path);

	if (fd < 0 || bench_fleet_dump(f, path, &error) ||
	    file_read(path, FILE_MAX, &text, &error) ||
	    snapshot_add(s, path, text.data, text.len, &error) ||
	    snapshot_take_model(s, &m, &error))
		die(&error);
	close(fd);
	unlink(path);
	buf_fini(&text);
	snapshot_free(s);
	return m;
}

static void measure_nodes(struct scene *s)
{
	static const uint8_t run[FRAME_RUN_LEN] = {1};

	s->now_ns += INTERVAL_NS;
	s->sequence++;
	for (uint32_t n = 0; n < NODES; n++) {
		struct interval *i = bench_fleet_take(s->fleet, n, s->sequence,
						      s->now_ns - INTERVAL_NS, s->now_ns);
		struct usage_answer answer = {0};
		char name[BENCH_FLEET_NAME_MAX];

		bench_fleet_name(n, name);
		usage_apply(s->usage, name, run, NULL, i, s->now_ns, &answer);
		interval_free(i);
	}
}

static struct view *view_of(struct scene *s, double *seconds)
{
	size_t count;
	struct node_stats *const *node_stats = usage_view_stats(s->usage, s->now_ns, &count);
	int64_t start = cpu_ns();
	struct view *v = join_view(s->join, node_stats, count, model_cluster(s->model), s->now_ns);

	*seconds = (double)(cpu_ns() - start) / NS_PER_SEC;
	return v;
}

static double plan(struct scene *s, struct view *v)
{
	const struct plan_input in = {.view = v, .now_ns = s->now_ns};
	struct plan_result *next = NULL;
	struct error error = {""};
	int64_t start = cpu_ns();

	if (plan_core_step(s->core, &in, &next, &error))
		die(&error);
	plan_result_drop(s->plan);
	s->plan = next;
	return (double)(cpu_ns() - start) / NS_PER_SEC;
}

/* A pod of every third node leaves, of other nodes in each round. */
static void remove_pods(struct scene *s, const struct view *v, uint32_t round)
{
	for (size_t n = round % 3; n < v->node_count; n += 3) {
		const struct view_node *node = v->nodes[n];
		const struct kube_pod *pod;

		if (!node->model || !node->model->pod_count)
			continue;
		pod = node->model->pods[round % node->model->pod_count];
		model_remove(s->model, OBJECT_POD, pod->object.namespace, pod->object.name);
	}
}

struct costs {
	double step, join;
};

static struct costs run(struct scene *s, bool churn)
{
	double steps[ROUNDS], joins[ROUNDS];

	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct view *v;

		for (int i = 0; i < INTERVALS; i++)
			measure_nodes(s);
		v = view_of(s, &joins[round]);
		if (churn) {
			remove_pods(s, v, round);
			view_drop(v);
			v = view_of(s, &joins[round]);
		}
		steps[round] = plan(s, v);
		view_drop(v);
	}
	return (struct costs){bench_median(steps, ROUNDS), bench_median(joins, ROUNDS)};
}

static struct plan_core *new_core(struct drain_setup *setup)
{
	struct slack_options slack;
	struct plan_drain drain;

	slack_options_default(&slack);
	drain_setup_default(setup);
	drain_runner_open(&drain, setup, true, NULL, NULL);
	return plan_core_new(&slack, &drain);
}

static void measure(struct scene *s)
{
	double before = held_mib(), join;
	struct costs still, churning;
	struct view *v;

	s->model = read_objects(s->fleet);
	bench_row("objects of 5000 nodes with 150,000 pods", "MiB", NAN, 0, held_mib() - before);
	before = held_mib();
	v = view_of(s, &join);
	bench_row("  the first view of them", "MiB", NAN, 0, held_mib() - before);
	before = held_mib();
	bench_row("the first plan of them", "s", NAN, 0, plan(s, v));
	bench_row("  holds", "MiB", NAN, 0, held_mib() - before);
	view_drop(v);
	still = run(s, false);
	bench_row("a plan after all nodes were measured anew", "s", NAN, 0, still.step);
	bench_row("  every 10 s, of one core", "%", 10, 0, 100 * still.step / EVERY_S);
	bench_row("  a view of 5000 nodes measured anew", "s", NAN, 0, still.join);
	bench_row("all that planning holds then", "MiB", NAN, 0, held_mib() - before);
	churning = run(s, true);
	bench_row("a plan after 1 % of the pods left as well", "s", NAN, 0, churning.step);
	bench_row("  every 10 s, of one core", "%", NAN, 0, 100 * churning.step / EVERY_S);
	bench_row("placeholders", "", NAN, 0, (double)s->plan->slack.placed_count);
}

int main(void)
{
	static const struct usage_limits limits = {.nodes_max = NODES, .pods_per_node_max = 256};
	struct drain_setup setup;
	struct scene s = {.fleet = bench_fleet_new(NODES, PODS, EPOCH_NS),
			  .usage = usage_new(&limits),
			  .join = join_new(),
			  .core = new_core(&setup),
			  .now_ns = EPOCH_NS};

	bench_begin("planner");
	for (int i = 0; i < INTERVALS; i++)
		measure_nodes(&s);
	measure(&s);
	bench_end();
	plan_result_drop(s.plan);
	plan_core_free(s.core);
	drain_setup_fini(&setup);
	join_free(s.join);
	model_free(s.model);
	usage_free(s.usage);
	bench_fleet_free(s.fleet);
	return 0;
}
