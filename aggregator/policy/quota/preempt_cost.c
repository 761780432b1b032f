/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a set of victims: the first criterion that differs decides. Upstream's criteria are
 * those of kube-scheduler's pickOneNodeForPreemption; the sum adds 2^31 to each priority so that
 * one more pod always costs more, however negative its priority.
 *
 * Weighted excess is the order among borrowers. The sum that all quotas borrow of a contested
 * resource must shrink by the requests of the pod. The rest is shared by evenkeel.io/weight, and no
 * quota gets more than it borrows now. The rest of what it borrows is its excess:
 *
 *     due_i        borrowed_i - share_i of (sum of borrowed - asked), in multiples of asked
 *     over_share   of a pod: the due of its quota, less what its pods before it in the order free; of
 *                  several resources the largest. The largest goes first
 *     beyond       of a set: how much each quota gives beyond its due
 *
 * With equal weights the quota that borrows the most gives until it borrows as much as the next.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "aggregator/policy/quota/quota_share.h"

#define PRIORITY_BASE (1LL << 31)

static void cost_start(struct preempt_cost *c)
{
	*c = (struct preempt_cost){.top_priority = INT64_MIN, .start = INT64_MAX};
}

static void cost_add(struct preempt_cost *c, int32_t priority, int64_t started_ns,
		     enum preempt_use use, bool violates, double waste)
{
	int64_t start = started_ns ? started_ns : INT64_MAX;

	if (priority > c->top_priority) {
		c->top_priority = priority;
		c->start = start;
	} else if (priority == c->top_priority && start < c->start) {
		c->start = start;
	}
	if (use > c->use)
		c->use = use;
	c->violations += violates;
	c->priorities += priority + PRIORITY_BASE;
	c->count++;
	c->waste += waste;
}

int preempt_cost_compare(const struct preempt_cost *a, const struct preempt_cost *b,
			 enum quota_variant v)
{
	bool corrected = v == QUOTA_CORRECTED;

	return COMPARE(a->violations, b->violations)
		?: corrected * COMPARE(a->loss, b->loss)
		?: corrected * COMPARE(a->beyond, b->beyond)
		?: COMPARE(a->top_priority, b->top_priority)
		?: corrected * COMPARE(a->use, b->use)
		?: COMPARE(a->priorities, b->priorities)
		?: COMPARE(a->count, b->count)
		?: COMPARE(b->start, a->start) /* later is cheaper */
		?: corrected * COMPARE(a->waste, b->waste);
}

static struct preempt_cost cost_of(const struct preempt_candidate *c)
{
	struct preempt_cost cost;

	cost_start(&cost);
	for (size_t i = 0; i < c->victim_count; i++)
		cost_add(&cost, c->victims[i].priority, c->victims[i].started_ns, c->victims[i].use,
			 false, 0);
	cost.violations = c->violations;
	cost.loss = c->loss;
	cost.beyond = c->beyond;
	return cost;
}

size_t preempt_choose(const struct preempt_candidate *of, size_t count, enum quota_variant v)
{
	struct preempt_cost best = {0};
	size_t chosen = count;

	for (size_t i = 0; i < count; i++) {
		struct preempt_cost cost = cost_of(&of[i]);

		if (of[i].error || (chosen < count && preempt_cost_compare(&cost, &best, v) >= 0))
			continue;
		chosen = i;
		best = cost;
	}
	return chosen;
}

/* --- guarantees */

/* How much of its min of the resource the quota does not use, in mins. */
static double missing(const struct quota_row *row, quota_amount used)
{
	return used < row->min ? (double)(row->min - used) / (double)row->min : 0;
}

/* Taken pods count as if they were there. */
static double loss_of_row(const struct preempt_run *r, const uint32_t *set, uint32_t count,
			  uint32_t space, const struct quota_row *row)
{
	quota_amount used = row->used, going = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct preempt_victim_candidate *p = &r->candidates[set[i]];
		const struct preempt_pod *pod = preempt_run_pod(r, p);
		int64_t share =
			pod->space == space
				? quota_amount_of_pod(kube_pod_requests(pod->pod), row->name)
				: 0;

		going += share;
		used += p->taken ? share : 0;
	}
	return missing(row, used - going) - missing(row, used);
}

/* Whether no pod before set[at] is of its namespace. */
static bool is_first(const struct preempt_run *r, const uint32_t *set, uint32_t at)
{
	uint32_t space = preempt_pod_of(r, set[at])->space, k = 0;

	while (preempt_pod_of(r, set[k])->space != space)
		k++;
	return k == at;
}

double preempt_loss(const struct preempt_run *r, const uint32_t *set, uint32_t count)
{
	double loss = 0;

	for (uint32_t i = 0; r->rule == PREEMPT_BORROWED && i < count; i++) {
		uint32_t space = preempt_pod_of(r, set[i])->space;
		const struct quota_entry *e = r->quotas[space].entry;

		if (!e || !is_first(r, set, i))
			continue;
		for (size_t at = 0; at < e->rows.count; at++)
			if (e->rows.of[at].min > 0)
				loss += loss_of_row(r, set, count, space, &e->rows.of[at]);
	}
	return loss;
}

