/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where several pods would go together: those of one node, or any others. Groups of equal priority,
 * the highest first; in a group first the pods whose hint still fits, then the others as they are
 * given; each is put where it goes, so that the next one finds it there.
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
};

struct drain_schedule {
	struct place *place;
	enum place_order order;
	const bool *allowed; /* by node; NULL: all */
	/*
	 * At the first pod that fits nowhere it ends, and the rest are nowhere: the caller undoes
	 * it.
	 */
	bool all_or_none;
	bool (*out_of_time)(void *context); /* asked before each pod; NULL: never */
	void *context;
};

/*
 * Sorts the items by the order in which they were placed, which is the one they were asked in for
 * those that were not. Returns how many are placed; *failed (may be NULL) is the first that fits
 * nowhere, or NULL, and counts (may be NULL) say why.
 */
size_t drain_schedule_pods(const struct drain_schedule *s, struct drain_item *items, size_t count,
			   const struct drain_item **failed, struct place_counts *counts);

#endif
