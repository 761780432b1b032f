/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /extender/filter: which of the nodes that passed the kube-scheduler's own filters may have
 * the pod. Every node of the request is in the answer, passed or refused with a reason, since the
 * scheduler does not preempt on a node that is in neither list. "Error" stays empty: it would fail
 * the pod as a whole.
 *
 * Quotas decide about the pod, so they refuse every node. Then the hard limits (node_limits.h)
 * refuse single nodes. Pods of DaemonSets and critical pods (priority of system-cluster-critical
 * and above) are exempt from limits and claims: no other node would do.
 *
 * A view may be 100 ms behind the API and a second behind the agents. Before a pod is refused on all
 * nodes the view is refreshed (extender_call_refresh()) and the decision repeated; otherwise a pod
 * would be refused for a victim that is gone already.
 *
 * Nodes that are not in the view (node_limits.c has those without measurements). While the list of
 * nodes is complete and followed, such a node was just deleted or is younger than the view: it is
 * refused, and the kubelet's first event brings the pod back.
 * Without such a list (standalone, not listed yet, a broken watch) it passes without limits.
 *
 * A nominated pod waits for its victims to go: its reservation (extender_preempt.c) stays, although
 * the filter refuses it meanwhile.
 *
 * The reason of a node is the kind of its refusal only, so that the scheduler adds nodes up; numbers
 * go to the log, to the pod's events (waiting_pods.h) and to /v1/scores. The reason of a quota is one
 * sentence for all nodes. A node refused by a limit is unresolvable: preemption would find no victims
 * there and fail with an error.
 *
 * Claimed room. A reservation may claim the room of a node whose pods are being evicted for its pod
 * (reservations.h). The kube-scheduler knows nothing of it, so such a node is refused to every other
 * pod that does not fit beside the claims and all else that is reserved there.
 *
 * A pod that passes is reserved: its quota, and its node if only one is left, since the scheduler
 * then skips prioritize. A refused pod is released, and remembered until it passes (waiting_pods.h).
 * If another reservation was made since the decision, the decision is repeated, at most TRIES_MAX
 * times; then the pod is refused.
 */
#include "aggregator/api/extender_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/quota_session.h"
#include "aggregator/api/waiting_pods.h"
#include "shared/clock.h"
#include "shared/mem.h"

enum { TRIES_MAX = 256, REFUSAL_TEXT = 512 };

static const char *const reasons[EXTENDER_REFUSALS] = {
#define X(name, label, reason) [EXTENDER_##name] = (reason),
	EXTENDER_REFUSALS_TABLE(X)
#undef X
};

/* The decision of the quotas about the pod. */
struct quota_refusal {
	atomic_uint_least64_t *counter; /* of such answers; NULL: none */
	/* Where they refuse: */
	bool unresolvable; /* no preemption can help */
	char why[REFUSAL_TEXT]; /* a sentence with the numbers and the way out */
};

/* The answer while it is made. */
struct sieve {
	const struct extender_call *call;
	struct extender_asked *passed; /* owned, as are */
	struct extender_refused *failed;
	size_t passed_count, failed_count;
	size_t refused[EXTENDER_REFUSALS]; /* nodes by kind; of QUOTA 1: all of them */
	struct quota_refusal quota;
	bool heeds_claims; /* some room is claimed for others, and the pod is not exempt */
	char detail[WAITING_DETAIL_MAX]; /* the numbers of the first node that was refused */
};

/* detail: the numbers, for people. */
static void refuse(struct sieve *s, size_t i, enum extender_refusal why, const char *detail)
{
	const char *node = s->call->args.nodes[i].name;

	if (!s->failed_count)
		snprintf(s->detail, sizeof(s->detail), "node %.100s: %s", node, detail);
	s->failed[s->failed_count++] = (struct extender_refused){node, reasons[why]};
	s->refused[why]++;
}

/* --- claimed room ----------------------------------------------------------------------------- */

/* Whether it is reserved for another pod that the view does not show on a node. */
static bool is_of_another(const struct extender_call *c, const struct reservation *e)
{
	uint64_t generation = c->view->cluster ? c->view->cluster->generation : 0;

	return strcmp(e->uid, c->pod->object.uid) != 0 && reservations_counts(e, generation);
}

/* Subtracts from the room of the node all that is reserved there; false: none of it is a claim. */
static bool subtract_reserved(const struct extender_call *c, const char *node,
			      struct resources *room)
{
	bool claimed = false;

