/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of one resource, in whole units:
 *
 *     guaranteed_i  min_i, or its part of the capacity in proportion to min, if all mins together
 *                   exceed the capacity
 *     borrowed_i    max(0, used_i - guaranteed_i)
 *     unused_i      max(0, guaranteed_i - used_i)
 *     lent_i        its part of min(sum of borrowed, sum of unused), in proportion to unused
 *     fair_i        min(wanted_i, guaranteed_i), and its part of the rest of all guarantees by
 *                   weight, up to wanted_i
 *
 * Parts are rounded by the largest remainder, so that they add up to the whole. fair_i is progressive
 * filling: each round offers every claimant its part by weight; claimants that need less get what they
 * need and leave, and the next round shares the rest; if none leaves, the parts are final. At most one
 * round for each claimant.
 */
#include "aggregator/policy/quota/quota_share.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"

#define WEIGHT_UNIT 1000
#define WEIGHT_MAX  1000000000LL /* thousandths */

/* --- parts ------------------------------------------------------------------------------------ */

static int by_rest(const void *a, const void *b)
{
	const struct quota_slice *x = a, *y = b;

	return COMPARE(y->rest, x->rest) ?: COMPARE(x->at, y->at);
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

static int64_t weight_of(const struct quota_claimant *c)
{
	double thousandths = c->weight > 0 ? round(c->weight * WEIGHT_UNIT) : 0;

	return thousandths >= (double)WEIGHT_MAX ? WEIGHT_MAX : (int64_t)thousandths;
}

/* Claimants that still need a part. */
static size_t find_needy(const struct quota_claimant *claimants, size_t count,
			 struct quota_slice *parts)
{
	size_t needy = 0;

	for (size_t i = 0; i < count; i++)
		if (claimants[i].share < claimants[i].need && weight_of(&claimants[i]) > 0)
			parts[needy++] =
				(struct quota_slice){.weight = weight_of(&claimants[i]), .at = i};
	return needy;
}

/* Gives claimants that need no more than their part what they need. False: there is none. */
static bool satisfy(struct quota_claimant *claimants, const struct quota_slice *parts, size_t count,
		    int64_t *left)
{
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		struct quota_claimant *c = &claimants[parts[i].at];

		if (parts[i].give < c->need)
			continue;
		c->share = c->need;
		*left -= c->need;
		any = true;
	}
	return any;
}

int64_t quota_share_out(int64_t total, struct quota_claimant *claimants, size_t count)
{
	struct quota_slice *parts = mem_alloc((count + 1) * sizeof(*parts));
	size_t needy;

	for (size_t i = 0; i < count; i++)
		claimants[i].share = 0;
	while (total > 0 && (needy = find_needy(claimants, count, parts)) > 0) {
		quota_apportion(total, parts, needy);
		if (satisfy(claimants, parts, needy, &total))
			continue;
		for (size_t i = 0; i < needy; i++)
			claimants[parts[i].at].share = parts[i].give;
		total = 0;
	}
	free(parts);
	return total;
}

/* --- one resource of all quotas --------------------------------------------------------------- */

/* Returns the min in the object. */
static int64_t read_row(const struct quota_book *b, const struct quota_entry *e,
			const char *resource, struct quota_share *out)
{
	const struct quota_row *row = quota_rows_find(&e->rows, resource);
	int64_t max;

	*out = (struct quota_share){0};
	if (b->options.variant == QUOTA_CORRECTED && !quota_names_row(row) &&
	    !quota_is_guaranteed(quota_rows_find(&b->sum, resource)))
		return 0;
	quota_bounds(b, e->quota.namespace, resource, &out->min, &max);
	out->min = int_max(0, out->min);
	out->used = row ? int_max(0, int_clamp(row->used)) : 0;
	out->wanted = int_clamp((quota_amount)out->used +
				int_max(0, resources_amount(&e->quota.pending, resource)));
	out->wanted = int_min(out->wanted, int_max(max, out->used));
	if (b->options.variant == QUOTA_CORRECTED)
		return row ? int_max(0, int_clamp(row->named)) : 0;
	return out->min;
}

/* Upstream admits up to the sum of mins all the same. */
static void tell_alarm(const struct quota_book *b, const char *resource,
		       struct quota_share_sum *sum)
{
	int64_t capacity;

	if (!resources_find(&b->capacity, resource, &capacity) || sum->min <= capacity)
		return;
	error_set(&sum->alarm,
		  "%s: quotas guarantee %s together, and the cluster has %s: %s; lower some, or "
		  "add nodes",
		  resource, quota_amount_text(resource, sum->min).text,
		  quota_amount_text(resource, capacity).text,
		  b->options.variant == QUOTA_CORRECTED
			  ? "every min counts as a part of that"
			  : "pods are admitted up to the sum, and then wait for a node");
}

static void read_loans(struct quota_share *out, size_t count, struct quota_share_sum *sum)
{
	struct quota_slice *parts = mem_zalloc(count + 1, sizeof(*parts));
	quota_amount borrowed = 0, unused = 0, used = 0;

	for (size_t i = 0; i < count; i++) {
		out[i].borrowed = int_max(0, out[i].used - out[i].min);
		parts[i] = (struct quota_slice){.weight = int_max(0, out[i].min - out[i].used),
						.at = i};
		borrowed += out[i].borrowed;
		unused += parts[i].weight;
		used += out[i].used;
	}
	sum->borrowed = int_clamp(borrowed);
	sum->unused = int_clamp(unused);
	sum->used = int_clamp(used);
	sum->lent = int_min(sum->borrowed, sum->unused);
	if (sum->lent > 0)
		quota_apportion(sum->lent, parts, count);
	for (size_t i = 0; i < count; i++)
		out[parts[i].at].lent = parts[i].give;
	free(parts);
}

static void read_fair(const struct quota_book *b, struct quota_share *out, size_t count)
{
	struct quota_claimant *claimants = mem_zalloc(count + 1, sizeof(*claimants));
	quota_amount left = 0;

	for (size_t i = 0; i < count; i++) {
		out[i].fair = int_min(out[i].wanted, out[i].min);
		claimants[i].weight = b->sorted[i]->quota.weight;
		claimants[i].need = out[i].wanted - out[i].fair;
		left += out[i].min - out[i].fair;
	}
	quota_share_out(int_clamp(left), claimants, count);
	for (size_t i = 0; i < count; i++)
		out[i].fair += claimants[i].share;
	free(claimants);
}

void quota_share_read(const struct quota_book *b, const char *resource, struct quota_share *out,
		      struct quota_share_sum *sum)
{
	quota_amount min = 0, guaranteed = 0;

	*sum = (struct quota_share_sum){0};
	for (size_t i = 0; i < b->count; i++) {
		min += read_row(b, b->sorted[i], resource, &out[i]);
		guaranteed += out[i].min;
	}
	sum->min = int_clamp(min);
	sum->guaranteed = int_clamp(guaranteed);
	tell_alarm(b, resource, sum);
	read_loans(out, b->count, sum);
	read_fair(b, out, b->count);
}
