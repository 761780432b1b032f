/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics: Prometheus text format 0.0.4, in base units. The number of series is bounded: about 60
 * for each node (metrics_node.c), none for a pod.
 *
 * A new metric is a row of `struct metric` in the metrics_*.c of its subject (a counter also a
 * member of state/counters.h), and a row of packaging/docs/monitoring.md; tests/docs/check compares
 * both.
 */
#include "aggregator/api/metrics.h"

#include <math.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/jsonw.h"

/* As the format's convention has it. */
static const char *type_of(const char *family)
{
	size_t len = strlen(family), end = strlen("_total");

	return len > end && strcmp(family + len - end, "_total") == 0 ? "counter" : "gauge";
}

void metrics_write_family(struct buf *out, const char *name, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type_of(name));
}

void metrics_write_label(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n') {
			buf_add(out, "\\n", 2);
			continue;
		}
		if (*text == '\\' || *text == '"')
			buf_add_char(out, '\\');
		buf_add_char(out, *text);
	}
}

void metrics_write_value(struct buf *out, double value)
{
	struct jsonw w;

	jsonw_init(&w, out);
	buf_add_char(out, ' ');
	jsonw_fixed(&w, value, 9);
	buf_add_char(out, '\n');
}

void metrics_write_samples(struct buf *out, const struct metric *of, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (of[i].help)
			metrics_write_family(out, of[i].family, of[i].help);
		if (!isfinite(of[i].value))
			continue;
		buf_add_str(out, of[i].family);
		if (of[i].labels)
			buf_printf(out, "{%s}", of[i].labels);
		metrics_write_value(out, of[i].value);
	}
}

void metrics_write_row(struct buf *out, const char *family, const char *label, const char *text,
		       const char *more, double value)
{
	if (!isfinite(value))
		return;
	buf_add_str(out, family);
	buf_add_char(out, '{');
	buf_add_str(out, label);
	buf_add_str(out, "=\"");
	metrics_write_label(out, text);
	buf_add_char(out, '"');
	buf_add_str(out, more);
	buf_add_char(out, '}');
	metrics_write_value(out, value);
}

void metrics_write_labelled(struct buf *out, const char *family, const char *label,
			    const char *text, double value)
{
	metrics_write_row(out, family, label, text, "", value);
}

void metrics_write_counters(struct buf *out, const char *family, const char *help,
			    const char *label, const char *const *texts,
			    const atomic_uint_least64_t *of, size_t count)
{
	metrics_write_family(out, family, help);
	for (size_t i = 0; i < count; i++)
		metrics_write_labelled(out, family, label, texts[i], COUNT(of[i]));
}

double metrics_seconds(const atomic_uint_least64_t *ns)
{
	return (double)counter_get(ns) / NS_PER_SEC;
}

/* --- the service itself ----------------------------------------------------------------------- */

static void write_states(struct buf *out, const struct view *v, int64_t now_ns)
{
	double nodes[NEVER + 1] = {0};

	for (size_t i = 0; i < v->node_count; i++)
		nodes[node_stats_freshness(v->nodes[i]->stats, now_ns)]++;
	metrics_write_family(out, "evenkeel_nodes", "Nodes by the age of what is known of them.");
	for (int s = FRESH; s <= NEVER; s++)
		metrics_write_labelled(out, "evenkeel_nodes", "state",
				       freshness_name((enum freshness)s), nodes[s]);
}

/* Nothing without a record. */
static void write_record(struct buf *out, const struct record_counters *c)
{
	const struct metric samples[] = {
		{"evenkeel_record_alarm", NULL, "1 while nothing is recorded.", COUNT(c->alarm)},
		{"evenkeel_record_failures_total", NULL, "Failed writes of the record.",
		 COUNT(c->failures)},
		{"evenkeel_record_bytes_total", NULL, "Bytes recorded, before compression.",
		 COUNT(c->bytes)},
	};

	if (counter_get(&c->enabled))
		METRICS_WRITE(out, samples);
}

