/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ladder: what is known about a node, from best to worst.
 *
 *     window 15m    the longest window that is covered (windows.h)
 *     window 10m
 *     window 5m
 *     since start   measured for less than 5 minutes, or hardly at all since: the last 5 minutes
 *     late 42s      any of these, but the node has been silent for 30 s: the numbers are kept, and trusted less
 *                   by widening sigma with the age; not for upstream, which takes late numbers as they are
 *     allocation    no measurement, but the requests of the node's pods are known: estimated. For nodes that never had
 *                   an agent, and for all of them once no node is measured any more. A node that never had one among
 *                   nodes that have, and without any pods but those of DaemonSets, is new: its use is taken as 0
 *     expired       silent for more than 5 minutes: nothing is known any more
 *     none          never heard of
 *
 * What pods ask for comes from the API, summed per node when the view was made (view_sums.c). Where
 * it does not know the node, or not all pods (forbidden, or the list is not complete yet), a sum of
 * 0 would be a guess: requests are unknown then, and limits are what the kernel enforces.
 */

#include <math.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/recent_pods.h"
#include "aggregator/policy/score.h"
#include "aggregator/policy/sentence.h"

static const enum score_rung rung_of_window[WINDOWS] = {
	[WINDOW_5M] = RUNG_WINDOW_5M,
	[WINDOW_10M] = RUNG_WINDOW_10M,
	[WINDOW_15M] = RUNG_WINDOW_15M,
};

static bool holds_anything(const struct window_set *set)
{
	return set->cpu_milli.known || set->mem_bytes.known;
}

static struct score_metric percent_of(const struct window_stats *stats, int64_t capacity,
				      double widen)
{
	if (!stats->known || capacity <= 0)
		return (struct score_metric){false, 0, 0};
	return (struct score_metric){true, 100 * stats->mean / (double)capacity,
				     widen * 100 * stats->stddev / (double)capacity};
}

static void take_metrics(const struct node_page *page, bool late, enum score_variant variant,
			 struct score_node *node)
{
	int window;
	const struct window_set *set = window_longest(page->usage.windows, &window);
	double widen = late && variant != SCORE_UPSTREAM ? 1 + node->age_seconds / 60 : 1;

	if (!set)
		return;
	node->measured = true;
	node->cpu = percent_of(&set->cpu_milli, node->cpu_capacity_milli, widen);
	node->mem = percent_of(&set->mem_bytes, node->mem_capacity_bytes, widen);
	node->window = window >= 0 ? window_name[window] : "";
	node->rung = late ? RUNG_LATE : window >= 0 ? rung_of_window[window] : RUNG_SINCE_START;
	node->contention =
		fmax(set->counts.pressure[CONTENTION_CPU], set->counts.pressure[CONTENTION_MEMORY]);
	node->oom_kills = set->counts.oom_known ? set->counts.oom_kills : 0;
}

/*
 * What the kernel enforces is all that is known of limits without an API, and nothing is of
 * requests.
 */
static void take_bounds(const struct page_bound *bound, struct pod_load *load)
{
	load->limits = load->limits_trimaran = load->limits_containers = bound->limits;
	load->unlimited = bound->unlimited;
	load->unknown = bound->unknown;
}

static void take_load(const struct view *v, const struct view_node *n, enum freshness freshness,
		      struct score_node *node)
{
	struct score_load *load = &node->load;

	if (n->model && n->model->node && view_knows(v, OBJECT_POD)) {
		load->requests_known = load->limits_known = true;
		memcpy(load->of, n->sums.load, sizeof(load->of));
		node->idle = freshness == NEVER && n->sums.pods == n->sums.daemon_pods;
	} else if (freshness != NEVER) {
		load->limits_known = true;
		take_bounds(&n->page->bounds.cpu, &load->of[SCORE_CPU]);
		take_bounds(&n->page->bounds.mem, &load->of[SCORE_MEMORY]);
	}
}

