/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of three shapes in three zones. Each gets its DaemonSets' pods; then workloads are made and
 * placed one after the other, each pod on the next node in the round that takes it, until all nodes
 * have as many as they should:
 *
 *	takes it	it has room for the requests, and its taint is tolerated
 * a workload that keeps apart has none there: the round did not come back to where it began a
 * workload that is spread goes by zones: it is in the one whose turn it is what all its pods can
 * use at their peaks is less than it has; but for CPU on the few crowded nodes, where something
 * outside of pods takes much as well
 *
 * One node in eight is nearly empty, as after a busy day: something to drain. What finds no node is
 * not made, except for one workload that nothing has room for.
 */
#include "tests/fleet/cluster.h"

#include <assert.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define GIB (INT64_C(1) << 30)

enum { HASH_BEGIN = 401, HASH_SYSTEM };
enum { BATCH_EVERY = 16, BATCH_AT = 9, CORDONED_EVERY = 64, CORDONED_AT = 37 };
enum { CROWDED_EVERY = 16, CROWDED_AT = 3, SPARSE_EVERY = 8, SPARSE_AT = 5 };
enum { GIVE_UP_AFTER = 64 }; /* workloads in a row of which no pod found a node */

static const struct {
	int64_t cores, gib;
} shapes[] = {{8, 32}, {16, 64}, {32, 128}};

/* --- nodes ------------------------------------------------------------------------------------ */

static void make_node(const struct cluster *c, uint32_t i, struct cluster_node *n)
{
	*n = (struct cluster_node){
		.zone = i % CLUSTER_ZONES,
		.shape = i / CLUSTER_ZONES % 3,
		.batch = i % BATCH_EVERY == BATCH_AT,
		.cordoned = i % CORDONED_EVERY == CORDONED_AT,
		.crowded = i % CROWDED_EVERY == CROWDED_AT,
	};
	n->cpu_milli = shapes[n->shape].cores * 1000;
	n->mem_bytes = shapes[n->shape].gib * GIB;
	n->allocatable_cpu_milli = n->cpu_milli - 200;
	n->allocatable_mem_bytes = n->mem_bytes - 2 * GIB;
	n->system = (struct pattern){
		.low_milli = 60,
		.high_milli = n->crowded ? 0.5 * (double)n->cpu_milli
					 : 120 + 80 * cluster_unit(c, HASH_SYSTEM, i),
		.period_ns = 7 * NS_PER_SEC,
		.on_ns = 3 * NS_PER_SEC,
		.phase_ns = (int64_t)(cluster_unit(c, HASH_SYSTEM, ~(uint64_t)i) * 7e9),
		.mem_bytes = 0.7 * (double)GIB,
	};
	n->peak_milli = pattern_peak_milli(&n->system);
	n->peak_bytes = pattern_peak_working_set(&n->system);
}

static double weight_of(const struct cluster_node *n, uint32_t i)
{
	double cores = (double)n->cpu_milli / 1000;

	if (i % SPARSE_EVERY == SPARSE_AT)
		return cores / 5;
	return n->crowded ? cores * 1.5 : cores;
}

static void make_nodes(struct cluster *c)
{
	uint32_t count = c->config.nodes;
	double sum = 0, owed = 0;

	c->nodes = mem_zalloc(count, sizeof(*c->nodes));
	for (uint32_t i = 0; i < count; i++) {
		make_node(c, i, &c->nodes[i]);
		sum += weight_of(&c->nodes[i], i);
	}
	for (uint32_t i = 0; i < count; i++) {
		owed += weight_of(&c->nodes[i], i) / sum * c->config.pods_per_node * count;
		c->nodes[i].target = (uint32_t)(owed + 0.5);
		owed -= c->nodes[i].target;
	}
}

/* --- placing ---------------------------------------------------------------------------------- */

static bool has_room(const struct cluster_node *n, const struct workload *w,
		     const struct pattern *p)
{
	double peak_milli = n->peak_milli + pattern_peak_milli(p);
	double most_milli = (double)n->cpu_milli * (n->crowded ? 2 : 0.95);

	return n->requested_cpu_milli + w->cpu_milli <= n->allocatable_cpu_milli &&
	       n->requested_mem_bytes + w->mem_bytes <= n->allocatable_mem_bytes &&
	       peak_milli <= most_milli &&
	       n->peak_bytes + pattern_peak_working_set(p) <= 0.9 * (double)n->mem_bytes;
}

static void put(struct cluster *c, size_t pod, uint32_t node)
{
	struct cluster_node *n = &c->nodes[node];
	const struct workload *w = cluster_workload(c, &c->pods[pod]);
	const struct pattern *p = &c->pods[pod].pattern;

	c->pods[pod].node = (int32_t)node;
	n->pods++;
	n->requested_cpu_milli += w->cpu_milli;
	n->requested_mem_bytes += w->mem_bytes;
	n->peak_milli += pattern_peak_milli(p);
	n->peak_bytes += pattern_peak_working_set(p);
}

static struct workload *add_workload(struct cluster *c)
{
	if (c->workload_count == c->workload_room) {
		c->workload_room = c->workload_room ? 2 * c->workload_room : 64;
		c->workloads = mem_realloc(c->workloads, c->workload_room * sizeof(*c->workloads));
	}
	c->workloads[c->workload_count] = (struct workload){0};
	return &c->workloads[c->workload_count++];
}

