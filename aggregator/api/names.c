/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/names: what things are called, for shells that complete a command line. Lists are sorted;
 * what is not known is an empty list.
 *
 *   {"apiVersion","kind":"Names","time","nodes":[S,..],"namespaces":[S,..],"slackClasses":[S,..]}
 *
 *   namespaces    with an API that tells them all, else those that have pods
 *   slackClasses  of the newest plan, as /v1/slack has them
 */
#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/planner/plan.h"
#include "shared/jsonw.h"

void api_names(const struct api_context *ctx, const struct api_request *rq, struct api_response *rs)
{
	struct plan_result *r = ctx->plans ? plan_slot_take(ctx->plans) : NULL;
	struct view *v = view_slot_take(ctx->views);
	struct jsonw w;
	const struct object_table *all;
	const struct namespace_table *with_pods;

	(void)rq;
	list_answer_open(rs, &w, "Names", ctx->now_ns());
	jsonw_key_array(&w, "nodes");
	for (size_t i = 0; i < v->node_count; i++)
		jsonw_string(&w, v->nodes[i]->name);
	jsonw_array_close(&w);
	all = view_table(v, OBJECT_NAMESPACE);
	with_pods = v->namespaces;
	jsonw_key_array(&w, "namespaces");
	for (size_t i = 0; all && i < all->count; i++)
		jsonw_string(&w, all->of[i]->name);
	for (size_t i = 0; !(all && all->count) && with_pods && i < with_pods->count; i++)
		jsonw_string(&w, with_pods->of[i].name);
	jsonw_array_close(&w);
	jsonw_key_array(&w, "slackClasses");
	for (size_t i = 0; r && i < r->slack.class_count; i++)
		jsonw_string(&w, r->slack.classes[i].key);
	jsonw_array_close(&w);
	list_answer_close(&w);
	plan_result_drop(r);
	view_drop(v);
}
