/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which candidates are simulated: by scores, one after the other, higher first; ties by
 * name.
 *
 *   upstream   empty nodes, then nodes that only wait for pods to end, then the others; candidates of
 *              the run before first; then the given order (upstream's sort is unstable)
 *   corrected  the same classes; then nodes without a bursting pod; then the run before, for stable
 *              waves; then the cheapest to move: fewer pods, less CPU, less memory in use; then by name
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_ORDER_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/policy/drain/drain_internal.h"
#include "aggregator/policy/drain/drain_options.h"

/* A candidate in the order. */
struct drain_rank {
	const char *node;
	size_t movable; /* pods that move or block */
	size_t waiting; /* pods whose end is waited for */
	bool before; /* a candidate of the run before */
	bool bursting; /* some pod uses much more CPU than usual */
	double cpu_milli, working_set_bytes; /* used by pods that move; 0: not measured */
};

/* Numbers of `ranks` in their order into `out`. */
void drain_order(enum drain_variant variant, const struct drain_rank *ranks, size_t count,
		 size_t *out);

/* --- measurements of a node */

/* Fresh or late. */
bool drain_is_measured(const struct view_node *n, int64_t now_ns);
/* Not measured, with active pods that are not of DaemonSets. */
bool drain_is_silent(const struct view_node *n, const struct kube_pod *const *pods, size_t count,
		     int64_t now_ns);
/* Whether a pod of the node is, or may be, unreadable; the reason names it. */
bool drain_hides_pod(const struct cluster *cluster, const char *node, struct error *error);
/* The larger share of CPU and working set (means of the longest window). False: not known. */
bool drain_used_share(const struct view_node *n, int64_t now_ns, double *share);
/* Sets use and bursting of the rank, for the pods that move. */
void drain_rank_use(const struct view_node *n, const struct kube_pod *const *move, size_t count,
		    struct drain_rank *rank);
/*
 * Adds a reason if right-sized requests would make the node unneeded, with the pods whose requests
 * are furthest from their use.
 */
void drain_explain_idle(const struct drain_run *r, struct drain_case *c,
			const struct drain_utilization *u);

#endif
