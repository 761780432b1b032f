/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fits where: one exact simulation of the kube-scheduler's filters over the whole cluster,
 * which can be changed and undone, for drain, slack and quota alike. Pure and deterministic; ties
 * go by name.
 *
 * Pods collapse into classes (equal scheduling fields in one namespace), nodes into signatures
 * (equal labels and taints), so that what depends on both alone is decided once per pair. What
 * cannot be judged refuses, and says why: never "fits".
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_PLACE_PLACE_H
#define EVENKEEL_AGGREGATOR_POLICY_PLACE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/view.h"
#include "shared/buf.h"
#include "shared/error.h"

/* In the order they are asked; the first that refuses is the one that is told. */
enum place_filter {
	PLACE_FITS, /* none refuses */
	/* the node is removed (place_remove_node()), in deletion, or a condition says that it ends */
	PLACE_GONE,
	PLACE_FIT, /* CPU, memory, ephemeral storage, pods, extended resources */
	PLACE_TAINTS,
	PLACE_NODE_AFFINITY, /* nodeSelector and required node affinity */
	PLACE_FEATURES, /* of the kubelet, that the pod needs and the node does not declare */
	PLACE_UNSCHEDULABLE,
	PLACE_ANTI_AFFINITY, /* of the pod, and of pods that are there */
	PLACE_AFFINITY,
	PLACE_SPREAD, /* DoNotSchedule */
	PLACE_HOST_PORTS,
	/*
	 * What the kube-scheduler (1.20 to today) says of claims, bound ones and those that wait
	 * for their first pod. place_put() binds what waits: no volume is for two claims, and until
	 * the put is reverted (not by place_take()) the claim stands there. The free capacity
	 * of drivers is not known.
	 */
	PLACE_VOLUMES,
	PLACE_VOLUME_LIMITS, /* a driver attaches no more volumes to the node */
	PLACE_USE_CAP, /* real use, not the scheduler's: see struct place_cap */
	PLACE_SILENT, /* not measured, contended or expired: refuses under the real-use cap */
	/*
	 * A field that nobody here can judge: resource claims, an operator of tomorrow, more than
	 * 64 terms of a list or 2048 values of a field.
	 */
	PLACE_UNKNOWN,
	PLACE_FILTERS
};

const char *place_filter_name(
	enum place_filter f); /* "fits", "NodeResourcesFit", "TaintToleration", .., "RealUseCap" */

/*
 * Real use may forbid what requests allow, never the other way round:
 *   CPU       sum of means + z * sqrt(sum of variances) <= cpu_share * allocatable, as if pods were independent
 *   memory    sum of working-set maxima <= mem_share * allocatable
 *   by hour   sum of the pods' peaks in each hour of the day (where a pod has none, its mean or maximum) likewise, both
 * A node's sums are what its pods use, and what the node uses beyond its measured pods
 * (window_longest() of the node, 15 minutes of pods; at least 0 each). A pod that is not measured
 * counts as its owner's mean, else as its requests; if it was there as long as the window is, at
 * least as its share of what the node uses beyond its measured pods (place_use_is_shared()). The
 * cap is off where no node of the view is
 * measured at all (place_cap_applies()).
 */
struct place_cap {
	bool on;
	double cpu_share, mem_share; /* 0.85, 0.90 */
	double z; /* 2.33 */
	double contention; /* a node above this share of waiting refuses, 0.1 */
};

enum place_order {
	PLACE_FULLEST_FIRST, /* by requested CPU and memory, the larger share; ties by name */
	PLACE_EMPTIEST_FIRST,
	PLACE_CYCLIC, /* first fit, from behind the last node that was chosen */
};

struct place_options {
	struct place_cap cap;
	bool plans; /* pods are moved by plans, so nodes under maintenance take none */
	int64_t now_ns;
	/* Asked again and again while a view is read: true ends that. NULL: never. */
	bool (*out_of_time)(void *ctx);
	void *ctx;
};

void place_options_default(struct place_options *o);

struct place;
typedef uint32_t place_pod; /* handle of a pod in the simulation; stays valid while it lives */
typedef uint32_t place_node;
#define PLACE_NONE UINT32_MAX

/*
 * Everything that is in the view, in one pass; the view is held. Pods that are bound are on their
 * nodes, pending ones nowhere, and those that ended (Succeeded, Failed) are left out. Nodes are
 * numbered in the order of their names, as in the view. One that the API does not know is there for
 * its pods only (PLACE_GONE). NULL where its time was over.
 */
struct place *place_new(struct view *v, const struct place_options *o);
/*
 * The same as a new one of v, at the cost of what changed: what was moved or added in between is
 * undone. Handles of pods that are in both views stay; those of nodes do as long as no node comes
 * or goes. Only outside of marks. False where its time was over: then all that may follow is
 * place_free().
 */
bool place_update(struct place *p, struct view *v, int64_t now_ns);
/*
 * Between updates: all is undone as an update would, and the core lets go of its view and what that
 * has measured, for `rest` (view_without_pods()). Until the next place_update() nothing may be
 * asked or changed, and that sums up the use of all nodes anew.
 */
void place_rest(struct place *p, struct view *rest);
/* Whom updates ask from now on, as in the options. */
void place_set_limit(struct place *p, bool (*out_of_time)(void *ctx), void *ctx);
void place_free(struct place *p);

