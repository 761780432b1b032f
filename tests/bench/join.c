/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cluster model and its join with measurements cost: 5000 nodes with 30 pods each, which
 * 30,000 owners have. Medians, in CPU time of the one thread it needs. Windows are not in the
 * memory that is told: tests/bench/state.c has them.
 */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/bench_report.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

enum { NODES = 5000, PODS = 30, OWNERS = 30000, REPEAT = 100, SOME = 100, PUBLISHING = 1000 };

static struct model *model;
static struct join *join;
static struct node_stats *node_stats[NODES];
static struct view_slot *slot;

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* As 150,000 pods of Kubernetes are called. */
static void pod_uid(int node, int pod, char uid[40])
{
	snprintf(uid, 40, "%08x-0000-4000-8000-%012x", node, pod);
}

static void owner_uid(int node, int pod, char uid[40])
{
	snprintf(uid, 40, "ffffffff-0000-4000-8000-%012x", (node * PODS + pod) % OWNERS);
}

static void put_pod(int node, int pod, int64_t scheduled_ns)
{
	char name[64], node_name[32], uid[40], owner[40], owner_name[32];
	int workload = (node * PODS + pod) % OWNERS;

	snprintf(name, sizeof(name), "workload-%05d-7d9c5b6f4-%05d", workload, node);
	snprintf(node_name, sizeof(node_name), "node-%05d", node);
	snprintf(owner_name, sizeof(owner_name), "workload-%05d-7d9c5b6f4", workload);
	pod_uid(node, pod, uid);
	owner_uid(node, pod, owner);
	model_put(model,
		  model_fixture_pod(&(struct model_fixture_pod){.namespace = "production",
								.name = name,
								.uid = uid,
								.node = node_name,
								.owner_kind = "ReplicaSet",
								.owner_name = owner_name,
								.owner_uid = owner,
								.cpu = "100m",
								.memory = "128Mi",
								.cpu_limit = "500m",
								.memory_limit = "256Mi",
								.scheduled_ns = scheduled_ns}));
}

static void fill_model(void)
{
	model_fixture_sync(model, OBJECT_NODE);
	model_fixture_sync(model, OBJECT_POD);
	for (int n = 0; n < NODES; n++) {
		char name[32];

		snprintf(name, sizeof(name), "node-%05d", n);
		model_put(model, model_fixture_node(name, 16, 64));
		for (int p = 0; p < PODS; p++)
			put_pod(n, p, VIEW_FIXTURE_NOW_NS - 3600 * NS_PER_SEC);
	}
}

static void make_stats(int node, double cpu)
{
	struct pod_stats pods[PODS];
	struct node_stats *stats;
	char uids[PODS][40], names[PODS][96], name[32];

	snprintf(name, sizeof(name), "node-%05d", node);
	for (int p = 0; p < PODS; p++) {
		pod_uid(node, p, uids[p]);
		snprintf(names[p], sizeof(names[p]),
			 "kubepods.slice/kubepods-burstable.slice/pod%.39s", uids[p]);
		pods[p] = join_fixture_pod(names[p], uids[p], VIEW_FIXTURE_NOW_NS, 900, cpu + p,
					   1 << 26);
	}
	stats = node_stats[node] ? join_fixture_stats_after(node_stats[node], pods)
				 : join_fixture_stats(name, VIEW_FIXTURE_NOW_NS, pods, PODS);
	node_stats_drop(node_stats[node]);
	node_stats[node] = stats;
}

static struct view *publish(void)
{
	return join_view(join, node_stats, NODES, model_cluster(model), VIEW_FIXTURE_NOW_NS);
}

enum change { CHANGE_NONE, CHANGE_MODEL, CHANGE_STATS };

static void change(enum change what, int count, int round)
{
	for (int i = 0; i < count; i++) {
		int node = (round * 37 + i * (NODES / count)) % NODES;

		if (what == CHANGE_MODEL)
			put_pod(node, round % PODS, VIEW_FIXTURE_NOW_NS - (round + 1) * NS_PER_SEC);
		else
			make_stats(node, round);
	}
}

