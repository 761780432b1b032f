/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics: Prometheus text format 0.0.4, base units, one table of families for what is said of
 * each node.
 *
 * The number of series is bounded: about 45 per node, 15 more where an API is followed
 * (metrics_cluster.c), none per pod. A node that is too old keeps its age, what it told that could
 * not be and how its clock was off, and loses its measurements, so that a graph ends instead of
 * going flat; what was never measured has no series rather than a 0. Counters of a node begin at 0
 * when this process first hears of it.
 */
#include "aggregator/api/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "shared/clock.h"
#include "shared/jsonw.h"

#define MILLI 1e-3

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

void metrics_write_sample(struct buf *out, const char *name, const char *labels, double value)
{
	if (!isfinite(value))
		return;
	buf_add_str(out, name);
	if (labels)
		buf_printf(out, "{%s}", labels);
	metrics_write_value(out, value);
}

void metrics_write_one(struct buf *out, const char *name, const char *help, double value)
{
	metrics_write_family(out, name, help);
	metrics_write_sample(out, name, NULL, value);
}

void metrics_write_counter(struct buf *out, const char *name, const char *help,
			   const atomic_uint_least64_t *value)
{
	metrics_write_one(out, name, help, (double)counter_get(value));
}

void metrics_write_labelled(struct buf *out, const char *name, const char *label, const char *text,
			    double value)
{
	buf_printf(out, "%s{%s=\"", name, label);
	metrics_write_label(out, text);
	buf_add_str(out, "\"}");
	metrics_write_value(out, value);
}

void metrics_write_node_sample(struct buf *out, const char *name, const char *node,
			       const char *labels, double value)
{
	if (!isfinite(value))
		return;
	buf_add_str(out, name);
	buf_add_str(out, "{node=\"");
	metrics_write_label(out, node);
	buf_add_char(out, '"');
	buf_add_str(out, labels);
	buf_add_char(out, '}');
	metrics_write_value(out, value);
}

static void add_node_sample(struct buf *out, const char *name, const struct node_stats *p,
			    const char *labels, double value)
{
	metrics_write_node_sample(out, name, p->name, labels, value);
}

/* --- what is said of each node, as a table ---------------------------------------------------- */

typedef double node_value(const struct node_stats *p);

static double cpu_capacity(const struct node_stats *p)
{
	return p->cpu_capacity_milli > 0 ? (double)p->cpu_capacity_milli * MILLI : NAN;
}

static double mem_capacity(const struct node_stats *p)
{
	return p->mem_capacity_bytes > 0 ? (double)p->mem_capacity_bytes : NAN;
}

static double value_of(const struct latest *l)
{
	return l->known ? (double)l->value : NAN;
}

static double mem_available(const struct node_stats *p)
{
	return p->machine.known ? (double)p->machine.mem_available_bytes : NAN;
}

#define LATEST(member, unit)                                                                       \
	static double member##_latest(const struct node_stats *p)                                  \
	{                                                                                          \
		return value_of(&p->usage.latest.member) * (unit);                                 \
	}
LATEST(cpu_milli, MILLI)
LATEST(mem_bytes, 1)
LATEST(working_set_bytes, 1)
#define X(member, ...) LATEST(member, 1)
USAGE_NEWEST(X)
#undef X

static double agent_cpu(const struct node_stats *p)
{
	return p->agent_cpu_milli * MILLI;
}

static double sampler_rate(const struct node_stats *p)
{
	return p->rate_hz;
}

static double sampler_pass(const struct node_stats *p)
{
	return (double)p->pass_ns / NS_PER_SEC;
}

static double missed_ticks(const struct node_stats *p)
{
	return (double)p->totals.missed_ticks;
}

static double clock_skew(const struct node_stats *p)
{
	return p->clock_known ? (double)p->clock_ahead_ns / NS_PER_SEC : NAN;
}

static double quarantined(const struct node_stats *p)
{
	return (double)p->quarantine.count;
}

