/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From unneeded to "may go now": nodes that have been unneeded for long enough, whose removal keeps
 * the minima of group and cluster, and that neither their atomic group nor pods that end by
 * themselves hold back.
 *
 *   upstream   time and minima of each node, empty ones first; then drains that their budgets allow at
 *              once before risky ones; then incomplete atomic groups drop out, but still count in the minima;
 *              then nodes with pods to wait for, which may leave a group incomplete
 *   corrected  time; then waiting, as a whole for an atomic group; then atomic groups; then minima,
 *              all or none for an atomic group. A failed node does not count. The order is the caller's
 *              (drain_order.c), empty nodes first, risky ones last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/drain/drain_groups.h"
#include "aggregator/policy/drain/drain_options.h"
#include "aggregator/policy/drain/drain_timers.h"

enum drain_out { DRAIN_STILL_IN, DRAIN_NOT_NOW, DRAIN_NOT_ROBUST_NOW };

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
	/* of the wave */
	enum drain_out out;
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

/* Sets AtomicScaleDownFailed where not all of an atomic group may go, and NotAutoscaled. */
void drain_select_atomic(const struct drain_groups *g, struct drain_removable *nodes, size_t count);

/* --- how many start now */

/*
 * How many nodes start now, within the limits of parallel drains.
 *
 *     par = max - empty in progress - drains in progress      dr = max_drain - drains in progress
 *     1. atomic groups with empty nodes, e of them, and d to drain: need par >= e + d and dr >= d.
 *        The first group may exceed them while par and (if d > 0) dr are not 0; a group that may
 *        not start ends this step. An incomplete group is skipped. par -= e + d, dr -= d.
 *     2. dr = min(par, dr); atomic groups that only drain, by dr alike.
 *     3. other empty nodes, up to par; by group, in the order groups are first met
 *     4. dr = min(par, dr); other drains, up to dr, alike
 *
 * So single nodes do not starve atomic groups, and a group larger than the limit can start.
 *
 *   upstream   an atomic group also starts with a budget below 0
 *   corrected  nothing starts where nothing is left
 */

struct drain_budget {
	int64_t max, max_drain;
	int64_t empty_in_progress, drain_in_progress;
};

/*
 * Chooses from `from`, without nodes that are left out or in no group, into *out, by group. Returns
 * the number of nodes of complete groups without budget: throttled.
 */
size_t drain_budget_crop(const struct drain_budget *b, enum drain_variant variant,
			 const struct drain_groups *g, const struct drain_removable *nodes,
			 const struct drain_choice *from, struct drain_choice *out);
