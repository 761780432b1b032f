/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the nodes of a view have: in one pass over nodes and their pods. Requests are those the kube-scheduler counts.
 *
 * Pods of DaemonSets and static pods belong to their node: they make it smaller, and are no demand. A node counts when a new pod may go
 * there: ready, not cordoned, not in deletion.
 *
 * Real use: a node's CPU is the 95th percentile of the window that speaks for it, its memory the most its working set was, since memory cannot be
 * lent. A node that is silent has no headroom.
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

/* A balloon (slack_yaml.h) is slack itself, if of another make: it takes room, and is no demand to keep slack for. */
static bool is_balloon(const struct kube_pod *pod)
{
	return strncmp(pod->template->owner.name, SLACK_REPLICA_SET "-",
		       strlen(SLACK_REPLICA_SET "-")) == 0;
}

static void survey_pods(struct slack_survey *s, const struct view_node *v, size_t n)
{
	struct slack_amount of_node = {0, 0}, of_others = {0, 0};
	int64_t pods = 0;

	for (size_t i = 0; i < v->pod_count; i++) {
		const struct kube_pod *pod = v->pods[i].pod;
		const struct resources *asks;
		struct slack_amount amount;

		if (!pod || !kube_pod_is_active(pod))
			continue;
		asks = kube_pod_requests(pod);
		amount = (struct slack_amount){asks->of[RESOURCE_CPU], asks->of[RESOURCE_MEMORY]};
		pods++;
		if (is_balloon(pod))
			slack_amount_add(&s->free[n], &amount, -1);
		else
			slack_amount_add(slack_is_of_node(pod) ? &of_node : &of_others, &amount, 1);
	}
	slack_amount_add(&s->gives[n], &of_node, -1);
	slack_amount_add(&s->free[n], &of_node, -1);
	slack_amount_add(&s->free[n], &of_others, -1);
	slack_amount_add(&s->requested, &of_others, 1);
	s->free_pods[n] -= pods;
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
	enum freshness fresh = page_freshness(v->page, now_ns);
	int window;
	const struct window_set *set = window_longest(v->page->usage.windows, &window);
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

static void survey_node(struct slack_survey *s, const struct view_node *v, size_t n)
{
	const struct kube_node *node = v->model ? v->model->node : NULL;

	if (node) {
		s->whole[n] = (struct slack_amount){node->allocatable.of[RESOURCE_CPU],
						    node->allocatable.of[RESOURCE_MEMORY]};
		s->free_pods[n] = node->allocatable.of[RESOURCE_PODS];
	}
	s->counts[n] = node && node->ready && !node->unschedulable && !node->deletion_ns;
	s->gives[n] = s->free[n] = s->whole[n];
	survey_pods(s, v, n);
	s->gives[n].cpu_milli = at_least_0(s->gives[n].cpu_milli);
	s->gives[n].mem_bytes = at_least_0(s->gives[n].mem_bytes);
	if (!s->counts[n])
		return;
	s->counting++;
	slack_amount_add(&s->allocatable, &s->gives[n], 1);
}

void slack_survey_init(struct slack_survey *s, const struct view *v, int64_t now_ns,
		       const struct slack_options *o)
{
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
		survey_node(s, v->nodes[n], n);
		survey_use(s, v->nodes[n], n, now_ns, o);
	}
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