static double overflow(const struct node_stats *p)
{
	return p->overflow;
}

static double workloads(const struct node_stats *p)
{
	return (double)p->pod_count;
}

static const struct node_family {
	const char *name;
	const char *help;
	node_value *value; /* NaN: no sample */
} node_families[] = {
	{"evenkeel_node_cpu_capacity_cores", "CPUs that are online.", cpu_capacity},
	{"evenkeel_node_memory_capacity_bytes", "Memory of the machine.", mem_capacity},
	{"evenkeel_node_cpu_latest_cores", "CPU use in the newest interval.", cpu_milli_latest},
	{"evenkeel_node_memory_latest_bytes", "Memory in use (total less available), newest.",
	 mem_bytes_latest},
	{"evenkeel_node_memory_available_bytes",
	 "Memory that can be had without swapping (MemAvailable), newest.", mem_available},
	{"evenkeel_node_working_set_bytes", "Memory in use less inactive file pages, newest.",
	 working_set_bytes_latest},
#define X(member, bit, key, number, type, most, why, unit, help)                                   \
	{"evenkeel_node_" #member, help, member##_latest},
	USAGE_NEWEST(X)
#undef X
		{"evenkeel_node_workloads",
		 "Pods, or units and slices without Kubernetes, that are measured.", workloads},
	{"evenkeel_node_agent_cpu_cores", "CPU the agent itself used in the newest interval.",
	 agent_cpu},
	{"evenkeel_node_sampler_rate_hertz", "Sampling passes per second.", sampler_rate},
	{"evenkeel_node_sampler_pass_seconds", "Mean duration of a sampling pass.", sampler_pass},
	{"evenkeel_node_sampler_missed_ticks_total", "Sampling passes that were due and missed.",
	 missed_ticks},
	{"evenkeel_node_sampler_overflow_cgroups", "Control groups beyond the sampler's room.",
	 overflow},
};

/* Also of a node of which nothing new is known: they may tell why. */
static const struct node_family kept_families[] = {
	{"evenkeel_node_clock_skew_seconds",
	 "How far the node's clock is ahead of this service's; its times are corrected.",
	 clock_skew},
	{"evenkeel_node_quarantined_values_total",
	 "Values of the node and its workloads that could not be and were left out.", quarantined},
};

/* --- what a label splits: modes of CPU time, resources ---------------------------------------- */

static double cpu_seconds(const struct node_stats *p, unsigned int mode)
{
	const struct cpu_split *c = &p->totals.cpu;
	const uint64_t ns[] = {c->user_ns, c->system_ns, c->iowait_ns, c->steal_ns};

	return p->machine.known ? (double)ns[mode] / NS_PER_SEC : NAN;
}

static double lost_seconds(const struct node_stats *p, unsigned int pressure)
{
	if (!(p->totals.pressure_have & pressure_bit(pressure)))
		return NAN;
	return (double)p->totals.pressure_ns[pressure] / NS_PER_SEC;
}

static double lost_share(const struct node_stats *p, unsigned int pressure)
{
	const struct window_counts *c = &p->usage.windows[WINDOW_5M].counts;

	return c->seconds > 0 ? c->pressure[pressure] : NAN;
}

static const char *const modes[] = {",mode=\"user\"", ",mode=\"system\"", ",mode=\"iowait\"",
				    ",mode=\"steal\"", NULL};
static const char *const resources[] = {",resource=\"cpu\"", ",resource=\"memory\"", NULL};

static const struct split_family {
	const char *name;
	const char *help;
	double (*value)(const struct node_stats *p, unsigned int of); /* NaN: no sample */
	const char *const *labels;
	unsigned int first; /* `of` that the first label stands for */
} split_families[] = {
	{"evenkeel_node_cpu_seconds_total",
	 "Time of all CPUs together by mode; idle time is the rest.", cpu_seconds, modes, 0},
	{"evenkeel_node_contention_seconds_total",
	 "Time in which some work waited for others (PSI some less throttled time).", lost_seconds,
	 resources, CONTENTION_CPU},
	{"evenkeel_node_stalled_seconds_total", "Time in which no work could go on (PSI full).",
	 lost_seconds, resources, STALL_CPU},
	{"evenkeel_node_contention_ratio",
	 "Share of the last 5 minutes in which some work waited for others.", lost_share, resources,
	 CONTENTION_CPU},
	{"evenkeel_node_stalled_ratio", "Share of the last 5 minutes in which no work could go on.",
	 lost_share, resources, STALL_CPU},
};

/* --- writing both ----------------------------------------------------------------------------- */

static bool is_shown(const struct node_stats *p, int64_t now_ns)
{
	enum freshness state = node_stats_freshness(p, now_ns);

	return state == FRESH || state == LATE;
}

static void write_ages(struct buf *out, const struct view *v, int64_t now_ns)
{
	static const char name[] = "evenkeel_node_sample_age_seconds";

	metrics_write_family(out, name, "Age of the newest measurement.");
	for (size_t i = 0; i < v->node_count; i++) {
		const struct node_stats *p = v->nodes[i]->stats;

		if (node_stats_freshness(p, now_ns) != NEVER)
			add_node_sample(out, name, p, "",
					(double)node_stats_age_ns(p, now_ns) / NS_PER_SEC);
	}
}

static bool was_heard(const struct node_stats *p, int64_t now_ns)
{
	return node_stats_freshness(p, now_ns) != NEVER;
}

static void write_node_family(struct buf *out, const struct node_family *family,
			      const struct view *v, int64_t now_ns,
			      bool (*shown)(const struct node_stats *p, int64_t now_ns))
{
	metrics_write_family(out, family->name, family->help);
	for (size_t i = 0; i < v->node_count; i++)
		if (shown(v->nodes[i]->stats, now_ns))
			add_node_sample(out, family->name, v->nodes[i]->stats, "",
					family->value(v->nodes[i]->stats));
}

static void write_node_families(struct buf *out, const struct view *v, int64_t now_ns)
{
	for (size_t f = 0; f < sizeof(node_families) / sizeof(node_families[0]); f++)
		write_node_family(out, &node_families[f], v, now_ns, is_shown);
	for (size_t f = 0; f < sizeof(kept_families) / sizeof(kept_families[0]); f++)
		write_node_family(out, &kept_families[f], v, now_ns, was_heard);
}

static void add_split(struct buf *out, const struct split_family *family,
		      const struct node_stats *p)
{
	for (unsigned int i = 0; family->labels[i]; i++)
		add_node_sample(out, family->name, p, family->labels[i],
				family->value(p, family->first + i));
}

static void write_split_families(struct buf *out, const struct view *v, int64_t now_ns)
{
	for (size_t f = 0; f < sizeof(split_families) / sizeof(split_families[0]); f++) {
		const struct split_family *family = &split_families[f];

		metrics_write_family(out, family->name, family->help);
		for (size_t i = 0; i < v->node_count; i++)
			if (is_shown(v->nodes[i]->stats, now_ns))
				add_split(out, family, v->nodes[i]->stats);
	}
}

/* --- windows ---------------------------------------------------------------------------------- */

static void add_window(struct buf *out, const char *name, const struct node_stats *p,
		       const char *window, const struct window_stats *s, double unit)
{
	const struct {
		const char *stat;
		double value;
	} stats[] = {
		{"mean", s->mean},
		{"stddev", s->stddev},
		{"p95", s->percentiles ? s->p95 : NAN},
		{"max", s->max},
	};
	char labels[64];

	if (!s->known)
		return;
	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
		snprintf(labels, sizeof(labels), ",window=\"%s\",stat=\"%s\"", window,
			 stats[i].stat);
		add_node_sample(out, name, p, labels, stats[i].value * unit);
	}
}