void score_node_from_view(const struct view *v, const struct view_node *n, int64_t now_ns,
			  const struct score_query *q, struct score_node *node)
{
	enum freshness freshness = page_freshness(n->page, now_ns);

	*node = (struct score_node){
		.name = n->name,
		.cpu_capacity_milli = n->cpu_capacity_milli,
		.mem_capacity_bytes = n->mem_capacity_bytes,
		.cpu_allocatable_milli = n->cpu_allocatable_milli,
		.mem_allocatable_bytes = n->mem_allocatable_bytes,
		.rung = freshness == EXPIRED ? RUNG_EXPIRED : RUNG_NONE,
		.window = "",
		.contention = NAN,
	};
	take_load(v, n, freshness, node);
	if (freshness == NEVER)
		return;
	node->age_seconds = (double)page_age_ns(n->page, now_ns) / 1e9;
	if (freshness == EXPIRED)
		return;
	take_metrics(n->page, freshness == LATE, q->variant, node);
	if (node->measured && node->load.requests_known)
		recent_pods_expect(v, n, q, &node->pending_cpu_milli, &node->pending_mem_bytes);
}

static void assume(struct pod_load *load, int64_t request)
{
	load->requests = add_saturating(load->requests, request);
	load->limits = add_saturating(load->limits, request);
}

void score_node_assume(struct score_node *node, const struct score_assumed *assumed)
{
	int64_t mem_bytes = assumed->request_mem_bytes;

	assume(&node->load.of[SCORE_CPU], assumed->request_cpu_milli);
	assume(&node->load.of[SCORE_MEMORY], mem_bytes);
	node->pending_cpu_milli = add_saturating(node->pending_cpu_milli, assumed->cpu_milli);
	node->pending_mem_bytes = add_saturating(node->pending_mem_bytes, mem_bytes);
	node->assumed_pods = assumed->pods;
	node->assumed_cpu_milli = assumed->cpu_milli;
	node->assumed_namespace = assumed->namespace;
	node->assumed_name = assumed->name;
	node->idle = false;
	node->load_risk_known = false;
}

static bool is_measured(const struct node_page *page, int64_t now_ns)
{
	enum freshness freshness = page_freshness(page, now_ns);

	if (freshness == NEVER || freshness == EXPIRED)
		return false;
	for (int w = 0; w < WINDOWS; w++)
		if (holds_anything(&page->usage.windows[w]))
			return true;
	return false;
}

bool score_any_measured(const struct view *v, int64_t now_ns)
{
	for (size_t i = 0; i < v->node_count; i++)
		if (is_measured(v->nodes[i]->page, now_ns))
			return true;
	return false;
}

void score_nodes_estimate(struct score_node *nodes, size_t count, bool any_measured)
{
	for (size_t i = 0; i < count; i++) {
		struct score_node *n = &nodes[i];

		if (n->measured || !n->load.requests_known ||
		    (any_measured && n->rung != RUNG_NONE))
			continue;
		n->rung = RUNG_ALLOCATION;
		if (any_measured && n->idle)
			n->cpu = n->mem = (struct score_metric){true, 0, 0};
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

void score_rung_text(const struct score_node *node, char text[SCORE_RUNG_LEN])
{
	static const char *const names[] = {
		[RUNG_NONE] = "none",
		[RUNG_EXPIRED] = "expired",
		[RUNG_ALLOCATION] = "allocation",
		[RUNG_LATE] = "late ",
		[RUNG_SINCE_START] = "since start",
		[RUNG_WINDOW_5M] = "window 5m",
		[RUNG_WINDOW_10M] = "window 10m",
		[RUNG_WINDOW_15M] = "window 15m",
	};
	struct sentence s;

	sentence_start(&s, text, SCORE_RUNG_LEN);
	sentence_add(&s, names[node->rung]);
	if (node->rung == RUNG_LATE) {
		sentence_add_int(&s, (int64_t)node->age_seconds);
		sentence_add(&s, "s");
	}
}
