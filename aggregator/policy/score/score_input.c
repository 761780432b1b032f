/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of a node and their fallback levels, from best to worst:
 *
 *     window 15m    the longest covered window (windows.h)
 *     window 10m
 *     window 5m
 *     since start   the last 5 minutes: measured for less, or hardly at all since
 *     late 42s      any of these, once the newest value is 30 s old (the node is silent). It counts
 *                   for 5 minutes, or 15 while no node at all is heard (upstream: always 5). Sigma
 *                   grows with the age, except for upstream
 *     allocation    no node is measured, but requests are known
 *     expired       silent for longer
 *     none          never heard
 *
 * Expected use is added for pods that the window shows only in part (recent_pods.h). If the last half
 * minute (struct window_recent) shows more than both, as on a node that has just turned hot, it
 * replaces them, with the pods that are not measured at all.
 *
 * Requests are sums of the API's pods (view_sums.c). If the API does not know the node or all pods,
 * requests are unknown, and limits are the kernel's.
 */

#include <math.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/expected_use.h"
#include "aggregator/policy/recent_pods.h"
#include "aggregator/policy/score/plugin.h"
#include "aggregator/policy/score/score_load.h"

static const enum score_fallback fallback_of_window[WINDOWS] = {
	[WINDOW_5M] = FALLBACK_WINDOW_5M,
	[WINDOW_10M] = FALLBACK_WINDOW_10M,
	[WINDOW_15M] = FALLBACK_WINDOW_15M,
};

/* How long measurements count if no node is heard; else until EXPIRED. */
#define KEPT_NS (900 * 1000000000LL)

static struct score_metric percent_of(const struct window_stats *stats, int64_t capacity,
				      double widen)
{
	if (!stats->known || capacity <= 0)
		return (struct score_metric){false, 0, 0};
	return (struct score_metric){true, 100 * stats->mean / (double)capacity,
				     widen * 100 * stats->stddev / (double)capacity};
}

static double percentile_of(const struct window_stats *recent, int64_t capacity)
{
	return recent->percentiles && capacity > 0 ? 100 * recent->p99 / (double)capacity : NAN;
}

/* A kill of 5 to 10 minutes ago counts half, an older one a quarter. */
static double decayed_kills(const struct window_set windows[WINDOWS])
{
	double kills[WINDOWS];

	for (int w = 0; w < WINDOWS; w++)
		kills[w] = windows[w].counts.oom_known ? (double)windows[w].counts.oom_kills : 0;
	return kills[WINDOW_5M] + at_least(kills[WINDOW_10M] - kills[WINDOW_5M], 0) / 2 +
	       at_least(kills[WINDOW_15M] - kills[WINDOW_10M], 0) / 4;
}

static void take_metrics(const struct node_stats *stats, bool late, enum score_variant variant,
			 struct score_node *node)
{
	int window;
	const struct window_set *set = window_longest(stats->usage.windows, &window);
	const struct window_recent *recent = &stats->recent;
	double widen = late && variant != SCORE_UPSTREAM ? 1 + node->age_seconds / 60 : 1;

	if (!set)
		return;
	node->measured = true;
	node->cpu = percent_of(&set->cpu_milli, node->cpu_capacity_milli, widen);
	node->mem = percent_of(&set->mem_bytes, node->mem_capacity_bytes, widen);
	node->widening = widen;
	node->p99[SCORE_CPU] = percentile_of(&recent->cpu_milli, node->cpu_capacity_milli);
	node->p99[SCORE_MEMORY] = percentile_of(&recent->mem_bytes, node->mem_capacity_bytes);
	node->window = window >= 0 ? window_name[window] : "";
	node->fallback = late	       ? FALLBACK_LATE
			 : window >= 0 ? fallback_of_window[window]
				       : FALLBACK_SINCE_START;
	node->contention =
		fmax(set->counts.pressure[CONTENTION_CPU], set->counts.pressure[CONTENTION_MEMORY]);
	node->oom_kills = decayed_kills(stats->usage.windows);
}

/* Replaces mean and pending use if the most recent use (struct window_recent) is more. */
static void take_recent(const struct window_recent *recent, const struct recent_use *pods,
			struct score_node *node)
{
	double used = node->cpu.mean / 100 * (double)node->cpu_capacity_milli;

