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

/* --- how many start now */

/*
 * How many of the nodes that may go are started now, so that never more than a few are on their
 * way.
 *
 *     par = max - empty in progress - drains in progress      dr = max_drain - drains in progress
 *     1. atomic groups with empty nodes, e of them, and d to drain: need par >= e + d and dr >= d.
 *        One group may go over, as the first, where par and (if d > 0) dr are not 0; a group that
 *        may not ends this step. An incomplete group is passed over. par -= e + d, dr -= d.
 *     2. dr = min(par, dr); atomic groups that only drain, by dr alike.
 *     3. other empty nodes, up to par; by group, in the order groups are first met
 *     4. dr = min(par, dr); other drains, up to dr, alike
 *
 * So big atomic groups are not starved by single nodes, and one larger than the limit can go at
 * all.
 *
 *   upstream   a budget below 0 is not 0: with far too many on their way an atomic group still
 *              starts
 *   corrected  nothing starts where nothing is left
 */

struct drain_budget {
	int64_t max, max_drain;
	int64_t empty_in_progress, drain_in_progress;
};

/* A list of nodes by their groups; those of DRAIN_NO_GROUP are left out. */
struct drain_list {
	const uint32_t *groups;
	size_t count;
};

/* Numbers in the two lists, by group. */
struct drain_crop {
	size_t *empty, *drain; /* owned */
	size_t empty_count, drain_count;
	/* nodes of groups that are complete, for which there is no budget: throttled */
	size_t held;
};

void drain_budget_crop(const struct drain_budget *b, enum drain_variant variant,
		       const struct drain_groups *g, struct drain_list empty,
		       struct drain_list drain, struct drain_crop *out);
void drain_crop_fini(struct drain_crop *c);

#endif
