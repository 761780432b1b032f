/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kube-scheduler sends candidates that it found by priorities alone, and takes the answer: per
 * node at least one pod of that node, by descending priority. Each offered node is searched by our
 * rules; the offered pods are only compared with the result.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "shared/mem.h"

void preempt_answer_fini(struct preempt_answer *a)
{
	for (size_t i = 0; i < a->count; i++)
		preempt_candidate_fini(&a->of[i]);
	free(a->of);
	buf_fini(&a->narration);
	*a = (struct preempt_answer){0};
}

static int by_priority(const void *left, const void *right)
{
	const struct preempt_victim *a = left, *b = right;

	return COMPARE(b->priority, a->priority)
		       ?: object_compare(&a->pod->object, &b->pod->object);
}

static bool is_same(const struct preempt_offer *o, const struct preempt_candidate *c)
{
	if (o->uid_count != c->victim_count)
		return false;
	for (size_t i = 0; i < c->victim_count; i++)
		if (!preempt_has_uid(o->uids, o->uid_count, c->victims[i].pod->object.uid))
			return false;
	return true;
}

static void tell_answer(const struct preempt_offer *o, const struct preempt_candidate *c,
			struct buf *out)
{
	buf_printf(out, "Node %s: %zu victim%s%s.\n", c->node, c->victim_count,
		   c->victim_count == 1 ? "" : "s",
		   is_same(o, c) ? ", as offered" : ", other than offered");
	for (size_t i = 0; i < c->victim_count; i++)
		buf_printf(out, "Victim %s.\n", c->victims[i].why);
}

/* By offer, for the caller to free: whether the pod fits there when pods in deletion are gone. */
static bool *find_room(struct preempt_run *r, const struct preempt_offer *offers, size_t count)
{
	bool *needs_none = mem_zalloc(count + 1, sizeof(*needs_none));
	bool allowed;

	preempt_run_leave(r);
	allowed = preempt_run_quotas_allow(r);
	for (size_t i = 0; allowed && i < count; i++) {
		size_t n = view_index(r->index->view, offers[i].node);

		needs_none[i] = n < r->index->view->node_count &&
				preempt_run_fits(r, (place_node)n) == PLACE_FITS;
	}
	preempt_run_stay(r);
	return needs_none;
}

/* By the node's own pods. */
static bool find_victims(struct preempt_run *r, place_node n, struct preempt_candidate *out)
{
	struct preempt_set set;

	if (r->options->variant == QUOTA_CORRECTED) {
		if (!preempt_search_node(r, n, &set))
			return false;
		preempt_candidate_of_set(r, &set, out);
		preempt_set_fini(&set);
		return true;
	}
	if (!preempt_upstream_node(r, n, out))
		return false;
	if (!out->error && out->victim_count)
		return true;
	preempt_candidate_fini(out);
	return false;
}

static void tell_none(const struct preempt_run *r, const char *node, size_t n, bool needs_none,
		      struct buf *out)
{
	enum place_filter f;

	if (r->options->variant == QUOTA_UPSTREAM) {
		buf_printf(out, "Node %s: no victims.\n", node);
	} else if (n == r->index->view->node_count) {
		buf_printf(out, "Node %s is not known.\n", node);
	} else if (needs_none) {
		buf_printf(out, "Node %s needs no victim%s.\n", node,
			   r->going_count ? " besides those that are going" : "");
	} else {
		f = r->nodes[n].filter;
		buf_printf(out, "Node %s: %s%s%s.\n", node,
			   preempt_outcome_name(r->nodes[n].outcome), f ? " " : "",
			   f ? place_filter_name(f) : "");
	}
}

/* False: the narration says why. */
static bool search_offer(struct preempt_run *r, const struct preempt_offer *o, bool needs_none,
			 struct preempt_candidate *out, struct buf *narration)
{
	size_t n = view_index(r->index->view, o->node);

	if (n == r->index->view->node_count || needs_none || !find_victims(r, (place_node)n, out)) {
		tell_none(r, o->node, n, needs_none, narration);
		return false;
	}
	qsort(out->victims, out->victim_count, sizeof(*out->victims), by_priority);
	tell_answer(o, out, narration);
	return true;
}

static void answer(struct preempt_run *r, const struct preempt_offer *offers, size_t count,
		   const bool *needs_none, struct preempt_answer *out)
{
	if (r->options->variant == QUOTA_CORRECTED)
		preempt_victims_collect(r);
	for (size_t i = 0; i < count; i++)
		out->room |= needs_none && needs_none[i];
	for (size_t i = 0; i < count; i++)
		out->count += search_offer(r, &offers[i], needs_none && needs_none[i],
					   &out->of[out->count], &out->narration);
}

void preempt_for_extender(const struct preempt *x, struct place *p, struct quota_book *b,
			  const struct preempt_options *o, const struct preempt_ask *ask,
			  const struct preempt_offer *offers, size_t offer_count,
			  struct preempt_answer *out)
{
	struct preempt_run r;
	bool *needs_none = NULL;

	*out = (struct preempt_answer){0};
	out->of = mem_zalloc(offer_count + 1, sizeof(*out->of));
	preempt_run_init(&r, x, p, b, o, ask);
	r.one_node = true;
	if (preempt_says_never(ask)) {
		buf_add_str(&out->narration, "Its preemptionPolicy is Never: no victims.\n");
	} else {
		if (o->variant == QUOTA_CORRECTED)
			needs_none = find_room(&r, offers, offer_count);
		answer(&r, offers, offer_count, needs_none, out);
		if (!out->count && preempt_run_may_break(&r)) {
			r.soft = true;
			answer(&r, offers, offer_count, needs_none, out);
		}
	}
	out->retry_ns = preempt_victims_next_ns(&r);
	free(needs_none);
	preempt_run_fini(&r);
}