/* Of the database; nothing without one. */
static void write_store(struct buf *out, const struct store_counters *c, int64_t now_ns)
{
	uint64_t saved_ns = counter_get(&c->saved_ns);
	const struct metric samples[] = {
		{"evenkeel_store_alarm", NULL, "1 while nothing is being saved.", COUNT(c->alarm)},
		{"evenkeel_store_saves_total", NULL, "Saves of node windows.", COUNT(c->saves)},
		{"evenkeel_store_failures_total", NULL, "Saves, and attempts to open, that failed.",
		 COUNT(c->failures)},
		{"evenkeel_store_last_save_age_seconds", NULL, "Age of what was saved last.",
		 saved_ns ? fmax(0, (double)(now_ns - (int64_t)saved_ns) / NS_PER_SEC) : NAN},
		{"evenkeel_store_last_save_seconds", NULL, "Time that the last save took.",
		 saved_ns ? metrics_seconds(&c->save_took_ns) : NAN},
		{"evenkeel_store_load_seconds", NULL,
		 "Time that reading the database took at start.",
		 metrics_seconds(&c->load_took_ns)},
		{"evenkeel_store_loaded_nodes", NULL,
		 "Nodes that were back from the database at start.", COUNT(c->loaded)},
		{"evenkeel_store_bytes", NULL, "Size of the database and its log.",
		 COUNT(c->bytes)},
		{"evenkeel_store_set_aside", NULL,
		 "Damaged or newer databases set aside in the state directory.", COUNT(c->aside)},
		{"evenkeel_store_lost_intervals_total", NULL,
		 "Intervals that node windows do without, since a ring had merged them with saved "
		 "ones.",
		 COUNT(c->lost_intervals)},
	};

	if (counter_get(&c->enabled))
		METRICS_WRITE(out, samples);
}

static void write_service(struct buf *out, const struct counters *c)
{
	static const char *const results[] = {
#define X(result) [FRAME_RESULT_##result] = #result,
		FRAME_RESULTS(X)
#undef X
	};
	static const char *const codes[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
	const struct metric samples[] = {
		{"evenkeel_build_info", "version=\"" EVENKEEL_VERSION "\"",
		 "The version that runs.", 1},
		{"evenkeel_frames_received_bytes_total", NULL, "Bytes of all frames.",
		 COUNT(c->frame_bytes)},
		{"evenkeel_intervals_merged_total", NULL,
		 "Published intervals that came within the next one, joined by a ring without room "
		 "for both: applied frames and these are all that was published.",
		 COUNT(c->intervals_merged)},
		{"evenkeel_intervals_missing_total", NULL,
		 "Published intervals that agents went past, since they had left their rings or "
		 "were refused.",
		 COUNT(c->intervals_missing)},
		{"evenkeel_views_published_total", NULL,
		 "Snapshots of the state that were published to readers.",
		 COUNT(c->views_published)},
	};

	METRICS_WRITE(out, samples);
	metrics_write_counters(out, "evenkeel_frames_total",
			       "Frames from agents, by what became of them.", "result", results,
			       c->frames, FRAME_RESULT_COUNT);
	metrics_write_counters(
		out, "evenkeel_quarantined_values_total",
		"Values that could not be and were left out, by what was wrong with them.",
		"reason", quarantine_reason_name, c->quarantined, QUARANTINE_REASON_COUNT);
	metrics_write_counters(out, "evenkeel_http_requests_total",
			       "Requests answered, by class of status.", "code", codes,
			       c->http_requests + 1, sizeof(codes) / sizeof(codes[0]));
}

void api_metrics(const struct api_context *ctx, const struct api_request *rq,
		 struct api_response *rs)
{
	int64_t now_ns = ctx->now_ns();
	struct view *v = view_slot_take(ctx->views);

	(void)rq;
	rs->content_type = "text/plain; version=0.0.4; charset=utf-8";
	write_service(&rs->body, ctx->counters);
	metrics_write_ingest(&rs->body, &ctx->counters->ingest);
	metrics_write_access(&rs->body, &ctx->counters->access);
	write_store(&rs->body, &ctx->counters->store, now_ns);
	write_record(&rs->body, &ctx->counters->record);
	metrics_write_extender(&rs->body, ctx);
	write_states(&rs->body, v, now_ns);
	metrics_write_nodes(&rs->body, v, now_ns);
	metrics_write_cluster(&rs->body, v, now_ns);
	metrics_write_quotas(&rs->body, ctx);
	metrics_write_plan(&rs->body, ctx);
	metrics_write_drain(&rs->body, ctx);
	metrics_write_process(&rs->body);
	view_drop(v);
}
