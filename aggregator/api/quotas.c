/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/quotas, /v1/quotas/NAMESPACE: what each namespace is guaranteed, may have, requests and
 * really uses.
 *
 *   {"apiVersion","kind":"QuotaList","time","variant":"corrected"[,"reason"],"items":[QUOTA,..],
 *    "total":{"min","guaranteed","used","pending","borrowed","lent","unused","alarms":["cpu: quotas guarantee ..",..]},"findings":[..]}
 *
 * One item for each namespace with a quota, by name, and all of them: admission goes by
 * their sums. Where the API has no elastic quotas the list is empty and `reason` says why it is.
 * The query's variant ("corrected", "upstream") stands in for the server's; namespace=NS keeps the
 * one item and its findings, and is no error where there is none, while /v1/quotas/NAMESPACE is the
 * bare object, or 404.
 *
 *   QUOTA  namespace, name (absent, and "default":true, where it is the one of namespaces without),
 *          min, max        as the object has them; a resource that is not named is not there
 *          guaranteed      min, or its part of what the nodes have where all min together are more
 *          used            requests of its pods that have a node, whether they run or are being deleted, and of those that were promised one
 *          pending         requests of its pods without a node
 *          borrowed        used beyond min; lent: the part of its unused min that others have
 *          share           what it could use if all took as much as they want (quota_share.h)
 *          realUse         {cpuMillicores{mean,p50,p95},workingSetBytes} of its measured pods; absent where none is
 *          idle            what is requested and not really used: used - p95 of CPU, used - working set; at least 0
 *          pods            {used,assumed,pending,measured}: how many those are; assumed are those of used that no view has on a node yet
 *          weight, minRuntimeSeconds, maxEvictions{count,seconds}: its annotations
 *          verdict         the most urgent state of its resources: overMax, starved, atMax, waiting, borrowing, lending, unused, within
 *          reasons         [{code,text,resource,numbers{used,min,guaranteed,max,pending}}], one for each resource it names
 *          findings        what is wrong with it (lint.h); in "findings" of the list those of all
 *
 * POST /v1/quotas/admit {"pod":POD[,"namespace":NS][,"variant":"corrected"]}: whether the quotas
 * would let the pod start now, and if not, by which numbers and what would unblock it. Nothing is
 * reserved by asking.
 *
 *   {"apiVersion","kind":"QuotaAdmission","time","variant"[,"gap"],"namespace","name","priority","requests":{..},
 *    "verdict":"admitted"|"refused","gate":GATE,"reasons":[{"code","text"[,"resource","numbers":{"used","asked","nominated","bound"}]}]
 *    [,"node"][,"quota":QUOTA]}
 *
 *   GATE  admitted, noQuota, critical                 it may start
 *         never                                       alone it asks for more than max
 *         overMax                                     used + nominated + asked > max of its quota
 *         overSumMin                                  used + nominated + asked > all min together,
 *                                                     over all quotas
 *
 * The pod is a manifest, or a pod as the API tells it. One that is on a node already is in the
 * numbers once: `node` says where. `gap` says what the answer does not know (the API has no
 * elasticquotas, ..). Whether there is a node for it is another question: POST /v1/fit.
 */
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/quota_json.h"
#include "aggregator/api/quota_session.h"
#include "aggregator/api/request_body.h"
#include "shared/jsonw.h"

#define FOLDER "/v1/quotas/"

/* The inputs of one answer. */
struct answer {
	const struct quota_session *session;
	struct quota_balances balances;
	struct quota_findings findings;
	int64_t now_ns;
};

static void open_answer(struct api_response *rs, struct jsonw *w, const struct answer *a,
			const char *kind)
{
	list_answer_open(rs, w, kind, a->now_ns);
	quota_session_write_head(a->session, w, "reason");
}

