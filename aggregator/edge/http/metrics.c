/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /metrics: Prometheus text format 0.0.4, base units, one table of families for what is said of each node.
 *
 * The number of series is bounded: about 30 per node, none per pod. A node that is too old keeps its age and loses its
 * measurements, so that a graph ends instead of going flat; what was never measured has no series rather than a 0.
 */
#include <math.h>
#include <stdio.h>

#include "aggregator/edge/http/http.h"
#include "shared/clock.h"
#include "shared/jsonw.h"

#define MILLI 1e-3

static void write_family(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* In a label's value the format escapes backslash, quote and newline. */
static void add_label(struct buf *out, const char *text)
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

static void add_value(struct buf *out, double value)
{
	struct jsonw w;

	jsonw_init(&w, out);
	buf_add_char(out, ' ');
	jsonw_fixed(&w, value, 9);
	buf_add_char(out, '\n');
}

/* labels: what follows the node, `,key="value"`, or "". What is not a number is left out. */
static void add_node_sample(struct buf *out, const char *name, const struct node_page *p,
			    const char *labels, double value)
{
	if (!isfinite(value))
		return;
	buf_add_str(out, name);
	buf_add_str(out, "{node=\"");
	add_label(out, p->name);
	buf_add_char(out, '"');
	buf_add_str(out, labels);
	buf_add_char(out, '}');
	add_value(out, value);
}

/* --- what is said of each node, as a table ---------------------------------------------------------------------- */

typedef double node_value(const struct node_page *p);

static double cpu_capacity(const struct node_page *p)
{
	return p->cpu_capacity_milli > 0 ? (double)p->cpu_capacity_milli * MILLI : NAN;
}

static double mem_capacity(const struct node_page *p)
{
	return p->mem_capacity_bytes > 0 ? (double)p->mem_capacity_bytes : NAN;
}

static double cpu_latest(const struct node_page *p)
{
	return p->usage.cpu_milli.known ? p->usage.cpu_milli.value * MILLI : NAN;
}

static double mem_latest(const struct node_page *p)
{
	return p->usage.mem_bytes.known ? p->usage.mem_bytes.value : NAN;
}

static double working_set_latest(const struct node_page *p)
{
	return p->usage.working_set_bytes.known ? p->usage.working_set_bytes.value : NAN;
}

static double agent_cpu(const struct node_page *p)
{
	return p->agent_cpu_milli * MILLI;
}

static double sampler_rate(const struct node_page *p)
{
	return p->rate_hz;
}

static double sampler_pass(const struct node_page *p)
{
	return (double)p->pass_ns / NS_PER_SEC;
}

static double missed_ticks(const struct node_page *p)
{
	return p->missed_ticks;
}

static double overflow(const struct node_page *p)
{
	return p->overflow;
}

static double workloads(const struct node_page *p)
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
	{"evenkeel_node_cpu_latest_cores", "CPU use in the newest interval.", cpu_latest},
	{"evenkeel_node_memory_latest_bytes", "Memory in use (total less available), newest.",
	 mem_latest},
	{"evenkeel_node_working_set_bytes", "Memory in use less inactive file pages, newest.",
	 working_set_latest},
	{"evenkeel_node_workloads",
	 "Pods, or units and slices without Kubernetes, that are measured.", workloads},
	{"evenkeel_node_agent_cpu_cores", "CPU the agent itself used in the newest interval.",
	 agent_cpu},
	{"evenkeel_node_sampler_rate_hertz", "Sampling passes per second.", sampler_rate},
	{"evenkeel_node_sampler_pass_seconds", "Mean duration of a sampling pass.", sampler_pass},
	{"evenkeel_node_sampler_missed_ticks", "Sampling passes missed in the newest interval.",
	 missed_ticks},
	{"evenkeel_node_sampler_overflow_cgroups", "Control groups beyond the sampler's room.",
	 overflow},
};

static bool is_shown(const struct node_page *p, int64_t now_ns)
{
	enum freshness state = page_freshness(p, now_ns);

	return state == FRESH || state == LATE;
}

static void write_ages(struct buf *out, const struct view *v, int64_t now_ns)
{
	static const char name[] = "evenkeel_node_sample_age_seconds";

	write_family(out, name, "gauge", "Age of the newest measurement.");
	for (size_t i = 0; i < v->page_count; i++) {
		const struct node_page *p = v->pages[i];

		if (page_freshness(p, now_ns) != NEVER)
			add_node_sample(out, name, p, "",
					fmax(0, (double)(now_ns - p->end_ns) / NS_PER_SEC));
	}
}

static void write_node_families(struct buf *out, const struct view *v, int64_t now_ns)
{
	for (size_t f = 0; f < sizeof(node_families) / sizeof(node_families[0]); f++) {
		const struct node_family *family = &node_families[f];

		write_family(out, family->name, "gauge", family->help);
		for (size_t i = 0; i < v->page_count; i++)
			if (is_shown(v->pages[i], now_ns))
				add_node_sample(out, family->name, v->pages[i], "",
						family->value(v->pages[i]));
	}
}

