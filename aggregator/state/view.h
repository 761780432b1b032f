/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole cluster at one moment: node stats joined with the API's objects. Immutable; any thread
 * may hold it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/model.h"
#include "aggregator/model/pod_load.h"
#include "aggregator/state/workload_demand.h"
#include "aggregator/state/node_stats.h"
#include "aggregator/state/workload_memory.h"

/* A pod of a node: as the API knows it, as it is measured, or both. */
struct view_pod {
	const struct kube_pod *pod; /* NULL: the API does not know it */
	const struct pod_stats *use; /* NULL: not measured */
};

/* Sums over a node's active pods (kube_pod_is_active()). */
struct view_sums {
	uint32_t pods; /* how many these are */
	uint32_t daemon_pods; /* of them, those of DaemonSets */
	struct pod_load load[POD_LOADS]; /* CPU and memory in every way of counting */
	/*
	 * As kubectl counts: what each pod may need at its worst moment, which may be that of an
	 * init container.
	 */
	struct resources requests, limits;
	/*
	 * The same by what the kernel enforces on measured pods, counted alike; pods only, no
	 * slices and units. Known limits and missing ones count beside unknown ones. A pod whose
	 * containers are not seen counts as one.
	 */
	struct kernel_sum {
		int64_t limits;
		int64_t unlimited_requests; /* of the API's pods */
		uint32_t unlimited; /* containers without a limit */
	} kernel[POD_LOADS];
	/* pods some of whose limits are not known: not measured, or not read */
	uint32_t kernel_unknown;
};

/*
 * A pod that came to the node within the window that speaks for it (window_longest()), or is only
 * about to start.
 */
struct view_recent {
	const struct kube_pod *pod;
	const struct pod_stats *use; /* NULL: not measured */
	float uncovered; /* share of the window in which it was not measured, 0..1 */
};

/* One node and its pods. Immutable. */
struct view_node {
	atomic_uint users;
	uint64_t serial; /* no other node ever made by this process has it */
	const char *name; /* of the model, else of the stats */
	/* held; never NULL: of a node that was never heard an empty one (NEVER) */
	struct node_stats *stats;
	struct model_node *model; /* held; NULL: no API, or it does not know the node */
	int64_t cpu_capacity_milli, mem_capacity_bytes; /* the API's, else measured; 0 unknown */
	int64_t cpu_allocatable_milli, mem_allocatable_bytes; /* the API's, else the capacity */
	struct view_sums sums; /* zero where model is NULL */
	/*
	 * Sorted by namespace and name; those only measured have the namespace "" and their
	 * cgroup's name, and so come first. Where there is no model: the stats' pods, in their order.
	 */
	size_t pod_count;
	struct view_pod *pods; /* owned; what they point to lives in stats and model */
	size_t recent_count;
	struct view_recent *recents; /* owned; in the order of pods */
};

enum { OWNER_UID_MAX = 43 }; /* those of Kubernetes have 36 bytes */

/* The measured use of the pods of one owner, on all nodes. */
struct owner_use {
	char uid[OWNER_UID_MAX +
		 1]; /* owners with a longer one are not told apart, and so left out */
	uint32_t pods; /* that are measured long enough to count: a minute */
	double cpu_milli; /* mean of each, over the longest window that it covers */
	double cpu_p95_milli; /* of each, if its use is normal */
	double working_set_bytes;
};

struct owner_table {
	atomic_uint users;
	struct workload_table *workloads; /* held: what is remembered; NULL: nothing */
	size_t count;
	struct owner_use of[]; /* sorted by uid */
};

void owner_table_drop(struct owner_table *t); /* any thread; NULL is allowed */

/* Use of the measured pods of a namespace. */
struct namespace_use {
	uint32_t pods; /* that are measured; 0: nothing below is known */
	double cpu_mean_milli; /* sum of the pods' means over window_longest() of each */
	double working_set_bytes; /* sum of their means likewise */
	/*
	 * Over the sums of all its pods in each of the last 30 whole buckets of 30 s; NaN: fewer
	 * than 10 of them are known.
	 */
	double cpu_p50_milli, cpu_p95_milli;
};

/*
 * What the pods of a namespace request, as the kube-scheduler sums it (kube_pod_requests()); active
 * pods only.
 */
struct namespace_sums {
	const char *name; /* owned by the table */
	uint32_t bound_pods, pending_pods; /* with a node; without one */
	struct resources bound, pending;
	struct namespace_use use;
};

/* All namespaces that have pods. */
struct namespace_table {
	atomic_uint users;
	size_t count;
	struct namespace_sums of[]; /* sorted by name */
};

