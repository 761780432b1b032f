/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of people and reports about what was done, by way of the aggregator: PUT of a report, whose
 * answer lists the requests. An aggregator that knows neither, or does not answer, changes nothing.
 */
#pragma once

#include "aggregator/actuator/reclaim.h"

struct request {
	cJSON *json; /* owned: {"id","action","nodes","dryRun",..}, as the aggregator lists it */
	const char *state; /* "taken", "refused" or "done" */
	int64_t since_ns; /* monotonic */
	int64_t since_wall_ns; /* Unix */
	cJSON *reasons; /* owned: texts */
};

struct mailbox {
	/* fixed after init */
	char *lease_path; /* owned: of the pause */
	char *const *acts; /* borrowed: of --act, ends with NULL */
	const char *holder; /* borrowed */

	struct request *requests; /* owned */
	size_t count;
	bool told; /* that reports fail */
};

void mailbox_init(struct mailbox *m, const char *lease_namespace, const char *lease_name,
		  char *const *acts, const char *holder);
void mailbox_fini(struct mailbox *m);
/* Forgets all requests: the aggregator lists the open ones to the next holder of the Lease. */
void mailbox_forget(struct mailbox *m);
/* The nodes of open requests; the caller frees the array. */
struct edge_named *mailbox_nodes(const struct mailbox *m, size_t *count);
/* Ends requests that a step has carried out or refused, reports, and takes new requests. */
void mailbox_exchange(struct mailbox *m, struct edge *e, const struct act_state *s,
		      const struct reclaim_state *reclaim, bool paused, int64_t now_ns);
/* Reports a wave that ended. */
void mailbox_report_wave(struct edge *e, const struct act_wave *w);
