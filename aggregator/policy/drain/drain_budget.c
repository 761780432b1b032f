/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_budget.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

/* The nodes of one list by group. */
struct buckets {
	struct drain_list list;
	int64_t *sizes; /* owned; by group */
	uint32_t *order; /* owned; groups as they are first met */
	size_t count;
	size_t *out; /* borrowed; what is taken of the list */
	size_t *taken;
};

struct run {
	enum drain_variant variant;
	const struct drain_groups *groups;
	struct buckets empty, drain;
	int64_t par, dr;
	bool may_overflow;
};

static void fill(struct buckets *b, struct drain_list list, size_t groups, size_t *out,
		 size_t *taken)
{
	b->list = list;
	b->out = out;
	b->taken = taken;
	b->sizes = mem_zalloc(groups + 1, sizeof(*b->sizes));
	b->order = mem_zalloc(groups + 1, sizeof(*b->order));
	for (size_t i = 0; i < list.count; i++) {
		if (list.groups[i] == DRAIN_NO_GROUP)
			continue;
		if (b->sizes[list.groups[i]]++ == 0)
			b->order[b->count++] = list.groups[i];
	}
}

static void take(struct buckets *b, uint32_t group, int64_t most)
{
	for (size_t i = 0; i < b->list.count && most > 0; i++) {
		if (b->list.groups[i] != group)
			continue;
		b->out[(*b->taken)++] = i;
		most--;
	}
}

static bool is_spent(const struct run *r, int64_t budget)
{
	return r->variant == DRAIN_UPSTREAM ? budget == 0 : budget <= 0;
}

/* Steps 1 and 2 share it: whether a group of e empty nodes and d drains may start. */
static bool may_start(const struct run *r, int64_t e, int64_t d)
{
	if (r->par >= e + d && r->dr >= d)
		return true;
	return r->may_overflow && !(e > 0 && is_spent(r, r->par)) && !(d > 0 && is_spent(r, r->dr));
}

static void start_atomic(struct run *r, uint32_t group, int64_t e, int64_t d)
{
	take(&r->empty, group, e);
	take(&r->drain, group, d);
	r->par -= e + d;
	r->dr -= d;
	r->may_overflow = false;
}

static void crop_atomic(struct run *r, const struct buckets *lead)
{
	for (size_t i = 0; i < lead->count; i++) {
		uint32_t group = lead->order[i];
		int64_t e = r->empty.sizes[group], d = r->drain.sizes[group];

		if (!r->groups->of[group].atomic || (lead == &r->drain && e > 0))
			continue;
		if (!may_start(r, e, d))
			break;
		if (drain_group_is_covered(&r->groups->of[group], e + d))
			start_atomic(r, group, e, d);
	}
}

/* Returns what is left of the budget. */
static int64_t crop_others(const struct run *r, struct buckets *b, int64_t budget)
{
	for (size_t i = 0; i < b->count && budget > 0; i++) {
		int64_t most = b->sizes[b->order[i]] < budget ? b->sizes[b->order[i]] : budget;

		if (r->groups->of[b->order[i]].atomic)
			continue;
		take(b, b->order[i], most);
		budget -= most;
	}
	return budget;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static size_t count_complete(const struct run *r)
{
	int64_t count = 0;

	for (size_t i = 0; i < r->groups->count; i++) {
		const struct drain_group *g = &r->groups->of[i];
		int64_t nodes = r->empty.sizes[i] + r->drain.sizes[i];

		if (!g->atomic || drain_group_is_covered(g, nodes))
			count += nodes;
	}
	return (size_t)count;
}

void drain_budget_crop(const struct drain_budget *b, enum drain_variant variant,
		       const struct drain_groups *g, struct drain_list empty,
		       struct drain_list drain, struct drain_crop *out)
{
	struct run r = {
		.variant = variant,
		.groups = g,
		.par = b->max - b->empty_in_progress - b->drain_in_progress,
		.dr = b->max_drain - b->drain_in_progress,
		.may_overflow = true,
	};

	memset(out, 0, sizeof(*out));
	out->empty = mem_zalloc(empty.count + 1, sizeof(*out->empty));
	out->drain = mem_zalloc(drain.count + 1, sizeof(*out->drain));
	fill(&r.empty, empty, g->count, out->empty, &out->empty_count);
	fill(&r.drain, drain, g->count, out->drain, &out->drain_count);
	crop_atomic(&r, &r.empty);
	r.dr = smaller(r.par, r.dr);
	crop_atomic(&r, &r.drain);
	r.par = crop_others(&r, &r.empty, r.par);
	crop_others(&r, &r.drain, smaller(r.par, r.dr));
	out->held = count_complete(&r) - out->empty_count - out->drain_count;
	free(r.empty.sizes);
	free(r.empty.order);
	free(r.drain.sizes);
	free(r.drain.order);
}

void drain_crop_fini(struct drain_crop *c)
{
	free(c->empty);
	free(c->drain);
	memset(c, 0, sizeof(*c));
}
