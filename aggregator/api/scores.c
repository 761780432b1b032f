/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/scores: the score of each node for a pod now, with its plugins and numbers. The
 * answer lists the nodes by name; its score is the blend of the plugins' scores.
 *
 *   {"apiVersion","kind":"ScoreList","time"[,"expected":{"cpuMillicores","highCpuMillicores","memoryBytes","source"}][,"warnings":[TEXT,..]],"items":[{"node","score","plugins":[{"name","variant","score","rung"
 *   [,"estimated":true][,"reason","terms":[{"name","unit","value"},..]]},..],"reason"[,"refused"][,"useCap"]},..]}
 *
 * Asked for explain or fits it also tells whether the pod fits: fit_ask.h.
 *
 * Which nodes are named decides what is listed, not how it is scored: plugins that compare nodes
 * always see all of the cluster's.
 *
 * The reason of a node is that of the plugin that takes most away from its score, by name where
 * there are several; with explain each plugin gives its own, and the terms.
 *
 * With limits of the extender, refused says why its filter refuses the node, and useCap where a cap
 * does not apply. Numbers come from score_job.h; node by node is written, and only what is told of
 * it is worked out once more, with its sentence.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/fit_ask.h"
#include "aggregator/api/list.h"
#include "aggregator/api/policy_options.h"
#include "aggregator/api/request_body.h"
#include "aggregator/api/score_job.h"
#include "aggregator/api/scores_request.h"
#include "aggregator/api/prefetcher.h"
#include "aggregator/policy/arith.h"
#include "aggregator/policy/expected_use.h"
#include "aggregator/policy/textbuf.h"
#include "shared/jsonw.h"

enum {
	PIECE_ROOM = 80,
	PREFIX_ROOM = 64, /* of a reason: plugin and score */
	SCORE_DIGITS = 24,
};

/*
 * Text that is written ten thousands of times: all of the room is copied, whatever it holds, which
 * takes a few instructions rather than a call.
 */
struct piece {
	size_t len;
	char text[PIECE_ROOM];
};

/* All that writing one node needs. */
struct answer {
	const struct scores_request *rq;
	const struct score_blend *blend;
	struct score_job job;
	const struct node_limits *limits; /* of the extender, where they apply; NULL: none */
	struct scores_fit *fit; /* owned; NULL: not to be told */
	/* The same for every node: [,]{"name":..,"variant":..,"score": */
	struct piece heads[SCORE_PLUGINS];
	/* The same for every plugin of the node at hand: ,"rung":..[}] */
	struct piece tail;
	/* of the node in the tail */
	enum score_fallback tail_fallback;
	bool tail_estimated;
};

static void keep_piece(struct piece *p, struct buf *text)
{
	assert(text->len <= sizeof(p->text));
	memcpy(p->text, text->data, text->len);
	p->len = text->len;
	buf_clear(text);
}

/* Text that is the same for every node is written once. */
static void write_heads(struct answer *a)
{
	struct buf text = BUF_INIT;

	for (size_t i = 0; i < a->blend->count; i++) {
		struct jsonw w;

		if (i > 0)
			buf_add_char(&text, ',');
		jsonw_begin(&w, &text);
		jsonw_key_string(&w, "name", score_plugin_name(a->blend->plugins[i]));
		jsonw_key_string(&w, "variant", score_variant_name(a->blend->variant));
		jsonw_key(&w, "score");
		keep_piece(&a->heads[i], &text);
	}
	buf_fini(&text);
}

