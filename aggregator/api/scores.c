/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/scores: what each node is worth for a pod now, by which plugins, from which numbers. The answer lists the
 * nodes by name; its score is the blend of the plugins' scores.
 *
 *   {"apiVersion","kind":"ScoreList","time","items":[{"node","score","plugins":[{"name","variant","score","rung"
 *   [,"estimated":true][,"reason","terms":[{"name","unit","value"},..]]},..],"reason"},..]}
 *
 * The reason of a node is that of the plugin that takes most away from its score, by name where there are several;
 * with explain each plugin gives its own, and the terms.
 *
 * Two passes: inputs of all nodes are read from the view first, since some plugins compare nodes (score_scale.c);
 * then node by node is scored and written, with one set of results on the stack.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/scores_request.h"
#include "aggregator/policy/sentence.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

/* How many nodes ahead memory is asked for: nodes and pages lie far apart, and to wait for each would be half of the
 * cost. */
enum { AHEAD = 8 };

/* All that scoring one node needs. */
struct job {
	const struct scores_request *rq;
	struct score_query query;
	struct score_node *nodes; /* owned */
	size_t node_count;
	struct score_scale scales[SCORE_PLUGINS];
	struct buf heads
		[SCORE_PLUGINS]; /* the same for every node: {"name":..,"variant":..,"score": */
	struct buf tail; /* the same for every plugin of the node at hand: ,"rung":.. */
};

/* Marks the nodes of the names in chosen; false: *rs says which name is unknown. */
static bool choose_nodes(const struct view *v, const cJSON *names, bool *chosen,
			 struct api_response *rs)
{
	size_t i = 0;

	for (const cJSON *item = names->child; item; item = item->next, i++) {
		size_t found = view_index(v, item->valuestring);

		if (found == v->node_count) {
			char *field = mem_printf("nodes[%zu]", i);

			api_fail(rs, FAIL_BAD_REQUEST, field, "there is no node \"%.253s\"",
				 item->valuestring);
			free(field);
			return false;
		}
		chosen[found] = true;
	}
	return true;
}

/* What score_node_from_view() looks at. */
static void prefetch_node(const struct view_node *n)
{
	for (size_t at = 0; at < offsetof(struct view_node, sums.requests); at += 64)
		__builtin_prefetch((const char *)n + at);
	__builtin_prefetch(&n->recent_count);
}

static void prefetch_page(const struct node_page *page)
{
	const char *window = (const char *)&page->usage.windows[WINDOW_15M];

	__builtin_prefetch(&page->end_ns);
	__builtin_prefetch(&page->cpu_capacity_milli);
	__builtin_prefetch(&page->bounds);
	for (size_t at = 0; at < sizeof(page->usage.windows[0]); at += 64)
		__builtin_prefetch(window + at);
}

static bool read_nodes(struct job *job, const struct view *v, int64_t now_ns,
		       struct api_response *rs)
{
	const struct scores_request *rq = job->rq;
	bool *chosen = mem_zalloc(v->node_count + 1, sizeof(*chosen));
	bool ok = !rq->nodes || choose_nodes(v, rq->nodes, chosen, rs);

	if (ok) {
		job->nodes = mem_alloc((v->node_count + 1) * sizeof(*job->nodes));
		for (size_t i = 0; i < v->node_count; i++) {
			if (i + 2 * AHEAD < v->node_count)
				prefetch_node(v->nodes[i + 2 * AHEAD]);
			if (i + AHEAD < v->node_count)
				prefetch_page(v->nodes[i + AHEAD]->page);
			if (!rq->nodes || chosen[i])
				score_node_from_view(v, v->nodes[i], now_ns, &job->query,
						     &job->nodes[job->node_count++]);
		}
	}
	free(chosen);
	return ok;
}

