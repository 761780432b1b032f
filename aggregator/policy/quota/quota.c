/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparisons. What pods claim is summed by resource first (struct quota_claims); a comparison
 * then looks at those resources in one quota's rows, or in the rows of the sums over all, and tells
 * the first that is over: the standard resources in their order, then the others as they were asked
 * for.
 *
 *   over   used + claimed > bound      strictly; the left side is cut at INT64_MAX, so that a bound of INT64_MAX is none
 *
 *            upstream                                        corrected
 *   which    cpu, memory and ephemeral storage always, of    those that the pod asks more than 0 of, and that its quota names
 *            the others those whose key somebody claims      or some quota guarantees; nothing asked: all of those
 *   max      missing: 0, of others none; all: none           missing: none
 *   min      missing: 0                                      missing: 0
 *   sum      every resource anybody uses or claims           those of the above that some quota guarantees
 */
#include "aggregator/policy/quota/quota.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"

/* --- claims ----------------------------------------------------------------------------------- */

static struct quota_claim *claim_of(struct quota_claims *c, const char *name)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->of[i].name == name || strcmp(c->of[i].name, name) == 0)
			return &c->of[i];
	return NULL;
}

static struct quota_claim *put_claim(struct quota_claims *c, const char *name)
{
	struct quota_claim *claim = claim_of(c, name), *old = c->of;

	if (claim)
		return claim;
	if (c->count == c->room) {
		c->room *= 2;
		c->of = mem_realloc(old == c->inlined ? NULL : old, c->room * sizeof(*c->of));
		if (old == c->inlined)
			memcpy(c->of, old, c->count * sizeof(*c->of));
	}
	claim = &c->of[c->count++];
	*claim = (struct quota_claim){.name = name};
	return claim;
}

static void add_amount(struct quota_claim *claim, enum quota_part part, quota_amount amount)
{
	if (part == QUOTA_ASKED)
		claim->asked += amount;
	if (part <= QUOTA_OWN)
		claim->own += amount;
	claim->total += amount;
}

void quota_claims_add(struct quota_claims *c, enum quota_variant v, enum quota_part part, int sign,
		      const struct resources *r)
{
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		add_amount(&c->of[id], part, (quota_amount)r->of[id] * sign);
	if (v == QUOTA_CORRECTED && !resources_has(r, RESOURCE_PODS))
		add_amount(&c->of[RESOURCE_PODS], part, sign);
	for (uint32_t i = 0; i < r->extended_count; i++)
		add_amount(put_claim(c, r->extended[i].name), part,
			   (quota_amount)r->extended[i].amount * sign);
}

void quota_claims_init(struct quota_claims *c, enum quota_variant v, const struct resources *more)
{
	c->all = !more;
	c->count = RESOURCE_STANDARD;
	c->room = QUOTA_CLAIMS_INLINE;
	c->of = c->inlined;
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		c->of[id] = (struct quota_claim){.name = resource_name((enum resource_id)id)};
	if (more)
		quota_claims_add(c, v, QUOTA_ASKED, 1, more);
}

void quota_claims_fini(struct quota_claims *c)
{
	if (c->of != c->inlined)
		free(c->of);
}

/* --- one resource ----------------------------------------------------------------------------- */

static bool is_over(const char *name, quota_amount used, quota_amount asked, quota_amount claimed,
		    quota_amount bound, struct quota_excess *out)
{
	if (quota_clamp(used + claimed) <= bound)
		return false;
	*out = (struct quota_excess){name, used, asked, claimed, bound};
	return true;
}

/* Upstream compares these always, and never `pods`. */
static bool is_core(size_t id)
{
	return id == RESOURCE_CPU || id == RESOURCE_MEMORY || id == RESOURCE_EPHEMERAL_STORAGE;
}

static const struct quota_row *row_of(const struct quota_rows *r, const struct quota_claims *c,
				      size_t claim)
{
	return claim < RESOURCE_STANDARD ? &r->of[claim] : quota_rows_find(r, c->of[claim].name);
}

static quota_amount used_of(const struct quota_row *row)
{
	return row ? row->used : 0;
}

/* --- max -------------------------------------------------------------------------------------- */

static quota_amount upstream_max(const struct quota *q, const struct quota_row *row, size_t claim)
{
	if (row && row->in_max)
		return row->max;
	return q->has_max && claim < RESOURCE_STANDARD ? 0 : INT64_MAX;
}

