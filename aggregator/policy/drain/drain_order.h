/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which order candidates are asked: by scores, one after the other, the higher first; equal ones
 * by name, so that it is always the same.
 *
 *   upstream   empty nodes, then those that only wait for pods to end, then the others; among them
 *              candidates of the run before; then as they were given (upstream sorts unstably; this
 *              order is the one it would have if it did not)
 *   corrected  the same classes; then nodes on which no pod bursts; then the run before, which
 *              keeps waves from changing; then the cheapest to move first: fewer pods, less CPU in
 *              use, less memory in use; then by name
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_ORDER_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/policy/drain/drain_internal.h"
#include "aggregator/policy/drain/drain_options.h"

/* What is known of a candidate. */
struct drain_rank {
	const char *node;
	/*
	 * there is a node of that name; else it counts as one with pods, corrected: with the most
	 */
	bool known;
	size_t movable,
		waiting; /* pods that move (a blocked one, too), and pods whose end is waited for */
	bool before; /* it was a candidate of the run before */
	bool bursting; /* some pod uses more CPU now than it usually does */
	double cpu_milli,
		working_set_bytes; /* in use by the pods that move; 0 where it is not measured */
};

enum { DRAIN_SCORES = 6 };

/* Numbers of `ranks` in their order into `out`. */
void drain_order(enum drain_variant variant, const struct drain_rank *ranks, size_t count,
		 size_t *out);

/* --- what is known of a node */

/* What measurements say of a node and of its pods, as far as the planner asks. */

/* Fresh or late: its use may be believed. */
bool drain_is_measured(const struct view_node *n, int64_t now_ns);
/* Not measured, with pods that somebody would have to measure: other ones than of DaemonSets. */
bool drain_is_silent(const struct view_node *n, const struct kube_pod *const *pods, size_t count,
		     int64_t now_ns);
/*
 * A pod of the node that cannot be read: neither what it needs nor whether it may leave is known.
 * True: the reason names it, or says that there are more such pods than are told.
 */
bool drain_hides_pod(const struct cluster *cluster, const char *node, struct error *error);
/*
 * The larger share of CPU and working set (means of the longest window) of allocatable. False: not
 * known.
 */
bool drain_used_share(const struct view_node *n, int64_t now_ns, double *share);
/*
 * What the pods that move use now, and whether one bursts: uses much more CPU than it usually does.
 */
void drain_rank_use(const struct view_node *n, const struct kube_pod *const *move, size_t count,
		    struct drain_rank *rank);
/*
 * Of a node that requests hold: what it uses, what its pods would request were they right-sized,
 * and if that would free it, whose requests are the furthest from use.
 */
void drain_explain_idle(const struct drain_run *r, struct drain_case *c,
			const struct drain_utilization *u);

#endif