static void prepare(struct job *job, const struct view *v, int64_t now_ns)
{
	const struct scores_request *rq = job->rq;

	if (rq->variant != SCORE_UPSTREAM)
		score_nodes_estimate(job->nodes, job->node_count, score_any_measured(v, now_ns));
	score_nodes_power(job->nodes, job->node_count, &rq->args.values);
	for (size_t i = 0; i < rq->plugin_count; i++) {
		struct jsonw w;

		score_prepare(&job->query, rq->plugins[i], job->nodes, job->node_count,
			      &job->scales[i]);
		jsonw_init(&w, &job->heads[i]);
		jsonw_object_open(&w);
		jsonw_key_string(&w, "name", score_plugin_name(rq->plugins[i]));
		jsonw_key_string(&w, "variant", score_variant_name(rq->variant));
		jsonw_key(&w, "score");
	}
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

static void write_tail(struct job *job, const struct score_node *node)
{
	struct jsonw w;
	char rung[SCORE_RUNG_LEN];

	score_rung_text(node, rung);
	buf_clear(&job->tail);
	jsonw_init(&w, &job->tail);
	w.comma = true;
	jsonw_key_string(&w, "rung", rung);
	if (node->rung == RUNG_ALLOCATION)
		jsonw_key_bool(&w, "estimated", true);
}

static void write_plugin(struct jsonw *w, const struct job *job, size_t i,
			 const struct score_result *r)
{
	if (i > 0)
		buf_add_char(w->out, ',');
	buf_add(w->out, job->heads[i].data, job->heads[i].len);
	w->comma = false;
	jsonw_int(w, r->score);
	buf_add(w->out, job->tail.data, job->tail.len);
	if (job->rq->explain) {
		jsonw_key_string(w, "reason", r->reason);
		write_terms(w, r);
	}
	jsonw_object_close(w);
}

/* The plugin that takes most away from the blend; the first of equals. */
static size_t decider(const struct scores_request *rq, const int64_t *scores)
{
	size_t worst = 0;

	for (size_t i = 1; i < rq->plugin_count; i++)
		if (rq->weights[i] * (double)(100 - scores[i]) >
		    rq->weights[worst] * (double)(100 - scores[worst]))
			worst = i;
	return worst;
}

static void write_reason(struct jsonw *w, const struct job *job, const struct score_node *node,
			 const int64_t *scores)
{
	const struct scores_request *rq = job->rq;
	size_t i = decider(rq, scores);
	struct score_result r;
	char text[sizeof(r.reason) + 64];
	struct sentence s;

	score_node_by(&job->query, rq->plugins[i], &job->scales[i], node, SCORE_REASON, &r);
	sentence_start(&s, text, sizeof(text));
	if (rq->plugin_count > 1 && !r.unknown) {
		sentence_add(&s, score_plugin_name(rq->plugins[i]));
		sentence_add(&s, " ");
		sentence_add_int(&s, r.score);
		sentence_add(&s, ": ");
	}
	sentence_add(&s, r.reason);
	jsonw_key_string(w, "reason", text);
}

static void write_node(struct jsonw *w, struct job *job, const struct score_node *node)
{
	const struct scores_request *rq = job->rq;
	enum score_detail detail = rq->explain ? SCORE_TERMS : SCORE_BARE;
	struct score_result results[SCORE_PLUGINS];
	int64_t scores[SCORE_PLUGINS] = {0};

	write_tail(job, node);
	for (size_t i = 0; i < rq->plugin_count; i++) {
		score_node_by(&job->query, rq->plugins[i], &job->scales[i], node, detail,
			      &results[i]);
		scores[i] = results[i].score;
	}
	jsonw_object_open(w);
	jsonw_key_string(w, "node", node->name);
	jsonw_key_int(w, "score", score_blend(scores, rq->weights, rq->plugin_count));
	jsonw_key(w, "plugins");
	jsonw_array_open(w);
	for (size_t i = 0; i < rq->plugin_count; i++)
		write_plugin(w, job, i, &results[i]);
	jsonw_array_close(w);
	write_reason(w, job, node, scores);
	jsonw_object_close(w);
}

/* What pods of the same owner use is known where it has any in the view. */
static struct score_owner find_owner(const struct view *v, const struct scores_request *rq)
{
	const struct owner_use *owner = view_owner(v, rq->owner_uid);

	return owner ? (struct score_owner){true, owner->cpu_milli}
		     : (struct score_owner){false, 0};
}

static void answer(const struct view *v, const struct scores_request *rq, int64_t now_ns,
		   struct api_response *rs)
{
	struct job job = {.rq = rq,
			  .query = {.variant = rq->variant,
				    .args = &rq->args.values,
				    .pod = &rq->pod,
				    .owner = find_owner(v, rq)}};
	struct jsonw w;

	if (!read_nodes(&job, v, now_ns, rs))
		return;
	prepare(&job, v, now_ns);
	rs->content_type = "application/json";
	jsonw_init(&w, &rs->body);
	list_write_open(&w, "ScoreList", now_ns);
	for (size_t i = 0; i < job.node_count; i++) {
		if (i + AHEAD < job.node_count)
			__builtin_prefetch(job.nodes[i + AHEAD].name);
		write_node(&w, &job, &job.nodes[i]);
	}
	jsonw_array_close(&w);
	jsonw_object_close(&w);
	buf_add_char(&rs->body, '\n');
	for (size_t i = 0; i < rq->plugin_count; i++)
		buf_fini(&job.heads[i]);
	buf_fini(&job.tail);
	free(job.nodes);
}

void api_scores(const struct api_context *ctx, const struct api_request *rq,
		struct api_response *rs)
{
	char field[SCORES_FIELD_MAX];
	struct scores_request request = {0};
	struct reason reason = {""};
	struct view *v;

	if (scores_request_parse(rq->body, rq->body_len, &request, field, &reason)) {
		api_fail(rs, FAIL_BAD_REQUEST, *field ? field : NULL, "%s", reason.text);
		return;
	}
	v = view_slot_take(ctx->views);
	answer(v, &request, ctx->now_ns(), rs);
	view_drop(v);
	scores_request_fini(&request);
}
