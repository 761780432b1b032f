/* SPDX-License-Identifier: Apache-2.0 */
/* The members of struct drain_state, for the files that keep, write and read it. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_STATE_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_STATE_H

#include "aggregator/policy/drain/drain.h"
#include "aggregator/policy/drain/drain_timers.h"
#include "shared/hash.h"

struct drain_eviction {
	struct kube_pod *pod; /* held; its node is where it was */
	int64_t when_ns;
	bool leaving; /* a drain evicted it; else preemption or a person did */
};

/* The destination of a pod in the last simulation, in one block. */
struct drain_hint {
	UT_hash_handle hh;
	const char *node; /* in the block */
	char uid[]; /* key */
};

/* The last recorded verdict of a node. */
struct drain_told {
	char *node; /* owned */
	enum drain_event event;
	enum drain_reason reason;
	bool seen; /* in the step at hand */
};

struct drain_state {
	struct drain_timers timers;
	struct drain_unremovable failed;
	struct drain_eviction *evictions; /* owned; the oldest first */
	size_t eviction_count, eviction_room;
	struct drain_hint *hints;
	struct drain_record *history; /* owned; the oldest first */
	size_t history_count;
	struct drain_record *fresh; /* owned; of the step at hand */
	size_t fresh_count, fresh_room;
	struct drain_told *told; /* owned; sorted by node */
	size_t told_count, told_room;
	char *wave; /* owned; the last recorded wave; NULL: none */
	struct cluster *seen; /* held; of the last step; NULL: none yet */
	int64_t last_ns; /* of the last step; 0: none yet */
	int64_t loop_ns; /* the shortest time between two steps; 0: not known */
	bool freed; /* room may have become free since the last step */
	/* Requests of the last step's placeholders; RESOURCE_PODS is their number. */
	double slack[RESOURCE_STANDARD];
};

/* A step begins: finds evictions since the last one, and drops old ones. */
void drain_state_see(struct drain_state *s, const struct drain_input *in,
		     const struct drain_options *o);
/* NULL: none. */
const char *drain_state_hint(const struct drain_state *s, const char *uid);
/* Replaces an older hint; adds none beyond DRAIN_HINTS_MAX. */
void drain_state_set_hint(struct drain_state *s, const char *uid, const char *node);
/* The record with name and uid of the pod in a list in the order of a view; NULL: none. */
const struct kube_pod *drain_find_pod(const struct kube_pod *const *list, size_t count,
				      const struct kube_pod *pod);
void drain_hints_free(struct drain_hint **hints);

/* --- drain_history.c */

/* Adds a record to the history, within its bound. */
void drain_history_add(struct drain_state *s, const struct drain_record *record);
/* Adds a record to the history and the step, within their bounds. */
void drain_state_note(struct drain_state *s, const struct drain_record *record);
/* Replaces the last verdict of the node. */
struct drain_told *drain_state_set_told(struct drain_state *s, const char *node,
					enum drain_event event, enum drain_reason reason);
void drain_history_clear(struct drain_state *s);

#endif
