/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench_fleet.h"

#include <stdlib.h>

#include "shared/mem.h"
#include "tests/fleet/dump.h"
#include "tests/fleet/machine_sim.h"

_Static_assert((int)BENCH_FLEET_NAME_MAX == (int)CLUSTER_NAME_MAX, "names are the cluster's");

struct bench_fleet {
	struct cluster *cluster; /* owned */
	struct machine_sim **machines; /* owned; by node */
};

struct bench_fleet *bench_fleet_new(uint32_t nodes, uint32_t pods_per_node, int64_t epoch_ns)
{
	const struct cluster_config config = {.nodes = nodes,
					      .pods_per_node = pods_per_node,
					      .containers = 2,
					      .seed = 1,
					      .epoch_ns = epoch_ns};
	struct bench_fleet *f = mem_zalloc(1, sizeof(*f));

	f->cluster = cluster_new(&config);
	f->machines = mem_zalloc(nodes, sizeof(struct machine_sim *));
	for (uint32_t n = 0; n < nodes; n++)
		f->machines[n] = machine_sim_new(f->cluster, n);
	return f;
}

void bench_fleet_free(struct bench_fleet *f)
{
	if (!f)
		return;
	for (uint32_t n = 0; n < f->cluster->config.nodes; n++)
		machine_sim_free(f->machines[n]);
	free(f->machines);
	cluster_free(f->cluster);
	free(f);
}

int bench_fleet_dump(const struct bench_fleet *f, const char *path, struct error *error)
{
	return dump_write(f->cluster, path, error);
}

void bench_fleet_name(uint32_t node, char name[BENCH_FLEET_NAME_MAX])
{
	cluster_node_name(node, name);
}

struct interval *bench_fleet_take(struct bench_fleet *f, uint32_t node, uint64_t sequence,
				  int64_t start_ns, int64_t end_ns)
{
	return machine_sim_take(f->machines[node], sequence, start_ns, end_ns);
}
