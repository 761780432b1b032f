/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_internal.h"

#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/mem.h"

struct ranked {
	struct drain_item item;
	int32_t priority;
	size_t number;
};

static int compare_ranked(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	return COMPARE(b->priority, a->priority) ?: COMPARE(a->number, b->number);
}

struct pass {
	const struct drain_schedule *s;
	struct drain_item *out; /* finished items */
	size_t done, placed;
	size_t failed; /* of out; SIZE_MAX: none */
	struct place_counts counts;
	bool over; /* the rest is skipped */
};

static void finish(struct pass *p, struct ranked *r, place_node to)
{
	r->item.to = to;
	r->number = SIZE_MAX; /* finished */
	if (to != PLACE_NONE) {
		place_put(p->s->place, r->item.pod, to);
		p->placed++;
	}
	p->out[p->done++] = r->item;
}

static bool is_late(struct pass *p)
{
	if (!p->over && p->s->out_of_time)
		p->over = p->s->out_of_time(p->s->context);
	return p->over;
}

static void try_hint(struct pass *p, struct ranked *r)
{
	place_node hint = r->item.hint;

	if (hint == PLACE_NONE || is_late(p) || (p->s->allowed && !p->s->allowed[hint]))
		return;
	if (place_check(p->s->place, r->item.pod, hint) == PLACE_FITS)
		finish(p, r, hint);
}

static void try_all(struct pass *p, struct ranked *r)
{
	struct place_counts counts;
	place_node to;

	if (is_late(p))
		return;
	to = place_choose(p->s->place, r->item.pod, p->s->order, PLACE_NONE, p->s->allowed,
			  &counts);
	if (to == PLACE_NONE && p->failed == SIZE_MAX) {
		p->failed = p->done;
		p->counts = counts;
		p->over = p->s->all_or_none;
	}
	finish(p, r, to);
}

static void place_group(struct pass *p, struct ranked *group, size_t count)
{
	for (size_t i = 0; i < count; i++)
		try_hint(p, &group[i]);
	for (size_t i = 0; i < count; i++)
		if (group[i].number != SIZE_MAX)
			try_all(p, &group[i]);
}

size_t drain_schedule_pods(const struct drain_schedule *s, struct drain_item *items, size_t count,
			   const struct drain_item **failed, struct place_counts *counts)
{
	struct ranked *ranked = mem_zalloc(count + 1, sizeof(*ranked));
	struct pass p = {.s = s, .out = items, .failed = SIZE_MAX};
	size_t end;

	for (size_t i = 0; i < count; i++) {
		const struct kube_pod *pod = place_pod_record(s->place, items[i].pod);

		ranked[i] = (struct ranked){items[i], pod->template->priority, i};
		ranked[i].item.to = PLACE_NONE;
	}
	qsort(ranked, count, sizeof(*ranked), compare_ranked);
	for (size_t at = 0; at < count; at = end) {
		for (end = at + 1; end < count && ranked[end].priority == ranked[at].priority;)
			end++;
		place_group(&p, &ranked[at], end - at);
	}
	/* Skipped items. */
	for (size_t i = 0; i < count; i++)
		if (ranked[i].number != SIZE_MAX)
			p.out[p.done++] = ranked[i].item;
	if (failed)
		*failed = p.failed == SIZE_MAX ? NULL : &items[p.failed];
	if (counts)
		*counts = p.counts;
	free(ranked);
	return p.placed;
}
