/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/place_checker.h"

/* Others have no filter in the checker of plans: its identity allows all. */
static const enum verify_invariant invariants[PLACE_FILTERS] = {
	[PLACE_GONE] = VERIFY_DESTINATION,	[PLACE_FIT] = VERIFY_ROOM,
	[PLACE_TAINTS] = VERIFY_TAINTS,		[PLACE_NODE_AFFINITY] = VERIFY_NODE_AFFINITY,
	[PLACE_UNSCHEDULABLE] = VERIFY_CORDON,	[PLACE_ANTI_AFFINITY] = VERIFY_ANTI_AFFINITY,
	[PLACE_AFFINITY] = VERIFY_AFFINITY,	[PLACE_SPREAD] = VERIFY_SPREAD,
	[PLACE_HOST_PORTS] = VERIFY_HOST_PORTS, [PLACE_UNKNOWN] = VERIFY_JUDGED,
};

static bool allows(int filter, const struct verify_question *q)
{
	return filter == PLACE_VOLUMES ? place_checker_volumes(q)
				       : verify_filter(invariants[filter], q);
}

bool place_verdict_allows(const struct place_verdict *v, enum place_filter other)
{
	if (v->certainty == PLACE_UNJUDGED)
		return other != PLACE_FITS;
	return other == v->filter;
}

struct place_verdict place_checker_ask(const struct verify_world *w, size_t pod, size_t node)
{
	struct place_verdict v = {.filter = PLACE_FITS, .error = {""}};
	struct verify_question q = {.w = w,
				    .pod_at = pod,
				    .node_at = node,
				    .pod = w->pods[pod],
				    .node = w->nodes[node]};

	if (!verify_filter(VERIFY_JUDGED, &q))
		v.certainty = PLACE_UNJUDGED;
	q.error = &v.error;
	for (int f = PLACE_FITS + 1; f < PLACE_FILTERS; f++)
		if (!allows(f, &q)) {
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
			if (is_lasting(f) && !allows(f, &q)) {
				error_set(why, "%s/%s on %s: filter %d: %s",
					  verify_namespace(q.pod), verify_name(q.pod),
					  verify_name(q.node), f, inner.text);
				return false;
			}
	}
	return true;
}
