/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places several pods together: by priority, the highest first; within a priority first the pods
 * whose hint still fits, then the others in the given order. Each placement counts for the next.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_SIMULATE_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/policy/place/place.h"

struct drain_item {
	place_pod pod; /* nowhere */
	place_node hint; /* PLACE_NONE: none */
	place_node to; /* out; PLACE_NONE: nowhere */
	uint32_t after; /* of a guest: pods of the node itself that are placed before it */
};

struct drain_schedule {
	struct place *place;
	enum place_order order;
	const bool *allowed; /* by node; NULL: all */
	bool all_or_none; /* ends at the first pod that fits nowhere; the caller reverts */
	bool (*out_of_time)(void *context); /* called before each pod; NULL: never */
	void *context;
};

/*
 * Sorts the items by the order of placement and returns how many are placed. *failed is the first
 * that fits nowhere, or NULL, and *counts its refusals; both may be NULL.
 */
size_t drain_schedule_pods(const struct drain_schedule *s, struct drain_item *items, size_t count,
			   const struct drain_item **failed, struct place_counts *counts);

#endif