static bool upstream_over_max(const struct quota_entry *e, const struct quota_claims *c,
			      struct quota_excess *out)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct quota_claim *claim = &c->of[i];
		const struct quota_row *row = row_of(&e->rows, c, i);

		if ((is_core(i) || i >= RESOURCE_STANDARD) &&
		    is_over(claim->name, used_of(row), claim->asked, claim->own,
			    upstream_max(&e->quota, row, i), out))
			return true;
	}
	return false;
}

static bool corrected_over_max(const struct quota_entry *e, const struct quota_claims *c,
			       struct quota_excess *out)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct quota_claim *claim = &c->of[i];
		const struct quota_row *row = row_of(&e->rows, c, i);

		if (row && row->in_max && claim->asked > 0 &&
		    is_over(claim->name, row->used, claim->asked, claim->own, row->max, out))
			return true;
	}
	return false;
}

static bool used_over_max(const struct quota_entry *e, struct quota_excess *out)
{
	for (size_t i = 0; i < e->rows.count; i++) {
		const struct quota_row *row = &e->rows.of[i];

		if (row->in_max && is_over(row->name, row->used, 0, 0, row->max, out))
			return true;
	}
	return false;
}

bool quota_excess_of_max(enum quota_variant v, const struct quota_entry *e,
			 const struct quota_claims *c, struct quota_excess *out)
{
	if (v == QUOTA_UPSTREAM)
		return upstream_over_max(e, c, out);
	return c->all ? used_over_max(e, out) : corrected_over_max(e, c, out);
}

/* --- min -------------------------------------------------------------------------------------- */

static bool counts_for_min(const struct quota_book *b, const struct quota_claims *c,
			   const struct quota_row *row, size_t at)
{
	if (b->options.variant == QUOTA_UPSTREAM)
		return is_core(at) || at >= RESOURCE_STANDARD;
	return c->of[at].asked > 0 &&
	       (quota_names_row(row) || quota_is_guaranteed(row_of(&b->sum, c, at)));
}

static bool claims_over_min(const struct quota_book *b, const struct quota_entry *e,
			    const struct quota_claims *c, struct quota_excess *out)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct quota_claim *claim = &c->of[i];
		const struct quota_row *row = row_of(&e->rows, c, i);

		if (counts_for_min(b, c, row, i) && is_over(claim->name, used_of(row), claim->asked,
							    claim->own, row ? row->min : 0, out))
			return true;
	}
	return false;
}

/* Whether the row of this place is compared where nothing is asked. */
static bool counts_alone(const struct quota_book *b, const struct quota_row *row, size_t at)
{
	if (b->options.variant == QUOTA_UPSTREAM)
		return is_core(at) || (at >= RESOURCE_STANDARD && row->in_used);
	return quota_names_row(row) || quota_is_guaranteed(quota_rows_find(&b->sum, row->name));
}

static bool used_over_min(const struct quota_book *b, const struct quota_entry *e,
			  struct quota_excess *out)
{
	for (size_t i = 0; i < e->rows.count; i++) {
		const struct quota_row *row = &e->rows.of[i];

		if (counts_alone(b, row, i) && is_over(row->name, row->used, 0, 0, row->min, out))
			return true;
	}
	return false;
}

bool quota_excess_of_min(const struct quota_book *b, const struct quota_entry *e,
			 const struct quota_claims *c, struct quota_excess *out)
{
	return c->all ? used_over_min(b, e, out) : claims_over_min(b, e, c, out);
}

bool quota_claims_within_min(const struct quota_book *b, const struct quota_entry *e,
			     const struct quota_claims *c)
{
	bool any = false;

	for (size_t i = 0; i < c->count; i++) {
		const struct quota_claim *claim = &c->of[i];
		const struct quota_row *row = row_of(&e->rows, c, i);

		if (claim->asked <= 0 || !quota_is_guaranteed(row_of(&b->sum, c, i)))
			continue;
		if (used_of(row) + claim->own > (row ? row->min : 0))
			return false;
		any = true;
	}
	return any;
}

/* --- the sum of mins -------------------------------------------------------------------------- */

