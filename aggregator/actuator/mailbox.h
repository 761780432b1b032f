/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of people and reports about what was done, by way of the aggregator: PUT of a report, whose
 * answer lists the requests. An aggregator that knows neither, or does not answer, changes nothing.
 */
#ifndef EVENKEEL_AGGREGATOR_ACTUATOR_MAILBOX_H
#define EVENKEEL_AGGREGATOR_ACTUATOR_MAILBOX_H

#include "aggregator/actuator/edge.h"

enum request_kind { REQUEST_DRAIN, REQUEST_UNDO, REQUEST_PAUSE, REQUEST_RESUME, REQUEST_KINDS };
enum request_state { REQUEST_TAKEN, REQUEST_REFUSED, REQUEST_DONE };

struct request {
	char *id; /* owned, as are the names */
	enum request_kind kind;
	enum request_state state;
	bool dry_run;
	char **nodes;
	size_t node_count;
	int64_t since_ns; /* monotonic */
	int64_t since_wall_ns; /* Unix */
	struct buf reasons; /* lines */
};

struct mailbox {
	/* fixed after init */
	char *lease_path; /* owned: of the pause */
	const char *acts; /* borrowed: of --act */

	struct request *requests; /* owned */
	size_t count;
	bool told; /* that reports fail */
};

void mailbox_init(struct mailbox *m, const char *lease_namespace, const char *lease_name,
		  const char *acts);
void mailbox_fini(struct mailbox *m);
/* Whether an open request names the node. */
bool mailbox_wants(const struct mailbox *m, enum request_kind kind, const char *node);
/* The nodes of open requests; the caller frees the array. */
const char **mailbox_nodes(const struct mailbox *m, size_t *count);
/* Ends open requests that a step has carried out or refused. */
void mailbox_follow(struct mailbox *m, struct edge *e, const struct act_state *s, int64_t now_ns);
/* Reports, and takes new requests. */
void mailbox_exchange(struct mailbox *m, struct edge *e, const struct act_state *s,
		      const char *holder, bool paused, int64_t now_ns);
/* Reports a wave that ended. */
void mailbox_report_wave(struct edge *e, const struct act_wave *w);

#endif
