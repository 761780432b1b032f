/* SPDX-License-Identifier: Apache-2.0 */
/* One question of a kube-scheduler, with all that its verbs need to answer it. */
#pragma once

#include "aggregator/api/api.h"
#include "aggregator/api/extender_json.h"
#include "aggregator/api/policy_options.h"
#include "aggregator/api/score_job.h"
#include "aggregator/state/reservations.h"

struct extender_call {
	const struct api_context *ctx; /* borrowed */
	enum extender_verb verb;
	int64_t now_ns;
	bool fresh; /* the view was refreshed for this question: extender_call_refresh() */
	struct extender_args args;
	struct kube_pod *pod; /* held */
	struct reservations_copy *reservations; /* held; taken before the view */
	struct view *view; /* held */
	size_t *places; /* owned; of the nodes asked about in the view, node_count: not there */
	struct score_blend blend;
	struct score_args score_args;
	char workload[WORKLOAD_KEY_MAX + 1];
	struct score_ask ask; /* of the members above */
};

/* The Pod of a question, for the caller to drop. False: *rs says what is wrong with it. */
bool extender_read_pod(const cJSON *json, struct kube_pod **pod, struct api_response *rs);
/* Reads the question. False: *rs says what is wrong with it, and nothing is left to close. */
bool extender_call_open(struct extender_call *c, enum extender_verb verb,
			const struct api_context *ctx, const struct api_request *rq,
			struct api_response *rs);
/* Counts the time it took, too. */
void extender_call_close(struct extender_call *c);

/*
 * Whether the pod gets a reservation. One without a uid could never be released, and one that
 * has a node is the view's business: also where the question does not know of it yet
 * (reservations_remember()).
 */
bool extender_call_may_reserve(const struct extender_call *c);
/*
 * Reserves for the pod, on that node ("": on none yet). A failure is counted. seen: -EAGAIN, and
 * nothing is reserved, if more is reserved for other pods than this copy has; NULL: in any case.
 */
int extender_call_reserve(const struct extender_call *c, const char *node,
			  const struct reservations_copy *seen);
/* Tells another aggregator, if there is one, what is reserved for the pod: before the answer goes out. */
void extender_call_tell(const struct extender_call *c);
/*
 * False: an API is followed that did not list nodes, pods and quotas yet, and *rs says so (503). A
 * verdict without them would break limits that hold a moment later. rs may be NULL.
 */
bool extender_knows_cluster(const struct view *v, struct api_response *rs);
/* Takes copies of the reservations and the view anew. */
void extender_call_renew(struct extender_call *c);
/*
 * The same, once the view has all that arrived before, or EXTENDER_REFRESH_NS later: the bound is
 * below the httpTimeout of schedulers.
 */
#define EXTENDER_REFRESH_NS (100 * 1000000LL)
void extender_call_refresh(struct extender_call *c);

/* Which nodes of a view a question was about. One block; the caller frees it. */
struct extender_nodes {
	uint64_t set_version; /* node_set_version of the view */
	size_t count; /* its nodes */
	bool chosen[];
};

struct extender_nodes *extender_nodes_new(const struct view *v); /* none */
struct extender_nodes *extender_call_nodes(const struct extender_call *c);
/*
 * Asks once more, as of now, what filter was asked about that pod; of another set of nodes than the
 * view's all its nodes are asked about. For a rehearsal: nothing is counted or reserved. Ends with
 * extender_call_close_again().
 */
void extender_call_open_again(struct extender_call *c, const struct api_context *ctx,
			      struct kube_pod *pod, const struct extender_nodes *nodes);
void extender_call_close_again(struct extender_call *c);
/* Whether filter would let it pass on one of these nodes; nothing is reserved or counted. */
bool extender_filter_rehearse(const struct api_context *ctx, struct kube_pod *pod,
			      const struct extender_nodes *nodes);
/*
 * Whether preempt would find victims on one of these nodes; nobody is told of them. *retry_ns: the
 * next end of a minimum runtime or a window of evictions, 0: none holds victims back.
 */
bool extender_preempt_rehearse(const struct api_context *ctx, struct kube_pod *pod,
			       const struct extender_nodes *nodes, int64_t *retry_ns);