	for (size_t i = 0; i < c->reservations->count; i++) {
		const struct reservation *e = c->reservations->of[i];

		if (strcmp(e->node, node) != 0 || !is_of_another(c, e))
			continue;
		claimed |= reservation_is_claim(e, c->now_ns);
		resources_subtract(room, &e->requests);
		resources_set(room, RESOURCE_PODS, room->of[RESOURCE_PODS] - 1);
	}
	return claimed;
}

/* The resource that the room lacks for the pod; NULL: none. */
static const char *find_lack(const struct resources *allocatable, const struct resources *room,
			     const struct resources *requests)
{
	const char *name;
	int64_t amount;
	size_t at = 0;

	if (resources_has(allocatable, RESOURCE_PODS) && room->of[RESOURCE_PODS] < 1)
		return "pods";
	while (resources_next(requests, &at, &name, &amount))
		if (amount > 0 && amount > resources_amount(room, name))
			return name;
	return NULL;
}

static bool is_claimed(const struct sieve *s, size_t i, char *detail, size_t size)
{
	const struct extender_call *c = s->call;
	const struct view_node *n;
	struct resources room;
	const char *lack = NULL;

	if (!s->heeds_claims || c->places[i] == c->view->node_count)
		return false;
	n = c->view->nodes[c->places[i]];
	if (!n->model || !n->model->node)
		return false;
	resources_copy(&room, &n->model->node->allocatable);
	resources_subtract(&room, &n->sums.requests);
	resources_set(&room, RESOURCE_PODS, room.of[RESOURCE_PODS] - n->sums.pods);
	if (subtract_reserved(c, n->name, &room))
		lack = find_lack(&n->model->node->allocatable, &room, kube_pod_requests(c->pod));
	if (lack)
		snprintf(detail, size, "its %.60s is claimed for a pod that victims make room for",
			 lack);
	resources_fini(&room);
	return lack;
}

static void pass(struct sieve *s, size_t i)
{
	char detail[128];

	if (is_claimed(s, i, detail, sizeof(detail)))
		refuse(s, i, EXTENDER_CLAIMED, detail);
	else
		s->passed[s->passed_count++] = s->call->args.nodes[i];
}

static bool any_claim(const struct extender_call *c)
{
	for (size_t i = 0; c->reservations && i < c->reservations->count; i++)
		if (reservation_is_claim(c->reservations->of[i], c->now_ns) &&
		    is_of_another(c, c->reservations->of[i]))
			return true;
	return false;
}

/* --- nodes that are not in the view ----------------------------------------------------------- */

static bool knows_all_nodes(const struct view *v)
{
	enum source_state state = v->cluster ? v->cluster->sources[OBJECT_NODE].state : SOURCE_NONE;

	return state == SOURCE_SYNCED || state == SOURCE_SNAPSHOT;
}

static void judge_unknown(struct sieve *s, size_t i)
{
	const struct extender_call *c = s->call;
	double age_s = (double)(c->now_ns - c->view->time_ns) / NS_PER_SEC;
	char detail[128];

	if (!knows_all_nodes(c->view)) {
		pass(s, i);
		return;
	}
	snprintf(detail, sizeof(detail),
		 "the API had no such node %.1f s ago: it may be gone, or new",
		 age_s > 0 ? age_s : 0);
	refuse(s, i, EXTENDER_UNKNOWN_NODE, detail);
}

/* --- limits of nodes -------------------------------------------------------------------------- */

static bool is_exempt(const struct kube_pod *pod)
{
	const struct pod_template *t = pod->template;

	return t->priority >= QUOTA_CRITICAL_PRIORITY || strcmp(t->owner.kind, "DaemonSet") == 0;
}

static void judge_by_limits(struct sieve *s, const struct score_job *job, size_t i,
			    const struct score_node *node)
{
	static const enum extender_refusal refusals[NODE_REFUSALS] = {
		[NODE_OVER_USE_CAP_CPU] = EXTENDER_USE_CAP_CPU,
		[NODE_OVER_USE_CAP_MEMORY] = EXTENDER_USE_CAP_MEMORY,
		[NODE_OVER_LIMIT_RATIO_CPU] = EXTENDER_LIMIT_RATIO_CPU,
		[NODE_OVER_LIMIT_RATIO_MEMORY] = EXTENDER_LIMIT_RATIO_MEMORY,
		[NODE_UNMEASURED] = EXTENDER_UNMEASURED,
	};
	char text[NODE_REFUSAL_TEXT];
	enum node_refusal why =
		node_limits_check(&s->call->ctx->extender->limits, &job->query, node, text);

	if (why == NODE_PASSES)
		pass(s, i);
	else
		refuse(s, i, refusals[why], text);
}

