/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Victims as scheduler-plugins' CapacityScheduling finds them on one node (SelectVictimsOnNode), with
 * its faults, and its test whether a pod may preempt at all (PodEligibleToPreemptOthers):
 *
 *   overshoot        a quota over its min gives pods until it is not: the last may take it far
 *                    below
 *   other resources  a quota over its min of memory gives CPU
 *   budgets          are counted over the candidates of the node, and a victim that only the quotas
 *                    need is no violation
 *   double removal   a victim that neither fits nor is allowed is removed twice, which is an error,
 *                    and the node is dropped
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

struct node_search {
	struct preempt_run *run;
	place_node at;
	uint32_t count; /* candidates */
	struct preempt_victim_candidate
		*of; /* owned; at first all pods of the node, then the candidates */
	uint32_t victim_count;
	struct preempt_victim_candidate **victims; /* owned */
	uint32_t violations;
};

/* > 0: a is more important. Ties, which upstream leaves to chance, by name. */
static int importance(const struct preempt_run *r, const struct preempt_victim_candidate *a,
		      const struct preempt_victim_candidate *b)
{
	const struct kube_pod *p = preempt_run_pod(r, a)->pod, *q = preempt_run_pod(r, b)->pod;

	return COMPARE(p->template->priority, q->template->priority)
		       ?: COMPARE(preempt_started(q), preempt_started(p));
}

/* A stable sort; nodes have few pods. */
static void sort(const struct preempt_run *r, struct preempt_victim_candidate *of, uint32_t count,
		 int sign)
{
	for (uint32_t i = 1; i < count; i++) {
		struct preempt_victim_candidate p = of[i];
		uint32_t k = i;

		for (; k > 0 && sign * importance(r, &of[k - 1], &p) > 0; k--)
			of[k] = of[k - 1];
		of[k] = p;
	}
}

/* Checked in the present state: taken pods are no longer in their quotas. */
static bool is_candidate(const struct preempt_run *r, const struct preempt_pod *p)
{
	const struct preempt_quota *quota = &r->quotas[p->space];
	bool lower = p->pod->template->priority < r->priority;

	switch (r->rule) {
	case PREEMPT_OWN:
		return quota->own && lower;
	case PREEMPT_BORROWED:
		return !quota->own && quota->entry &&
		       quota_is_over(r->book, QUOTA_MIN, p->pod->object.namespace, NULL);
	case PREEMPT_FREE:
		return !quota->entry && lower;
	case PREEMPT_CRITICAL: /* upstream has no such rule */
		break;
	}
	return false;
}

static void scan(struct node_search *s)
{
	struct preempt_run *r = s->run;
	uint32_t pods = 0;

	for (uint32_t i = r->index->first[s->at]; i < r->index->first[s->at + 1]; i++) {
		const struct kube_pod *pod = r->index->pods[i].pod;
		place_pod handle =
			place_find_pod(r->place, pod->object.namespace, pod->object.name);

		if (handle != PLACE_NONE && place_where(r->place, handle) == s->at)
			s->of[pods++] = (struct preempt_victim_candidate){
				.pod = i, .handle = handle, .use = PREEMPT_UNKNOWN, .share = NAN};
	}
	sort(r, s->of, pods, 1);
	for (uint32_t i = 0; i < pods; i++) {
		if (!is_candidate(r, preempt_run_pod(r, &s->of[i])))
			continue;
		s->of[s->count] = s->of[i];
		preempt_run_take(r, &s->of[s->count++]);
	}
}

/* Counts budgets by importance, and forgets the counts again. */
static void split_by_budgets(struct node_search *s)
{
	struct preempt_run *r = s->run;

	sort(r, s->of, s->count, -1);
	for (uint32_t i = 0; i < s->count; i++) {
		preempt_run_match(r, &s->of[i]);
		preempt_run_count(r, &s->of[i], r->budget_left, -1);
	}
	for (uint32_t i = 0; i < s->count; i++) {
		preempt_run_count(r, &s->of[i], r->budget_left, 1);
		s->of[i].match_count = 0;
	}
}

/* Puts it back unless the pod then fails to fit or start. False: upstream removes it twice. */
static bool reprieve(struct node_search *s, struct preempt_victim_candidate *p)
{
	struct preempt_run *r = s->run;
	bool stays;

	preempt_run_put(r, p);
	stays = preempt_run_fits(r, s->at) == PLACE_FITS;
	if (!stays) {
		preempt_run_take(r, p);
		s->victims[s->victim_count++] = p;
	}
	if (r->has_quota && !preempt_run_quotas_allow(r)) {
		if (!stays)
			return false;
		preempt_run_take(r, p);
		s->victims[s->victim_count++] = p;
	}
	s->violations += p->over_budget && !stays;
	return true;
}

