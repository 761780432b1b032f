/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/drain/history[?node=NAME[,NAME..]][&event=E][&limit=N]: what was decided about drains, the
 * newest first.
 *
 *   {"apiVersion","kind":"DrainHistory","time","items":[{"time","event"[,"node"][,"reason"],"text"
 *    [,"report"]},..]}
 *
 *   event   needed, unneeded, drain, inDeletion: the verdict about the node became this, or the
 *           reason for it another one
 *           wave: other nodes go together than before, or none; it has no node, and is left out
 *           where nodes are asked for
 *           evicted: a pod left the node while that was on its way or cordoned, or was disrupted
 *           gone: the node left the cluster
 *           waveReport: the actuator ended a wave; it has no node
 *   reason  code, as in /v1/drain; of a waveReport its outcome
 *   report  of a waveReport, as it was posted
 *
 * POST /v1/drain/history: takes such a report; the aggregator tells the other one of it (--peer). A
 * report of more than ACT_TOLD_MAX bytes is kept without its nodes, which the text says. The answer is
 * {"apiVersion","kind":"WaveReport","time","text"}.
 *
 * At most 10,000 are kept, with --state-dir over restarts as well, and limit (500, at most all) of
 * them are told. A node without any is no error: it may be gone, or nothing about it changed. Over
 * a snapshot it is what the aggregator had last, at most 1024.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/act_box.h"
#include "aggregator/api/list.h"
#include "aggregator/api/request_body.h"
#include "aggregator/planner/drain_log.h"
#include "aggregator/planner/plan.h"
#include "shared/document.h"
#include "shared/mem.h"

struct query {
	const char *nodes, *event; /* borrowed; NULL: all */
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
	size_t len = strcspn(r->text, strcmp(r->event, DRAIN_WAVE_REPORT) == 0 ? "\n" : "");

	jsonw_object_open(w);
	jsonw_key_time(w, "time", r->time_ns);
	jsonw_key_string(w, "event", r->event);
	jsonw_key_text(w, "node", r->node);
	jsonw_key_text(w, "reason", r->reason);
	jsonw_key(w, "text");
	if (r->text[len]) {
		char *text = mem_strndup(r->text, len);

		jsonw_string(w, text);
		free(text);
		jsonw_key(w, "report");
		buf_add_str(w->out, r->text + len + 1);
	} else {
		jsonw_string(w, r->text);
	}
	jsonw_object_close(w);
}

/* Waves of which the other aggregator told late go between those of their time. */
static void sort_by_time(struct drain_rows *rows)
{
	for (size_t i = 1; i < rows->count; i++) {
		for (size_t k = i; k > 0 && rows->of[k - 1]->time_ns > rows->of[k]->time_ns; k--) {
			struct drain_row *later = rows->of[k - 1];

			rows->of[k - 1] = rows->of[k];
			rows->of[k] = later;
		}
	}
}

static void write_rows(const struct drain_rows *rows, const struct query *q, int64_t now_ns,
		       struct api_response *rs)
{
	size_t told = 0;
	struct jsonw w;

	list_answer_open(rs, &w, "DrainHistory", now_ns);
	jsonw_key_array(&w, "items");
	for (size_t i = rows->count; i > 0 && told < q->limit; i--) {
		if (!is_asked(q->nodes, rows->of[i - 1]->node) ||
		    (q->event && strcmp(q->event, rows->of[i - 1]->event) != 0))
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

	*q = (struct query){rq->query(rq, "node"), rq->query(rq, "event"), LIST_LIMIT_DEFAULT};
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
		sort_by_time(&rows);
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

/* --- reports of waves ------------------------------------------------------------------------- */

static size_t count_outcomes(const cJSON *report, const char *outcome)
{
	size_t count = 0;

	for (const cJSON *n = document_first(report, "nodes"); n; n = n->next)
		count += document_is(n, "outcome", outcome);
	return count;
}

/* "wave w-1 stopped: destination b is above its cap; 1 of 2 nodes drained, 7 evictions, 0 refused" */
static void write_sentence(const cJSON *report, struct buf *out)
{
	const char *reason = document_text_or(report, "reason", "");

	buf_printf(out, "wave %s %s%s%s; %zu of %d nodes drained, %.0f evictions, %.0f refused",
		   document_text(report, "plan"), document_text(report, "outcome"),
		   *reason ? ": " : "", reason, count_outcomes(report, "drained"),
		   cJSON_GetArraySize(document_at(report, "nodes")),
		   fmax(0, document_number(report, "evictions")),
		   fmax(0, document_number(report, "refused")));
}

/* 0: absent. A number of a report is from outside. */
static uint64_t bounded(double value)
{
	return (uint64_t)fmin(1e9, fmax(0, value));
}

static void count_wave(struct wave_counters *c, const cJSON *report)
{
	static const char *const outcomes[WAVE_OUTCOMES] = {"drained", "rolledBack", "stopped"};
	double took_s = document_time(report, "end") - document_time(report, "begin");

	for (int i = 0; i < WAVE_OUTCOMES; i++)
		counter_add(&c->ended[i], document_is(report, "outcome", outcomes[i]));
	counter_add(&c->evictions, bounded(document_number(report, "evictions")));
	counter_add(&c->refused, bounded(document_number(report, "refused")));
	counter_add(&c->rolled_back, count_outcomes(report, "rolledBack"));
	counter_add(&c->seconds, bounded(took_s));
}

static void keep_report(const struct api_context *ctx, cJSON *report, struct api_response *rs)
{
	char *json = cJSON_PrintUnformatted(report);
	int64_t now_ns = ctx->now_ns();
	struct buf text = BUF_INIT;
	struct jsonw w;

	write_sentence(report, &text);
	count_wave(&ctx->counters->waves, report);
	if (text.len + strlen(json) >= ACT_TOLD_MAX) {
		cJSON_free(json);
		cJSON_DeleteItemFromObjectCaseSensitive(report, "nodes");
		json = cJSON_PrintUnformatted(report);
		buf_add_str(&text, "; its nodes are left out");
	}
	list_answer_open(rs, &w, "WaveReport", now_ns);
	jsonw_key_string(&w, "text", text.data);
	list_answer_close(&w);
	buf_printf(&text, "\n%s", json);
	if (text.len <= ACT_TOLD_MAX)
		drain_log_put(ctx->decisions,
			      &(struct drain_row){.time_ns = now_ns,
						  .event = DRAIN_WAVE_REPORT,
						  .reason = document_text(report, "outcome"),
						  .node = "",
						  .text = text.data});
	else
		api_fail(rs, FAIL_TOO_LARGE, NULL, "the report is larger than %d bytes",
			 ACT_TOLD_MAX);
	cJSON_free(json);
	buf_fini(&text);
}

void api_drain_report(const struct api_context *ctx, const struct api_request *rq,
		      struct api_response *rs)
{
	cJSON *report = request_parse(rq, api_wave_report_members, rs);

	if (report && request_check(report, api_wave_report_members, rs)) {
		if (ctx->decisions)
			keep_report(ctx, report, rs);
		else
			api_fail(rs, FAIL_BAD_REQUEST, NULL, "a snapshot keeps no reports");
	}
	cJSON_Delete(report);
}
