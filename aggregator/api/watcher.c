/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /watcher: a drop-in for load-watcher, so that any Trimaran scheduler profile works by its
 * watcherAddress alone.
 *
 * Values are percent of the node's capacity, or of its allocatable where --watcher-denominator says
 * so: some plugins multiply by the one, some by the other. A node is in the answer only with all
 * four of CPU and memory AVG and STD and while its newest sample is at most 5 minutes old; a client
 * gives a missing node its minimum score.
 *
 *                     corrected (default)                          upstream
 *   window            per node the longest of 15m, 10m, 5m that    15m, or 10m when no node has 15m,
 *                     is covered, else what there is, named 5m     for all nodes
 *   ?window=10m       the same, up to that one                     10m or else 5m, 5m or nothing
 *   dataCenter        the zone by the node's labels, else region   ""
 *   STD               of a late node widened by 1 + age / 60 s     as measured
 *   members of ours   after the known ones of each node            none
 *   nothing heard     404, JSON: clients keep their last answer    500, empty
 *   all too old       200, no nodes: clients stop using old data   500, empty
 *   unknown host      404, JSON                                    404, empty
 *   /watcher/NAME     as ?host=NAME                                404, text
 *
 * The answer of all nodes is made once per view (shared_body.h), so its ages may be as old as
 * that, 10 s at most. It has a tag, like lists, and is compressed for those who take it.
 *
 * "window" of the document spans what is in it: from the earliest sample to the newest, rounded
 * outwards, since clients count pods that were placed after its end on top of the measurement
 * (upstream: start is end less the window's length).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api.h"
#include "aggregator/api/list.h"
#include "aggregator/api/route.h"
#include "aggregator/api/watcher_encode.h"
#include "shared/array.h"
#include "shared/clock.h"
#include "shared/mem.h"

#define SOURCE	    "Evenkeel"
#define SINCE_START "sinceStart"
#define JSON	    "application/json"
#define WINDOW_STEP 300 /* seconds from one window to the next longer */

enum { NODE_METRICS = 4 };

/* The contents of one answer. */
struct selection {
	int64_t now_ns;
	bool upstream, allocatable;
	double std_divisor;
	enum window window; /* upstream: of all nodes; else the longest that may be */
	struct watcher_node *nodes; /* owned, as are their metrics: one block each */
	struct watcher_metric *metrics;
	size_t count;
	int64_t start_ns, end_ns;
	enum window longest; /* of those that are named */
};

/* NULL where not all four values are known. */
static const struct window_set *complete(const struct window_set *set)
{
	return set && set->cpu_milli.known && set->mem_bytes.known ? set : NULL;
}

static const struct window_set *window_of(const struct node_stats *p, enum window window)
{
	return complete(&p->usage.windows[window]);
}

static double percent(double value, int64_t capacity)
{
	return value * 100 / (double)capacity;
}

static void fill_metrics(const struct selection *s, const struct node_stats *p,
			 const struct window_set *set, const char *rollup, double widening,
			 struct watcher_metric out[NODE_METRICS])
{
	const struct window_stats *cpu = &set->cpu_milli, *mem = &set->mem_bytes;
	int64_t cpu_whole = s->allocatable ? p->cpu_allocatable_milli : p->cpu_capacity_milli;
	int64_t mem_whole = s->allocatable ? p->mem_allocatable_bytes : p->mem_capacity_bytes;
	double factor = widening / s->std_divisor;
	const struct watcher_metric metrics[NODE_METRICS] = {
		{"host.cpu.utilisation", "CPU", "AVG", rollup, percent(cpu->mean, cpu_whole)},
		{"host.cpu.utilisation", "CPU", "STD", rollup,
		 percent(cpu->stddev * factor, cpu_whole)},
		{"host.memory.utilisation", "Memory", "AVG", rollup, percent(mem->mean, mem_whole)},
		{"host.memory.utilisation", "Memory", "STD", rollup,
		 percent(mem->stddev * factor, mem_whole)},
	};

	memcpy(out, metrics, sizeof(metrics));
}

static void extend_span(struct selection *s, const struct window_stats *w)
{
	if (!s->end_ns || w->start_ns < s->start_ns)
		s->start_ns = w->start_ns;
	if (w->end_ns > s->end_ns)
		s->end_ns = w->end_ns;
}

static bool is_alive(const struct node_stats *p, int64_t now_ns)
{
	enum freshness state = node_stats_freshness(p, now_ns);

	return state == FRESH || state == LATE;
}

static bool has_denominator(const struct selection *s, const struct node_stats *p)
{
	if (s->allocatable)
		return p->cpu_allocatable_milli > 0 && p->mem_allocatable_bytes > 0;
	return p->cpu_capacity_milli > 0 && p->mem_capacity_bytes > 0;
}

static const char *data_center(const struct view_node *n)
{
	static const char *const keys[] = {
		"topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/zone",
		"topology.kubernetes.io/region",
		"failure-domain.beta.kubernetes.io/region",
	};
	const char *found = NULL;

	for (size_t i = 0; !found && i < sizeof(keys) / sizeof(keys[0]); i++)
		found = labels_find(list_node_labels(n), keys[i]);
	return found;
}

static void select_node(struct selection *s, const struct view_node *n)
{
	const struct node_stats *p = n->stats;
	double age_seconds = (double)node_stats_age_ns(p, s->now_ns) / NS_PER_SEC;
	bool late = node_stats_freshness(p, s->now_ns) == LATE;
	struct watcher_metric *metrics = s->metrics + NODE_METRICS * s->count;
	const struct window_set *set;
	const char *name;
	int window = (int)s->window;

	if (!is_alive(p, s->now_ns) || !has_denominator(s, p))
		return;
	set = s->upstream ? window_of(p, s->window)
			  : complete(window_longest_within(p->usage.windows, s->window, &window));
	if (!set)
		return;
	name = window < 0 ? SINCE_START : window_name[window];
	window = window < 0 ? WINDOW_5M : window;
	fill_metrics(s, p, set, window_name[window],
		     late && !s->upstream ? 1 + age_seconds / 60 : 1, metrics);
	s->nodes[s->count++] = (struct watcher_node){
		.name = p->name,
		.metrics = metrics,
		.metric_count = NODE_METRICS,
		.data_center = s->upstream ? NULL : data_center(n),
		.extra = !s->upstream,
		.state = freshness_name(node_stats_freshness(p, s->now_ns)),
		.window = name,
		.window_seconds =
			(double)(set->cpu_milli.end_ns - set->cpu_milli.start_ns) / NS_PER_SEC,
		.age_seconds = age_seconds,
		.samples = set->cpu_milli.samples,
	};
	extend_span(s, &set->cpu_milli);
	extend_span(s, &set->mem_bytes);
	if ((enum window)window > s->longest)
		s->longest = (enum window)window;
}

static bool has_window(const struct view *v, int64_t now_ns, enum window window)
{
	for (size_t i = 0; i < v->node_count; i++)
		if (is_alive(v->nodes[i]->stats, now_ns) && window_of(v->nodes[i]->stats, window))
			return true;
	return false;
}

static int64_t floor_seconds(int64_t ns)
{
	return ns / NS_PER_SEC - (ns % NS_PER_SEC < 0);
}

static void write_answer(struct selection *s, struct api_response *rs)
{
	struct watcher_answer a = {
		.timestamp = floor_seconds(s->now_ns),
		.source = SOURCE,
		.nodes = s->nodes,
		.node_count = s->count,
	};

	if (!s->count) {
		s->end_ns = s->now_ns;
		s->longest = s->window;
		s->start_ns = s->now_ns - (int64_t)(s->longest + 1) * WINDOW_STEP * NS_PER_SEC;
	}
	a.start = floor_seconds(s->start_ns);
	a.end = floor_seconds(s->end_ns + NS_PER_SEC - 1);
	if (s->upstream && s->count)
		a.start = a.end - (s->longest + 1) * WINDOW_STEP;
	/* As upstream, the answer is never older than the window it holds. */
	a.timestamp = a.timestamp < a.end ? a.end : a.timestamp;
	a.duration = window_name[s->longest];
	rs->content_type = JSON;
	watcher_encode(&a, &rs->body);
}

/* NULL only: all nodes. */
static void answer_view(const struct api_context *ctx, const struct view *v,
			const struct view_node *only, enum window window, int64_t now_ns,
			struct api_response *rs)
{
	size_t most = only ? 1 : v->node_count;
	struct selection s = {
		.now_ns = now_ns,
		.upstream = ctx->watcher_upstream,
		.allocatable = ctx->watcher_allocatable,
		.std_divisor = sqrt(fmax(1, ctx->watcher_smoothed)),
		.window = window,
		.nodes = mem_zalloc(most, sizeof(*s.nodes)),
		.metrics = mem_zalloc(most * NODE_METRICS, sizeof(*s.metrics)),
		.longest = WINDOW_5M,
	};

	for (size_t i = 0; i < most; i++)
		select_node(&s, only ? only : v->nodes[i]);
	if (only && !s.count && s.upstream)
		rs->status = 404;
	else if (only && !s.count)
		api_fail(rs, FAIL_NOT_FOUND, "host", "no measurements of the last 5 minutes of %s",
			 only->name);
	else
		write_answer(&s, rs);
	free(s.metrics);
	free(s.nodes);
}

static void answer_upstream(const struct api_context *ctx, const struct view *v, const char *host,
			    enum window window, int64_t now_ns, struct api_response *rs)
{
	const struct view_node *only = *host ? view_find(v, host) : NULL;

	rs->content_type = JSON;
	/* The whole service has one window: this, or else the next shorter. */
	if (!has_window(v, now_ns, window) && window > WINDOW_5M)
		window--;
	if (!has_window(v, now_ns, window))
		rs->status = 500;
	else if (*host && !only)
		rs->status = 404;
	else
		answer_view(ctx, v, only, window, now_ns, rs);
}

static bool is_any_heard(const struct view *v, int64_t now_ns)
{
	size_t i = 0;

	while (i < v->node_count && node_stats_freshness(v->nodes[i]->stats, now_ns) == NEVER)
		i++;
	return i < v->node_count;
}

static void answer_corrected(const struct api_context *ctx, const struct view *v, const char *host,
			     enum window window, int64_t now_ns, struct api_response *rs)
{
	const struct view_node *only = *host ? view_find(v, host) : NULL;

	if (!is_any_heard(v, now_ns))
		api_fail(rs, FAIL_NOT_FOUND, NULL, "no agent has reported yet");
	else if (*host && !only)
		api_fail(rs, FAIL_NOT_FOUND, "host", "no agent has reported from a node \"%s\"",
			 host);
	else
		answer_view(ctx, v, only, window, now_ns, rs);
}

static void answer(const struct api_context *ctx, const struct view *v, const char *host,
		   enum window window, int64_t now_ns, struct api_response *rs)
{
	if (ctx->watcher_upstream)
		answer_upstream(ctx, v, host, window, now_ns, rs);
	else
		answer_corrected(ctx, v, host, window, now_ns, rs);
}

/* The inputs of the cached answer, and the response. */
struct making {
	const struct api_context *ctx;
	const struct view *view;
	int64_t now_ns;
	struct api_response response;
};

static void make(void *ctx, struct buf *out)
{
	struct making *m = ctx;

	answer(m->ctx, m->view, "", WINDOW_15M, m->now_ns, &m->response);
	if (m->response.status == 200) {
		buf_fini(out);
		*out = m->response.body;
		buf_init(&m->response.body);
	}
}

/* The answer of all nodes with the usual window. */
static void answer_all(const struct api_context *ctx, const struct api_request *rq,
		       const struct view *v, int64_t now_ns, struct api_response *rs)
{
	struct making m = {ctx, v, now_ns, {.status = 200}};
	const char *encodings = rq->header ? rq->header(rq, "Accept-Encoding") : NULL;

	rs->shared = watcher_cache_take(ctx->watcher_cache, list_etag(v, now_ns),
					shared_body_accepts_gzip(encodings), &rs->gzip, make, &m);
	if (!rs->shared) {
		*rs = m.response;
		return;
	}
	buf_fini(&m.response.body);
	rs->content_type = JSON;
	rs->negotiated = true;
}

/* Leaves *window as it is without one. False: there is no such window, and *rs says so. */
static bool read_window(const struct api_request *rq, enum window *window, struct api_response *rs)
{
	const char *text = rq->query(rq, "window");

	if (text && !array_has_text(api_windows, text))
		return api_fail(rs, FAIL_BAD_REQUEST, "window",
				"window \"%s\" is none of 5m, 10m, 15m", text);
	if (text)
		*window = (enum window)api_query_choice(rq, "window", api_windows);
	return true;
}

void api_watcher(const struct api_context *ctx, const struct api_request *rq,
		 struct api_response *rs)
{
	const char *below = rq->path + strlen("/watcher");
	const char *host = rq->query(rq, "host");
	int64_t now_ns = ctx->now_ns();
	enum window window = WINDOW_15M;
	struct view *v;

	if (*below == '/' && ctx->watcher_upstream) {
		rs->status = 404;
		rs->content_type = "text/plain; charset=utf-8";
		buf_add_str(&rs->body, "404 page not found\n");
		return;
	}
	if (*below == '/' && below[1])
		host = below + 1;
	if (!read_window(rq, &window, rs))
		return;
	v = view_slot_take(ctx->views);
	if (ctx->watcher_cache && !(host && *host) && window == WINDOW_15M)
		answer_all(ctx, rq, v, now_ns, rs);
	else
		answer(ctx, v, host ? host : "", window, now_ns, rs);
	if (rs->status == 200)
		rs->etag = list_etag(v, now_ns);
	view_drop(v);
}

/* A node that is heard is proof that agents, the transport and the loop work. */
void api_watcher_health(const struct api_context *ctx, const struct api_request *rq,
			struct api_response *rs)
{
	int64_t now_ns = ctx->now_ns();
	struct view *v = view_slot_take(ctx->views);

	(void)rq;
	rs->status = 503;
	for (size_t i = 0; i < v->node_count && rs->status != 200; i++)
		if (node_stats_freshness(v->nodes[i]->stats, now_ns) == FRESH)
			rs->status = 200;
	view_drop(v);
}
