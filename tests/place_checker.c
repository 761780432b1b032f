/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/place_checker.h"

static bool (*const filters[PLACE_FILTERS])(const struct verify_question *q) = {
	[PLACE_GONE] = verify_destination,	[PLACE_FIT] = verify_room,
	[PLACE_TAINTS] = verify_taints,		[PLACE_NODE_AFFINITY] = verify_node_affinity,
	[PLACE_UNSCHEDULABLE] = verify_cordon,	[PLACE_ANTI_AFFINITY] = verify_anti_affinity,
	[PLACE_AFFINITY] = verify_affinity,	[PLACE_SPREAD] = verify_spread,
	[PLACE_HOST_PORTS] = verify_host_ports, [PLACE_VOLUMES] = place_checker_volumes,
	[PLACE_UNKNOWN] = verify_judged,
};

bool place_verdict_allows(const struct place_verdict *v, enum place_filter other)
{
	if (v->certainty == PLACE_UNJUDGED)
		return other != PLACE_FITS;
	return other == v->filter;
}

struct place_verdict place_checker_ask(const struct verify_world *w, size_t pod, size_t node)
{
	struct place_verdict v = {.filter = PLACE_FITS, .error = {""}};
	struct verify_question q = {w, pod, node, w->pods[pod], w->nodes[node], NULL};

	if (!verify_judged(&q))
		v.certainty = PLACE_UNJUDGED;
	q.error = &v.error;
	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++)
		if (filters[f] && !filters[f](&q)) {
			v.filter = (enum place_filter)f;
			break;
		}
	return v;
}

/* What is asked again of those that are placed. */
static bool is_lasting(int filter)
{
	return filter == PLACE_FIT || filter == PLACE_TAINTS || filter == PLACE_NODE_AFFINITY ||
	       filter == PLACE_ANTI_AFFINITY || filter == PLACE_HOST_PORTS ||
	       filter == PLACE_VOLUMES;
}

bool place_checker_is_legal(const struct verify_world *w, const bool *marked, struct error *why)
{
	for (size_t i = 0; i < w->pod_count; i++) {
		struct error inner = {""};
		struct verify_question q = {
			.w = w, .pod_at = i, .pod = w->pods[i], .error = &inner};

		if (w->where[i] < 0 || verify_has_ended(q.pod) || (marked && !marked[i]))
			continue;
		q.node_at = (size_t)w->where[i];
		q.node = w->nodes[q.node_at];
		for (int f = 0; f < PLACE_FILTERS; f++)
			if (is_lasting(f) && !filters[f](&q)) {
				error_set(why, "%s/%s on %s: filter %d: %s",
					  verify_namespace(q.pod), verify_name(q.pod),
					  verify_name(q.node), f, inner.text);
				return false;
			}
	}
	return true;
}
