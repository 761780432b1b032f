/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pods the node's mean does not show yet, and by how much. The mean is over the window that
 * speaks for the node; a pod that was measured over its second half only is in it with half of what
 * it uses:
 *
 *     window     |------------------------|
 *     measured   |-------------|   uncovered = (first measured - start) / (end - start)
 *
 * A pod that runs is in the node's mean since it was bound, whatever is known of the pod itself:
 * after a restart the windows of nodes come back before those of pods, and a load-watcher measures
 * no pods at all; each of them would be counted twice. So one that is not measured is uncovered
 * until it was bound; wholly, if that is a minute ago or less, or not known. Pods that are bound
 * and do not run yet (their images are being pulled) are wholly uncovered however old they are.
 *
 * Where a binding is no older than a minute before the window's end, the pod is listed even if
 * nothing of it is uncovered: upstream's variant counts those whole. Of a window that is longer
 * that need not be looked up: who was measured all along was bound before it.
 */
#include <stdlib.h>

#include "aggregator/state/view_parts.h"
#include "shared/mem.h"

#define UPSTREAM_NS (60 * 1000000000LL)
/* An interval may begin a little later for a pod than for its node. */
#define SLACK_NS 1000000000LL

struct span {
	enum window window;
	int64_t start_ns, end_ns;
};

/* False: nothing is measured that a pod could be missing in. */
static bool find_span(const struct node_stats *stats, struct span *span)
{
	const struct window_set *set = window_longest(stats->usage.windows, NULL);
	const struct window_stats *s;

	if (!set)
		return false;
	s = set->cpu_milli.known ? &set->cpu_milli : &set->mem_bytes;
	*span = (struct span){(enum window)(set - stats->usage.windows), s->start_ns, s->end_ns};
	return s->end_ns > s->start_ns;
}

static int64_t bound_ns(const struct kube_pod *pod)
{
	return pod->scheduled_ns ? pod->scheduled_ns : pod->created_ns;
}

/* Start of the part of the window that includes the pod; the window's end where no part does. */
static int64_t shown_since(const struct span *span, const struct view_pod *p, int64_t stats_end_ns)
{
	struct window_stats own = {0};
	int64_t bound;

	if (p->use)
		pod_window_stats_unpack(&p->use->usage.cpu_milli[span->window], stats_end_ns, &own);
	if (own.known)
		return own.start_ns;
	bound = p->pod ? bound_ns(p->pod) : 0;
	if (!bound || p->pod->phase == POD_PENDING || bound > span->end_ns - UPSTREAM_NS)
		return span->end_ns;
	return bound;
}

static float uncovered(const struct span *span, const struct kube_pod *pod, int64_t since_ns)
{
	int64_t bound = bound_ns(pod);

	if (pod->phase != POD_PENDING && bound && bound <= span->start_ns)
		return 0;
	if (since_ns <= span->start_ns + SLACK_NS)
		return 0;
	if (since_ns >= span->end_ns)
		return 1;
	return (float)((double)(since_ns - span->start_ns) /
		       (double)(span->end_ns - span->start_ns));
}

/* False: it is not recent in any way. */
static bool read_recent(const struct span *span, const struct view_pod *p, int64_t stats_end_ns,
			struct view_recent *out)
{
	int64_t since_ns = shown_since(span, p, stats_end_ns);

	if (!p->pod ||
	    (since_ns <= span->start_ns + SLACK_NS && span->end_ns - since_ns > UPSTREAM_NS))
		return false;
	*out = (struct view_recent){p->pod, p->use, uncovered(span, p->pod, since_ns)};
	return kube_pod_is_active(p->pod) &&
	       (out->uncovered > 0 || bound_ns(p->pod) > span->end_ns - UPSTREAM_NS);
}

void view_recents_find(struct view_node *n)
{
	struct view_recent *found;
	struct span span;

	if (!find_span(n->stats, &span))
		return;
	found = mem_alloc((n->model->pod_count + 1) * sizeof(*found));
	for (size_t i = 0; i < n->pod_count; i++)
		n->recent_count +=
			read_recent(&span, &n->pods[i], n->stats->end_ns, &found[n->recent_count]);
	if (n->recent_count) {
		n->recents = mem_realloc(found, n->recent_count * sizeof(*found));
		return;
	}
	free(found);
}
