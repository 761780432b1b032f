/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Since when each node is unneeded. Plain records, sorted by node, that can be saved and loaded.
 *
 *   in the candidate set      the timer starts or runs on
 *   examined, and not in it   the timer is dropped (as in cluster-autoscaler)
 *   a pod moved to the node   corrected: the timer restarts (drain_plan.c)
 *   gone from the cluster     dropped
 *   not examined              upstream: dropped. corrected: runs on
 *   in deletion               upstream: dropped. corrected: runs on
 *
 * A node that becomes ready or unready keeps its time under the other threshold.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/drain/drain.h"

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

/* Nodes that were not simulated, and those in deletion, have no verdict. */
enum drain_seen { DRAIN_SEEN_UNNEEDED, DRAIN_SEEN_NEEDED, DRAIN_NO_VERDICT };

/* The result of a run for a node. */
struct drain_result {
	const char *node;
	enum drain_seen seen;
	bool ready;
};

void drain_timers_fini(struct drain_timers *t);
/* All nodes of the cluster, in any order, each once. A future time becomes now. */
void drain_timers_update(struct drain_timers *t, enum drain_variant variant,
			 const struct drain_result *nodes, size_t count, int64_t now_ns);
/* NULL: the node is not unneeded. */
const struct drain_timer *drain_timers_find(const struct drain_timers *t, const char *node);
/*
 * Adds a record that was saved at saved_ns, unless that is longer ago than ttl_ns. A future time
 * becomes now; of two times of a node the later counts: it waits longer.
 */
void drain_timers_load(struct drain_timers *t, const struct drain_timer *record, int64_t saved_ns,
		       int64_t ttl_ns, int64_t now_ns);

/* NONE past the threshold, else NOT_UNNEEDED_LONG_ENOUGH or NOT_UNREADY_LONG_ENOUGH. */
enum drain_reason drain_timer_due(const struct drain_timer *t, const struct drain_options *o,
				  int64_t now_ns);
/* The time that it must run for; negative: not known. */
int64_t drain_timer_threshold_ns(const struct drain_timer *t, const struct drain_options *o);
/* When the threshold ends; the timer is due after that. */
int64_t drain_timer_due_ns(const struct drain_timer *t, const struct drain_options *o);

/*
 * How many unneeded nodes upstream searches: as many as can be deleted before the next are due.
 * before: unneeded nodes of the run before; n: nodes deleted at once.
 *     min(before + 2n, n * floor(max(unneeded, loop) / loop) + n)
 * corrected: INT64_MAX.
 */
int64_t drain_unneeded_limit(enum drain_variant variant, int64_t before, int64_t n,
			     int64_t unneeded_ns, int64_t loop_ns);

/* --- failed simulations */

/*
 * Nodes whose simulation failed, and why, until their recheck.
 *
 *   upstream   a new run keeps only the time of a failure
 *   corrected  the reason stays as long as the time
 */

struct drain_failure {
	char *node; /* owned */
	struct drain_why why; /* without its pod; code NONE: forgotten, only the time is left */
	int64_t until_ns; /* not simulated before */
};

/* Sorted by node. All zero at first. */
struct drain_unremovable {
	struct drain_failure *of; /* owned */
	size_t count;
};

void drain_unremovable_fini(struct drain_unremovable *u);
/*
 * A run begins: drops nodes that are not in `nodes`, sorted by name, and failures that expired or are
 * further ahead than the recheck: the clock was set back.
 */
void drain_unremovable_update(struct drain_unremovable *u, const struct drain_options *o,
			      const struct drain_plan_node *nodes, size_t count, int64_t now_ns);
/* Replaces the node's entry by a copy, of which the text may be NULL. */
void drain_unremovable_add(struct drain_unremovable *u, const char *node,
			   const struct drain_why *why, int64_t until_ns);
/* A failed simulation before its recheck, or NULL. */
const struct drain_failure *drain_unremovable_recent(const struct drain_unremovable *u,
						     const char *node);