/* The next pod of the last workload, nowhere yet. */
static size_t add_pod(struct cluster *c, uint32_t ordinal)
{
	struct cluster_pod *p;

	if (c->pod_count == c->pod_room) {
		c->pod_room = c->pod_room ? 2 * c->pod_room : 1024;
		c->pods = mem_realloc(c->pods, c->pod_room * sizeof(*c->pods));
	}
	p = &c->pods[c->pod_count];
	*p = (struct cluster_pod){.workload = (uint32_t)(c->workload_count - 1),
				  .ordinal = ordinal,
				  .node = -1};
	workload_make_pattern(c, &c->workloads[p->workload], c->pod_count, &p->pattern);
	return c->pod_count++;
}

/* A walk over all nodes for the pods of one workload. */
struct round {
	uint32_t begin;
	uint32_t steps; /* so far */
	uint32_t zone; /* whose turn it is */
};

/* The next node that takes the pod; false when there is none in what is left of the walk. */
static bool place(struct cluster *c, size_t pod, struct round *round)
{
	const struct workload *w = cluster_workload(c, &c->pods[pod]);
	uint32_t nodes = c->config.nodes, tried;

	for (tried = 0; tried < nodes && (!w->apart || round->steps < nodes); tried++) {
		uint32_t at = (round->begin + round->steps++) % nodes;
		const struct cluster_node *n = &c->nodes[at];

		if (n->batch != w->batch || n->pods >= n->target ||
		    (w->spread && n->zone != round->zone) || !has_room(n, w, &c->pods[pod].pattern))
			continue;
		put(c, pod, at);
		round->zone = (n->zone + 1) % CLUSTER_ZONES;
		return true;
	}
	return false;
}

/* Returns how many of its pods found a node. The others, and it without any, are not there. */
static uint32_t add_placed(struct cluster *c, size_t index, bool batch)
{
	struct workload *w = add_workload(c);
	uint64_t begin = cluster_hash(c, HASH_BEGIN, index);
	struct round round = {.begin = (uint32_t)(begin % c->config.nodes),
			      .zone = (uint32_t)(begin % CLUSTER_ZONES)};
	uint32_t wanted;

	workload_make(c, index, batch, w);
	w->first_pod = c->pod_count;
	wanted = w->replicas;
	for (w->replicas = 0; w->replicas < wanted; w->replicas++) {
		if (place(c, add_pod(c, w->replicas), &round))
			continue;
		c->pod_count--;
		break;
	}
	if (!w->replicas)
		c->workload_count--;
	return w->replicas;
}

/* Of the nodes for jobs, or of the others: pods that are still wanted. */
static int64_t wanted_on(const struct cluster *c, bool batch)
{
	int64_t wanted = 0;

	for (uint32_t i = 0; i < c->config.nodes; i++) {
		const struct cluster_node *n = &c->nodes[i];

		if (n->batch == batch && n->target > n->pods)
			wanted += (int64_t)(n->target - n->pods);
	}
	return wanted;
}

static void fill(struct cluster *c, bool batch, size_t *index)
{
	int64_t wanted = wanted_on(c, batch);
	int failures = 0;

	while (wanted > 0 && failures < GIVE_UP_AFTER) {
		uint32_t placed = add_placed(c, (*index)++, batch);

		wanted -= placed;
		failures = placed ? 0 : failures + 1;
	}
}

static void add_daemons(struct cluster *c)
{
	uint32_t most = c->config.pods_per_node / 4;

	for (uint32_t d = 0; d < DAEMONS && d < most; d++) {
		struct workload *w = add_workload(c);

		workload_make_daemon(d, w);
		w->first_pod = c->pod_count;
		w->replicas = c->config.nodes;
		for (uint32_t i = 0; i < c->config.nodes; i++)
			put(c, add_pod(c, i), i);
	}
}

static void add_pending(struct cluster *c)
{
	struct workload *w = add_workload(c);

	workload_make_pending(c, w);
	w->first_pod = c->pod_count;
	for (uint32_t i = 0; i < w->replicas; i++)
		add_pod(c, i);
}

static void index_nodes(struct cluster *c)
{
	size_t at = 0;

	c->by_node = mem_alloc((c->pod_count + 1) * sizeof(*c->by_node));
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		c->nodes[i].first = at;
		at += c->nodes[i].pods;
		c->nodes[i].pods = 0;
	}
	for (size_t p = 0; p < c->pod_count; p++) {
		struct cluster_node *n;

		if (c->pods[p].node < 0)
			continue;
		n = &c->nodes[c->pods[p].node];
		c->by_node[n->first + n->pods++] = (uint32_t)p;
	}
}

struct cluster *cluster_new(const struct cluster_config *config)
{
	struct cluster *c = mem_zalloc(1, sizeof(*c));
	size_t index = 0;

	assert(config->nodes && config->nodes <= CLUSTER_NODES_MAX && config->pods_per_node &&
	       config->containers && config->containers <= CLUSTER_CONTAINERS_MAX);
	c->config = *config;
	c->namespaces = 9 + 8 * (config->nodes / 250);
	make_nodes(c);
	add_daemons(c);
	fill(c, false, &index);
	fill(c, true, &index);
	add_pending(c);
	index_nodes(c);
	return c;
}

void cluster_free(struct cluster *c)
{
	if (!c)
		return;
	free(c->nodes);
	free(c->workloads);
	free(c->pods);
	free(c->by_node);
	free(c);
}

const struct workload *cluster_workload(const struct cluster *c, const struct cluster_pod *pod)
{
	return &c->workloads[pod->workload];
}
