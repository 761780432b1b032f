/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a view. Requests are those the kube-scheduler counts.
 *
 * Pods of DaemonSets and static pods belong to their node: they make it smaller, and are no demand.
 * A node counts if a new pod may go there: ready, not cordoned, not in deletion, known to the core.
 *
 * Real use: a node's CPU is the 95th percentile of its longest window, its memory the maximum of
 * its working set, since memory cannot be shared. A silent node has no headroom.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

bool slack_is_of_node(const struct kube_pod *pod)
{
	return pod->template->mirror || strcmp(pod->template->owner.kind, "DaemonSet") == 0;
}

static const struct slack_amount nothing = {0, 0};

/* --- the survey */

static int64_t whole(double value)
{
	return isnan(value) || value <= 0 ? 0 : (int64_t)fmin(value, 1e18);
}

/* Without percentiles (from a load watcher) use is taken as normally distributed. */
static double p95_of(const struct window_stats *w)
{
	return w->percentiles ? w->p95 : w->mean + 1.645 * w->stddev;
}

static void survey_use(struct slack_survey *s, const struct view_node *v, size_t n, int64_t now_ns,
		       const struct slack_options *o)
{
	enum freshness fresh = node_stats_freshness(v->stats, now_ns);
	const struct window_set *set = window_longest(v->stats->usage.windows, NULL);
	const struct window_stats *mem;

	if (!set || !set->cpu_milli.known)
		return;
	s->any_measured = true;
	mem = set->working_set_bytes.known ? &set->working_set_bytes : &set->mem_bytes;
	if (fresh == EXPIRED || !mem->known)
		return;
	s->nodes[n].measured = true;
	s->nodes[n].headroom = (struct slack_amount){
		whole(o->cpu_share * (double)v->cpu_allocatable_milli - p95_of(&set->cpu_milli)),
		whole(o->mem_share * (double)v->mem_allocatable_bytes -
		      (isnan(mem->max) ? p95_of(mem) : mem->max))};
}

/* Also of a pod that ended. */
static void survey_arrival(struct slack_run *r, const struct kube_pod *pod)
{
	struct slack_amount shape;

	if (!r->options->from_arrivals || slack_is_of_node(pod) || slack_is_balloon(pod))
		return;
	shape = slack_amount_of(&pod->template->sums.requests);
	slack_arrivals_add(&r->state->arrivals, pod->created_ns, &shape);
}

/* Balloons take no room of real pods. */
static void survey_pod(struct slack_run *r, place_node n, const struct kube_pod *pod)
{
	struct slack_amount asks = slack_amount_of(kube_pod_requests(pod));
	struct slack_survey *s = &r->survey;
	struct slack_node *node = &s->nodes[n];

	slack_amount_add(&node->left, &asks, -1);
	if (slack_is_balloon(pod)) {
		ARRAY_ADD(s->balloons, s->balloon_count) = (struct slack_balloon){pod, n};
		return;
	}
	node->free_pods--;
	slack_amount_add(&node->free, &asks, -1);
	if (slack_is_of_node(pod)) {
		slack_amount_add(&node->gives, &asks, -1);
	} else {
		slack_amount_add(&r->result->requested, &asks, 1);
		slack_amount_max(&s->largest, &asks);
	}
}

static void survey_node(struct slack_run *r, const struct view_node *v, place_node n, bool leaves,
			struct slack_search *search)
{
	const struct kube_node *node = v->model ? v->model->node : NULL;
	struct slack_node *out = &r->survey.nodes[n];

	out->first_holder = UINT32_MAX;
	if (node) {
		out->whole = slack_amount_of(&node->allocatable);
		out->free_pods = node->allocatable.of[RESOURCE_PODS];
	}
	out->gives = out->free = out->left = out->whole;
	for (size_t i = 0; v->model && i < v->model->pod_count; i++) {
		survey_arrival(r, v->model->pods[i]);
		if (!kube_pod_is_active(v->model->pods[i]))
			continue;
		survey_pod(r, n, v->model->pods[i]);
		slack_search_meet(search, v->model->pods[i]);
	}
	slack_amount_max(&out->gives, &nothing);
	r->survey.counts[n] = node && node->ready && !node->unschedulable && !leaves;
	if (!r->survey.counts[n])
		return;
	r->result->nodes++;
	slack_amount_add(&r->result->allocatable, &out->gives, 1);
}

