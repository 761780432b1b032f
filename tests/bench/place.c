/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the placement core costs: 5000 nodes with 30 pods each, of which each in turn is taken,
 * placed anew and put there, without and with zone spread and host anti-affinity, without and with
 * the real-use cap over measured pods; and what it costs to follow a view of which little changed.
 * Ratios are of the same run: the same cluster three times as large, the tree against the scan
 * where nothing or little fits, the cap against none, and an update against building anew. CPU time
 * of the one thread it needs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "aggregator/policy/place/place.h"
#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/place_scan.h"

enum { NODES = 5000, MANY_NODES = 15000, PODS = 30, REPLICAS = 50, ASKED = 2000, REPEAT = 3 };

#define NOW 1769860800000000000LL

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static void put_node(struct model *m, int i, const char *label, const char *spec)
{
	char *json = mem_printf(
		"{\"metadata\":{\"name\":\"node-%05d\",\"labels\":{"
		"\"kubernetes.io/hostname\":\"node-%05d\","
		"\"topology.kubernetes.io/zone\":\"zone-%d\"%s}},\"spec\":{%s},\"status\":{"
		"\"allocatable\":{\"cpu\":\"16\",\"memory\":\"64Gi\","
		"\"pods\":\"110\"}}}",
		i, i, i % 3, label, spec);

	model_put(m, model_fixture_object(OBJECT_NODE, json));
	free(json);
}

#define SELECTOR "\"labelSelector\":{\"matchLabels\":{\"app\":\"app-%05d\"}}"

/* Nobody beside one of its own on a node, and evenly over zones. */
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

/*
 * Pods of an application are on fifty nodes that follow each other, which are filled alike: to 10
 * to 84 %.
 */
static void put_pod(struct model *m, int nodes, int i, bool rules)
{
	int node = i % nodes, app = i / REPLICAS, fill = app % (nodes / REPLICAS);
	char *more = rules ? rules_of(app) : mem_strdup("");
	char *json = mem_printf(
		"{\"metadata\":{\"namespace\":\"production\",\"name\":\"pod-%06d\","
		"\"uid\":\"uid-%06d\",\"labels\":{\"app\":\"app-%05d\"}},\"spec\":{"
		"\"nodeName\":\"node-%05d\",\"containers\":[{\"name\":\"c\",\"resources\":{"
		"\"requests\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"}}}]%s}}",
		i, i, app, node, 50 + fill % 40 * 10, 200 + fill % 37 * 40, more);

	model_put(m, model_fixture_object(OBJECT_POD, json));
	free(json);
	free(more);
}

struct cluster_of {
	int nodes;
	struct model *m;
	struct join *j;
	struct node_stats **node_stats; /* owned; NULL: nothing is measured */
};

static void open_cluster(struct cluster_of *c, int nodes, bool rules)
{
	*c = (struct cluster_of){.nodes = nodes, .m = model_new(), .j = join_new()};
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(c->m, (enum object_kind)kind);
	for (int i = 0; i < nodes; i++)
		put_node(c->m, i, "", "");
	for (int i = 0; i < nodes * PODS; i++)
		put_pod(c->m, nodes, i, rules);
}

static void drop_stats(struct cluster_of *c)
{
	for (int i = 0; c->node_stats && i < c->nodes; i++)
		node_stats_drop(c->node_stats[i]);
	free(c->node_stats);
	c->node_stats = NULL;
}

/* All pods use a little of what they ask for, so that the cap is asked and seldom refuses. */
static void measure_cluster(struct cluster_of *c, double cpu_milli)
{
	drop_stats(c);
	c->node_stats = mem_zalloc((size_t)c->nodes, sizeof(struct node_stats *));
	for (int i = 0; i < c->nodes; i++) {
		struct pod_stats pods[PODS];
		char names[PODS][24], uids[PODS][24], node[24];

		for (int k = 0; k < PODS; k++) {
			snprintf(names[k], sizeof(names[k]), "k/%d", k);
			snprintf(uids[k], sizeof(uids[k]), "uid-%06d", k * c->nodes + i);
			pods[k] = join_fixture_pod(names[k], uids[k], NOW, 900, cpu_milli, 1 << 26);
		}
		snprintf(node, sizeof(node), "node-%05d", i);
		c->node_stats[i] = join_fixture_stats(node, NOW, pods, PODS);
	}
}

static struct view *view_of(struct cluster_of *c)
{
	return join_view(c->j, c->node_stats, c->node_stats ? (size_t)c->nodes : 0,
			 model_cluster(c->m), NOW);
}