/* --- windows ----------------------------------------------------------------------------------------------------- */

static void add_window(struct buf *out, const char *name, const struct node_page *p,
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

	write_family(out, name, "gauge",
		     cpu ? "CPU use over a sliding window, from every sample in it."
			 : "Memory in use over a sliding window.");
	for (size_t i = 0; i < v->page_count; i++) {
		const struct node_page *p = v->pages[i];

		if (!is_shown(p, now_ns))
			continue;
		for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++) {
			const struct window_set *set = &p->usage.windows[shown[k]];

			add_window(out, name, p, window_name[shown[k]],
				   cpu ? &set->cpu_milli : &set->mem_bytes, cpu ? MILLI : 1);
		}
	}
}

static void write_contention(struct buf *out, const struct view *v, int64_t now_ns)
{
	static const char name[] = "evenkeel_node_contention_ratio";

	write_family(out, name, "gauge",
		     "Share of the last 5 minutes in which some work waited for others.");
	for (size_t i = 0; i < v->page_count; i++) {
		const struct node_page *p = v->pages[i];
		const struct window_counts *c = &p->usage.windows[WINDOW_5M].counts;

		if (!is_shown(p, now_ns) || c->seconds <= 0)
			continue;
		add_node_sample(out, name, p, ",resource=\"cpu\"", c->contention_cpu);
		add_node_sample(out, name, p, ",resource=\"memory\"", c->contention_mem);
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

	write_family(out, name, "gauge", "By which means the node is sampled.");
	for (size_t i = 0; i < v->page_count; i++)
		if (is_shown(v->pages[i], now_ns))
			add_node_sample(out, name, v->pages[i], labels[v->pages[i]->tier], 1);
}

/* --- the service itself ------------------------------------------------------------------------------------------ */

static void write_states(struct buf *out, const struct view *v, int64_t now_ns)
{
	static const enum freshness states[] = {FRESH, LATE, EXPIRED, NEVER};
	size_t nodes[NEVER + 1] = {0};

	for (size_t i = 0; i < v->page_count; i++)
		nodes[page_freshness(v->pages[i], now_ns)]++;
	write_family(out, "evenkeel_nodes", "gauge", "Nodes by the age of what is known of them.");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		buf_printf(out, "evenkeel_nodes{state=\"%s\"} %zu\n", freshness_name(states[i]),
			   nodes[states[i]]);
}

static void write_counter(struct buf *out, const char *name, const char *help,
			  const atomic_uint_least64_t *value)
{
	write_family(out, name, "counter", help);
	buf_printf(out, "%s %llu\n", name, (unsigned long long)counter_get(value));
}

static void write_service(struct buf *out, const struct http_context *ctx)
{
	static const char *const results[] = {
#define X(result) [FRAME_RESULT_##result] = #result,
		FRAME_RESULTS(X)
#undef X
	};
	const struct counters *c = ctx->counters;

	write_family(out, "evenkeel_build_info", "gauge", "The version that runs.");
	buf_add_str(out, "evenkeel_build_info{version=\"" EVENKEEL_VERSION "\"} 1\n");
	write_family(out, "evenkeel_frames_total", "counter",
		     "Frames from agents, by what became of them.");
	for (int i = 0; i < FRAME_RESULT_COUNT; i++)
		buf_printf(out, "evenkeel_frames_total{result=\"%s\"} %llu\n", results[i],
			   (unsigned long long)counter_get(&c->frames[i]));
	write_counter(out, "evenkeel_frames_received_bytes_total", "Bytes of all frames.",
		      &c->frame_bytes);
	write_family(out, "evenkeel_http_requests_total", "counter",
		     "Requests answered, by class of status.");
	for (int i = 1; i < 6; i++)
		buf_printf(out, "evenkeel_http_requests_total{code=\"%dxx\"} %llu\n", i,
			   (unsigned long long)counter_get(&c->http_requests[i]));
	write_counter(out, "evenkeel_views_published_total",
		      "Snapshots of the state that were published to readers.",
		      &c->views_published);
}

void http_metrics(const struct http_context *ctx, const struct http_request *rq,
		  struct http_response *rs)
{
	int64_t now_ns = ctx->now_ns();
	struct view *v = view_slot_take(ctx->views);

	(void)rq;
	rs->content_type = "text/plain; version=0.0.4; charset=utf-8";
	write_service(&rs->body, ctx);
	write_states(&rs->body, v, now_ns);
	write_ages(&rs->body, v, now_ns);
	write_node_families(&rs->body, v, now_ns);
	write_windows(&rs->body, v, now_ns, true);
	write_windows(&rs->body, v, now_ns, false);
	write_contention(&rs->body, v, now_ns);
	write_tiers(&rs->body, v, now_ns);
	view_drop(v);
}
