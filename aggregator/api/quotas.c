/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/quotas, /v1/quotas/NAMESPACE: what each namespace is guaranteed, may have, requests and
 * really uses.
 *
 *   {"apiVersion","kind":"QuotaList","time","variant":"corrected"[,"reason"],"items":[QUOTA,..],
 *    "total":{"min","guaranteed","used","pending","borrowed","lent","unused","alarms":["cpu: quotas guarantee ..",..]},"findings":[..]}
 *
 * One item for each namespace with a quota, by name, and all of them: their sums are what the gates
 * are made of. Where the API has no elastic quotas the list is empty and `reason` says why it is.
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
 */
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/cluster_json.h"
#include "aggregator/api/list.h"
#include "aggregator/api/quota_json.h"
#include "aggregator/api/quota_scene.h"
#include "shared/jsonw.h"

#define FOLDER "/v1/quotas/"

/* What one answer needs throughout. */
struct answer {
	const struct quota_scene *scene;
	struct quota_balances balances;
	struct quota_findings findings;
	int64_t now_ns;
};

static void write_head(struct jsonw *w, const struct answer *a, const char *kind)
{
	struct reason gap;

	list_write_header(w, kind, a->now_ns);
	jsonw_key_string(w, "variant", quota_variant_name(a->scene->options.variant));
	quota_scene_gap(a->scene, &gap);
	if (gap.text[0])
		jsonw_key_string(w, "reason", gap.text);
}

static void write_list(const struct answer *a, const char *namespace, struct api_response *rs)
{
	struct jsonw w;

	jsonw_init(&w, &rs->body);
	jsonw_object_open(&w);
	write_head(&w, a, "QuotaList");
	jsonw_key(&w, "items");
	jsonw_array_open(&w);
	for (size_t i = 0; i < quota_book_count(a->scene->book); i++) {
		const struct quota *q = quota_book_at(a->scene->book, i);

		if (namespace && strcmp(q->namespace, namespace) != 0)
			continue;
		jsonw_object_open(&w);
		quota_json_write_members(&w, a->scene->book, i, &a->balances, &a->findings);
		jsonw_object_close(&w);
	}
	jsonw_array_close(&w);
	quota_json_write_totals(&w, &a->balances);
	quota_json_write_findings(&w, &a->findings, namespace);
	if (a->findings.dropped)
		jsonw_key_int(&w, "findingsLeftOut", (int64_t)a->findings.dropped);
	jsonw_object_close(&w);
	buf_add_char(&rs->body, '\n');
}

/* False: the namespace has no quota. */
static bool write_one(const struct answer *a, const char *namespace, struct api_response *rs)
{
	size_t at = quota_scene_index(a->scene, namespace);
	struct reason gap;
	struct jsonw w;

	if (at == quota_book_count(a->scene->book)) {
		quota_scene_gap(a->scene, &gap);
		api_fail(rs, FAIL_NOT_FOUND, NULL, "namespace \"%.253s\" has no quota%s%.200s",
			 namespace, gap.text[0] ? ": " : "", gap.text);
		return false;
	}
	jsonw_init(&w, &rs->body);
	jsonw_object_open(&w);
	write_head(&w, a, "Quota");
	quota_json_write_members(&w, a->scene->book, at, &a->balances, &a->findings);
	jsonw_object_close(&w);
	buf_add_char(&rs->body, '\n');
	return true;
}

static void answer(const struct api_context *ctx, const struct quota_scene *scene,
		   const struct api_request *rq, struct api_response *rs)
{
	const char *name =
		strncmp(rq->path, FOLDER, strlen(FOLDER)) == 0 ? rq->path + strlen(FOLDER) : NULL;
	struct answer a = {.scene = scene, .now_ns = ctx->now_ns()};

	quota_scene_balances(scene, &a.balances);
	quota_lint(scene->view, scene->book, &scene->options, &a.findings);
	rs->content_type = "application/json";
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
	const char *variant = rq->query(rq, "variant");
	struct quota_scene scene;

	if (!quota_scene_open(&scene, ctx, variant && *variant ? variant : NULL, rs))
		return;
	answer(ctx, &scene, rq, rs);
	quota_scene_close(&scene);
}
