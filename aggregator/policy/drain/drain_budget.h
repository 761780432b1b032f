/* SPDX-License-Identifier: Apache-2.0 */
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
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_BUDGET_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/drain/drain_groups.h"
#include "aggregator/policy/drain/drain_options.h"

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
