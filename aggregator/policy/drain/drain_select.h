/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From unneeded to "may go now": which nodes of the candidate set have waited long enough, leave
 * their group and the cluster enough, and are not held back by the rest of an atomic group or by
 * pods that end by themselves.
 *
 *   upstream   time and room of each node, empty ones first; then drains that their budgets allow
 *              at once before risky ones; then atomic groups that are not complete go, whose room
 *              stays used; then nodes with pods to wait for, which may leave a group incomplete
 *   corrected  time; then waiting, of which an atomic group waits as a whole; then atomic groups;
 *              then room, an atomic group all or none. What fails takes no room. The order is the
 *              caller's (drain_order.h), empty ones first, risky ones last.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_SELECT_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/drain/drain_groups.h"
#include "aggregator/policy/drain/drain_options.h"
#include "aggregator/policy/drain/drain_timers.h"

struct drain_removable {
	/* of the caller, borrowed */
	const struct kube_node *node;
	const struct drain_timer *timer; /* NULL: it is not unneeded */
	uint32_t group; /* DRAIN_NO_GROUP: none */
	struct drain_floor gives; /* what the cluster loses with it */
	size_t movable, waiting; /* pods that move, and pods whose end is waited for */
	bool risky; /* its budgets do not allow all at once */
	/* of drain_select() */
	enum drain_reason reason; /* DRAIN_NONE: it may go */
	struct error error; /* one sentence, "" where there is none */
};

/* Numbers of the nodes that may go, in the order they should. */
struct drain_choice {
	size_t *empty, *drain; /* owned */
	size_t empty_count, drain_count;
};

void drain_select(const struct drain_options *o, struct drain_groups *g,
		  struct drain_removable *nodes, size_t count, int64_t now_ns,
		  struct drain_choice *out);
void drain_choice_fini(struct drain_choice *c);

/* The steps, each for nodes whose reason is DRAIN_NONE. */

/*
 * Time only: UnexpectedError (a threshold below 0 is not known), ScaleDownDisabledAnnotation,
 * NotUnneededLongEnough, NotUnreadyLongEnough.
 */
void drain_select_due(const struct drain_options *o, struct drain_removable *n, int64_t now_ns);
/* NotAutoscaled, NodeGroupMinSizeReached, MinimalResourceLimitExceeded; else the room is used. */
void drain_select_room(struct drain_groups *g, struct drain_removable *n);
/* NotAutoscaled, and AtomicScaleDownFailed where not all of an atomic group are left. */
void drain_select_atomic(const struct drain_groups *g, struct drain_removable *nodes, size_t count);

#endif
