/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/place_scan.h"

#include <math.h>

#include "aggregator/policy/place/place_internal.h"

/* The cap alone refuses it: the node that is the least above its limit is the nearest. */
static void note_excess(const struct place *p, place_pod pod, place_node n, struct place_counts *c)
{
	struct place_use_limits l;
	double excess;

	place_use_fits(p, n, &place_slot(p, pod)->use, &l);
	excess = fmax(l.cpu / l.cpu_limit, l.mem / l.mem_limit);
	if (c->nearest != PLACE_NONE && c->excess <= excess)
		return;
	c->nearest = n;
	c->excess = excess;
}

static bool ask(struct place *p, place_pod pod, place_node n, const bool *allowed,
		struct place_counts *c)
{
	enum place_filter f;

	if (allowed && !allowed[n])
		return false;
	f = place_check(p, pod, n);
	c->of[f]++;
	if (f == PLACE_USE_CAP)
		note_excess(p, pod, n, c);
	return f == PLACE_FITS;
}

/* a, which is tried after b; nodes of equal shares are tried in their order. */
static bool comes_first(const struct place *p, enum place_order order, place_node a, place_node b)
{
	double share_a = place_share(p, a), share_b = place_share(p, b);

	if (order == PLACE_CYCLIC)
		return false;
	return order == PLACE_FULLEST_FIRST ? share_a > share_b : share_a < share_b;
}

place_node place_scan(struct place *p, place_pod pod, enum place_order order, place_node hint,
		      const bool *allowed, struct place_counts *counts)
{
	const struct place_counts none = {.nearest = PLACE_NONE};
	struct place_counts c = none;
	uint32_t count = p->node_count, start = 0;
	place_node best = PLACE_NONE;

	if (counts)
		*counts = none;
	if (hint != PLACE_NONE && ask(p, pod, hint, allowed, &c))
		return hint;
	c = none;
	if (order == PLACE_CYCLIC && p->last_chosen != PLACE_NONE)
		start = p->last_chosen + 1;
	for (uint32_t i = 0; i < count; i++) {
		place_node n = (start + i) % count;

		/* A node that would come behind the best so far need not be asked. */
		if ((best == PLACE_NONE || comes_first(p, order, n, best)) &&
		    ask(p, pod, n, allowed, &c))
			best = n;
	}
	if (best == PLACE_NONE && counts)
		*counts = c;
	if (best != PLACE_NONE && order == PLACE_CYCLIC)
		p->last_chosen = best;
	return best;
}