static bool reprieve_all(struct node_search *s)
{
	split_by_budgets(s);
	for (int violating = 1; violating >= 0; violating--)
		for (uint32_t i = 0; i < s->count; i++)
			if (s->of[i].over_budget == violating && !reprieve(s, &s->of[i]))
				return false;
	return true;
}

static void put_back(struct node_search *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->of[i].taken)
			preempt_run_put(s->run, &s->of[i]);
}

/* Takes the victims again one by one, so that each description shows the effect on its quota. */
static void tell(struct node_search *s, struct preempt_candidate *out)
{
	enum preempt_outcome outcome = s->run->nodes[s->at].outcome;

	*out = (struct preempt_candidate){.node = s->run->nodes[s->at].name,
					  .error = outcome == PREEMPT_NODE_ERROR};
	put_back(s);
	if (out->error)
		return;
	out->violations = s->violations;
	out->victim_count = s->victim_count;
	out->victims = mem_zalloc((size_t)s->victim_count + 1, sizeof(*out->victims));
	for (uint32_t i = 0; i < s->victim_count; i++)
		preempt_victim_take(s->run, s->victims[i], s->victims[i]->over_budget,
				    &out->victims[i]);
}

static enum preempt_outcome search(struct node_search *s)
{
	struct preempt_node *node = &s->run->nodes[s->at];

	scan(s);
	node->eligible = s->count;
	if (!s->count)
		return PREEMPT_NODE_NO_VICTIM;
	node->filter = preempt_run_fits(s->run, s->at);
	if (node->filter != PLACE_FITS)
		return PREEMPT_NODE_NO_ROOM;
	/* Without the nominated pods. */
	if (quota_is_over(s->run->book, QUOTA_MAX, s->run->namespace, s->run->requests) ||
	    quota_is_over(s->run->book, QUOTA_SUM_OF_MIN, s->run->namespace, s->run->requests))
		return PREEMPT_NODE_QUOTA;
	return reprieve_all(s) ? PREEMPT_NODE_SUFFICES : PREEMPT_NODE_ERROR;
}

bool preempt_upstream_node(struct preempt_run *r, place_node n, struct preempt_candidate *out)
{
	uint32_t pods = r->index->first[n + 1] - r->index->first[n];
	place_mark m = place_fork(r->place);
	struct node_search s = {.run = r, .at = n};
	enum preempt_outcome outcome;

	s.of = mem_zalloc((size_t)pods + 1, sizeof(*s.of));
	s.victims = mem_zalloc((size_t)pods + 1, sizeof(struct preempt_victim_candidate *));
	r->match_count = 0;
	outcome = r->nodes[n].outcome = search(&s);
	if (outcome == PREEMPT_NODE_SUFFICES || outcome == PREEMPT_NODE_ERROR)
		tell(&s, out);
	put_back(&s);
	place_revert(r->place, m);
	free(s.of);
	free(s.victims);
	return outcome == PREEMPT_NODE_SUFFICES || outcome == PREEMPT_NODE_ERROR;
}

/* --- all nodes */

void preempt_upstream_candidates(struct preempt_run *r, struct preempt_answer *out)
{
	*out = (struct preempt_answer){0};
	for (place_node n = 0; n < r->index->view->node_count; n++) {
		struct preempt_candidate one;

		if (!preempt_run_allows(r, n) || !preempt_upstream_node(r, n, &one))
			continue;
		ARRAY_ADD(out->of, out->count) = one;
	}
}

/* --- eligibility */

/* Whether the pod on the nominated node is in deletion for the preemptor. */
static bool makes_room(const struct preempt_run *r, const struct preempt_pod *p)
{
	if (!p->pod->deletion_ns)
		return false;
	return r->has_quota && r->quotas[p->space].own ? p->pod->template->priority < r->priority
						       : is_candidate(r, p);
}

bool preempt_upstream_is_eligible(const struct preempt_run *r, bool unresolvable)
{
	const struct preempt *x = r->index;
	size_t n = view_index(x->view, r->record->nominated_node);

	if (preempt_says_never(r->ask))
		return false;
	if (!*r->record->nominated_node || unresolvable || n == x->view->node_count)
		return true;
	for (uint32_t i = x->first[n]; i < x->first[n + 1]; i++)
		if (makes_room(r, &x->pods[i]))
			return false;
	return true;
}
