/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks placed placeholders. All are put where the last step had them.
 *
 *   1. Each is checked as if it came last, and pushed out if its node has no room or forbids it; the
 *      largest of a node first.
 *   2. Placeholders with affinity or spread are checked repeatedly until none goes, since each that
 *      goes may have satisfied others. So none is pushed out for the sake of one that goes itself.
 *   3. The surplus is given up on the emptiest nodes, which helps drains, but preferably placeholders
 *      that no constraint needs. Otherwise 2. is repeated.
 *
 * A placed placeholder binds a claim that waits for its first pod, and the claim would stay bound
 * without it: if there are claims, this is a trial, and only the rest is placed after it.
 *
 * Placeholders whose constraints a move would violate. The scheduler checks affinity to pods and
 * topology spread only when a pod comes; later changes can violate them. A real pod stays all the same,
 * but a placeholder promises that such a pod could come there now. So after each step every
 * placeholder must fit on its node as if it came last:
 *
 *   placed, displaced    goes only to nodes where the constraints of other placeholders hold
 *                        (slack_place.c)
 *   given up             preferably a placeholder that no constraint needs (below)
 *   pushed out           takes those along whose constraints it satisfied (below)
 *
 * A new placeholder never violates constraints of its class: the check of its own covers theirs.
 *
 * Each check is one take, check and put, of every placeholder of the classes that mind the moved one.
 * The checks of a step are bounded: when they are spent, minded placeholders stay.
 */
#include <stdlib.h>

#include "aggregator/policy/slack/slack_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

/* --- constraints of other placeholders */

enum { ASKS_MOST = 2000000 };

void slack_verify_init(struct slack_run *r)
{
	uint32_t count = (uint32_t)r->class_count, minding_count = 0, at = 0;
	/* Classes with constraints on other pods, and with placeholders. */
	uint32_t *minding = mem_zalloc((size_t)count + 1, sizeof(*minding));

	r->asks = ASKS_MOST;
	r->constraining_from = mem_zalloc((size_t)count + 1, sizeof(*r->constraining_from));
	for (uint32_t class = 0; class < count; class ++)
		if (r->classes[class]->pattern.is_company && r->classes[class]->wanted)
			minding[minding_count++] = class;
	for (uint32_t class = 0; class < count; class ++) {
		r->constraining_from[class] = at;
		for (uint32_t i = 0; i < minding_count; i++)
			if (place_minds(r->place, r->classes[minding[i]]->probe,
					r->classes[class]->probe))
				ARRAY_ADD(r->constraining, at) = minding[i];
	}
	r->constraining_from[count] = at;
	free(minding);
}

static enum place_filter ask(struct slack_run *r, uint32_t holder)
{
	place_pod pod = r->holders[holder].pod;
	place_node n = place_where(r->place, pod);
	place_mark m = place_fork(r->place);
	enum place_filter f;

	place_take(r->place, pod);
	f = place_check(r->place, pod, n);
	place_revert(r->place, m);
	/* evenkeel's own filters never move a placed placeholder. */
	return f >= PLACE_USE_CAP ? PLACE_FITS : f;
}

/* Uses the places in the simulation, which may be a trial. */
static bool class_is_broken(struct slack_run *r, uint32_t class)
{
	for (uint32_t h = r->classes[class]->first_holder; h != UINT32_MAX;
	     h = r->holders[h].next_of_class) {
		if (place_where(r->place, r->holders[h].pod) == PLACE_NONE)
			continue;
		if (!r->asks) {
			r->out_of_tries = true;
			return true;
		}
		r->asks--;
		if (ask(r, h) != PLACE_FITS)
			return true;
	}
	return false;
}

bool slack_verify_breaks(struct slack_run *r, uint32_t class, bool own, uint32_t *who)
{
	for (uint32_t i = r->constraining_from[class]; i < r->constraining_from[class + 1]; i++) {
		uint32_t minder = r->constraining[i];

		if ((minder == class && !own) || !class_is_broken(r, minder))
			continue;
		if (who)
			*who = minder;
		return true;
	}
	return false;
}

/* --- placeholders on nodes */

/* Holders. */
struct standings {
	size_t count;
	uint32_t *of; /* owned */
};

static void stand(struct slack_run *r, struct slack_entry *e, const struct slack_place *s)
{
	place_node n = place_find_node(r->place, s->node);
	bool counts = n != PLACE_NONE && r->survey.counts[n];

	for (uint32_t i = 0; i < s->count && e->placed < r->options->placeholders_max; i++)
		if (counts)
			slack_holder_put(r, slack_holder_new(r, e->index), n);
		else
			slack_add_move(r, SLACK_NODE_LEFT, r->reports[e->index].key,
				       slack_result_name(r->result, s->node), NULL);
}

/* By node, the largest first. */
static int compare_standing(const void *left, const void *right, void *run)
{
	const struct slack_run *r = run;
	const uint32_t *a = left, *b = right;
	const struct slack_holder *x = &r->holders[*a], *y = &r->holders[*b];

	return COMPARE(x->node, y->node)
		?: slack_compare_size(r, y->class, x->class)
		?: COMPARE(x->class, y->class)
		?: COMPARE(*a, *b);
}