static void sieve_by_limits(struct sieve *s)
{
	const struct extender_call *c = s->call;
	const struct score_blend none = {.variant = SCORE_CORRECTED}; /* only inputs are needed */
	struct score_ask ask = c->ask;
	struct extender_nodes *asked = extender_call_nodes(c);
	const struct score_node **nodes;
	struct score_job job;
	size_t next = 0;

	ask.blend = &none;
	score_job_init(&job, &ask, asked->chosen);
	/* The inputs of each node of the view that is in the request. */
	nodes = mem_zalloc(asked->count + 1, sizeof(struct score_node *));
	for (size_t i = 0; i < asked->count; i++)
		if (asked->chosen[i])
			nodes[i] = &job.nodes[next++];
	for (size_t i = 0; i < c->args.count; i++) {
		if (c->places[i] == c->view->node_count)
			judge_unknown(s, i);
		else
			judge_by_limits(s, &job, i, nodes[c->places[i]]);
	}
	free(nodes);
	score_job_fini(&job);
	free(asked);
}

/* --- the pod as a whole ----------------------------------------------------------------------- */

static void refuse_all(struct sieve *s)
{
	const struct extender_args *args = &s->call->args;

	for (size_t i = 0; i < args->count; i++)
		s->failed[i] = (struct extender_refused){args->nodes[i].name, s->quota.why};
	s->failed_count = args->count;
	s->refused[EXTENDER_QUOTA] = 1;
	snprintf(s->detail, sizeof(s->detail), "%s", s->quota.why);
}

/*
 * Whether the quotas admit the pod, with all that is reserved for other pods (reservations.h). The
 * pod's own reservation is not counted. The sentence begins with the kind of refusal, so that
 * `kubectl describe pod` tells a refusal by quota from a lack of nodes. Victims can help against
 * every refusal except that of a pod that alone requests more than the max of its quota.
 *
 * If the API has no elastic quotas, or they are not known yet, every pod passes: installing the
 * extender must not stop a cluster.
 */
static bool is_admitted(struct sieve *s)
{
	const struct extender_call *call = s->call;
	/* Bound already, if the request is late: the pod is in the numbers. */
	bool bound = call->ctx->reservations &&
		     reservations_remembers(call->ctx->reservations, call->pod->object.uid);
	struct quota_verdict verdict;
	struct quota_session session;
	struct quota_ask ask;

	s->quota = (struct quota_refusal){0};
	quota_session_of(&session, call->ctx, call->reservations, call->view);
	ask = quota_session_ask(&session, call->pod, bound ? call->pod : NULL);
	quota_admit(session.book, &ask, &verdict);
	if (call->ctx->counters)
		s->quota.counter = &call->ctx->counters->quota.admissions[verdict.reason];
	if (!verdict.admitted) {
		snprintf(s->quota.why, REFUSAL_TEXT, "ElasticQuota %.20s: %.470s",
			 quota_admission_name(verdict.reason), verdict.error.text);
		s->quota.unresolvable = verdict.reason == QUOTA_NEVER;
	}
	quota_session_close(&session);
	return verdict.admitted;
}

static void decide(struct sieve *s)
{
	if (!is_admitted(s))
		refuse_all(s);
	else if (s->call->ctx->extender && node_limits_any(&s->call->ctx->extender->limits) &&
		 !is_exempt(s->call->pod))
		sieve_by_limits(s);
	else
		for (size_t i = 0; i < s->call->args.count; i++)
			if (s->call->places[i] == s->call->view->node_count)
				judge_unknown(s, i);
			else
				pass(s, i);
}

static void sieve_init(struct sieve *s, const struct extender_call *c)
{
	size_t room = c->args.count + 1;

	*s = (struct sieve){
		.call = c,
		.heeds_claims = !is_exempt(c->pod) && any_claim(c),
		.passed = mem_alloc(room * sizeof(*s->passed)),
		.failed = mem_alloc(room * sizeof(*s->failed)),
	};
}

