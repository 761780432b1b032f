/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes could not be drained, and why: reasons of this run, and for a while those of failed
 * simulations, which need not be repeated at once.
 *
 *   upstream   with each run all reasons go; of a node that failed only its time stays, so that
 *              nobody can tell why any more
 *   corrected  the reason stays as long as the time
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_UNREMOVABLE_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_UNREMOVABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/drain/drain_options.h"
#include "aggregator/policy/drain/drain_reason.h"

struct drain_failure {
	char *node; /* owned */
	enum drain_reason reason; /* DRAIN_NONE: forgotten, only the time is left */
	char *why; /* owned; a sentence, NULL where there is none */
	int64_t until_ns; /* it is not asked again before; 0: in the next run */
	/*
	 * owned, one block: what else the sentence's author keeps; NULL: nothing, as after a
	 * restart
	 */
	void *refusal;
};

/* Sorted by node. */
struct drain_unremovable {
	enum drain_variant variant;
	struct drain_failure *of; /* owned */
	size_t count, room;
};

void drain_unremovable_init(struct drain_unremovable *u, enum drain_variant variant);
void drain_unremovable_fini(struct drain_unremovable *u);
/*
 * A run begins: what has expired (until <= now), and nodes that are not among those of the cluster,
 * go. `nodes` is sorted by name.
 */
void drain_unremovable_update(struct drain_unremovable *u, const char *const *nodes, size_t count,
			      int64_t now_ns);
/*
 * In place of what was there of the node; strings are copied, why may be NULL. With until_ns 0 an
 * earlier time stays.
 */
void drain_unremovable_add(struct drain_unremovable *u, const char *node, enum drain_reason reason,
			   const char *why, int64_t until_ns);
/* A copy of what else there is to keep of the reason that was just added. */
void drain_unremovable_tell(struct drain_unremovable *u, const char *node, const void *refusal,
			    size_t size);
/* NULL unless a simulation of it failed a while ago, and its time is not up. */
const struct drain_failure *drain_unremovable_recent(const struct drain_unremovable *u,
						     const char *node);

#endif
