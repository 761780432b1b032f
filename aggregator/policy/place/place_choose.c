/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a pod would go. The tree finds the node that asking each in turn would find; it leaves out
 * nodes without room for CPU, memory or one more pod, of which it is known without asking which
 * filter refuses.
 */
#include <math.h>
#include <string.h>

#include "aggregator/policy/place/place_internal.h"

struct asked {
	struct place *p;
	place_pod pod;
	const bool *allowed;
	struct place_counts counts;
	uint32_t reached;
};

/* The cap alone refused it: what is missing there may be all that is missing. */
static void note_excess(struct asked *a, place_node n)
{
	struct place_counts *c = &a->counts;
	struct place_use_limits l;
	double excess;

	place_use_fits(a->p, n, &place_slot(a->p, a->pod)->use, &l);
	excess = fmax(l.cpu / l.cpu_limit, l.mem / l.mem_limit);
	if (c->of[PLACE_USE_CAP]++ && c->excess <= excess)
		return;
	c->nearest = n;
	c->excess = excess;
}

static bool ask(void *context, place_node n)
{
	struct asked *a = context;
	enum place_filter f;

	if (a->allowed && !a->allowed[n])
		return false;
	a->reached++;
	f = place_check(a->p, a->pod, n);
	if (f == PLACE_USE_CAP)
		note_excess(a, n);
	else
		a->counts.of[f]++;
	return f == PLACE_FITS;
}

/* Under the cap the tree passes over nodes for their use, too, and each has to be asked again. */
static void count_all(struct asked *a)
{
	a->counts = (struct place_counts){.nearest = PLACE_NONE};
	for (place_node n = 0; n < a->p->node_count; n++)
		ask(a, n);
}

/* Who was passed over: gone, or too full. */
static void count_others(struct asked *a)
{
	const struct place *p = a->p;
	uint32_t all = 0, gone = 0;

	for (place_node n = 0; n < p->node_count; n++) {
		if (a->allowed && !a->allowed[n])
			continue;
		all++;
		gone += p->gone[n];
	}
	a->counts.of[PLACE_GONE] = gone;
	a->counts.of[PLACE_FIT] += all - gone - a->reached;
}

static place_node by_tree(struct asked *a, enum place_order order, place_node start)
{
	const struct place_slot *s = place_slot(a->p, a->pod);
	const struct place_shape *shape = place_slot_shape(s);
	place_node n = place_tree_first(a->p, order, shape, &s->use, start, PLACE_NONE, ask, a);

	if (n == PLACE_NONE && start)
		n = place_tree_first(a->p, order, shape, &s->use, 0, start, ask, a);
	return n;
}

place_node place_choose(struct place *p, place_pod pod, enum place_order order, place_node hint,
			const bool *allowed, struct place_counts *counts)
{
	struct asked a = {
		.p = p, .pod = pod, .allowed = allowed, .counts = {.nearest = PLACE_NONE}};
	place_node start = 0, n;

	if (counts)
		*counts = a.counts;
	if (hint != PLACE_NONE && (!allowed || allowed[hint]) &&
	    place_check(p, pod, hint) == PLACE_FITS)
		return hint;
	if (order == PLACE_CYCLIC && p->last_chosen != PLACE_NONE &&
	    p->last_chosen + 1 < p->node_count)
		start = p->last_chosen + 1;
	n = by_tree(&a, order, start);
	if (n != PLACE_NONE) {
		if (order == PLACE_CYCLIC)
			p->last_chosen = n;
		return n;
	}
	if (counts) {
		if (p->cap)
			count_all(&a);
		else
			count_others(&a);
		*counts = a.counts;
	}
	return PLACE_NONE;
}