static void bench_publication(const char *row, double budget, enum change what, int count)
{
	double cluster_ms[REPEAT], ms[REPEAT];
	char text[96];

	for (int i = 0; i < REPEAT; i++) {
		int64_t start, between;
		struct cluster *c;

		if (what != CHANGE_NONE)
			change(what, count, i + 1);
		start = cpu_ns();
		c = model_cluster(model);
		between = cpu_ns();
		view_slot_publish(slot, join_view(join, node_stats, NODES, c, VIEW_FIXTURE_NOW_NS));
		ms[i] = (double)(cpu_ns() - between) / 1e6;
		cluster_ms[i] = (double)(between - start) / 1e6;
	}
	bench_row(row, "ms", budget, 0, bench_median(ms, REPEAT));
	if (what != CHANGE_MODEL)
		return;
	snprintf(text, sizeof(text), "%s: the model's part", row);
	bench_row(text, "ms", NAN, 0, bench_median(cluster_ms, REPEAT));
}

/* Nodes all over the cluster, so that nothing is in a cache. */
static void bench_node(const struct view *v)
{
	double us[NODES];

	for (int i = 0; i < NODES; i++) {
		const struct view_node *old = v->nodes[i * 7 % NODES];
		int64_t start = cpu_ns();
		struct view_node *n = view_node_renew(NULL, old->stats, old->model);

		us[i] = (double)(cpu_ns() - start) / 1e3;
		view_node_drop(n);
	}
	bench_row("join one node, 30 pods (a node's rebuild comes on top: 60 together)", "us", 60,
		  0, bench_median(us, NODES));
}

static void bench_put(void)
{
	double us[REPEAT];
	struct object *o[REPEAT];

	for (int i = 0; i < REPEAT; i++) {
		char name[32];

		snprintf(name, sizeof(name), "new-%d", i);
		o[i] = model_fixture_pod(&(struct model_fixture_pod){
			.namespace = "production", .name = name, .node = "node-00007"});
	}
	for (int i = 0; i < REPEAT; i++) {
		int64_t start = cpu_ns();

		model_put(model, o[i]);
		us[i] = (double)(cpu_ns() - start) / 1e3;
	}
	bench_row("put one pod, its JSON read", "us", NAN, 0, bench_median(us, REPEAT));
}

int main(void)
{
	const double pods = (double)NODES * PODS;
	size_t before;
	int64_t start;

	bench_begin("join");
	slot = view_slot_new();
	join = join_new();
	model = model_new();
	for (int i = 0; i < NODES; i++)
		make_stats(i, i % 100);
	malloc_trim(0);
	before = heap_bytes();
	fill_model();
	cluster_drop(model_cluster(model));
	bench_row("model, per pod", "B", NAN, 0, (double)(heap_bytes() - before) / pods);
	before = heap_bytes();
	start = cpu_ns();
	view_slot_publish(slot, publish());
	bench_row("first view, everything is new", "ms", NAN, 0, (double)(cpu_ns() - start) / 1e6);
	bench_row("join, per pod", "B", NAN, 0, (double)(heap_bytes() - before) / pods);
	bench_publication("publish, nothing changed", 1, CHANGE_NONE, 0);
	bench_publication("publish, a pod changed on each of 100 nodes", NAN, CHANGE_MODEL, SOME);
	bench_publication("publish, 100 nodes changed", NAN, CHANGE_STATS, SOME);
	bench_publication("publish, 1000 nodes changed, as every second", NAN, CHANGE_STATS,
			  PUBLISHING);
	{
		struct view *v = publish();

		bench_node(v);
		view_drop(v);
	}
	bench_put();
	view_slot_free(slot);
	join_free(join);
	model_free(model);
	for (int i = 0; i < NODES; i++)
		node_stats_drop(node_stats[i]);
	bench_end();
	return 0;
}
