/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the wave that was chosen into the plan: nodes, moves, destinations with what they will
 * use, what it costs budgets and owners.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_RECORD_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_RECORD_H

#include "aggregator/policy/drain/drain_internal.h"

struct drain_picked {
	struct drain_case *c;
	const struct drain_item *items; /* its own pods */
	size_t count;
};

/* The wave is in the simulation, which is taken back to `before`, its start. */
void drain_record_wave(struct drain_run *r, const struct drain_picked *picked, size_t count,
		       place_mark before);

/* Of nodes that stay as destinations, once the wave is recorded. */
void drain_record_kept(struct drain_run *r);

#endif