static void close_cluster(struct cluster_of *c)
{
	drop_stats(c);
	join_free(c->j);
	model_free(c->m);
}

/* Each pod is taken, placed and put; then all is undone. Seconds of all that. */
static double move_all(struct place *p, int pods, enum place_order order)
{
	place_mark m = place_fork(p);
	int64_t start = cpu_ns();
	double seconds;

	for (place_pod pod = 0; pod < (place_pod)pods; pod++) {
		place_node from = place_where(p, pod), to;

		place_take(p, pod);
		to = place_choose(p, pod, order, PLACE_NONE, NULL, NULL);
		place_put(p, pod, to == PLACE_NONE ? from : to);
	}
	seconds = (double)(cpu_ns() - start) / NS_PER_SEC;
	place_revert(p, m);
	return seconds;
}

static double undo_all(struct place *p, int pods)
{
	place_mark m = place_fork(p);
	int64_t start = cpu_ns();

	for (place_pod pod = 0; pod < (place_pod)pods; pod++)
		place_take(p, pod);
	place_revert(p, m);
	return (double)(cpu_ns() - start) / NS_PER_SEC;
}

typedef place_node chooser(struct place *p, place_pod pod, enum place_order order, place_node hint,
			   const bool *allowed, struct place_counts *counts);

/* A pod that needs so much, asked again and again; ns for each. Fits: whether any node has room. */
static double ask_for(struct place *p, int cpu_milli, bool fits, chooser *choose, int times)
{
	char *json = mem_printf("{\"metadata\":{\"namespace\":\"production\",\"name\":\"large\"},"
				"\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
				"\"requests\":{\"cpu\":\"%dm\"}}}]}}",
				cpu_milli);
	struct object *o = model_fixture_object(OBJECT_POD, json);
	place_pod pod = place_add_pod(p, (const struct kube_pod *)o);
	int64_t start;
	double ns;

	object_drop(o);
	free(json);
	if (fits != (choose(p, pod, PLACE_FULLEST_FIRST, PLACE_NONE, NULL, NULL) != PLACE_NONE))
		abort();
	start = cpu_ns();
	for (int i = 0; i < times; i++)
		choose(p, pod, PLACE_FULLEST_FIRST, PLACE_NONE, NULL, NULL);
	ns = (double)(cpu_ns() - start) / times;
	return ns;
}

/*
 * The fixture's nodes are contended by an eighth: above 1 that refuses nothing, and at 0.1
 * everything.
 */
static struct place *load_for(struct view *v, bool cap, double contention, double *seconds)
{
	struct place_options o;
	struct place *p;
	int64_t start = cpu_ns();

	place_options_default(&o);
	o.cap.on = cap;
	o.cap.contention = contention;
	o.now_ns = NOW;
	p = place_new(v, &o);
	*seconds = (double)(cpu_ns() - start) / NS_PER_SEC;
	return p;
}

static struct place *load(struct view *v, bool cap, double *seconds)
{
	return load_for(v, cap, 1, seconds);
}

static double measure(struct place *p, int nodes, const char *what, enum place_order order)
{
	double best = move_all(p, nodes * PODS, order);
	char row[96];

	for (int i = 1; i < (nodes == NODES ? REPEAT : 2); i++)
		best = fmin(best, move_all(p, nodes * PODS, order));
	snprintf(row, sizeof(row), "take, place and put %d pods, %s", nodes * PODS, what);
	bench_row(row, "s", NAN, 0, best);
	return best;
}

static void bench_search(struct place *p)
{
	double scan = ask_for(p, 15500, false, place_scan, ASKED / 10);
	double tree = ask_for(p, 15500, false, place_choose, ASKED);

	bench_row("nothing fits on 5000 nodes: tree", "ns", NAN, 0, tree);
	bench_row("nothing fits on 5000 nodes: scan against tree", "x", 50, 1, scan / tree);
	scan = ask_for(p, 14300, true, place_scan, ASKED / 10);
	tree = ask_for(p, 14300, true, place_choose, ASKED);
	bench_row("it fits on one of 40 nodes: tree", "ns", NAN, 0, tree);
	bench_row("it fits on one of 40 nodes: scan against tree", "x", 10, 1, scan / tree);
}

static void bench_plain(void)
{
	struct cluster_of c;
	struct place *p;
	struct view *v;
	double seconds;

	open_cluster(&c, NODES, false);
	v = view_of(&c);
	p = load(v, true, &seconds);
	bench_row("read 5000 nodes, 150,000 pods of 3000 classes", "s", NAN, 0, seconds);
	measure(p, NODES, "fullest first", PLACE_FULLEST_FIRST);
	measure(p, NODES, "cyclic", PLACE_CYCLIC);
	bench_search(p);
	bench_row("take 150,000 pods and undo it", "s", NAN, 0, undo_all(p, NODES * PODS));
	place_free(p);
	view_drop(v);
	close_cluster(&c);
}

