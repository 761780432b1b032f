/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the nodes of a view have. Requests are those the kube-scheduler counts. Pods are read again
 * only where the node's record in the model is another than in the step before, or where other
 * workloads ask for slack.
 *
 * Pods of DaemonSets and static pods belong to their node: they make it smaller, and are no demand.
 * A node counts when a new pod may go there: ready, not cordoned, not in deletion, of which the
 * placement core knows all signs.
 *
 * Real use: a node's CPU is the 95th percentile of the window that speaks for it, its memory the
 * most its working set was, since memory cannot be lent. A node that is silent has no headroom.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/mem.h"

bool slack_is_of_node(const struct kube_pod *pod)
{
	return pod->template->mirror || strcmp(pod->template->owner.kind, "DaemonSet") == 0;
}

/* --- what nodes had, and need not be read again */

static void seen_fini(struct slack_seen *seen)
{
	model_node_drop(seen->model);
	free(seen->asking);
	free(seen->balloons);
}

static void add_pod(const struct kube_pod ***list, size_t *count, const struct kube_pod *pod)
{
	size_t at = (*count)++;

	if ((at & (at - 1)) == 0)
		*list = mem_realloc(*list, (at ? at * 2 : 1) * sizeof(struct kube_pod *));
	(*list)[at] = pod;
}

static void read_pod(struct slack_seen *seen, const struct kube_pod *pod)
{
	const struct resources *asks = kube_pod_requests(pod);
	const struct slack_amount amount = {asks->of[RESOURCE_CPU], asks->of[RESOURCE_MEMORY]};
	bool balloon = slack_is_balloon(pod);

	if (balloon)
		add_pod(&seen->balloons, &seen->balloon_count, pod);
	else if (!slack_is_of_node(pod))
		slack_amount_max(&seen->largest, &amount);
	seen->pods++;
	slack_amount_add(balloon		 ? &seen->of_balloons
			 : slack_is_of_node(pod) ? &seen->of_node
						 : &seen->of_others,
			 &amount, 1);
}

static void read_node(struct slack_seen *seen, const struct view_node *v, slack_asks asks,
		      void *context)
{
	*seen = (struct slack_seen){.model = v->model ? model_node_hold(v->model) : NULL};
	seen->name = v->model ? v->model->name : NULL;
	for (size_t i = 0; v->model && i < v->model->pod_count; i++) {
		const struct kube_pod *pod = v->model->pods[i];

		/* Those that ended came, too. */
		if (pod->created_ns > seen->newest_ns)
			seen->newest_ns = pod->created_ns;
		if (!kube_pod_is_active(pod))
			continue;
		read_pod(seen, pod);
		if (asks(context, pod))
			add_pod(&seen->asking, &seen->asking_count, pod);
	}
}

void slack_seen_fini(struct slack_state *s)
{
	for (size_t i = 0; i < s->seen_count; i++)
		seen_fini(&s->seen[i]);
	free(s->seen);
	s->seen = NULL;
	s->seen_count = 0;
}

/* Both are sorted by name; nodes without a record hold nothing that could be kept. */
void slack_seen_follow(struct slack_state *s, const struct view *v, uint64_t controllers,
		       slack_asks asks, void *context)
{
	struct slack_seen *now = mem_zalloc(v->node_count + 1, sizeof(*now));
	bool same = controllers == s->seen_controllers;
	size_t at = 0;

	for (size_t n = 0; n < v->node_count; n++) {
		const struct view_node *node = v->nodes[n];

		while (at < s->seen_count &&
		       (!s->seen[at].model || strcmp(s->seen[at].name, node->name) < 0))
			seen_fini(&s->seen[at++]);
		if (same && at < s->seen_count && s->seen[at].model == node->model)
			now[n] = s->seen[at++];
		else
			read_node(&now[n], node, asks, context);
	}
	while (at < s->seen_count)
		seen_fini(&s->seen[at++]);
	free(s->seen);
	s->seen = now;
	s->seen_count = v->node_count;
	s->seen_controllers = controllers;
}

/* --- the survey */

static void survey_pods(struct slack_survey *s, const struct slack_seen *seen, size_t n)
{
	slack_amount_add(&s->gives[n], &seen->of_node, -1);
	slack_amount_add(&s->free[n], &seen->of_node, -1);
	slack_amount_add(&s->free[n], &seen->of_others, -1);
	slack_amount_add(&s->requested, &seen->of_others, 1);
	slack_amount_max(&s->largest, &seen->largest);
	s->free_pods[n] -= seen->pods - (int64_t)seen->balloon_count;
}

