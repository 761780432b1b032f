/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/drain/history[?node=NAME[,NAME..]][&limit=N]: what was decided about drains, the newest
 * first.
 *
 *   {"apiVersion","kind":"DrainHistory","time","items":[{"time","event"[,"node"][,"reason"],"text"},..]}
 *
 *   event   needed, unneeded, drain, inDeletion: the verdict about the node became this, or the
 *           reason for it another one
 *           wave: other nodes go together than before, or none; it has no node, and is left out
 *           where nodes are asked for
 *           evicted: a pod left the node while that was on its way or cordoned, or was disrupted
 *           gone: the node left the cluster
 *   reason  code, as in /v1/drain
 *
 * At most 10,000 are kept, with --state-dir over restarts as well, and limit (500, at most all) of
 * them are told. A node without any is no error: it may be gone, or nothing about it changed. Over
 * a snapshot it is what the aggregator had last, at most 1024.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/list.h"
#include "aggregator/api/view_json.h"
#include "aggregator/planner/drain_log.h"
#include "aggregator/planner/plan.h"

struct query {
	const char *nodes; /* borrowed; NULL: all */
	size_t limit;
};

/* A name of the list, which has commas; NULL: any is. */
static bool is_asked(const char *names, const char *node)
{
	size_t len = strlen(node);

	for (const char *at = names; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strcspn(at, ",") == len && strncmp(at, node, len) == 0)
			return true;
	}
	return !names;
}

static void write_row(struct jsonw *w, const struct drain_row *r)
{
	jsonw_object_open(w);
	jsonw_key_time(w, "time", r->time_ns);
	jsonw_key_string(w, "event", r->event);
	jsonw_key_text(w, "node", r->node);
	jsonw_key_text(w, "reason", r->reason);
	jsonw_key_string(w, "text", r->text);
	jsonw_object_close(w);
}

static void write_rows(const struct drain_rows *rows, const struct query *q, int64_t now_ns,
		       struct api_response *rs)
{
	size_t told = 0;
	struct jsonw w;

	list_answer_open(rs, &w, "DrainHistory", now_ns);
	jsonw_key_array(&w, "items");
	for (size_t i = rows->count; i > 0 && told < q->limit; i--) {
		if (!is_asked(q->nodes, rows->of[i - 1]->node))
			continue;
		write_row(&w, rows->of[i - 1]);
		told++;
	}
	jsonw_array_close(&w);
	list_answer_close(&w);
}

/*
 * Where nothing is kept: what was remembered at the moment of a snapshot. False: *rs says why not.
 */
static bool read_memory(const struct api_context *ctx, struct drain_log *to,
			struct api_response *rs)
{
	const char *text = ctx->memory ? ctx->memory->of[PLAN_DRAIN] : NULL;
	struct drain_state *state = drain_state_new();
	const struct drain_record *of;
	struct error error = {""};
	size_t count;
	bool good = !text || drain_state_read(state, text, strlen(text), INT64_MAX, 0, &error) == 0;

	if (good) {
		of = drain_state_history(state, &count);
		drain_log_add(to, of, count);
	} else {
		api_fail(rs, FAIL_BAD_REQUEST, NULL, "state.drain: %s", error.text);
	}
	drain_state_free(state);
	return good;
}

static bool read_query(const struct api_request *rq, struct query *q, struct api_response *rs)
{
	const char *limit = rq->query(rq, "limit");
	char *end;

	*q = (struct query){rq->query(rq, "node"), LIST_LIMIT_DEFAULT};
	if (q->nodes && !*q->nodes)
		q->nodes = NULL;
	if (!limit || !*limit)
		return true;
	q->limit = strtoul(limit, &end, 10);
	if (*limit >= '0' && *limit <= '9' && !*end && q->limit >= 1 && q->limit <= DRAIN_LOG_MAX)
		return true;
	return api_fail(rs, FAIL_BAD_REQUEST, "limit",
			"limit \"%.60s\" is not a whole number from 1 to %d", limit, DRAIN_LOG_MAX);
}

void api_drain_history(const struct api_context *ctx, const struct api_request *rq,
		       struct api_response *rs)
{
	struct drain_log *remembered = NULL;
	struct drain_rows rows;
	struct query q;

	if (!read_query(rq, &q, rs))
		return;
	if (!ctx->decisions)
		remembered = drain_log_new();
	if (!remembered || read_memory(ctx, remembered, rs)) {
		drain_log_read(remembered ? remembered : ctx->decisions, 0, &rows);
		write_rows(&rows, &q, ctx->now_ns(), rs);
		/* Rows are added, and never change. */
		rs->etag = 1;
		if (rows.count)
			rs->etag = ((rows.first + rows.count) << 32) ^
				   (uint64_t)rows.of[rows.count - 1]->time_ns;
		drain_rows_fini(&rows);
	}
	drain_log_free(remembered);
}
