/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edge of the actuator: reads what a step needs from the API server, and carries out what the
 * step decided. The aggregator's answers come through the same server.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/actuator/act.h"
#include "aggregator/actuator/lease.h"
#include "aggregator/edge/kube/event_writer.h"
#include "aggregator/edge/kube/session.h"
#include "aggregator/model/labels.h"

#define EDGE_GROUP "/apis/evenkeel.io/v1"

/* JSON documents and texts that a step borrows from. */
struct edge_heap {
	cJSON **docs; /* owned, as are the texts */
	char **texts;
	size_t doc_count, text_count;
};

/* A node that a request of a person names. */
struct edge_named {
	const char *node; /* borrowed */
	bool drain, undo; /* of an open request, which is no dry run */
};

/* How the pods of an owner are listed; kept until no drain is left. */
struct edge_owner {
	char *uid, *namespace, *selector; /* owned; selector: escaped, or "" */
};

struct edge {
	struct kube_call call;
	struct lease *lease; /* borrowed; NULL in tests: requests are not fenced */
	const struct selector *selector; /* borrowed; NULL: every node */
	bool dry_run;
	int64_t transitions; /* of the lease, for the field manager */

	/* from step to step */
	bool silent; /* logged: no Events */
	long status; /* HTTP, of the last request; 0: no answer */
	char **marked; /* owned: names of nodes with a drain */
	size_t marked_count;
	int64_t listed_ns; /* monotonic: when they were listed; 0: never */
	struct edge_owner *owners; /* owned */
	size_t owner_count;
	double taint_seen_s; /* aggregator's clock: a snapshot had the taints; 0: none */
	char taint_run[32]; /* of that aggregator (plan_ask.h) */
	struct error logged; /* the last refusal of a plan */
	int64_t offered_ns; /* monotonic: when a plan was read for an offer */
	cJSON *promise; /* owned: {"cap","destinations"} of the proof; NULL: none */
	char eviction_api[32];

	/* of this step: edge_end_step() zeroes all from here to the end */
	const cJSON *said; /* the answer of the last edge_send(), or NULL */
	struct edge_heap heap;
	struct act_node *nodes; /* owned */
	const cJSON **node_docs; /* owned */
	struct act_owner *ready; /* owned */
	struct act_cluster cluster;
	struct act_plan plan;
	const cJSON *plan_doc; /* the DrainPlan; NULL: not read */
	struct verify_plan offer, proof; /* of the plan; zeroes: none */
	struct error refusal;
	struct act_use *uses; /* owned */
	size_t use_count;
};

/* -EINVAL or -EACCES with the reason; stopping ends requests. */
int edge_open(struct edge *e, const struct kube_config *config, const atomic_bool *stopping,
	      struct error *error);
void edge_close(struct edge *e);
/* Forgets everything but the connection: the lease was lost. */
void edge_forget(struct edge *e);

/* The JSON document, which lives until edge_end_step(); NULL: it is none. */
cJSON *edge_parse(struct edge *e, const char *text, size_t len);
/* A GET within timeout_ms; the document lives until edge_end_step(). NULL with the reason. */
cJSON *edge_get(struct edge *e, const char *path, long timeout_ms, struct error *error);
void edge_drop(struct edge *e); /* frees the document of the last edge_get() already */
/* edge_get() without a document: the answer is text, in e->call.answer. Not 200: the reason. */
void edge_get_text(struct edge *e, const char *path, long timeout_ms, struct error *error);
/*
 * A request of at most 4 s. Its status, 0: no answer, or the lease does not allow it; *answer: the
 * API's message, borrowed until the next request.
 */
long edge_send(struct edge *e, enum kube_method method, const char *path, const struct buf *body,
	       const char **answer);
char *edge_keep(struct edge *e, char *text); /* takes the text until edge_end_step() */
/* The meaning of the status of a write and of the message of the API. */
enum act_result edge_result(long status, const char *answer);

/* --- read.c ----------------------------------------------------------------------------------- */

/*
 * Reads the nodes of drains, of the offer and of requests, with their pods and owners, into
 * e->cluster. -EIO with the reason: no step is possible.
 */
int edge_read_cluster(struct edge *e, const struct act_state *s, const struct edge_named *named,
		      size_t count, int64_t now_ns, struct error *error);
/* NULL: it was not read. */
struct act_node *edge_find_node(const struct edge *e, const char *name);

/* --- prove.c ---------------------------------------------------------------------------------- */

/*
 * Reads the newest plan, if the state wants an offer or a proof. Failures are its refusal, which is
 * logged unless it repeats the last one.
 */
void edge_read_plan(struct edge *e, const struct act_state *s, int64_t now_ns);
/*
 * Whether the other of two aggregators has the same plan as this one, or is gone: a document with the
 * plan's head (plan_ask.h) may be acted on. Else the reason.
 */
bool edge_is_agreed(const cJSON *doc, struct error *why);
/* Reads real use of the proof's destinations. */
void edge_read_uses(struct edge *e, const struct act_state *s);
/* Why a node is not in the newest plan, for people; the text lives until edge_end_step(). */
const char *edge_why_not(struct edge *e, const char *node);

/* --- carry.c ---------------------------------------------------------------------------------- */

/* Writes an Event. A row of failures is logged once. */
void edge_tell(struct edge *e, const struct object_event *event);
/* Carries out an action, and tells of it by an Event of the node. *answer as of edge_send(). */
enum act_result edge_carry_out(struct edge *e, const struct act_action *a, const char **answer);
void edge_end_step(struct edge *e);