/* Whether real use is asked for: the option is on, and some node is measured. */
bool place_cap_applies(const struct place *p);
/* And whether the use of some pods is a share of their node's, as nobody measured them. */
bool place_use_is_shared(const struct place *p);

size_t place_node_count(const struct place *p);
place_node place_find_node(const struct place *p, const char *name); /* PLACE_NONE */
const char *place_node_name(const struct place *p, place_node n);
place_pod place_find_pod(const struct place *p, const char *namespace, const char *name);
/*
 * A pod of which only the record is known (POST /v1/fit, a placeholder); the record is held.
 * Nowhere at first. It and all that it names are forgotten at the next place_update().
 */
place_pod place_add_pod(struct place *p, const struct kube_pod *pod);
place_node place_where(const struct place *p, place_pod pod); /* PLACE_NONE: nowhere */
const struct kube_pod *place_pod_record(const struct place *p, place_pod pod);

/* Pods that are on the node now, in no order that means anything; PLACE_NONE behind the last. */
place_pod place_first_on(const struct place *p, place_node n);
place_pod place_next_on(const struct place *p, place_pod pod);

/* What the real-use cap sums up of a node as its pods are now. */
struct place_prediction {
	double cpu_milli,
		cpu_limit_milli; /* mean + z * sigma, or the largest hour where that is more */
	double mem_bytes, mem_limit_bytes; /* likewise of working-set maxima */
};
/* False where the cap is off, or the node is silent. */
bool place_predict(const struct place *p, place_node n, struct place_prediction *out);
/* The same were this pod, which is nowhere, there as well. */
bool place_predict_with(const struct place *p, place_pod pod, place_node n,
			struct place_prediction *out);

/* --- changes, each of which can be undone */

/* A place in the log of changes. Marks nest: who closes one closes all that were taken after it. */
typedef size_t place_mark;
place_mark place_fork(struct place *p);
/*
 * Every counter is again what it was, and the mark is closed. 0 goes back to the view, as long as
 * nothing was forgotten.
 */
void place_revert(struct place *p, place_mark m);
/*
 * Keeps what came after m, and closes the mark: an older one that is open can still undo it. When
 * none is open any more, how to undo is forgotten, and so a core that commits or reverts whatever
 * it tries holds no more than the changes of one plan. place_update() undoes all the same.
 */
void place_commit(struct place *p, place_mark m);
/*
 * Without asking any filter. The pod must be nowhere. Claims of its that wait are bound, if they
 * can be: see PLACE_VOLUMES.
 */
void place_put(struct place *p, place_pod pod, place_node n);
void place_take(struct place *p, place_pod pod); /* it must be somewhere */
/*
 * No destination any more. Its domains still count for topology spread until the mark is reverted
 * (a ghost). Its pods stay.
 */
void place_remove_node(struct place *p, place_node n);
/*
 * The same for a node that is cordoned and drained: spread that honours taints does not count it
 * any more.
 */
void place_drain_node(struct place *p, place_node n);

/* --- questions */

/* How many nodes each filter refused. */
struct place_counts {
	uint32_t of[PLACE_FILTERS];
	/*
	 * Of those that PLACE_USE_CAP refused, where there are any: the one that would exceed its
	 * limits least, by share; the first of equals.
	 */
	place_node nearest;
	double excess;
};

/*
 * The first filter that refuses; no allocation. A pod that is somewhere counts there like any
 * other: take it first to ask where else it fits. One that is bound and of a DaemonSet is for no
 * other node (PLACE_NODE_AFFINITY); one with scheduling gates is PLACE_UNKNOWN.
 */
enum place_filter place_check(struct place *p, place_pod pod, place_node n);
/*
 * Labels, taints and cordon alone: whether it may ever go there, whatever room there is and whoever
 * is there.
 */
bool place_admits(struct place *p, place_pod pod, place_node n);
/*
 * Pods with the same are admitted by the same nodes, until one is removed, cordoned or drained, or
 * the next place_update(). NULL: nothing is known of others.
 */
const void *place_admission(const struct place *p, place_pod pod);
/*
 * Whether pods like `other`, by coming or going, can turn what affinity or topology spread say of
 * `pod`. Anti-affinity and host ports are asked both ways, and so who came turns nobody out.
 */
bool place_minds(const struct place *p, place_pod pod, place_pod other);
/* As place_check(), and one sentence with the numbers. */
enum place_filter place_explain(struct place *p, place_pod pod, place_node n, struct error *error);
bool place_is_gone(const struct place *p, place_node n); /* no destination */
/* Whether the pod asks for more of that resource than is free there; "pods": of which it is one. */
bool place_lacks(const struct place *p, place_pod pod, place_node n, const char *resource);
/* Whether the node has as much of everything as the pod asks for, were it empty. */
bool place_could_hold(const struct place *p, place_pod pod, place_node n);
/*
 * The same of labels, taints and cordon alone: PLACE_FITS where they let it go there, whatever room
 * there is, and whether the node is removed or not. why may be NULL.
 */
enum place_filter place_explain_admission(struct place *p, place_pod pod, place_node n,
					  struct error *error);
/*
 * Where it would go: the hint if it fits there (PLACE_NONE: no hint), else the first in that order.
 * `allowed` (by node, NULL: all) leaves nodes out without counting them. PLACE_NONE: nowhere, and
 * counts (may be NULL) say why; they are 0 where it fits.
 */
place_node place_choose(struct place *p, place_pod pod, enum place_order order, place_node hint,
			const bool *allowed, struct place_counts *counts);

#endif
