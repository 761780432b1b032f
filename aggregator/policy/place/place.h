/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exact simulation of the kube-scheduler's filters over the whole cluster, with changes that can be
 * undone, for drain, slack and quota. Pure and deterministic; ties are broken by name.
 *
 * Pods of equal scheduling fields and namespace form a class, nodes of equal labels and taints a node
 * equivalence class. A filter that depends on both alone is evaluated once per pair. A field that
 * cannot be evaluated refuses the node with its reason.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/view.h"
#include "shared/buf.h"
#include "shared/error.h"
#include "shared/jsonw.h"

/* In the order of evaluation; the first refusal is reported. */
enum place_filter {
	PLACE_FITS, /* none refuses */
	PLACE_GONE, /* removed (place_remove_node()), in deletion, or ending by a condition */
	PLACE_FIT, /* CPU, memory, ephemeral storage, pods, extended resources */
	PLACE_TAINTS,
	PLACE_NODE_AFFINITY, /* nodeSelector and required node affinity */
	PLACE_FEATURES, /* kubelet features that the node does not declare */
	PLACE_UNSCHEDULABLE,
	PLACE_ANTI_AFFINITY, /* of the pod and of pods on the node */
	PLACE_AFFINITY,
	PLACE_SPREAD, /* DoNotSchedule */
	PLACE_HOST_PORTS,
	/*
	 * Bound and waiting claims, as in the kube-scheduler since 1.20. place_put() binds waiting
	 * claims to different volumes until the put is reverted (place_take() does not unbind). The
	 * free capacity of drivers is not known.
	 */
	PLACE_VOLUMES,
	PLACE_VOLUME_LIMITS, /* a driver attaches no more volumes to the node */
	/*
	 * Resource claims of whole devices. place_put() allocates them and place_take() frees them:
	 * a claim from a template with its pod, another one with the last pod that has it.
	 */
	PLACE_DEVICES,
	PLACE_USE_CAP, /* of real use: struct place_cap */
	PLACE_SILENT, /* under the cap: not measured, contended or expired */
	/* parts of resource claims, unknown operators, more than 64 terms or 2048 values */
	PLACE_UNKNOWN,
	PLACE_FILTERS
};

/* "fits", "NodeResourcesFit", "TaintToleration", .., "RealUseCap" */
const char *place_filter_name(enum place_filter f);

/*
 * Real use may forbid what requests allow, never the other way round:
 *   CPU       sum of means + z * sqrt(sum of variances) <= cpu_share * allocatable, as if pods were independent
 *   memory    sum of working-set maxima <= mem_share * allocatable
 *   by hour   sum of the pods' peaks in each hour of the day (where a pod has none, its mean or maximum) likewise, both
 * A node's sums are the use of its pods and of the rest of the node (window_longest() of the node, 15
 * minutes of pods; at least 0 each). An unmeasured pod counts as its owner's mean, else as its
 * requests, and at least as its share of the rest (place_use_is_shared()). The cap is off if no node
 * of the view is measured (place_cap_applies()).
 */
struct place_cap {
	bool on;
	double cpu_share, mem_share; /* 0.85, 0.90 */
	double z; /* 2.33 */
	double contention; /* 0.1: share of waiting above which a node refuses */
};

enum place_order {
	PLACE_FULLEST_FIRST, /* by requested CPU and memory, the larger share; ties by name */
	PLACE_EMPTIEST_FIRST,
	PLACE_CYCLIC, /* first fit behind the last chosen node */
};

struct place_options {
	struct place_cap cap;
	bool plans; /* plans move pods: nodes under maintenance take none */
	int64_t now_ns;
	/* Called while a view is read; true ends the reading. NULL: never. */
	bool (*out_of_time)(void *ctx);
	void *ctx;
};

void place_options_default(struct place_options *o);

struct place;
typedef uint32_t place_pod; /* handle of a pod in the simulation; stays valid while it lives */
typedef uint32_t place_node;
#define PLACE_NONE UINT32_MAX

/*
 * Reads the view and holds it. Bound pods are on their nodes, pending ones on none; ended pods
 * (Succeeded, Failed) are left out. Nodes are numbered by name, as in the view. A node unknown to the
 * API is PLACE_GONE. NULL: out of time.
 */
struct place *place_new(struct view *v, const struct place_options *o);
/*
 * Equal to a new core of v, at the cost of the changes; reverts all moves and additions. Handles of
 * pods in both views stay; handles of nodes stay unless a node comes or goes. Not between marks.
 * False: out of time, and only place_free() may follow.
 */
bool place_update(struct place *p, struct view *v, int64_t now_ns);
/*
 * Reverts all, as place_update(), and replaces the view by one without pods (view_without_pods()), which frees
 * the measurements. Only place_update() or place_free() may follow.
 */