void namespace_table_drop(struct namespace_table *t); /* any thread; NULL is allowed */

struct view {
	atomic_uint users;
	uint64_t version; /* +1 per publication */
	int64_t time_ns; /* Unix time of publication */
	size_t node_count;
	struct view_node **nodes; /* each held; sorted by name */
	struct cluster *cluster; /* held; NULL: standalone, nobody asks an API */
	struct owner_table *owners; /* held; NULL: none known */
	struct namespace_table *namespaces; /* held; NULL: no API, or no pods */
	struct demand_table *demand; /* held; NULL: nothing was measured */
	/* Equal in two views of one join: both have nodes of the same names. 0: unknown. */
	uint64_t node_set_version;
	struct view_cache *cache; /* owned; what readers made of it (view_cache.h) */
};

/*
 * Puts stats and model of one node together, holding both; either may be NULL, but not both. A
 * measured pod is an API's pod by its uid; a static pod's cgroup has the uid of annotation
 * kubernetes.io/config.hash, which stands for it. Spares what `before`, the node's last, has worked
 * out already; NULL is allowed.
 */
struct view_node *view_node_renew(const struct view_node *before, struct node_stats *stats,
				  struct model_node *model);
/*
 * The node without its pods and their use: its stats are of the node alone. A node without a model
 * is returned itself.
 */
struct view_node *view_node_without_pods(struct view_node *n);
struct view_node *view_node_hold(struct view_node *n);
void view_node_drop(struct view_node *n); /* any thread; NULL is allowed */
const char *view_pod_namespace(const struct view_pod *p); /* "" */
const char *view_pod_name(const struct view_pod *p);
const char *view_pod_uid(const struct view_pod *p); /* "" */
/* The pod, or NULL. */
const struct view_pod *view_node_find_pod(const struct view_node *n, const char *namespace,
					  const char *name);

/*
 * Takes over the array and one hold of every node in it, of the cluster and of the owners (both may
 * be NULL).
 */
struct view *view_new(uint64_t version, int64_t time_ns, struct view_node **nodes, size_t count,
		      struct cluster *cluster, struct owner_table *owners);
/*
 * A view for a reader that keeps it long and needs its names and objects only: all nodes without
 * their pods, no owners, no namespaces. Measurements are most of the memory of a view.
 */
struct view *view_without_pods(const struct view *v);
struct view *view_hold(struct view *v);
void view_drop(struct view *v);
/* The place of the node in v->nodes, or node_count. */
size_t view_index(const struct view *v, const char *node);
/* The node, or NULL. */
const struct view_node *view_find(const struct view *v, const char *node);
/* The objects of the kind; NULL: the view has no cluster. */
static inline const struct object_table *view_table(const struct view *v, enum object_kind kind)
{
	return v->cluster ? v->cluster->tables[kind] : NULL;
}

/* Whether all objects of the kind are known, if perhaps as of a while ago. */
bool view_knows(const struct view *v, enum object_kind kind);
/* Requests and use of the pods of a namespace, or NULL. */
const struct namespace_sums *view_namespace(const struct view *v, const char *name);
/* The last measured use of the pods of a workload (workload_key()), or NULL. */
const struct workload_use *view_workload(const struct view *v, const char *key);
/* Use of the pods of an owner, or NULL. */
const struct owner_use *view_owner(const struct view *v, const char *uid);

/*
 * Where the loop thread puts the newest view and readers take it: one mutex, held for a pointer and
 * a count.
 */
struct view_slot;
struct view_slot *view_slot_new(void); /* holds an empty view of version 0 */
void view_slot_free(struct view_slot *s);
void view_slot_publish(struct view_slot *s, struct view *v); /* takes over v */
struct view *view_slot_take(struct view_slot *s); /* the caller drops it; never NULL */

/*
 * A reader that needs all that is known by now says so, and waits until a view has it or the
 * monotonic time comes. One publication serves all who wait. True: the view in the slot has it.
 */
bool view_slot_refresh(struct view_slot *s, int64_t until_ns);
/*
 * Waits until another view than the one of this version is in the slot. False: the monotonic time
 * came, or nobody publishes on request.
 */
bool view_slot_await(struct view_slot *s, uint64_t version, int64_t until_ns);
/*
 * Calls `wanted` for each reader that waits, with a growing ticket, on the reader's thread. Set
 * before there are readers; without it no reader waits.
 */
void view_slot_on_refresh(struct view_slot *s, void (*wanted)(void *ctx, uint64_t ticket),
			  void *ctx);
/* The view in the slot has all that was known when that ticket was given, and those before. */
void view_slot_answer(struct view_slot *s, uint64_t ticket);
