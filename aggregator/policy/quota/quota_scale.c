/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If all mins together exceed what the nodes have of a resource, no order of pods could keep the
 * guarantees. Each min then counts as its proportional part of the capacity:
 *
 *     guaranteed_i = min_i * capacity / sum of min       whole units, by the largest remainder
 *
 * Admission, borrowing and the protection of victims use this effective min. Corrected variant only,
 * since upstream has no capacity. Resources that no node has are left alone: a misspelt name, or nodes
 * that are still to come.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"

static int by_rest(const void *a, const void *b)
{
	const struct quota_slice *x = a, *y = b;

	if (x->rest != y->rest)
		return x->rest > y->rest ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

void quota_apportion(int64_t total, struct quota_slice *slices, size_t count)
{
	quota_amount weights = 0;
	int64_t left = total;

	for (size_t i = 0; i < count; i++)
		weights += slices[i].weight;
	assert(weights > 0);
	for (size_t i = 0; i < count; i++) {
		/* 63 bits of total times 63 of weight fit. */
		quota_amount exact = (quota_amount)total * slices[i].weight;

		slices[i].give = (int64_t)(exact / weights);
		slices[i].rest = exact % weights;
		left -= slices[i].give;
	}
	qsort(slices, count, sizeof(*slices), by_rest);
	for (size_t i = 0; left > 0; i++, left--)
		slices[i].give++;
}

static struct quota_row *find_row(struct quota_rows *r, const char *name)
{
	return (struct quota_row *)quota_rows_find(r, name);
}

static void count_as_named(struct quota_rows *r)
{
	for (size_t i = 0; i < r->count; i++)
		r->of[i].min = r->of[i].named;
}

static void scale_row(struct quota_book *b, struct quota_row *sum, int64_t capacity)
{
	struct quota_slice *slices = mem_zalloc(b->count + 1, sizeof(*slices));
	size_t count = 0;

	for (size_t i = 0; i < b->count; i++) {
		const struct quota_row *row = find_row(&b->sorted[i]->rows, sum->name);

		if (row && row->named > 0)
			slices[count++] =
				(struct quota_slice){.weight = quota_clamp(row->named), .at = i};
	}
	quota_apportion(capacity, slices, count);
	for (size_t i = 0; i < count; i++)
		find_row(&b->sorted[slices[i].at]->rows, sum->name)->min = slices[i].give;
	sum->min = capacity;
	free(slices);
}

/* The capacity, where more than that is promised; else -1. */
static int64_t short_of(const struct quota_book *b, const struct quota_row *sum)
{
	int64_t capacity;

	if (resources_find(&b->capacity, sum->name, &capacity) && sum->named > capacity)
		return capacity;
	return -1;
}

void quota_book_scale(struct quota_book *b)
{
	bool was = b->scaled;

	if (b->options.variant == QUOTA_UPSTREAM)
		return;
	b->scaled = false;
	for (size_t i = 0; i < b->sum.count; i++)
		b->scaled |= short_of(b, &b->sum.of[i]) >= 0;
	if (!was && !b->scaled)
		return;
	for (size_t i = 0; i < b->count; i++)
		count_as_named(&b->sorted[i]->rows);
	count_as_named(&b->sum);
	for (size_t i = 0; i < b->sum.count; i++)
		if (short_of(b, &b->sum.of[i]) >= 0)
			scale_row(b, &b->sum.of[i], short_of(b, &b->sum.of[i]));
}

void quota_book_set_capacity(struct quota_book *b, const struct resources *capacity)
{
	resources_fini(&b->capacity);
	resources_copy(&b->capacity, capacity);
	quota_book_scale(b);
}
