/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest set of victims: the first criterion that differs decides. Upstream's criteria are
 * those of kube-scheduler's pickOneNodeForPreemption; the sum adds 2^31 to each priority so that
 * one more pod always costs more, however negative its priority.
 */
#include "aggregator/policy/quota/preempt_internal.h"

#define PRIORITY_BASE (1LL << 31)

void preempt_cost_start(struct preempt_cost *c)
{
	*c = (struct preempt_cost){.top_priority = INT64_MIN, .start = INT64_MAX};
}

void preempt_cost_add(struct preempt_cost *c, int32_t priority, int64_t started_ns,
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

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

int preempt_cost_compare(const struct preempt_cost *a, const struct preempt_cost *b,
			 enum quota_variant v)
{
	int order = compare(a->violations, b->violations);

	if (!order && v == QUOTA_CORRECTED)
		order = (a->loss > b->loss) - (a->loss < b->loss);
	if (!order && v == QUOTA_CORRECTED)
		order = (a->beyond > b->beyond) - (a->beyond < b->beyond);
	if (!order)
		order = compare(a->top_priority, b->top_priority);
	if (!order && v == QUOTA_CORRECTED)
		order = compare(a->use, b->use);
	if (!order)
		order = compare(a->priorities, b->priorities);
	if (!order)
		order = compare(a->count, b->count);
	if (!order)
		order = compare(b->start, a->start); /* later is cheaper */
	if (!order && v == QUOTA_CORRECTED)
		order = (a->waste > b->waste) - (a->waste < b->waste);
	return order;
}

static struct preempt_cost cost_of(const struct preempt_candidate *c)
{
	struct preempt_cost cost;

	preempt_cost_start(&cost);
	for (size_t i = 0; i < c->victim_count; i++)
		preempt_cost_add(&cost, c->victims[i].priority, c->victims[i].started_ns,
				 c->victims[i].use, false, 0);
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
