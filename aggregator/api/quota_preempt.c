/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/quotas/preempt
 * {"pod":POD[,"namespace":NS][,"nominatedNode":NODE][,"variant":V][,"pdb":"hard"|"soft"]}: whose
 * pods would have to go so that this one may start, where it would run then, and why those. Nobody
 * is evicted by asking.
 *
 *   {"apiVersion","kind":"QuotaPreemption","time","variant"[,"gap"][,"unseenPods"],"useCap","namespace","name","priority","requests":{..},
 *    "verdict","reason","gate","reasons":[..] (the quotas without any victim, as POST
 *      /v1/quotas/admit has them)
 *    [,"node"][,"several":true][,"exhausted":false][,"retryAfterSeconds"],
 *    "victims":[{"namespace","name","uid","node","priority"[,"started"],"requests","use":"idle"|"unknown"|"busy"[,"useShare"],"violatesPdb","reason"}],
 *    "nodes":[{"node","outcome"[,"filter"],"pods","mayPay"}],"refused":{WHY:COUNT},"narration":[..],"unblock":[..]}
 *
 *   verdict    notNeeded    it may start as it is
 *              wait         it may when pods that are going are gone
 *              victims      it may when the victims are gone; `several` where these are not all on
 *                           `node`
 *              impossible   no set of victims would do; `exhausted` false: none was found, though
 *                           not all were tried
 *              never        its preemptionPolicy forbids it, and it cannot start as it is
 *
 * unseenPods: so many pods were bound a moment ago and are not seen yet. Their room counts, but
 * none of them is a victim: the set may not be the cheapest.
 *
 * nominatedNode: only that node may be the destination. The placement of pods is simulated as POST
 * /v1/fit does it, so nodes and pods must be known (503 otherwise).
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/quota_json.h"
#include "aggregator/api/quota_session.h"
#include "aggregator/api/request_body.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/units.h"

/* --- the plan */

