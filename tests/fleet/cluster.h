/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up Kubernetes cluster: nodes, workloads and where their pods run, all from a seed. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"
#include "tests/fleet/pattern.h"

struct cluster_config {
	uint32_t nodes;
	uint32_t pods_per_node; /* on average; large nodes have more than small ones */
	/* per pod, 1 to CLUSTER_CONTAINERS_MAX; those of DaemonSets have one */
	uint32_t containers;
	uint64_t seed;
	int64_t day_ns; /* period of what rises and falls once a day; 0: 24 hours */
	/* so long after a pod began, another takes its place; 0: they run for ever */
	int64_t pod_life_ns;
	int64_t epoch_ns; /* Unix time at which the first pods were there */
	/* pods can leave: they have controllers, budgets and quotas with room, no emptyDir, no spread */
	bool movable;
};

enum {
	CLUSTER_NODES_MAX = 20000,
	CLUSTER_PODS_PER_NODE_MAX = 250,
	CLUSTER_CONTAINERS_MAX = 8,
	CLUSTER_NAME_MAX = 64,
	CLUSTER_ZONES = 3,
};

struct cluster_node {
	int64_t cpu_milli, mem_bytes; /* capacity */
	int64_t allocatable_cpu_milli, allocatable_mem_bytes;
	uint32_t shape, zone;
	bool batch; /* tainted for jobs alone */
	bool cordoned; /* after its pods came */
	bool crowded; /* its pods' peaks may add up to more than it has; elsewhere they never do */
	struct pattern system; /* what is used by no pod */
	size_t first, pods; /* in cluster.by_node */

	/* while pods are placed */
	uint32_t target;
	int64_t requested_cpu_milli, requested_mem_bytes;
	double peak_milli, peak_bytes;
};

enum workload_kind {
	WORKLOAD_DEPLOYMENT,
	WORKLOAD_STATEFUL_SET,
	WORKLOAD_DAEMON_SET,
	WORKLOAD_JOB,
	WORKLOAD_BARE, /* pods without a controller */
};

/* The classes the cluster has, most urgent first. */
enum cluster_priority {
	PRIORITY_NODE_CRITICAL,
	PRIORITY_HIGH,
	PRIORITY_STANDARD,
	PRIORITY_BATCH,
	PRIORITIES
};

struct workload {
	char name[CLUSTER_NAME_MAX];
	enum workload_kind kind;
	uint32_t namespace;
	uint32_t replicas; /* pods there are, with or without a node */
	size_t first_pod; /* the others follow */
	uint32_t containers;
	int64_t cpu_milli, mem_bytes; /* requests of a pod; 0: none */
	int64_t cpu_limit_milli, mem_limit_bytes; /* of a pod; 0: none */
	enum cluster_priority priority;
	enum pattern_kind pattern;
	bool apart; /* never two on a node: required anti-affinity */
	bool spread; /* evenly over zones: maxSkew 1 */
	bool budget; /* has a PodDisruptionBudget */
	bool volume; /* each pod has a claim; StatefulSets */
	bool batch; /* tolerates, and selects, the nodes for jobs */
	bool scratch; /* an emptyDir that a drain must not lose */
};

struct cluster_pod {
	uint32_t workload;
	uint32_t ordinal; /* within it */
	int32_t node; /* -1: pending */
	struct pattern pattern;
};

struct cluster {
	struct cluster_config config;
	struct cluster_node *nodes; /* owned, as are all below */
	struct workload *workloads;
	size_t workload_count, workload_room;
	struct cluster_pod *pods;
	size_t pod_count, pod_room;
	uint32_t *by_node; /* indices of pods, node by node */
	uint32_t namespaces;
};

/*
 * Numbers in config are within the bounds above. The same config makes the same cluster everywhere.
 */
struct cluster *cluster_new(const struct cluster_config *config);
void cluster_free(struct cluster *c); /* NULL is allowed */

/* Looks as random as needed and depends on the seed and both numbers alone. */
uint64_t cluster_hash(const struct cluster *c, uint64_t what, uint64_t which);
/* The same in [0, 1). */
double cluster_unit(const struct cluster *c, uint64_t what, uint64_t which);

const struct workload *cluster_workload(const struct cluster *c, const struct cluster_pod *pod);
enum qos_class cluster_qos(const struct workload *w);
/* Which part of its pod container k asks for and uses; they add up to 1. */
double cluster_container_share(const struct workload *w, uint32_t k);
/* That part of a request or limit of the pod, whole: the parts add up to the amount. */
int64_t cluster_container_part(const struct workload *w, uint32_t k, int64_t amount);

/* Names and ids, the same in usage and dump; *text is the whole array. */
void cluster_node_name(uint32_t node, char text[CLUSTER_NAME_MAX]);
void cluster_namespace_name(uint32_t namespace, char text[CLUSTER_NAME_MAX]);
void cluster_pod_name(const struct cluster *c, size_t pod, char text[CLUSTER_NAME_MAX]);
void cluster_pod_uid(const struct cluster *c, size_t pod, uint32_t life,
		     char text[POD_UID_LEN + 1]);
/* Of any other object; `what` tells its kind, `which` the one of it. */
void cluster_uid(const struct cluster *c, uint64_t what, uint64_t which,
		 char text[POD_UID_LEN + 1]);
void cluster_container_id(const struct cluster *c, size_t pod, uint32_t life, uint32_t container,
			  char text[CONTAINER_ID_LEN + 1]);
/*
 * How many pods had this one's place before it at a Unix time: with pod_life_ns all but those of
 * DaemonSets are replaced, each at a time of its own. Life 0 is what the dump tells of.
 */
uint32_t cluster_pod_life(const struct cluster *c, size_t pod, int64_t at_ns);
/* The middle part of a Deployment's pods' names, by which its ReplicaSet is known. */
void cluster_replica_set_name(const struct cluster *c, size_t workload,
			      char text[CLUSTER_NAME_MAX]);

/*
 * Workloads made by cluster_workloads.c: the next of a pool, and those on each node. Only cluster.c
 * calls them.
 */
void workload_make(const struct cluster *c, size_t index, bool batch, struct workload *w);
void workload_make_daemon(uint32_t which, struct workload *w);
void workload_make_pending(const struct cluster *c, struct workload *w);
enum { DAEMONS = 4 };
/* How one pod of it uses what it asks for. */
void workload_make_pattern(const struct cluster *c, const struct workload *w, size_t pod,
			   struct pattern *p);
