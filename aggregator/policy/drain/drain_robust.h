/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a wave has room as well where the kube-scheduler chooses other nodes. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_ROBUST_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_ROBUST_H

#include "aggregator/policy/drain/drain_internal.h"

/* A node of the wave, which must not be in the simulation. */
struct drain_part {
	place_node node;
	const struct drain_item *items; /* borrowed */
	size_t real_count; /* of them that are no placeholders, and first */
};

/* The part one of whose pods has no place in another order, and why; SIZE_MAX: none was found. */
size_t drain_find_fragile(struct drain_run *r, const struct drain_part *of, size_t part_count,
			  struct error *error);
/* True: it is proven. */
bool drain_holds_in_any_order(struct drain_run *r, const struct drain_part *of, size_t part_count);

#endif