static void sieve_fini(struct sieve *s)
{
	free(s->failed);
	free(s->passed);
}

/* False: the decision has to be repeated. */
static bool settle_with_reservations(const struct sieve *s)
{
	const struct extender_call *c = s->call;

	if (s->passed_count)
		return extender_call_reserve(c, s->passed_count == 1 ? s->passed[0].name : "",
					     c->reservations) != -EAGAIN;
	if (c->args.count && !c->fresh)
		return false;
	if (extender_call_may_reserve(c) && !*c->pod->nominated_node)
		reservations_unschedulable(c->ctx->reservations, c->pod->object.uid);
	return true;
}

static void sieve_until_sure(struct sieve *s, struct extender_call *c)
{
	for (int tries = 0; tries <= TRIES_MAX; tries++) {
		bool passes;

		sieve_init(s, c);
		decide(s);
		if (settle_with_reservations(s))
			return;
		passes = s->passed_count > 0;
		sieve_fini(s);
		if (passes)
			extender_call_renew(c);
		else
			extender_call_refresh(c);
	}
	sieve_init(s, c);
	snprintf(s->quota.why, sizeof(s->quota.why),
		 "evenkeel is asked about so many pods at once that it could not decide about "
		 "this one");
	refuse_all(s);
}

bool extender_filter_rehearse(const struct api_context *ctx, struct kube_pod *pod,
			      const struct extender_nodes *nodes)
{
	struct extender_call call;
	struct sieve s;
	bool passes;

	extender_call_open_again(&call, ctx, pod, nodes);
	sieve_init(&s, &call);
	decide(&s);
	passes = s.passed_count > 0;
	sieve_fini(&s);
	extender_call_close_again(&call);
	return passes;
}

/* --- the verb --------------------------------------------------------------------------------- */

static void count(const struct sieve *s)
{
	for (int r = 0; r < EXTENDER_REFUSALS; r++)
		counter_add(&s->call->ctx->counters->extender.refused[r], s->refused[r]);
	if (s->quota.counter)
		counter_add(s->quota.counter, 1);
}

/* The most frequent kind of refusal. */
static enum extender_refusal main_refusal(const struct sieve *s)
{
	enum extender_refusal most = EXTENDER_QUOTA;

	for (int r = 0; r < EXTENDER_REFUSALS; r++)
		if (s->refused[r] > s->refused[most])
			most = (enum extender_refusal)r;
	return most;
}

static void remember(const struct sieve *s)
{
	const struct extender_call *c = s->call;
	enum extender_refusal why = main_refusal(s);
	char text[WAITING_DETAIL_MAX];

	if (s->passed_count) {
		waiting_pods_passed(c->ctx->waiting, c->pod->object.uid);
		return;
	}
	if (!extender_call_may_reserve(c) || !s->failed_count)
		return;
	if (why == EXTENDER_QUOTA)
		snprintf(text, sizeof(text), "%s", s->detail);
	else
		snprintf(text, sizeof(text), "%s on %zu of %zu nodes; %.380s", reasons[why],
			 s->refused[why], s->failed_count, s->detail);
	waiting_pods_refused(c->ctx->waiting, c, why, text);
}

static void answer(struct extender_call *c, struct api_response *rs)
{
	struct extender_filter_result result;
	bool resolvable;
	struct sieve s;

	sieve_until_sure(&s, c);
	extender_call_tell(c);
	count(&s);
	remember(&s);
	resolvable = s.refused[EXTENDER_QUOTA] && !s.quota.unresolvable;
	result = (struct extender_filter_result){
		.full = c->args.full,
		.passed_count = s.passed_count,
		.passed = s.passed,
		/*
		 * Unresolvable wins where a node is in both; schedulers before 1.22 know
		 * FailedNodes only.
		 */
		.failed_count = s.failed_count,
		.failed = s.failed,
		.unresolvable_count = resolvable ? 0 : s.failed_count,
		.unresolvable = s.failed,
		.error = "",
	};
	rs->content_type = "application/json";
	extender_write_filter_result(&rs->body, &result);
	sieve_fini(&s);
}

void api_extender_filter(const struct api_context *ctx, const struct api_request *rq,
			 struct api_response *rs)
{
	struct extender_call call;

	if (!extender_call_open(&call, EXTENDER_FILTER, ctx, rq, rs))
		return;
	answer(&call, rs);
	extender_call_close(&call);
}