	if (node->cpu.known && recent->cpu_milli.known &&
	    recent->cpu_milli.mean + (double)pods->unseen_high_cpu_milli >
		    used + (double)pods->cpu_high_milli) {
		node->cpu.mean = 100 * recent->cpu_milli.mean / (double)node->cpu_capacity_milli;
		node->pending_cpu_milli = pods->unseen_cpu_milli;
		node->pending_high_cpu_milli = pods->unseen_high_cpu_milli;
	}
	used = node->mem.mean / 100 * (double)node->mem_capacity_bytes;
	if (node->mem.known && recent->mem_bytes.known &&
	    recent->mem_bytes.mean + (double)pods->unseen_mem_bytes >
		    used + (double)pods->mem_bytes) {
		node->mem.mean = 100 * recent->mem_bytes.mean / (double)node->mem_capacity_bytes;
		node->pending_mem_bytes = pods->unseen_mem_bytes;
	}
}

/* Limits of the kernel, without an API. */
static void take_bounds(const struct kernel_bound *bound, struct pod_load *load)
{
	load->limits = load->limits_running = bound->limits;
	load->limits_trimaran = load->limits_containers = bound->limits;
	load->unlimited = bound->unlimited;
	load->unknown = bound->unknown;
}

static bool knows_pods(const struct view *v, const struct view_node *n)
{
	return n->model && n->model->node && view_knows(v, OBJECT_POD);
}

static void take_load(const struct view *v, const struct view_node *n, enum freshness freshness,
		      struct score_node *node)
{
	struct score_load *load = &node->load;

	if (knows_pods(v, n)) {
		load->requests_known = load->limits_known = true;
		memcpy(load->of, n->sums.load, sizeof(load->of));
	} else if (freshness != NEVER) {
		load->limits_known = true;
		take_bounds(&n->stats->bounds.cpu, &load->of[SCORE_CPU]);
		take_bounds(&n->stats->bounds.mem, &load->of[SCORE_MEMORY]);
	}
}

void score_node_from_view(const struct view *v, const struct view_node *n, int64_t now_ns,
			  const struct score_query *q, struct score_node *node)
{
	enum freshness freshness = node_stats_freshness(n->stats, now_ns);
	int64_t age_ns = freshness == NEVER ? 0 : node_stats_age_ns(n->stats, now_ns);
	struct recent_use pods = {0};

	if (q->variant != SCORE_UPSTREAM && !q->others_heard && freshness == EXPIRED &&
	    age_ns <= KEPT_NS)
		freshness = LATE;
	*node = (struct score_node){
		.name = n->name,
		.cpu_capacity_milli = n->cpu_capacity_milli,
		.mem_capacity_bytes = n->mem_capacity_bytes,
		.cpu_allocatable_milli = n->cpu_allocatable_milli,
		.mem_allocatable_bytes = n->mem_allocatable_bytes,
		.fallback = freshness == EXPIRED ? FALLBACK_EXPIRED : FALLBACK_NONE,
		.window = "",
		.contention = NAN,
		.p99 = {NAN, NAN},
		.widening = 1,
	};
	take_load(v, n, freshness, node);
	node->age_seconds = (double)age_ns / 1e9;
	if (freshness == NEVER || freshness == EXPIRED)
		return;
	take_metrics(n->stats, freshness == LATE, q->variant, node);
	if (!node->measured)
		return;
	if (node->load.requests_known)
		pods = recent_pods_expect(v, n, q);
	node->pending_cpu_milli = pods.cpu_milli;
	node->pending_high_cpu_milli = pods.cpu_high_milli;
	node->pending_mem_bytes = pods.mem_bytes;
	node->unseen[SCORE_CPU] = pods.unseen_cpu_milli;
	node->unseen[SCORE_MEMORY] = pods.unseen_mem_bytes;
	if (q->variant == SCORE_UPSTREAM)
		return;
	take_recent(&n->stats->recent, &pods, node);
	node->unseen[SCORE_CPU] =
		add_saturating(node->unseen[SCORE_CPU], n->stats->unseen.cpu_milli);
	node->unseen[SCORE_MEMORY] =
		add_saturating(node->unseen[SCORE_MEMORY], n->stats->unseen.mem_bytes);
}

static void read_other(const struct model_node *model, const char *name, struct score_other *other)
{
	int64_t allocatable = resources_amount(&model->node->allocatable, name);

	*other = (struct score_other){.allocatable = allocatable};
	for (size_t i = 0; i < model->pod_count; i++)
		if (kube_pod_is_active(model->pods[i]))
			pod_load_add_named(&other->load, kube_pod_sums(model->pods[i]), name);
}

bool score_others_read(const struct view *v, const struct view_node *n,
		       const struct score_args *args, struct score_other others[SCORE_OTHERS_MAX])
{
	if (!knows_pods(v, n))
		return false;
	for (size_t i = 0; i < args->limit_other_count; i++)
		read_other(n->model, args->limit_others[i].name, &others[i]);
	return true;
}

