/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/scores: what each node is worth for a pod now, by which plugins, from which numbers. The answer lists the
 * nodes by name; its score is the blend of the plugins' scores.
 *
 *   {"apiVersion","kind":"ScoreList","time","items":[{"node","score","plugins":[{"name","variant","score","rung",
 *   "reason"[,"terms":[{"name","unit","value"},..]]},..],"reason"},..]}
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/http/http.h"
#include "aggregator/edge/http/list.h"
#include "aggregator/edge/http/scores_request.h"
#include "aggregator/policy/sentence.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

enum { RUNG_LEN = 32 };

/* Marks the pages of the names in chosen; false: *rs says which name is unknown. */
static bool choose_pages(const struct view *v, const cJSON *names, bool *chosen,
			 struct http_response *rs)
{
	size_t i = 0;

	for (const cJSON *item = names->child; item; item = item->next, i++) {
		size_t found = view_index(v, item->valuestring);

		if (found == v->page_count) {
			char *field = mem_printf("nodes[%zu]", i);

			http_fail(rs, 400, "invalid", field,
				  "no agent has reported from a node \"%.253s\"",
				  item->valuestring);
			free(field);
			return false;
		}
		chosen[found] = true;
	}
	return true;
}

static void write_terms(struct jsonw *w, const struct score_result *r)
{
	jsonw_key(w, "terms");
	jsonw_array_open(w);
	for (size_t i = 0; i < r->term_count; i++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "name", r->terms[i].name);
		jsonw_key_string(w, "unit", r->terms[i].unit);
		jsonw_key(w, "value");
		jsonw_exact(w, r->terms[i].value);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

static void write_plugin(struct jsonw *w, const struct scores_request *rq,
			 enum score_plugin_id plugin, const struct score_node *node,
			 const struct score_result *r)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "name", score_plugin_name(plugin));
	jsonw_key_string(w, "variant", score_variant_name(rq->variant));
	jsonw_key_int(w, "score", r->score);
	jsonw_key_string(w, "rung", node->rung);
	jsonw_key_string(w, "reason", r->reason);
	if (rq->explain)
		write_terms(w, r);
	jsonw_object_close(w);
}

/* The plugins' reasons, each with its name; only the reason where they all say the same. */
static void write_reason(struct jsonw *w, const struct scores_request *rq,
			 const struct score_result *results)
{
	char text[SCORE_PLUGINS * (sizeof(results->reason) + 64)];
	struct sentence s;
	bool same = true;

	for (size_t i = 1; i < rq->plugin_count; i++)
		same = same && strcmp(results[i].reason, results[0].reason) == 0;
	sentence_start(&s, text, sizeof(text));
	for (size_t i = 0; i < (same ? 1 : rq->plugin_count); i++) {
		if (!same) {
			sentence_add(&s, i ? "; " : "");
			sentence_add(&s, score_plugin_name(rq->plugins[i]));
			sentence_add(&s, " ");
			sentence_add_int(&s, results[i].score);
			sentence_add(&s, ": ");
		}
		sentence_add(&s, results[i].reason);
	}
	jsonw_key_string(w, "reason", text);
}

static void write_node(struct jsonw *w, const struct scores_request *rq,
		       const struct node_page *page, int64_t now_ns)
{
	char rung[RUNG_LEN];
	struct score_node node;
	struct score_result results[SCORE_PLUGINS];
	int64_t scores[SCORE_PLUGINS];

	score_node_from_page(page, now_ns, rq->variant, rung, &node);
	for (size_t i = 0; i < rq->plugin_count; i++) {
		score_node_by(rq->plugins[i], rq->variant, &rq->args, &rq->pod, &node, &results[i]);
		scores[i] = results[i].score;
	}
	jsonw_object_open(w);
	jsonw_key_string(w, "node", node.name);
	jsonw_key_int(w, "score", score_blend(scores, rq->weights, rq->plugin_count));
	jsonw_key(w, "plugins");
	jsonw_array_open(w);
	for (size_t i = 0; i < rq->plugin_count; i++)
		write_plugin(w, rq, rq->plugins[i], &node, &results[i]);
	jsonw_array_close(w);
	write_reason(w, rq, results);
	jsonw_object_close(w);
}

static void answer(const struct view *v, const struct scores_request *rq, int64_t now_ns,
		   struct http_response *rs)
{
	bool *chosen = mem_zalloc(v->page_count + 1, sizeof(*chosen));
	struct jsonw w;

	if (rq->nodes && !choose_pages(v, rq->nodes, chosen, rs))
		goto free_chosen;
	rs->content_type = "application/json";
	jsonw_init(&w, &rs->body);
	list_write_open(&w, "ScoreList", now_ns);
	for (size_t i = 0; i < v->page_count; i++)
		if (!rq->nodes || chosen[i])
			write_node(&w, rq, v->pages[i], now_ns);
	jsonw_array_close(&w);
	jsonw_object_close(&w);
	buf_add_char(&rs->body, '\n');
free_chosen:
	free(chosen);
}

void http_scores(const struct http_context *ctx, const struct http_request *rq,
		 struct http_response *rs)
{
	char field[SCORES_FIELD_MAX];
	struct scores_request request = {0};
	struct reason reason = {""};
	struct view *v;

	if (scores_request_parse(rq->body, rq->body_len, &request, field, &reason)) {
		http_fail(rs, 400, "invalid", *field ? field : NULL, "%s", reason.text);
		return;
	}
	v = view_slot_take(ctx->views);
	answer(v, &request, ctx->now_ns(), rs);
	view_drop(v);
	scores_request_fini(&request);
}
