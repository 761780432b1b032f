/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench_cluster.h"

#include <stdio.h>
#include <stdlib.h>

#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/usage_fixture.h"
#include "tests/view_fixture.h"

/* The pods of one node as the API tells them; the last one's cgroup is not there yet. */
static void put_node(struct model *m, const char *node, uint32_t *seed)
{
	char name[16], uid[64], cpu[16];

	model_put(m, model_fixture_node(node, 4, 8));
	for (int p = 0; p <= BENCH_PODS; p++) {
		snprintf(name, sizeof(name), "pod-%02d", p);
		snprintf(uid, sizeof(uid), "%s-%s", node, name);
		snprintf(cpu, sizeof(cpu), "%dm", (int)(200 * fixture_random(seed)));
		model_put(m,
			  model_fixture_pod(&(struct model_fixture_pod){.name = uid,
									.node = node,
									.uid = uid,
									.owner_kind = "ReplicaSet",
									.owner_name = name,
									.owner_uid = name,
									.cpu = cpu,
									.memory = "100Mi",
									.cpu_limit = "250m",
									.memory_limit = "200Mi"}));
	}
}

/* Nodes of different load, each with its pods, in stats as the aggregator keeps them. */
struct view *bench_cluster_new(void)
{
	static const struct kernel_limits none = {LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE,
						  LIMIT_NONE, 0,	  0};
	struct kernel_limits limits[BENCH_CONTAINERS];
	struct container_stats containers[BENCH_CONTAINERS];
	struct pod_stats pods[BENCH_PODS];
	struct node_stats **node_stats = mem_zalloc(BENCH_NODES, sizeof(struct node_stats *));
	struct model *m = model_new();
	struct join *j = join_new();
	char names[BENCH_PODS][16], uids[BENCH_PODS][64], name[32];
	struct view *v;
	uint32_t seed = 1;

	model_fixture_sync(m, OBJECT_NODE);
	model_fixture_sync(m, OBJECT_POD);
	model_fixture_sync(m, OBJECT_ELASTIC_QUOTA);
	for (int c = 0; c < BENCH_CONTAINERS; c++)
		containers[c] =
			(struct container_stats){.name = (const char *const[]){"a", "b", "c"}[c],
						 .id = "0123456789abcdef"};
	for (int i = 0; i < BENCH_NODES; i++) {
		struct node_stats stats = view_fixture_node(name, VIEW_FIXTURE_NOW_NS - NS_PER_SEC,
							    3600, 3500 * fixture_random(&seed),
							    200 * fixture_random(&seed));

		snprintf(name, sizeof(name), "node-%05d", i);
		for (int c = 0; c < BENCH_CONTAINERS; c++) {
			limits[c] = none;
			limits[c].cpu_milli = (int64_t)(100 * fixture_random(&seed));
			limits[c].mem_bytes = 1 << 26;
			containers[c].limits = &limits[c];
		}
		for (int p = 0; p < BENCH_PODS; p++) {
			snprintf(names[p], sizeof(names[p]), "pod-%02d", p);
			snprintf(uids[p], sizeof(uids[p]), "%s-pod-%02d", name, p);
			pods[p] = join_fixture_pod(names[p], uids[p], stats.end_ns, 900, 100, 1e8);
			pods[p].limits = &none;
			pods[p].container_count = BENCH_CONTAINERS;
			pods[p].containers = containers;
		}
		put_node(m, name, &seed);
		stats.pods = pods;
		stats.pod_count = BENCH_PODS;
		node_stats[i] = node_stats_new(&stats);
	}
	v = join_view(j, node_stats, BENCH_NODES, model_cluster(m), VIEW_FIXTURE_NOW_NS);
	for (int i = 0; i < BENCH_NODES; i++)
		node_stats_drop(node_stats[i]);
	free(node_stats);
	join_free(j);
	model_free(m);
	return v;
}