static void assume(struct pod_load *load, int64_t request)
{
	load->requests = add_saturating(load->requests, request);
	load->limits = add_saturating(load->limits, request);
	load->limits_running = add_saturating(load->limits_running, request);
}

void score_node_assume(struct score_node *node, const struct score_assumed *assumed)
{
	assume(&node->load.of[SCORE_CPU], assumed->request_cpu_milli);
	assume(&node->load.of[SCORE_MEMORY], assumed->request_mem_bytes);
	node->pending_cpu_milli = add_saturating(node->pending_cpu_milli, assumed->cpu_milli);
	node->pending_high_cpu_milli =
		add_saturating(node->pending_high_cpu_milli, assumed->cpu_high_milli);
	node->pending_mem_bytes = add_saturating(node->pending_mem_bytes, assumed->mem_bytes);
	node->unseen[SCORE_CPU] = add_saturating(node->unseen[SCORE_CPU], assumed->cpu_milli);
	node->unseen[SCORE_MEMORY] = add_saturating(node->unseen[SCORE_MEMORY], assumed->mem_bytes);
	node->assumed_pods = assumed->pods;
	node->assumed_cpu_milli = assumed->cpu_milli;
	node->assumed_namespace = assumed->namespace;
	node->assumed_name = assumed->name;
	node->load_risk_known = false;
}

void score_nodes_estimate(struct score_node *nodes, size_t count)
{
	bool any_measured = false;

	for (size_t i = 0; i < count; i++)
		any_measured |= nodes[i].measured;
	for (size_t i = 0; i < count; i++) {
		struct score_node *n = &nodes[i];

		n->estimated = !n->measured && n->load.requests_known;
		if (n->estimated && !any_measured)
			n->fallback = FALLBACK_ALLOCATION;
	}
}

void score_nodes_power(struct score_node *nodes, size_t count, const struct score_args *args)
{
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		int order = 1;

		while (at < args->power_model_count &&
		       (order = strcmp(args->power_models[at].node, nodes[i].name)) < 0)
			at++;
		nodes[i].power =
			at < args->power_model_count && order == 0 ? &args->power_models[at] : NULL;
	}
}

void score_fallback_text(const struct score_node *node, char text[SCORE_FALLBACK_LEN])
{
	static const char *const names[] = {
		[FALLBACK_NONE] = "none",
		[FALLBACK_EXPIRED] = "expired",
		[FALLBACK_ALLOCATION] = "allocation",
		[FALLBACK_SINCE_START] = "since start",
		[FALLBACK_WINDOW_5M] = "window 5m",
		[FALLBACK_WINDOW_10M] = "window 10m",
		[FALLBACK_WINDOW_15M] = "window 15m",
	};
	if (node->fallback == FALLBACK_LATE)
		textbuf_add(text, SCORE_FALLBACK_LEN, 0, "late %" PRId64 "s",
			    (int64_t)node->age_seconds);
	else
		textbuf_add(text, SCORE_FALLBACK_LEN, 0, "%s", names[node->fallback]);
}

/* --- sums of the pods */

_Static_assert((int)SCORE_CPU == RESOURCE_CPU && (int)SCORE_MEMORY == RESOURCE_MEMORY &&
		       (int)SCORE_RESOURCES == POD_LOADS,
	       "struct score_load is filled by copying a node's sums");

void score_pod_read(const struct score_query *q, struct score_pod *sums)
{
	struct score_query plain = *q;

	plain.sums = NULL;
	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++) {
		sums->of[r].request = score_request(&plain, r);
		sums->of[r].bound = score_pod_bound(&plain, r);
	}
	if (q->variant == SCORE_UPSTREAM)
		sums->expected = (struct expected_use){
			.cpu_milli = target_load_packing_predict(q->pod, q->args)};
	else
		expected_use_read(q->pod, q->args, &q->owner, &sums->expected);
}

struct node_sums score_sums_with_pod(const struct pod_load *on_node, const struct pod_spec *pod,
				     enum score_resource resource, int64_t allocatable)
{
	int64_t request =
		add_saturating(on_node->requests_trimaran,
			       pod_spec_need(pod, score_resource_id(resource), false, true));
	int64_t limit = pod_load_limit_trimaran(pod, score_resource_id(resource));

	return (struct node_sums){
		.request = request < allocatable ? request : allocatable,
		.limit = add_saturating(on_node->limits_trimaran, limit),
		.request_minus_pod = on_node->requests_trimaran < allocatable
					     ? on_node->requests_trimaran
					     : allocatable,
		.limit_minus_pod = on_node->limits_trimaran,
	};
}