/* --- weighted excess */

static double *due_of(const struct preempt_run *r, uint32_t space)
{
	return r->due + (size_t)space * r->claims.count;
}

/* Spaces and quotas are both sorted by name. */
static void read_claim(struct preempt_run *r, size_t claim)
{
	const struct quota_claim *c = &r->claims.of[claim];
	const struct quota_book *b = r->book;
	struct quota_claimant *claimants = mem_zalloc(b->count + 1, sizeof(*claimants));
	quota_amount all = 0;
	uint32_t space = 0;

	for (size_t i = 0; i < b->count; i++) {
		const struct quota_row *row = quota_rows_find(&b->sorted[i]->rows, c->name);

		claimants[i].weight = b->sorted[i]->quota.weight;
		if (row && row->used > row->min)
			claimants[i].need = int_clamp(row->used - row->min);
		all += claimants[i].need;
	}
	quota_share_out(all > c->asked ? int_clamp(all - c->asked) : 0, claimants, b->count);
	for (size_t i = 0; i < b->count; i++) {
		while (space < r->index->space_count && r->quotas[space].entry != b->sorted[i] &&
		       strcmp(r->index->spaces[space].name, b->sorted[i]->quota.namespace) < 0)
			space++;
		if (space < r->index->space_count && r->quotas[space].entry == b->sorted[i])
			due_of(r, space)[claim] =
				(double)(claimants[i].need - claimants[i].share) / (double)c->asked;
	}
	free(claimants);
}

void preempt_share_read(struct preempt_run *r)
{
	free(r->due);
	r->due = mem_zalloc((size_t)r->index->space_count * r->claims.count + 1, sizeof(*r->due));
	for (size_t i = 0; r->rule == PREEMPT_BORROWED && i < r->claims.count; i++)
		if (preempt_victims_contest(r, i))
			read_claim(r, i);
}

/* How much of the claim the pod frees; 0 if the claim is not contested. */
static double freed_by(const struct preempt_run *r, const struct preempt_pod *p, size_t claim)
{
	const struct quota_claim *c = &r->claims.of[claim];

	if (!preempt_victims_contest(r, claim))
		return 0;
	return (double)quota_amount_of_pod(kube_pod_requests(p->pod), c->name) / (double)c->asked;
}

void preempt_share_charge(struct preempt_run *r, struct preempt_victim_candidate *p)
{
	const struct preempt_pod *pod = preempt_run_pod(r, p);
	double *due = due_of(r, pod->space);
	bool any = false;

	p->over_share = 0;
	for (size_t i = 0; i < r->claims.count; i++) {
		double freed = freed_by(r, pod, i);

		if (freed > 0 && (!any || due[i] > p->over_share)) {
			p->over_share = due[i];
			any = true;
		}
		due[i] -= freed;
	}
}

/* The least of all contested resources, since the largest due decides the order. */
static double beyond_of_space(const struct preempt_run *r, const uint32_t *set, uint32_t count,
			      uint32_t space)
{
	double beyond = 0;
	bool any = false;

	for (size_t i = 0; i < r->claims.count; i++) {
		double freed = 0;

		for (uint32_t k = 0; k < count; k++) {
			const struct preempt_pod *p = preempt_pod_of(r, set[k]);

			freed += p->space == space ? freed_by(r, p, i) : 0;
		}
		if (freed > 0 && (!any || freed - due_of(r, space)[i] < beyond)) {
			beyond = freed - due_of(r, space)[i];
			any = true;
		}
	}
	return beyond > 0 ? beyond : 0;
}

static double beyond_of(const struct preempt_run *r, const uint32_t *set, uint32_t count)
{
	double beyond = 0;

	for (uint32_t i = 0; r->rule == PREEMPT_BORROWED && i < count; i++)
		if (is_first(r, set, i))
			beyond += beyond_of_space(r, set, count, preempt_pod_of(r, set[i])->space);
	return beyond;
}

/* --- a set */

/* Counts budgets by rank. */
void preempt_set_reckon(const struct preempt_run *r, struct preempt_set *s)
{
	int32_t *left = NULL;

	cost_start(&s->cost);
	s->cost.loss = preempt_loss(r, s->of, s->count);
	s->cost.beyond = beyond_of(r, s->of, s->count);
	for (uint32_t i = 0; i < s->count; i++) {
		const struct preempt_victim_candidate *p = &r->candidates[s->of[i]];
		const struct kube_pod *pod = preempt_run_pod(r, p)->pod;

		if (p->match_count && !left) {
			left = mem_zalloc(r->index->budget_count, sizeof(*left));
			memcpy(left, r->budget_most, r->index->budget_count * sizeof(*left));
		}
		cost_add(&s->cost, pod->template->priority, pod->started_ns, p->use,
			 preempt_run_exceeds(r, p, left), p->waste);
		preempt_run_count(r, p, left, -1);
	}
	free(left);
}