/* The shortest and the longest window: what happens now, and what schedulers are told. */
static void write_windows(struct buf *out, const struct view *v, int64_t now_ns, bool cpu)
{
	static const enum window shown[] = {WINDOW_5M, WINDOW_15M};
	const char *name =
		cpu ? "evenkeel_node_cpu_usage_cores" : "evenkeel_node_memory_usage_bytes";

	metrics_write_family(out, name,
			     cpu ? "CPU use over a sliding window, from every sample in it."
				 : "Memory in use over a sliding window.");
	for (size_t i = 0; i < v->node_count; i++) {
		const struct node_stats *p = v->nodes[i]->stats;

		if (!is_shown(p, now_ns))
			continue;
		for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++) {
			const struct window_set *set = &p->usage.windows[shown[k]];

			add_window(out, name, p, window_name[shown[k]],
				   cpu ? &set->cpu_milli : &set->mem_bytes, cpu ? MILLI : 1);
		}
	}
}

static void write_tiers(struct buf *out, const struct view *v, int64_t now_ns)
{
	static const char *const labels[] = {
		[TIER_T0] = ",tier=\"T0\"",
		[TIER_T1] = ",tier=\"T1\"",
		[TIER_T2] = ",tier=\"T2\"",
		[TIER_T3] = ",tier=\"T3\"",
	};
	static const char name[] = "evenkeel_node_sampler_info";

	metrics_write_family(out, name, "By which means the node is sampled.");
	for (size_t i = 0; i < v->node_count; i++)
		if (is_shown(v->nodes[i]->stats, now_ns))
			add_node_sample(out, name, v->nodes[i]->stats,
					labels[v->nodes[i]->stats->tier], 1);
}