static void write_list(const struct answer *a, const char *namespace, struct api_response *rs)
{
	struct jsonw w;

	open_answer(rs, &w, a, "QuotaList");
	jsonw_key_array(&w, "items");
	for (size_t i = 0; i < quota_book_count(a->session->book); i++) {
		const struct quota *q = quota_book_at(a->session->book, i);

		if (namespace && strcmp(q->namespace, namespace) != 0)
			continue;
		jsonw_object_open(&w);
		quota_json_write_members(&w, a->session->book, i, &a->balances, &a->findings);
		jsonw_object_close(&w);
	}
	jsonw_array_close(&w);
	quota_json_write_totals(&w, &a->balances);
	quota_json_write_findings(&w, &a->findings, namespace);
	if (a->findings.dropped)
		jsonw_key_int(&w, "findingsLeftOut", (int64_t)a->findings.dropped);
	list_answer_close(&w);
}

/* False: the namespace has no quota. */
static bool write_one(const struct answer *a, const char *namespace, struct api_response *rs)
{
	size_t at = quota_book_index(a->session->book, namespace);
	struct error gap;
	struct jsonw w;

	if (at == quota_book_count(a->session->book)) {
		quota_session_gap(a->session, &gap);
		return api_fail(rs, FAIL_NOT_FOUND, NULL,
				"namespace \"%.253s\" has no quota%s%.200s", namespace,
				gap.text[0] ? ": " : "", gap.text);
	}
	open_answer(rs, &w, a, "Quota");
	quota_json_write_members(&w, a->session->book, at, &a->balances, &a->findings);
	list_answer_close(&w);
	return true;
}

static void answer(const struct api_context *ctx, const struct quota_session *session,
		   const struct api_request *rq, struct api_response *rs)
{
	const char *name =
		strncmp(rq->path, FOLDER, strlen(FOLDER)) == 0 ? rq->path + strlen(FOLDER) : NULL;
	struct answer a = {.session = session, .now_ns = ctx->now_ns()};

	quota_balances_of(session->book, &a.balances);
	quota_lint(session->view, session->book, &session->options, &a.findings);
	if (name && *name)
		write_one(&a, name, rs);
	else
		write_list(&a, rq->query(rq, "namespace"), rs);
	quota_findings_fini(&a.findings);
	quota_balances_fini(&a.balances);
}

void api_quotas(const struct api_context *ctx, const struct api_request *rq,
		struct api_response *rs)
{
	struct quota_session session;

	if (!quota_session_open(&session, ctx, rq->query(rq, "variant"), rs))
		return;
	answer(ctx, &session, rq, rs);
	quota_session_close(&session);
}

/* --- POST /v1/quotas/admit */

static void write_quota(struct jsonw *w, const struct quota_session *s, const char *namespace)
{
	size_t at = quota_book_index(s->book, namespace);
	struct quota_balances balances;

	if (at == quota_book_count(s->book))
		return;
	quota_balances_of(s->book, &balances);
	jsonw_key_object(w, "quota");
	quota_json_write_members(w, s->book, at, &balances, NULL);
	jsonw_object_close(w);
	quota_balances_fini(&balances);
}

static void answer_admit(const struct quota_session *s, const struct pod_body *body, int64_t now_ns,
			 struct api_response *rs)
{
	const struct kube_pod *bound = quota_session_find_bound(s, body->pod);
	const struct quota_ask ask = quota_session_ask(s, body->pod, bound);
	struct quota_verdict verdict;
	struct jsonw w;

	quota_admit(s->book, &ask, &verdict);
	list_answer_open(rs, &w, "QuotaAdmission", now_ns);
	pod_manifest_write_warnings(cJSON_GetObjectItemCaseSensitive(body->tree, "pod"), &w);
	quota_session_write_head(s, &w, "gap");
	quota_json_write_pod(&w, body->pod);
	jsonw_key_string(&w, "verdict", verdict.admitted ? "admitted" : "refused");
	quota_json_write_admission(&w, &verdict);
	if (bound)
		jsonw_key_string(&w, "node", bound->node);
	write_quota(&w, s, body->pod->object.namespace);
	list_answer_close(&w);
}

void api_quotas_admit(const struct api_context *ctx, const struct api_request *rq,
		      struct api_response *rs)
{
	struct quota_session session;
	struct pod_body body;

	if (!quota_session_read(&session, &body, ctx, rq, api_admit_members, rs))
		return;
	answer_admit(&session, &body, ctx->now_ns(), rs);
	quota_session_close(&session);
	pod_body_fini(&body);
}