void place_rest(struct place *p, struct view *rest);
/* Sets out_of_time of the options. */
void place_set_limit(struct place *p, bool (*out_of_time)(void *ctx), void *ctx);
void place_free(struct place *p);

/* Whether the option is on and some node is measured. */
bool place_cap_applies(const struct place *p);
/* And whether unmeasured pods share the rest of a node. */
bool place_use_is_shared(const struct place *p);

size_t place_node_count(const struct place *p);
place_node place_find_node(const struct place *p, const char *name); /* PLACE_NONE */
const char *place_node_name(const struct place *p, place_node n);
place_pod place_find_pod(const struct place *p, const char *namespace, const char *name);
/* Adds a hypothetical pod, on no node; holds the record until the next place_update(). */
place_pod place_add_pod(struct place *p, const struct kube_pod *pod);
place_node place_where(const struct place *p, place_pod pod); /* PLACE_NONE: nowhere */
const struct kube_pod *place_pod_record(const struct place *p, place_pod pod);

/* Pods on the node, in no particular order; PLACE_NONE behind the last. */
place_pod place_first_on(const struct place *p, place_node n);
place_pod place_next_on(const struct place *p, place_pod pod);

/* Sums of the real-use cap with the present pods. */
struct place_prediction {
	double cpu_milli, cpu_limit_milli; /* mean + z * sigma or the largest hour */
	double mem_bytes, mem_limit_bytes; /* working-set maxima or the largest hour */
};
/*
 * With a pod that is on no node, too (PLACE_NONE: none). False: the cap is off or the node's use is
 * not known.
 */
bool place_predict(const struct place *p, place_node n, place_pod pod,
		   struct place_prediction *out);

/* --- changes */

/* A position in the log of changes, which place_update() reverts and clears. */
typedef size_t place_mark;
place_mark place_fork(const struct place *p);
/* Undoes all changes after the mark. 0: back to the view. */
void place_revert(struct place *p, place_mark m);
/* Checks no filter. The pod must be on no node. Binds and allocates waiting claims. */
void place_put(struct place *p, place_pod pod, place_node n);
void place_take(struct place *p, place_pod pod); /* it must be on a node */
/* The node takes no more pods; its pods stay, and its domains count for topology spread. */
void place_remove_node(struct place *p, place_node n);
/* The same for a cordoned node, which spread that honours taints does not count (a ghost). */
void place_drain_node(struct place *p, place_node n);

/* --- queries */

/* How many nodes each filter refused. */
struct place_counts {
	uint32_t of[PLACE_FILTERS];
	place_node nearest; /* refused by PLACE_USE_CAP with the least excess, by share */
	double excess;
};

/* "refused":{FILTER: nodes}, of the filters that refused any. */
void place_counts_write(const struct place_counts *c, struct jsonw *w);

/*
 * The first filter that refuses; no allocation. A pod on a node counts there: take it first. A bound
 * pod of a DaemonSet fits only its node (PLACE_NODE_AFFINITY); a pod with scheduling gates is
 * PLACE_UNKNOWN.
 */
enum place_filter place_check(struct place *p, place_pod pod, place_node n);
/* Whether labels, taints and cordon admit the pod. */
bool place_admits(struct place *p, place_pod pod, place_node n);
/* Equal for pods that the same nodes admit, until a node is removed or place_update(). NULL: unknown. */
const void *place_admission(const struct place *p, place_pod pod);
/*
 * Whether adding or removing `other` can change affinity or topology spread of `pod`. Anti-affinity
 * and host ports are symmetric: a new pod displaces none.
 */
bool place_minds(const struct place *p, place_pod pod, place_pod other);
/* place_check() with a sentence and numbers. */
enum place_filter place_explain(struct place *p, place_pod pod, place_node n, struct error *error);
bool place_is_gone(const struct place *p, place_node n);
/* Whether the pod requests more of that resource (or "pods") than is free. */
bool place_lacks(const struct place *p, place_pod pod, place_node n, const char *resource);
/* Whether the empty node could hold the pod. */
bool place_could_hold(const struct place *p, place_pod pod, place_node n);
/* place_explain() of labels, taints and cordon alone, also of removed nodes. */
enum place_filter place_explain_admission(struct place *p, place_pod pod, place_node n,
					  struct error *error);
/*
 * The destination: the hint (or PLACE_NONE) if it fits, else the first in that order. Nodes that are
 * not `allowed` (by node; NULL: all) are not counted. PLACE_NONE: none; counts (or NULL): refusals.
 */
place_node place_choose(struct place *p, place_pod pod, enum place_order order, place_node hint,
			const bool *allowed, struct place_counts *counts);
