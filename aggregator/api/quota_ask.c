/* SPDX-License-Identifier: Apache-2.0 */
/*
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
#include "aggregator/api/api.h"
#include "aggregator/api/cluster_json.h"
#include "aggregator/api/list.h"
#include "aggregator/api/pod_body.h"
#include "aggregator/api/quota_json.h"
#include "aggregator/api/quota_scene.h"
#include "shared/jsonw.h"

static void write_quota(struct jsonw *w, const struct quota_scene *s, const char *namespace)
{
	size_t at = quota_scene_index(s, namespace);
	struct quota_balances balances;

	if (at == quota_book_count(s->book))
		return;
	quota_scene_balances(s, &balances);
	jsonw_key(w, "quota");
	jsonw_object_open(w);
	quota_json_write_members(w, s->book, at, &balances, NULL);
	jsonw_object_close(w);
	quota_balances_fini(&balances);
}

static void write_answer(struct jsonw *w, const struct quota_scene *s, const struct kube_pod *pod)
{
	const struct kube_pod *bound = quota_scene_find_bound(s, pod);
	const struct quota_ask ask = quota_scene_ask(s, pod, bound);
	struct quota_verdict verdict;
	struct reason gap;

	quota_admit(s->book, &ask, &verdict);
	jsonw_key_string(w, "variant", quota_variant_name(s->options.variant));
	quota_scene_gap(s, &gap);
	if (gap.text[0])
		jsonw_key_string(w, "gap", gap.text);
	jsonw_key_string(w, "namespace", pod->object.namespace);
	jsonw_key_string(w, "name", pod->object.name);
	jsonw_key_int(w, "priority", pod->template->priority);
	cluster_json_write_resources(w, "requests", kube_pod_requests(pod), ABSENT_LEFT_OUT);
	jsonw_key_string(w, "verdict", verdict.admitted ? "admitted" : "refused");
	quota_json_write_gate(w, &verdict);
	if (bound)
		jsonw_key_string(w, "node", bound->node);
	write_quota(w, s, pod->object.namespace);
}

static void answer(const struct api_context *ctx, const struct quota_scene *s,
		   const struct kube_pod *pod, struct api_response *rs)
{
	struct jsonw w;

	rs->content_type = "application/json";
	jsonw_init(&w, &rs->body);
	jsonw_object_open(&w);
	list_write_header(&w, "QuotaAdmission", ctx->now_ns());
	write_answer(&w, s, pod);
	jsonw_object_close(&w);
	buf_add_char(&rs->body, '\n');
}

void api_quotas_admit(const struct api_context *ctx, const struct api_request *rq,
		      struct api_response *rs)
{
	struct quota_scene scene;
	struct pod_body body;

	if (!quota_scene_read(&scene, &body, ctx, rq, api_admit_members, rs))
		return;
	answer(ctx, &scene, body.pod, rs);
	quota_scene_close(&scene);
	pod_body_fini(&body);
}