/* What it costs to follow the cluster as it is now. */
static double update(struct place *p, struct cluster_of *c)
{
	struct view *v = view_of(c);
	int64_t start = cpu_ns(), end;

	place_update(p, v, NOW);
	end = cpu_ns();
	view_drop(v);
	return (double)(end - start) / NS_PER_SEC;
}

static void report_update(const char *what, double seconds, double anew, double budget)
{
	char row[96];

	snprintf(row, sizeof(row), "follow %s", what);
	bench_row(row, "ms", NAN, 0, seconds * 1e3);
	bench_row("  building anew against it", "x", budget, 1, anew / seconds);
}

/* The objects change, as the API tells of it; of each kind of change what the second costs. */
static void bench_updates(struct place *p, struct cluster_of *c, double anew)
{
	update(p, c);
	report_update("the same view", update(p, c), anew, 50);
	for (int i = 0; i < 100; i++)
		put_pod(c->m, c->nodes, i * 50, i % 2 == 0);
	report_update("100 pods that changed", update(p, c), anew, 10);
	put_node(c->m, 7, ",\"team\":\"a\"", "");
	report_update("a label of one node", update(p, c), anew, 10);
	put_node(c->m, 7, ",\"team\":\"a\"",
		 "\"taints\":[{\"key\":\"team\",\"value\":\"a\",\"effect\":\"NoSchedule\"}]");
	report_update("a taint of one node", update(p, c), anew, 10);
	put_node(c->m, c->nodes, "", "");
	report_update("a node that comes", update(p, c), anew, 5);
	model_remove(c->m, OBJECT_NODE, "", "node-02500");
	report_update("a node that goes", update(p, c), anew, 5);
}

static void bench_ruled(double *small)
{
	struct cluster_of c;
	struct place *p;
	struct view *v;
	double seconds;

	open_cluster(&c, NODES, true);
	v = view_of(&c);
	p = load(v, true, &seconds);
	bench_row("read, with zone spread and host anti-affinity", "s", NAN, 0, seconds);
	view_drop(v);
	measure(p, NODES, "cyclic, with rules", PLACE_CYCLIC);
	*small = measure(p, NODES, "with rules", PLACE_FULLEST_FIRST);
	bench_updates(p, &c, seconds);
	place_free(p);
	close_cluster(&c);
}

static void bench_measured(void)
{
	double with, without;
	struct cluster_of c;
	struct place *p;
	struct view *v;
	double seconds;

	open_cluster(&c, NODES, false);
	measure_cluster(&c, 40);
	v = view_of(&c);
	p = load(v, false, &seconds);
	without = measure(p, NODES, "measured, no cap", PLACE_FULLEST_FIRST);
	place_free(p);
	p = load(v, true, &seconds);
	bench_row("read, with what every pod uses", "s", NAN, 0, seconds);
	with = measure(p, NODES, "real-use cap", PLACE_FULLEST_FIRST);
	bench_row("the cap against none, a placement each", "x", 5, 0, with / without);
	place_free(p);
	p = load_for(v, true, 0.1, &seconds);
	bench_row("the cap refuses all 5000 nodes: tree", "us", NAN, 0,
		  ask_for(p, 100, false, place_choose, ASKED / 20) / 1e3);
	view_drop(v);
	measure_cluster(&c, 50);
	report_update("new measurements of every pod", update(p, &c), seconds, NAN);
	place_free(p);
	close_cluster(&c);
}

static void bench_many(const double *small)
{
	struct cluster_of c;
	double large;
	struct place *p;
	struct view *v;
	double seconds;

	open_cluster(&c, MANY_NODES, true);
	v = view_of(&c);
	close_cluster(&c);
	p = load(v, true, &seconds);
	bench_row("read 15,000 nodes, 450,000 pods of 9000 classes", "s", NAN, 0, seconds);
	large = measure(p, MANY_NODES, "with rules", PLACE_FULLEST_FIRST);
	bench_row("15,000 nodes against 5000, a placement each", "x", 3, 0, large / *small / 3);
	place_free(p);
	view_drop(v);
}

int main(void)
{
	double small;

	bench_begin("place");
	bench_plain();
	bench_ruled(&small);
	bench_measured();
	bench_many(&small);
	bench_end();
	return 0;
}