static void write_terms(struct jsonw *w, const struct score_result *r)
{
	jsonw_key_array(w, "terms");
	for (size_t i = 0; i < r->term_count; i++) {
		const struct score_term *t = &r->terms[i];
		char name[OBJECT_FIELD_MAX];

		snprintf(name, sizeof(name), "%s%s%s", t->resource ? t->resource : "",
			 t->resource ? "." : "", t->name);
		jsonw_object_open(w);
		jsonw_key_string(w, "name", name);
		jsonw_key_string(w, "unit", t->unit);
		jsonw_key(w, "value");
		jsonw_exact(w, t->value);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

static void write_tail(struct answer *a, const struct score_node *node)
{
	struct buf text = BUF_INIT;
	struct jsonw w;
	char fallback[SCORE_FALLBACK_LEN];

	/* Nearly all nodes are on the same one; only that of late nodes has a number in it. */
	if (a->tail.len && a->tail_fallback == node->fallback && node->fallback != FALLBACK_LATE &&
	    a->tail_estimated == node->estimated)
		return;
	a->tail_fallback = node->fallback;
	a->tail_estimated = node->estimated;
	score_fallback_text(node, fallback);
	jsonw_init(&w, &text);
	w.comma = true;
	jsonw_key_string(&w, "rung", fallback);
	jsonw_key_true(&w, "estimated", node->estimated);
	if (!a->rq->explain)
		jsonw_object_close(&w);
	keep_piece(&a->tail, &text);
	buf_fini(&text);
}

static char *put(char *to, const struct piece *p)
{
	memcpy(to, p->text, sizeof(p->text));
	return to + p->len;
}

static char *put_score(char *to, int64_t score)
{
	if (score < 0 || score > 99)
		return to + snprintf(to, SCORE_DIGITS, "%" PRId64, score);
	if (score > 9)
		*to++ = (char)('0' + score / 10);
	*to++ = (char)('0' + score % 10);
	return to;
}

static void write_plugin(struct jsonw *w, const struct answer *a, size_t at, size_t i,
			 int64_t score)
{
	struct buf *out = w->out;
	char *begin = buf_reserve(out,
				  sizeof(a->heads[i].text) + SCORE_DIGITS + sizeof(a->tail.text)),
	     *to;

	to = put(put_score(put(begin, &a->heads[i]), score), &a->tail);
	out->len += (size_t)(to - begin);
	if (a->rq->explain) {
		struct score_result r;

		score_job_tell(&a->job, at, i, SCORE_TERMS, &r);
		w->comma = true;
		jsonw_key_string(w, "reason", r.reason);
		write_terms(w, &r);
		jsonw_object_close(w);
	}
}

/* The plugin that takes most away from the blend; the first of equals. */
static size_t decider(const struct score_blend *blend, const int64_t *scores)
{
	size_t worst = 0;

	for (size_t i = 1; i < blend->count; i++)
		if (blend->weights[i] * (double)(100 - scores[i]) >
		    blend->weights[worst] * (double)(100 - scores[worst]))
			worst = i;
	return worst;
}

static void write_reason(struct jsonw *w, const struct answer *a, size_t at, const int64_t *scores)
{
	const struct score_blend *blend = a->blend;
	size_t i = decider(blend, scores);
	struct score_result r;
	char text[PREFIX_ROOM + sizeof(r.reason)];
	size_t len = 0;

	score_job_tell(&a->job, at, i, SCORE_REASON, &r);
	if (blend->count > 1 && !r.unknown)
		len = textbuf_add(text, PREFIX_ROOM, 0, "%s %" PRId64 ": ",
				  score_plugin_name(blend->plugins[i]), r.score);
	memcpy(text + len, r.reason, r.reason_len);
	buf_add_str(w->out, ",\"reason\":");
	w->comma = false;
	jsonw_text(w, text, len + r.reason_len);
}

static void write_node(struct jsonw *w, struct answer *a, size_t at, bool comma)
{
	const struct score_node *node = &a->job.nodes[at];
	int64_t scores[SCORE_PLUGINS] = {0};
	double score;
	char text[NODE_REFUSAL_TEXT];

	write_tail(a, node);
	score = score_job_score(&a->job, at, scores);
	buf_add_str(w->out, comma ? ",{\"node\":" : "{\"node\":");
	w->comma = false;
	jsonw_string(w, node->name);
	buf_add_str(w->out, ",\"score\":");
	w->comma = false;
	jsonw_int(w, round_away(score));
	buf_add_str(w->out, ",\"plugins\":[");
	for (size_t i = 0; i < a->blend->count; i++)
		write_plugin(w, a, at, i, scores[i]);
	buf_add_char(w->out, ']');
	w->comma = true;
	write_reason(w, a, at, scores);
	/* The answer of the extender's filter. */
	if (a->limits) {
		if (node_limits_check(a->limits, &a->job.query, node, text))
			jsonw_key_string(w, "refused", text);
		if (!node_limits_use_known(a->limits, node))
			jsonw_key_string(w, "useCap", "off: no usage data");
	}
	if (a->fit)
		scores_fit_write_node(a->fit, w, node->name);
	jsonw_object_close(w);
}

/*
 * What a node is written in without terms, and a name: more than is needed, so that an answer of
 * megabytes is not moved while it grows.
 */
static size_t room_for(const struct answer *a)
{
	size_t one = 512;

	for (size_t i = 0; i < a->blend->count; i++)
		one += a->heads[i].len + 32;
	return a->job.node_count * one;
}

/* The expected use of the pod, and its source. */
static void write_expected(struct jsonw *w, const struct answer *a)
{
	const struct expected_use *e = &a->job.pod.expected;

	if (a->blend->variant == SCORE_UPSTREAM || !a->rq->pod.container_count)
		return;
	jsonw_key_object(w, "expected");
	jsonw_key_int(w, "cpuMillicores", e->cpu_milli);
	jsonw_key_int(w, "highCpuMillicores", e->cpu_high_milli);
	jsonw_key_int(w, "memoryBytes", e->mem_bytes);
	jsonw_key_string(w, "source", expected_use_source_name(e->source));
	jsonw_object_close(w);
}

static void write_answer(struct answer *a, const bool *chosen, int64_t now_ns,
			 struct api_response *rs)
{
	struct jsonw w;

	write_heads(a);
	buf_reserve(&rs->body, room_for(a));
	list_answer_open(rs, &w, "ScoreList", now_ns);
	write_expected(&w, a);
	pod_manifest_write_warnings(cJSON_GetObjectItemCaseSensitive(a->rq->tree, "pod"), &w);
	scores_fit_write_counts(a->fit, &w);
	jsonw_key_array(&w, "items");
	for (size_t i = 0, written = 0; i < a->job.node_count; i++)
		if (!chosen || chosen[i])
			write_node(&w, a, i, written++ > 0);
	jsonw_array_close(&w);
	list_answer_close(&w);
}

static const struct node_limits *limits_of(const struct api_context *ctx,
					   const struct scores_request *rq)
{
	if (!ctx->extender || !node_limits_any(&ctx->extender->limits) ||
	    rq->blend.variant == SCORE_UPSTREAM)
		return NULL;
	return &ctx->extender->limits;
}

static void answer(const struct api_context *ctx, const struct scores_request *rq,
		   const struct reservations_copy *reservations, struct view *v,
		   struct api_response *rs)
{
	const struct score_ask ask = {
		.view = v,
		.reservations = reservations,
		.now_ns = ctx->now_ns(),
		.blend = &rq->blend,
		.args = &rq->args.values,
		.pod = &rq->pod,
		.sums = &rq->sums,
		.pod_uid = rq->pod_uid,
		.owner_uid = rq->owner_uid,
		.workload = rq->workload,
	};
	struct answer a = {.rq = rq, .blend = &rq->blend, .limits = limits_of(ctx, rq)};
	bool *chosen;

	if (!request_nodes_choose(rq->nodes, v, &chosen, FAIL_BAD_REQUEST, rs))
		return;
	if (rq->explain || rq->fits)
		a.fit = scores_fit_open(ctx->places, v, reservations,
					cJSON_GetObjectItemCaseSensitive(rq->tree, "pod"),
					ask.now_ns);
	score_job_init(&a.job, &ask, NULL);
	write_answer(&a, chosen, ask.now_ns, rs);
	score_job_fini(&a.job);
	scores_fit_close(a.fit);
	free(chosen);
}

void api_scores(const struct api_context *ctx, const struct api_request *rq,
		struct api_response *rs)
{
	char field[SCORES_FIELD_MAX];
	struct scores_request request = {0};
	struct error error = {""};
	struct reservations_copy *reservations;
	struct view *v;

	if (scores_request_parse(rq->body, rq->body_len, ctx->extender, &request, field, &error)) {
		api_fail(rs, FAIL_BAD_REQUEST, *field ? field : NULL, "%s", error.text);
		return;
	}
	prefetcher_asked(ctx->prefetcher, ctx->now_ns());
	reservations = reservations_take(ctx->reservations, ctx->now_ns());
	v = view_slot_take(ctx->views);
	answer(ctx, &request, reservations, v, rs);
	view_drop(v);
	reservations_copy_drop(reservations);
	scores_request_fini(&request);
}