/* --- the service itself ----------------------------------------------------------------------- */

static void write_states(struct buf *out, const struct view *v, int64_t now_ns)
{
	static const enum freshness states[] = {FRESH, LATE, EXPIRED, NEVER};
	size_t nodes[NEVER + 1] = {0};

	for (size_t i = 0; i < v->node_count; i++)
		nodes[node_stats_freshness(v->nodes[i]->stats, now_ns)]++;
	metrics_write_family(out, "evenkeel_nodes", "Nodes by the age of what is known of them.");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		buf_printf(out, "evenkeel_nodes{state=\"%s\"} %zu\n", freshness_name(states[i]),
			   nodes[states[i]]);
}

static double seconds_of(const atomic_uint_least64_t *ns)
{
	return (double)counter_get(ns) / NS_PER_SEC;
}

/* Of the database; nothing without one. */
static void write_store(struct buf *out, const struct store_counters *c, int64_t now_ns)
{
	uint64_t saved_ns = counter_get(&c->saved_ns);
	const struct {
		const char *name, *help;
		double value;
	} samples[] = {
		{"evenkeel_store_alarm", "1 while node windows are not being saved.",
		 (double)counter_get(&c->alarm)},
		{"evenkeel_store_saves_total", "Saves of node windows.",
		 (double)counter_get(&c->saves)},
		{"evenkeel_store_failures_total", "Saves, and attempts to open, that failed.",
		 (double)counter_get(&c->failures)},
		{"evenkeel_store_last_save_age_seconds", "Age of what was saved last.",
		 saved_ns ? fmax(0, (double)(now_ns - (int64_t)saved_ns) / NS_PER_SEC) : NAN},
		{"evenkeel_store_last_save_seconds", "Time that the last save took.",
		 saved_ns ? seconds_of(&c->save_took_ns) : NAN},
		{"evenkeel_store_load_seconds", "Time that reading the database took at start.",
		 seconds_of(&c->load_took_ns)},
		{"evenkeel_store_loaded_nodes", "Nodes that were back from the database at start.",
		 (double)counter_get(&c->loaded)},
		{"evenkeel_store_bytes", "Size of the database and its log.",
		 (double)counter_get(&c->bytes)},
		{"evenkeel_store_set_aside",
		 "Damaged or newer databases set aside in the state directory.",
		 (double)counter_get(&c->aside)},
		{"evenkeel_store_lost_intervals_total",
		 "Intervals that node windows do without, since a ring had merged them with saved "
		 "ones.",
		 (double)counter_get(&c->lost_intervals)},
	};

	for (size_t i = 0; counter_get(&c->enabled) && i < sizeof(samples) / sizeof(*samples);
	     i++) {
		metrics_write_one(out, samples[i].name, samples[i].help, samples[i].value);
	}
}