/* --- pushing out */

/* True: it went. */
static bool ask_again(struct slack_run *r, uint32_t holder, bool company)
{
	const struct slack_holder *h = &r->holders[holder];
	enum place_filter f = ask(r, holder);

	if (f == PLACE_FITS || ((f == PLACE_AFFINITY || f == PLACE_SPREAD) && !company))
		return false;
	slack_add_move(r, SLACK_PUSHED_OUT, r->reports[h->class].key,
		       place_node_name(r->place, h->node), NULL)
		->filter = f;
	slack_holder_take(r, holder);
	return true;
}

static void keep_company(const struct slack_run *r, struct standings *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct slack_holder *h = &r->holders[list->of[i]];

		if (h->node != PLACE_NONE && r->classes[h->class]->pattern.is_company)
			list->of[kept++] = list->of[i];
	}
	list->count = kept;
}

/* Shortens the list. */
static void push_out_company(struct slack_run *r, struct standings *list)
{
	bool gone = true;

	while (gone) {
		gone = false;
		keep_company(r, list);
		for (size_t i = 0; i < list->count; i++)
			gone |= ask_again(r, list->of[i], true);
	}
}

/* --- surplus */

static int compare_surplus(const void *left, const void *right, void *run)
{
	const struct slack_run *r = run;
	const uint32_t *a = left, *b = right;
	place_node x = r->holders[*a].node, y = r->holders[*b].node;

	return slack_compare_share(r, x, y) ?: COMPARE(x, y) ?: COMPARE(*a, *b);
}

static struct standings list_class(struct slack_run *r, uint32_t class)
{
	struct standings list = {.of = mem_zalloc(r->classes[class]->placed, sizeof(*list.of))};

	for (uint32_t h = r->classes[class]->first_holder; h != UINT32_MAX;
	     h = r->holders[h].next_of_class)
		if (r->holders[h].node != PLACE_NONE)
			list.of[list.count++] = h;
	qsort_r(list.of, list.count, sizeof(*list.of), compare_surplus, r);
	return list;
}

static bool is_missed(struct slack_run *r, const struct slack_holder *h)
{
	place_mark m = place_fork(r->place);
	bool missed;

	place_take(r->place, h->pod);
	missed = slack_verify_breaks(r, h->class, true, NULL);
	place_revert(r->place, m);
	return missed;
}

/* The first that no constraint needs, else the first. */
static uint32_t choose_surplus(struct slack_run *r, const struct standings *list, bool *missed)
{
	uint32_t first = UINT32_MAX;

	for (size_t i = 0; i < list->count; i++) {
		uint32_t holder = list->of[i];

		if (r->holders[holder].node == PLACE_NONE)
			continue;
		if (!is_missed(r, &r->holders[holder]))
			return holder;
		first = first == UINT32_MAX ? holder : first;
	}
	*missed = true;
	return first;
}

/* Each take empties its node further, so the order stays. True: constraints needed some. */
static bool give_up(struct slack_run *r, uint32_t class)
{
	struct standings list = list_class(r, class);
	bool missed = false;

	while (slack_surplus(r, class)) {
		uint32_t holder = choose_surplus(r, &list, &missed);

		slack_add_move(r, SLACK_SURPLUS, r->reports[class].key,
			       place_node_name(r->place, r->holders[holder].node), NULL);
		slack_holder_take(r, holder);
	}
	free(list.of);
	return missed;
}

/* --- all of it */

static void verify(struct slack_run *r)
{
	struct standings list = {0};
	bool missed = false;

	for (size_t c = 0; c < r->class_count; c++)
		for (size_t i = 0; i < r->classes[c]->standing_count; i++)
			stand(r, r->classes[c], &r->classes[c]->standing[i]);
	list.of = mem_zalloc(r->holder_count + 1, sizeof(*list.of));
	for (uint32_t h = 0; h < r->holder_count; h++)
		if (r->holders[h].node != PLACE_NONE)
			list.of[list.count++] = h;
	qsort_r(list.of, list.count, sizeof(*list.of), compare_standing, r);
	for (size_t i = 0; i < list.count; i++)
		ask_again(r, list.of[i], false);
	push_out_company(r, &list);
	for (uint32_t c = 0; c < r->class_count; c++)
		if (slack_surplus(r, c))
			missed |= give_up(r, c);
	if (missed)
		push_out_company(r, &list);
	free(list.of);
}

void slack_verify(struct slack_run *r)
{
	bool claims = false;
	place_mark m;

	for (uint32_t c = 0; c < r->class_count; c++)
		claims |= r->classes[c]->pattern.has_claims;
	if (!claims) {
		verify(r);
		return;
	}
	m = place_fork(r->place);
	verify(r);
	place_revert(r->place, m);
	for (uint32_t h = 0; h < r->holder_count; h++)
		if (r->holders[h].node != PLACE_NONE)
			place_put(r->place, r->holders[h].pod, r->holders[h].node);
}