static void survey_pending(struct slack_run *r, struct slack_search *search)
{
	const struct object_table *pods = view_table(r->view, OBJECT_POD);

	for (size_t i = 0; i < pods->count; i++) {
		const struct kube_pod *pod = (const struct kube_pod *)pods->of[i];
		struct slack_amount asks = slack_amount_of(kube_pod_requests(pod));

		survey_arrival(r, pod);
		if (!kube_pod_is_active(pod))
			continue;
		slack_search_meet(search, pod);
		if (!slack_is_of_node(pod) && !slack_is_balloon(pod))
			slack_amount_max(&r->survey.largest, &asks);
	}
}

static void begin_arrivals(struct slack_run *r)
{
	struct slack_arrivals *a = &r->state->arrivals;

	if (a->span_ns != r->options->node_start_ns || a->keep_ns != r->options->arrivals_keep_ns) {
		slack_arrivals_fini(a);
		slack_arrivals_init(a, r->options->node_start_ns, r->options->arrivals_keep_ns);
	}
	slack_arrivals_begin(a, r->now_ns);
}

void slack_survey_init(struct slack_run *r, struct slack_search *search)
{
	place_pod plain = place_add_pod(r->place, r->state->plain.record);
	const struct view *v = r->view;
	struct slack_survey *s = &r->survey;

	s->count = v->node_count;
	s->counts = mem_zalloc(s->count + 1, sizeof(*s->counts));
	s->nodes = mem_zalloc(s->count + 1, sizeof(*s->nodes));
	if (r->options->from_arrivals)
		begin_arrivals(r);
	for (place_node n = 0; n < s->count; n++) {
		survey_node(r, v->nodes[n], n, place_check(r->place, plain, n) == PLACE_GONE,
			    search);
		survey_use(s, v->nodes[n], n, r->now_ns, r->options);
	}
	survey_pending(r, search);
	if (r->options->from_arrivals)
		slack_arrivals_end(&r->state->arrivals, r->now_ns);
}

void slack_survey_fini(struct slack_survey *s)
{
	free(s->counts);
	free(s->nodes);
	free(s->balloons);
}

/* --- nodes that admit a pod ------------------------------------------------------------------- */

/*
 * Most classes ask the same of nodes. The nodes that count and admit a pod are found once for all
 * classes whose pods ask alike: neither labels, taints nor cordons change within a step.
 */
static struct slack_node_set *new_node_set(const struct slack_run *r, const void *admission,
					   place_pod probe)
{
	struct slack_node_set *g = mem_zalloc(1, sizeof(*g));

	g->admission = admission;
	g->nodes = mem_zalloc(r->survey.count + 1, sizeof(*g->nodes));
	for (place_node n = 0; n < r->survey.count; n++) {
		struct slack_amount some = r->survey.nodes[n].free;

		if (!r->survey.counts[n] || !place_admits(r->place, probe, n))
			continue;
		g->nodes[g->count++] = n;
		slack_amount_max(&some, &nothing);
		slack_amount_add(&g->free, &some, 1);
	}
	return g;
}

static void free_node_set(struct slack_node_set *g)
{
	if (g)
		free(g->nodes);
	free(g);
}

const struct slack_node_set *slack_node_set_of(struct slack_run *r, place_pod probe)
{
	const void *admission = place_admission(r->place, probe);
	struct slack_node_set *g;

	if (!admission) {
		free_node_set(r->own_node_set);
		r->own_node_set = new_node_set(r, NULL, probe);
		return r->own_node_set;
	}
	HASH_FIND_PTR(r->node_sets, &admission, g);
	if (!g) {
		g = new_node_set(r, admission, probe);
		HASH_ADD_PTR(r->node_sets, admission, g);
	}
	return g;
}

void slack_node_sets_fini(struct slack_run *r)
{
	struct slack_node_set *g, *next;

	HASH_RELEASE (r->node_sets, g, next)
		free_node_set(g);
	free_node_set(r->own_node_set);
	r->own_node_set = NULL;
}
