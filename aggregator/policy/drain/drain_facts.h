/* SPDX-License-Identifier: Apache-2.0 */
/* What measurements say of a node and of its pods, as far as the planner asks. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_FACTS_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_FACTS_H

#include "aggregator/policy/drain/drain_internal.h"
#include "aggregator/policy/drain/drain_order.h"

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