static void write_nodes(struct jsonw *w, const struct preempt_plan *plan)
{
	jsonw_key_array(w, "nodes");
	for (size_t i = 0; i < plan->node_count; i++) {
		const struct preempt_node *n = &plan->nodes[i];

		jsonw_object_open(w);
		jsonw_key_string(w, "node", n->name);
		jsonw_key_string(w, "outcome", preempt_outcome_name(n->outcome));
		if (n->outcome == PREEMPT_NODE_NO_ROOM)
			jsonw_key_string(w, "filter", place_filter_name(n->filter));
		jsonw_key_int(w, "pods", n->pods);
		jsonw_key_int(w, "mayPay", n->eligible);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

/* The verdict in a sentence; the caller frees it. */
static char *tell_verdict(const struct preempt_plan *plan)
{
	size_t count = plan->chosen.victim_count;

	switch (plan->verdict) {
	case PREEMPT_NOT_NEEDED:
		return mem_strdup("it may start as it is: quotas admit it, and a node has room");
	case PREEMPT_WAIT:
		return mem_strdup("it may start when pods that are going already are gone");
	case PREEMPT_VICTIMS:
		return mem_printf("it runs on node %s when %zu pod%s %s gone%s", plan->chosen.node,
				  count, units_plural(count), count == 1 ? "is" : "are",
				  plan->several ? ", not all of them there" : "");
	case PREEMPT_NEVER:
		return mem_strdup("its preemptionPolicy is Never, and it cannot start as it is");
	default:
		return mem_strdup(plan->exhausted ? "no pods that may go would let it start"
						  : "no pods that may go were found which would "
						    "let it start; not all sets were tried");
	}
}

static void write_plan(struct jsonw *w, const struct preempt_plan *plan, int64_t now_ns)
{
	char *reason = tell_verdict(plan);

	jsonw_key_string(w, "verdict", preempt_verdict_name(plan->verdict));
	jsonw_key_string(w, "reason", reason);
	quota_json_write_admission(w, &plan->admission);
	jsonw_key_text(w, "node", plan->chosen.node);
	jsonw_key_true(w, "several", plan->several);
	if (plan->verdict == PREEMPT_IMPOSSIBLE)
		jsonw_key_bool(w, "exhausted", plan->exhausted);
	if (plan->retry_ns > now_ns)
		jsonw_key_fixed(w, "retryAfterSeconds", (double)(plan->retry_ns - now_ns) / 1e9, 3);
	quota_json_write_victims(w, &plan->chosen);
	write_nodes(w, plan);
	jsonw_key_object(w, "refused");
	for (int r = PREEMPT_ELIGIBLE + 1; r < PREEMPT_REFUSALS; r++)
		if (plan->refused[r])
			jsonw_key_int(w, preempt_refusal_name((enum preempt_refusal)r),
				      plan->refused[r]);
	jsonw_object_close(w);
	list_write_lines(w, "narration", plan->narration.data);
	list_write_lines(w, "unblock", plan->unblock.data);
	free(reason);
}

/* --- the answer */

static void search(struct quota_search *q, const struct quota_session *s,
		   const struct pod_body *body, struct api_response *rs)
{
	struct preempt_plan plan;
	struct jsonw w;

	preempt_make_plan(q->index, q->place, s->book, &q->options, &q->ask, &plan);
	list_answer_open(rs, &w, "QuotaPreemption", q->ask.now_ns);
	quota_session_write_head(s, &w, "gap");
	if (q->unseen)
		jsonw_key_int(&w, "unseenPods", (int64_t)q->unseen);
	jsonw_key_string(&w, "useCap", place_cap_applies(q->place) ? "on" : "off: no usage data");
	quota_json_write_pod(&w, q->ask.pod);
	pod_manifest_write_warnings(cJSON_GetObjectItemCaseSensitive(body->tree, "pod"), &w);
	write_plan(&w, &plan, q->ask.now_ns);
	list_answer_close(&w);
	preempt_plan_fini(&plan);
}

/* Only that node, or any for NULL; q->ask.allowed is to be freed. False: *rs says that there is none. */
static bool choose_node(struct quota_search *q, const char *name, struct api_response *rs)
{
	place_node n = name ? place_find_node(q->place, name) : PLACE_NONE;
	bool *allowed;

	if (!name)
		return true;
	if (n == PLACE_NONE)
		return api_fail(rs, FAIL_NOT_FOUND, "nominatedNode", "there is no node \"%.253s\"",
				name);
	allowed = mem_zalloc(place_node_count(q->place), sizeof(*allowed));
	allowed[n] = true;
	q->ask.allowed = allowed;
	return true;
}

static void answer(const struct api_context *ctx, const struct quota_session *s,
		   const struct pod_body *body, struct api_response *rs)
{
	const struct kube_pod *bound = quota_session_find_bound(s, body->pod);
	const char *node, *pdb;
	struct quota_search q;

	if (!pod_body_string(body, "nominatedNode", &node, rs) ||
	    !pod_body_string(body, "pdb", &pdb, rs) || !quota_session_knows_pods(s, rs))
		return;
	if (bound) {
		api_fail(rs, FAIL_BAD_REQUEST, "pod", "is on node \"%.253s\" already", bound->node);
		return;
	}
	quota_search_open(&q, ctx, ctx->places, s, body->pod, body->never_preempts);
	if (pdb)
		q.options.pdb_hard = strcmp(pdb, "hard") == 0;
	if (choose_node(&q, node, rs))
		search(&q, s, body, rs);
	free((void *)q.ask.allowed);
	quota_search_close(&q);
}

void api_quotas_preempt(const struct api_context *ctx, const struct api_request *rq,
			struct api_response *rs)
{
	struct quota_session session;
	struct pod_body body;

	if (!quota_session_read(&session, &body, ctx, rq, api_preempt_members, rs))
		return;
	answer(ctx, &session, &body, rs);
	quota_session_close(&session);
	pod_body_fini(&body);
}