static void write_service(struct buf *out, const struct api_context *ctx)
{
	static const char *const results[] = {
#define X(result) [FRAME_RESULT_##result] = #result,
		FRAME_RESULTS(X)
#undef X
	};
	const struct counters *c = ctx->counters;

	metrics_write_family(out, "evenkeel_build_info", "The version that runs.");
	buf_add_str(out, "evenkeel_build_info{version=\"" EVENKEEL_VERSION "\"} 1\n");
	metrics_write_family(out, "evenkeel_frames_total",
			     "Frames from agents, by what became of them.");
	for (int i = 0; i < FRAME_RESULT_COUNT; i++)
		buf_printf(out, "evenkeel_frames_total{result=\"%s\"} %llu\n", results[i],
			   (unsigned long long)counter_get(&c->frames[i]));
	metrics_write_family(
		out, "evenkeel_quarantined_values_total",
		"Values that could not be and were left out, by what was wrong with them.");
	for (int i = 0; i < QUARANTINE_REASON_COUNT; i++)
		buf_printf(out, "evenkeel_quarantined_values_total{reason=\"%s\"} %llu\n",
			   quarantine_reason_name[i],
			   (unsigned long long)counter_get(&c->quarantined[i]));
	metrics_write_counter(out, "evenkeel_frames_received_bytes_total", "Bytes of all frames.",
			      &c->frame_bytes);
	metrics_write_counter(
		out, "evenkeel_intervals_merged_total",
		"Published intervals that came within the next one, joined by a ring without "
		"room for "
		"both: applied frames and these are all that was published.",
		&c->intervals_merged);
	metrics_write_counter(
		out, "evenkeel_intervals_missing_total",
		"Published intervals that agents went past, since they had left their rings "
		"or were "
		"refused.",
		&c->intervals_missing);
	metrics_write_family(out, "evenkeel_http_requests_total",
			     "Requests answered, by class of status.");
	for (int i = 1; i < 6; i++)
		buf_printf(out, "evenkeel_http_requests_total{code=\"%dxx\"} %llu\n", i,
			   (unsigned long long)counter_get(&c->http_requests[i]));
	metrics_write_counter(out, "evenkeel_views_published_total",
			      "Snapshots of the state that were published to readers.",
			      &c->views_published);
}

void api_metrics(const struct api_context *ctx, const struct api_request *rq,
		 struct api_response *rs)
{
	int64_t now_ns = ctx->now_ns();
	struct view *v = view_slot_take(ctx->views);

	(void)rq;
	rs->content_type = "text/plain; version=0.0.4; charset=utf-8";
	write_service(&rs->body, ctx);
	metrics_write_ingest(&rs->body, &ctx->counters->ingest);
	metrics_write_access(&rs->body, &ctx->counters->access);
	write_store(&rs->body, &ctx->counters->store, now_ns);
	metrics_write_extender(&rs->body, ctx);
	write_states(&rs->body, v, now_ns);
	write_ages(&rs->body, v, now_ns);
	write_node_families(&rs->body, v, now_ns);
	write_split_families(&rs->body, v, now_ns);
	write_windows(&rs->body, v, now_ns, true);
	write_windows(&rs->body, v, now_ns, false);
	write_tiers(&rs->body, v, now_ns);
	metrics_write_cluster(&rs->body, v, now_ns);
	metrics_write_quotas(&rs->body, ctx);
	metrics_write_plan(&rs->body, ctx);
	metrics_write_drain(&rs->body, ctx);
	metrics_write_process(&rs->body);
	view_drop(v);
}
