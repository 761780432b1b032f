/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the placement core costs: 5000 nodes with 30 pods each, of which each in turn is taken, placed anew and put there, without and with
 * zone spread and host anti-affinity. Ratios are of the same run: the same cluster three times as large, and the tree against the scan
 * where nothing fits. CPU time of the one thread it needs.
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
#include "tests/model_fixture.h"

enum { NODES = 5000, MANY_NODES = 15000, PODS = 30, REPLICAS = 50, ASKED = 2000, REPEAT = 5 };

#define NOW 1769860800000000000LL

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static void put_node(struct model *m, int i)
{
	char *json = mem_printf("{\"metadata\":{\"name\":\"node-%05d\",\"labels\":{"
				"\"kubernetes.io/hostname\":\"node-%05d\","
				"\"topology.kubernetes.io/zone\":\"zone-%d\"}},\"status\":{"
				"\"allocatable\":{\"cpu\":\"16\",\"memory\":\"64Gi\","
				"\"pods\":\"110\"}}}",
				i, i, i % 3);

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

/* Pods of an application are on nodes that follow each other. Nodes are filled to 10 to 84 %. */
static void put_pod(struct model *m, int nodes, int i, bool rules)
{
	int node = i % nodes, app = i / REPLICAS;
	char *more = rules ? rules_of(app) : mem_strdup("");
	char *json = mem_printf(
		"{\"metadata\":{\"namespace\":\"production\",\"name\":\"pod-%06d\","
		"\"uid\":\"uid-%06d\",\"labels\":{\"app\":\"app-%05d\"}},\"spec\":{"
		"\"nodeName\":\"node-%05d\",\"containers\":[{\"name\":\"c\",\"resources\":{"
		"\"requests\":{\"cpu\":\"%dm\",\"memory\":\"%dMi\"}}}]%s}}",
		i, i, app, node, 50 + node % 40 * 10, 200 + node % 37 * 40, more);

	model_put(m, model_fixture_object(OBJECT_POD, json));
	free(json);
	free(more);
}

static struct view *cluster(int nodes, bool rules)
{
	struct model *m = model_new();
	struct join *j = join_new();
	struct view *v;

	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(m, (enum object_kind)kind);
	for (int i = 0; i < nodes; i++)
		put_node(m, i);
	for (int i = 0; i < nodes * PODS; i++)
		put_pod(m, nodes, i, rules);
	v = join_view(j, NULL, 0, model_cluster(m), NOW);
	join_free(j);
	model_free(m);
	return v;
}

struct cost {
	double seconds, evaluations; /* a placement */
};

/* Each pod is taken, placed and put; then all is undone. */
static struct cost move_all(struct place *p, int pods, enum place_order order)
{
	uint64_t asked = place_evaluations(p);
	place_mark m = place_fork(p);
	int64_t start = cpu_ns();
	struct cost c;

	for (place_pod pod = 0; pod < (place_pod)pods; pod++) {
		place_node from = place_where(p, pod), to;

		place_take(p, pod);
		to = place_choose(p, pod, order, PLACE_NONE, NULL, NULL);
		place_put(p, pod, to == PLACE_NONE ? from : to);
	}
	c.seconds = (double)(cpu_ns() - start) / NS_PER_SEC;
	c.evaluations = (double)(place_evaluations(p) - asked) / pods;
	place_revert(p, m);
	return c;
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

/* A pod that no node has room for, asked again and again. */
static double ask_in_vain(struct place *p, enum place_search search, int times)
{
	struct object *o = model_fixture_object(
		OBJECT_POD, "{\"metadata\":{\"namespace\":\"production\",\"name\":\"huge\"},"
			    "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
			    "\"requests\":{\"cpu\":\"15500m\"}}}]}}");
	place_pod pod = place_add_pod(p, (const struct kube_pod *)o);
	int64_t start;
	double ns;

	object_drop(o);
	place_set_search(p, search);
	if (place_choose(p, pod, PLACE_FULLEST_FIRST, PLACE_NONE, NULL, NULL) != PLACE_NONE)
		abort();
	start = cpu_ns();
	for (int i = 0; i < times; i++)
		place_choose(p, pod, PLACE_FULLEST_FIRST, PLACE_NONE, NULL, NULL);
	ns = (double)(cpu_ns() - start) / times;
	place_set_search(p, PLACE_SEARCH_TREE);
	return ns;
}

static struct place *load(struct view *v, double *seconds)
{
	struct place_options o;
	struct place *p;
	int64_t start = cpu_ns();

	place_options_default(&o);
	o.now_ns = NOW;
	p = place_new(v, &o);
	*seconds = (double)(cpu_ns() - start) / NS_PER_SEC;
	return p;
}

static struct cost measure(struct place *p, int nodes, const char *what, enum place_order order)
{
	struct cost best = move_all(p, nodes * PODS, order);
	char row[96];

	for (int i = 1; i < (nodes == NODES ? REPEAT : 2); i++) {
		struct cost c = move_all(p, nodes * PODS, order);

		best.seconds = fmin(best.seconds, c.seconds);
	}
	snprintf(row, sizeof(row), "take, place and put %d pods, %s", nodes * PODS, what);
	bench_row(row, "s", NAN, 0, best.seconds);
	snprintf(row, sizeof(row), "  filters asked per placement");
	bench_row(row, "nodes", NAN, 0, best.evaluations);
	return best;
}

int main(void)
{
	struct view *plain = cluster(NODES, false), *ruled = cluster(NODES, true), *many;
	double seconds, scan, tree;
	struct cost small, large;
	struct place *p;

	bench_begin("place");
	p = load(plain, &seconds);
	bench_row("read 5000 nodes, 150,000 pods of 3000 classes", "s", NAN, 0, seconds);
	measure(p, NODES, "fullest first", PLACE_FULLEST_FIRST);
	measure(p, NODES, "cyclic", PLACE_CYCLIC);
	scan = ask_in_vain(p, PLACE_SEARCH_LINEAR, ASKED / 10);
	tree = ask_in_vain(p, PLACE_SEARCH_TREE, ASKED);
	bench_row("nothing fits on 5000 nodes: tree", "ns", NAN, 0, tree);
	bench_row("nothing fits on 5000 nodes: scan against tree", "x", 50, 1, scan / tree);
	bench_row("take 150,000 pods and undo it", "s", NAN, 0, undo_all(p, NODES * PODS));
	place_free(p);
	view_drop(plain);

	p = load(ruled, &seconds);
	bench_row("read, with zone spread and host anti-affinity", "s", NAN, 0, seconds);
	measure(p, NODES, "cyclic, with rules", PLACE_CYCLIC);
	small = measure(p, NODES, "with rules", PLACE_FULLEST_FIRST);
	place_free(p);
	view_drop(ruled);

	many = cluster(MANY_NODES, true);
	p = load(many, &seconds);
	bench_row("read 15,000 nodes, 450,000 pods of 9000 classes", "s", NAN, 0, seconds);
	large = measure(p, MANY_NODES, "with rules", PLACE_FULLEST_FIRST);
	bench_row("15,000 nodes against 5000, a placement each", "x", 3, 0,
		  large.seconds / small.seconds / 3);
	place_free(p);
	view_drop(many);
	bench_end();
	return 0;
}
