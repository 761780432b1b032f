/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Since when each node is unneeded. Plain records, sorted by node, that can be written down and
 * read back.
 *
 *   in the candidate set     the timer starts, or runs on
 *   examined, and not in it  the timer is dropped, and starts anew when the node comes back (as in cluster-autoscaler)
 *   a pod moved there        corrected: starts anew (drain_plan.c), so that none moves twice within it
 *   gone from the cluster    dropped
 *   not examined             upstream: dropped. corrected: runs on: nobody found out anything against it
 *   in deletion              upstream: dropped, and a failed drain waits all over again. corrected: runs on
 *
 * A node that becomes ready or unready keeps its time, and waits for the other threshold from then
 * on.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_TIMERS_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/object.h"
#include "aggregator/policy/drain/drain_options.h"

enum drain_timer_kind { DRAIN_TIMER_UNNEEDED, DRAIN_TIMER_UNREADY };

struct drain_timer {
	char *node; /* owned */
	int64_t since_ns;
	enum drain_timer_kind kind; /* which threshold counts */
};

/* Sorted by node, each once. */
struct drain_timers {
	struct drain_timer *of; /* owned */
	size_t count;
};

enum drain_seen { DRAIN_SEEN_UNNEEDED, DRAIN_SEEN_NEEDED, DRAIN_SEEN_DELETED, DRAIN_NOT_SEEN };

/* What a run found out about a node of the cluster. */
struct drain_sight {
	const char *node;
	enum drain_seen seen;
	bool ready;
};

void drain_timers_fini(struct drain_timers *t);
/* All nodes of the cluster, in any order, each once. */
void drain_timers_update(struct drain_timers *t, enum drain_variant variant,
			 const struct drain_sight *nodes, size_t count, int64_t now_ns);
/* NULL: the node is not unneeded. */
const struct drain_timer *drain_timers_find(const struct drain_timers *t, const char *node);
/*
 * After a restart, in place of what is there: records that were saved at saved_ns. None, if that is
 * longer ago than ttl_ns: who knows what the nodes did. A time that is still to come is now.
 */
void drain_timers_load(struct drain_timers *t, const struct drain_timer *records, size_t count,
		       int64_t saved_ns, int64_t ttl_ns, int64_t now_ns);

/*
 * Whether the node was unneeded for longer than its threshold: NONE, NOT_UNNEEDED_LONG_ENOUGH or
 * NOT_UNREADY_LONG_ENOUGH.
 */
enum drain_reason drain_timer_due(const struct drain_timer *t, const struct drain_options *o,
				  int64_t now_ns);
/* When it is; the first moment it is due is one nanosecond later. */
int64_t drain_timer_due_ns(const struct drain_timer *t, const struct drain_options *o);

/*
 * How many unneeded nodes upstream looks for: as many as may be deleted before the next ones are
 * due. before: unneeded nodes of the run before; n: nodes deleted at once.
 *     min(before + 2n, n * floor(max(unneeded, loop) / loop) + n)
 * Corrected looks for all there are: INT64_MAX.
 */
int64_t drain_unneeded_limit(enum drain_variant variant, int64_t before, int64_t n,
			     int64_t unneeded_ns, int64_t loop_ns);

/* --- failed simulations */

/*
 * Which nodes could not be drained, and why: reasons of this run, and for a while those of failed
 * simulations, which need not be repeated at once.
 *
 *   upstream   with each run all reasons go; of a node that failed only its time stays, so that
 *              nobody can tell why any more
 *   corrected  the reason stays as long as the time
 */

struct drain_failure {
	char *node; /* owned */
	enum drain_reason reason; /* DRAIN_NONE: forgotten, only the time is left */
	char *why; /* owned; a sentence, NULL where there is none */
	int64_t until_ns; /* it is not asked again before; 0: in the next run */
	void *details; /* owned, one block of the caller; NULL: none, as after a restart */
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
/* Copies the details of the reason that was just added. */
void drain_unremovable_tell(struct drain_unremovable *u, const char *node, const void *details,
			    size_t size);
/* NULL unless a simulation of it failed a while ago, and its time is not up. */
const struct drain_failure *drain_unremovable_recent(const struct drain_unremovable *u,
						     const char *node);

#endif
