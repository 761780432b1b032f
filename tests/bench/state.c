/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the usage state costs: medians over many repetitions, in CPU time of the one thread it
 * needs, since whatever else runs on the machine would be in the time on the wall.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/join.h"
#include "aggregator/state/usage_node.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/heap.h"
#include "tests/usage_fixture.h"
#include "tests/usage_view.h"

#define START_NS (1700000000 * NS_PER_SEC)

enum {
	PODS = 30,
	CONTAINERS = 3,
	NODES = 5000,
	SECONDS = 5,
	INTERVALS = 200,
	ROUNDS = POD_BUCKETS,
	LAST = 7
};

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static double microseconds_since(int64_t start_ns)
{
	return (double)(cpu_ns() - start_ns) / 1000;
}

/* Interval n of a run; every_s apart. */
static struct interval *make_interval(size_t n, unsigned int every_s, bool identities)
{
	struct usage_fixture f = {
		.sequence = n + 1,
		.end_ns = START_NS + (int64_t)(n + 1) * every_s * NS_PER_SEC,
		.seconds = SECONDS,
		.pods = PODS,
		.containers = CONTAINERS,
		.identities = identities,
		.seed = (uint32_t)n,
	};

	return usage_fixture_new(&f);
}

static struct usage_state *new_state(void)
{
	struct usage_limits limits = {.nodes_max = 20000, .pods_per_node_max = 2048};

	return usage_new(&limits);
}

static void apply(struct usage_state *u, const char *node, struct interval *i)
{
	static const uint8_t run[FRAME_RUN_LEN] = {1};
	struct usage_answer answer;

	usage_apply(u, node, run, NULL, i, i->end_ns, &answer);
	if (answer.verdict == USAGE_APPLIED)
		return;
	fprintf(stderr, "verdict %d: %s\n", answer.verdict, answer.reason);
	exit(1);
}

/* One node, fed until its windows are full: cost of an interval and of its stats. */
static void bench_node(void)
{
	double apply_us[INTERVALS], stats_us[INTERVALS];
	struct usage_state *u = new_state();

	for (size_t n = 0; n < 2 * INTERVALS; n++) {
		struct interval *i = make_interval(n, SECONDS, n % 12 == 0);
		int64_t start = cpu_ns();
		struct view *v;

		apply(u, "node", i);
		apply_us[n % INTERVALS] = microseconds_since(start);
		start = cpu_ns();
		v = usage_view(u, i->end_ns);
		stats_us[n % INTERVALS] = microseconds_since(start);
		view_drop(v);
		interval_free(i);
	}
	bench_row("apply one interval, 30 pods x 3 containers", "us", NAN, 0,
		  bench_median(apply_us, INTERVALS));
	bench_row("rebuild the stats of one node, 30 pods x 3 containers", "us", 60, 0,
		  bench_median(stats_us, INTERVALS));
	usage_free(u);
}

/* Interval n for every node; each has identities of its own, as decoded frames do. */
static void apply_everywhere(struct usage_state *u, size_t n, double us[NODES])
{
	struct interval *i = make_interval(n, POD_BUCKET_SECONDS, n == 0);

	for (size_t k = 0; k < NODES; k++) {
		char node[32];
		int64_t start;

		if (n == 0 && k > 0) {
			interval_free(i);
			i = make_interval(n, POD_BUCKET_SECONDS, true);
		}
		snprintf(node, sizeof(node), "node-%05zu", k);
		start = cpu_ns();
		apply(u, node, i);
		us[k] = microseconds_since(start);
	}
	interval_free(i);
}

/* As the aggregator's loop does, without an API. */
static void publish(struct view_slot *slot, struct join *join, struct usage_state *u,
		    int64_t now_ns)
{
	size_t count;
	struct node_stats *const *node_stats = usage_view_stats(u, now_ns, &count);

	view_slot_publish(slot, join_view(join, node_stats, count, NULL, now_ns));
}

/*
 * 5000 nodes, so that nothing is in a cache: rounds in which every node publishes once, each
 * followed by a view (all stats rebuilt, in memory that the round before gave back), 30 s apart so
 * that the last ones read full windows; then publications in which no stats changed.
 */
static void bench_cluster(void)
{
	static double apply_us[NODES], stats_us[ROUNDS], view_us[INTERVALS];
	struct usage_state *u = new_state();
	struct join *join = join_new();
	struct view_slot *slot = view_slot_new();
	size_t before = heap_bytes(), state = 0;
	int64_t start, now = START_NS;

	for (size_t n = 0; n < ROUNDS; n++) {
		apply_everywhere(u, n, apply_us);
		if (n == 0)
			state = heap_bytes() - before;
		start = cpu_ns();
		publish(slot, join, u, now);
		stats_us[n] = microseconds_since(start) / NODES;
	}
	bench_row("apply one interval, of 5000 nodes in turn", "us", NAN, 0,
		  bench_median(apply_us, NODES));
	bench_row("rebuild the stats of one node, of 5000 nodes in turn", "us", 60, 0,
		  bench_median(stats_us + ROUNDS - LAST, LAST));
	bench_row("state per node without stats, first interval", "KiB", NAN, 0,
		  (double)state / NODES / 1024);
	bench_row("state and stats per node", "KiB", NAN, 0,
		  (double)(heap_bytes() - before) / NODES / 1024);
	for (size_t n = 0; n < INTERVALS; n++) {
		start = cpu_ns();
		publish(slot, join, u, now);
		view_us[n] = microseconds_since(start);
	}
	bench_row("publish a view of 5000 nodes", "us", 1000, 0, bench_median(view_us, INTERVALS));
	view_slot_free(slot);
	join_free(join);
	usage_free(u);
}

static void bench_bytes(void)
{
	enum { MANY = 1000 };
	static struct pod_windows *pods[MANY];
	static struct node_windows *nodes[MANY];
	size_t of_pods, of_nodes = heap_bytes();

	for (size_t k = 0; k < MANY; k++)
		nodes[k] = node_windows_new();
	for (size_t n = 0; n < INTERVALS; n++) {
		struct interval *i = make_interval(n, SECONDS, false);

		for (size_t k = 0; k < MANY; k++)
			node_windows_add(nodes[k], &i->node, i->start_ns, i->end_ns);
		interval_free(i);
	}
	of_nodes = (heap_bytes() - of_nodes) / MANY;
	of_pods = heap_bytes();
	for (size_t k = 0; k < MANY; k++)
		pods[k] = pod_windows_new();
	for (size_t n = 0; n < POD_BUCKETS; n++) {
		struct interval *i = make_interval(n, POD_BUCKET_SECONDS, false);

		for (size_t k = 0; k < MANY; k++)
			pod_windows_add(pods[k], &i->entries[0].usage, i->start_ns, i->end_ns);
		interval_free(i);
	}
	of_pods = (heap_bytes() - of_pods) / MANY;
	bench_row("windows of a pod, full", "bytes", 1728 + 5 * HEAP_BLOCK, 0, (double)of_pods);
	bench_row("windows of a node, full", "bytes", 16384, 0, (double)of_nodes);
	bench_row("windows of 150k pods, full", "MiB", 400, 0,
		  (double)of_pods * 150000 / 1024 / 1024);
	for (size_t k = 0; k < MANY; k++) {
		pod_windows_free(pods[k]);
		node_windows_free(nodes[k]);
	}
}

int main(void)
{
	bench_begin("state");
	bench_bytes();
	bench_node();
	bench_cluster();
	bench_end();
	return 0;
}
