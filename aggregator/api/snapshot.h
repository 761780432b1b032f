/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster out of files: what kubectl prints, our own Snapshot, and measurements, as a view at one
 * moment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/view.h"
#include "shared/buf.h"
#include "shared/error.h"

/*
 * A Snapshot, as GET /v1/snapshot streams it:
 *
 *   {"apiVersion":"evenkeel.io/v1","kind":"Snapshot","time":T[,"aggregatorRun":ID],
 *    "sources":[{"kind":K,"apiVersion":S,"state":S,"changed":T[,"message":S][,"skipped":I][,"skippedLast":S][,"unreadable":[{"namespace","name"[,"node"],"reason"}..][,"moreUnreadable":true]]}..],
 *    "list":{"apiVersion":"v1","kind":"List","items":[OBJECT..]},
 *    "usage":{"apiVersion":"evenkeel.io/v2","kind":"Usage","time":T,"nodes":[..],"pods":[..]},
 *    "state":{["ledger":[..]][,"workloads":[..]][,"demand":[..]][,"slack":{..}][,"drain":{..}]}}
 *
 * Times of documents with the same aggregatorRun (plan_ask.h) are of one clock; without a plan it is
 * absent.
 *
 * Objects stand in the order of enum object_kind, then of namespace and name; nodes and pods of
 * usage (stats_json.h) by node and name. "sources" is there where an API is followed and tells how
 * complete each kind was. "state" is what is remembered: ledger, the reservations, what was
 * promised to pods and is not among the objects yet (snapshot_parts.c); workloads, what their pods
 * used (workload_memory.h); demand, what their containers demanded (demand.h); slack, where placeholders stand (slack_memory.h); drain, timers and
 * what else is remembered of drains (drain.h).
 */

/* Objects that were left out while reading. */
struct snapshot_notes {
	size_t skipped; /* objects and measurements that could not be read or used */
	/*
	 * a line for each of the first SNAPSHOT_NOTES_MAX of them, and for what else is worth
	 * knowing
	 */
	struct buf text;
};

enum { SNAPSHOT_NOTES_MAX = 20 };

struct cluster;
struct jsonw;
struct model;
struct plan_memory;
struct shared_body;
struct reservations;
struct reservations_copy;
struct snapshot;

/* "sources" of a Snapshot. */
void snapshot_write_sources(struct jsonw *w, const struct cluster *c);

/* The sources of "state"; all borrowed. */
struct snapshot_state {
	const struct view *view;
	const struct reservations_copy *reservations; /* NULL: there is none */
	struct shared_body *const *plan; /* memory of a plan, by part; NULL: there is none, .. */
	const struct plan_memory *remembered; /* .. but this memory (NULL: nothing) */
	bool memory; /* with the workloads and demand of the view */
};

void snapshot_write_state(struct jsonw *w, const struct snapshot_state *s);

struct snapshot *snapshot_new(void);
void snapshot_free(struct snapshot *s); /* NULL is allowed */
/*
 * Reads a file, in memory: JSON or YAML, any number of documents, each of them a v1 List, a typed
 * list (PodList), a single object, or a Snapshot, which is then alone. Objects of kinds that are
 * not kept (object.h) are passed over; one that cannot be read is skipped and noted; of two of one
 * name the first counts. -EINVAL with the reason, which names the file.
 */
int snapshot_add(struct snapshot *s, const char *name, const char *text, size_t len,
		 struct error *error);
/*
 * Reads measurements: a Usage object, or an answer of /watcher, of ours, of a load-watcher, or in
 * the form that KEP-61 describes. Such percentages are of the capacity of the snapshot's nodes;
 * there is no minimum, maximum or percentile in them, and a deviation that is not told is 0. Once,
 * and not with a Snapshot, which has its own.
 */
int snapshot_add_usage(struct snapshot *s, const char *name, const char *text, size_t len,
		       struct error *error);
/*
 * In place of files: a view, which is taken, its moment, and "state" as text. -EINVAL with the
 * reason.
 */
int snapshot_use_view(struct snapshot *s, struct view *v, int64_t now_ns, const char *state,
		      size_t len, struct error *error);
/* Sets the sources of a model by the text of "sources". -EINVAL with the reason. */
int snapshot_set_sources(struct model *m, const char *sources, size_t len, struct error *error);
/*
 * All of it as a view, and its moment: the Snapshot's time; else the newest time in the
 * measurements; else the newest among creationTimestamp, status.startTime, and lastHeartbeatTime
 * and lastTransitionTime of status.conditions; else 1970.
 */
int snapshot_view(struct snapshot *s, struct view **v, int64_t *now_ns, struct error *error);
/*
 * The objects alone, and whatever was measured left aside; the caller's. -EINVAL: there are none.
 */
int snapshot_take_model(struct snapshot *s, struct model **m, struct error *error);
/* The reservations of that moment; the caller's. Once. */
struct reservations *snapshot_take_reservations(struct snapshot *s);
/* The memory of plans at that moment; the caller's, for plan_memory_fini(). Once. */
void snapshot_take_memory(struct snapshot *s, struct plan_memory *m);
const struct snapshot_notes *snapshot_notes(const struct snapshot *s);