/* All that anybody uses, with what is claimed of it, and what is claimed that nobody uses yet. */
static bool upstream_over_sum(const struct quota_rows *sum, const struct quota_claims *c,
			      struct quota_excess *out)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct quota_claim *claim = &c->of[i];
		const struct quota_row *row = row_of(sum, c, i);

		if ((is_core(i) || i >= RESOURCE_STANDARD) &&
		    is_over(claim->name, used_of(row), claim->asked, claim->total,
			    row ? row->min : 0, out))
			return true;
	}
	for (size_t i = RESOURCE_STANDARD; i < sum->count; i++) {
		const struct quota_row *row = &sum->of[i];

		if (row->in_used && row->used > row->min &&
		    !claim_of((struct quota_claims *)c, row->name) &&
		    is_over(row->name, row->used, 0, 0, row->min, out))
			return true;
	}
	return false;
}

static bool corrected_over_sum(const struct quota_rows *sum, const struct quota_claims *c,
			       struct quota_excess *out)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct quota_claim *claim = &c->of[i];
		const struct quota_row *row = row_of(sum, c, i);

		if (claim->asked > 0 && quota_is_guaranteed(row) &&
		    is_over(claim->name, row->used, claim->asked, claim->total,
			    row->min > claim->floor ? row->min : claim->floor, out))
			return true;
	}
	return false;
}

static bool used_over_sum(const struct quota_rows *sum, struct quota_excess *out)
{
	for (size_t i = 0; i < sum->count; i++) {
		const struct quota_row *row = &sum->of[i];

		if (quota_is_guaranteed(row) && is_over(row->name, row->used, 0, 0, row->min, out))
			return true;
	}
	return false;
}

bool quota_excess_of_sum(const struct quota_book *b, const struct quota_claims *c,
			 struct quota_excess *out)
{
	if (b->options.variant == QUOTA_UPSTREAM)
		return upstream_over_sum(&b->sum, c, out);
	return c->all ? used_over_sum(&b->sum, out) : corrected_over_sum(&b->sum, c, out);
}

/* --- for others ------------------------------------------------------------------------------- */

bool quota_over_max(const struct quota_book *b, const char *namespace, const struct resources *more)
{
	const struct quota_entry *e = quota_book_entry(b, namespace);
	struct quota_excess excess;
	struct quota_claims c;
	bool over;

	if (!e)
		return false;
	quota_claims_init(&c, b->options.variant, more);
	over = quota_excess_of_max(b->options.variant, e, &c, &excess);
	quota_claims_fini(&c);
	return over;
}

bool quota_within_min(const struct quota_book *b, const char *namespace,
		      const struct resources *more)
{
	const struct quota_entry *e = quota_book_entry(b, namespace);
	struct quota_claims c;
	bool within;

	if (!e)
		return false;
	quota_claims_init(&c, b->options.variant, more);
	within = quota_claims_within_min(b, e, &c);
	quota_claims_fini(&c);
	return within;
}

bool quota_over_min(const struct quota_book *b, const char *namespace, const struct resources *more)
{
	const struct quota_entry *e = quota_book_entry(b, namespace);
	struct quota_excess excess;
	struct quota_claims c;
	bool over;

	if (!e)
		return false;
	quota_claims_init(&c, b->options.variant, more);
	over = quota_excess_of_min(b, e, &c, &excess);
	quota_claims_fini(&c);
	return over;
}

bool quota_over_sum(const struct quota_book *b, const char *namespace, const struct resources *more)
{
	const struct quota_entry *e = quota_book_entry(b, namespace);
	struct quota_excess excess;
	struct quota_claims c;
	bool over;

	if (!e)
		return false;
	quota_claims_init(&c, b->options.variant, more);
	over = quota_excess_of_sum(b, &c, &excess);
	quota_claims_fini(&c);
	return over;
}

bool quota_bounds(const struct quota_book *b, const char *namespace, const char *resource,
		  int64_t *min, int64_t *max)
{
	const struct quota_entry *e = quota_book_entry(b, namespace);
	const struct quota_row *row = e ? quota_rows_find(&e->rows, resource) : NULL;
	bool upstream = b->options.variant == QUOTA_UPSTREAM;
	size_t at = row ? (size_t)(row - e->rows.of) : RESOURCE_STANDARD;

	if (!e)
		return false;
	*min = row && !(upstream && at == RESOURCE_PODS) ? quota_clamp(row->min) : 0;
	*max = INT64_MAX;
	if (upstream && at != RESOURCE_PODS)
		*max = quota_clamp(upstream_max(&e->quota, row, at));
	else if (!upstream && row && row->in_max)
		*max = quota_clamp(row->max);
	return true;
}