static int64_t at_least_0(int64_t value)
{
	return value > 0 ? value : 0;
}

static int64_t whole(double value)
{
	return isnan(value) || value <= 0 ? 0 : (int64_t)fmin(value, 1e18);
}

/* Without percentiles, as a load watcher tells them: of a normal distribution. */
static double p95_of(const struct window_stats *w)
{
	return w->percentiles ? w->p95 : w->mean + 1.645 * w->stddev;
}

static double most_of(const struct window_stats *w)
{
	return isnan(w->max) ? p95_of(w) : w->max;
}

static void survey_use(struct slack_survey *s, const struct view_node *v, size_t n, int64_t now_ns,
		       const struct slack_options *o)
{
	enum freshness fresh = node_stats_freshness(v->stats, now_ns);
	int window;
	const struct window_set *set = window_longest(v->stats->usage.windows, &window);
	const struct window_stats *mem;

	if (!set || !set->cpu_milli.known)
		return;
	s->any_measured = true;
	mem = set->working_set_bytes.known ? &set->working_set_bytes : &set->mem_bytes;
	if (fresh == EXPIRED || fresh == NEVER || !mem->known)
		return;
	s->measured[n] = true;
	s->headroom[n].cpu_milli =
		whole(o->cpu_share * (double)v->cpu_allocatable_milli - p95_of(&set->cpu_milli));
	s->headroom[n].mem_bytes =
		whole(o->mem_share * (double)v->mem_allocatable_bytes - most_of(mem));
}

static void survey_node(struct slack_survey *s, const struct slack_seen *seen,
			const struct view_node *v, size_t n, bool leaves)
{
	const struct kube_node *node = v->model ? v->model->node : NULL;

	if (node) {
		s->whole[n] = (struct slack_amount){node->allocatable.of[RESOURCE_CPU],
						    node->allocatable.of[RESOURCE_MEMORY]};
		s->free_pods[n] = node->allocatable.of[RESOURCE_PODS];
	}
	s->counts[n] = node && node->ready && !node->unschedulable && !leaves;
	s->gives[n] = s->free[n] = s->whole[n];
	survey_pods(s, seen, n);
	s->gives[n].cpu_milli = at_least_0(s->gives[n].cpu_milli);
	s->gives[n].mem_bytes = at_least_0(s->gives[n].mem_bytes);
	if (!s->counts[n])
		return;
	s->counting++;
	slack_amount_add(&s->allocatable, &s->gives[n], 1);
}

static void survey_pending(struct slack_survey *s, const struct view *v)
{
	const struct object_table *pods = v->cluster ? v->cluster->tables[OBJECT_POD] : NULL;

	for (size_t i = 0; pods && i < pods->count; i++) {
		const struct kube_pod *pod = (const struct kube_pod *)pods->of[i];
		const struct resources *asks = kube_pod_requests(pod);

		if (kube_pod_is_active(pod) && !slack_is_of_node(pod) && !slack_is_balloon(pod))
			slack_amount_max(&s->largest,
					 &(struct slack_amount){asks->of[RESOURCE_CPU],
								asks->of[RESOURCE_MEMORY]});
	}
}

void slack_survey_init(struct slack_survey *s, const struct slack_state *state, struct place *place,
		       const struct view *v, int64_t now_ns, const struct slack_options *o)
{
	place_pod plain = place_add_pod(place, state->plain.record);
	size_t count = v->node_count + 1;

	*s = (struct slack_survey){.count = v->node_count};
	s->counts = mem_zalloc(count, sizeof(*s->counts));
	s->whole = mem_zalloc(count, sizeof(*s->whole));
	s->gives = mem_zalloc(count, sizeof(*s->gives));
	s->free = mem_zalloc(count, sizeof(*s->free));
	s->free_pods = mem_zalloc(count, sizeof(*s->free_pods));
	s->headroom = mem_zalloc(count, sizeof(*s->headroom));
	s->measured = mem_zalloc(count, sizeof(*s->measured));
	for (size_t n = 0; n < v->node_count; n++) {
		survey_node(s, &state->seen[n], v->nodes[n], n,
			    place_check(place, plain, (place_node)n) == PLACE_GONE);
		survey_use(s, v->nodes[n], n, now_ns, o);
	}
	survey_pending(s, v);
}

void slack_survey_fini(struct slack_survey *s)
{
	free(s->counts);
	free(s->whole);
	free(s->gives);
	free(s->free);
	free(s->free_pods);
	free(s->headroom);
	free(s->measured);
	*s = (struct slack_survey){0};
}
