/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

/* 2: nothing is on it, 1: only what ends by itself, 0: something moves, or nobody knows. */
static int class_of(const struct drain_rank *r)
{
	if (!r->known || r->movable > 0)
		return 0;
	return r->waiting > 0 ? 1 : 2;
}

struct row {
	const double *scores;
	size_t width;
	const char *name; /* NULL: the number decides */
	size_t number;
};

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	int by_name;

	for (size_t i = 0; i < a->width; i++)
		if (a->scores[i] != b->scores[i])
			return a->scores[i] > b->scores[i] ? -1 : 1;
	by_name = a->name && b->name ? strcmp(a->name, b->name) : 0;
	if (by_name)
		return by_name;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* What is no number costs the most. */
static double cheap(double cost)
{
	return isnan(cost) ? -INFINITY : -cost;
}

static size_t score(enum drain_variant variant, const struct drain_rank *r,
		    double out[DRAIN_SCORES])
{
	size_t width = 0;

	out[width++] = class_of(r);
	if (variant == DRAIN_CORRECTED)
		out[width++] = !r->bursting;
	out[width++] = r->before;
	if (variant == DRAIN_CORRECTED) {
		out[width++] = r->known ? -(double)r->movable : -INFINITY;
		out[width++] = cheap(r->cpu_milli);
		out[width++] = cheap(r->working_set_bytes);
	}
	return width;
}

void drain_order(enum drain_variant variant, const struct drain_rank *ranks, size_t count,
		 size_t *out)
{
	double *scores = mem_zalloc(count + 1, DRAIN_SCORES * sizeof(*scores));
	struct row *rows = mem_zalloc(count + 1, sizeof(*rows));

	for (size_t i = 0; i < count; i++) {
		double *of = &scores[i * DRAIN_SCORES];
		const char *name = variant == DRAIN_CORRECTED ? ranks[i].node : NULL;

		rows[i] = (struct row){of, score(variant, &ranks[i], of), name, i};
	}
	qsort(rows, count, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < count; i++)
		out[i] = rows[i].number;
	free(rows);
	free(scores);
}
