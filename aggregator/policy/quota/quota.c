/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparisons. Claims are summed by resource first (struct quota_claims). A comparison looks at
 * these resources in the rows of one quota, or in the rows of the sums over all, and reports the
 * first that is over: standard resources in their order, then the others as they were asked for.
 *
 *   over   used + claimed > bound      strictly; the left side is cut at INT64_MAX, so that a bound of INT64_MAX is none
 *
 *            upstream                                        corrected
 *   which    cpu, memory and ephemeral storage always, of    resources that the pod asks more than 0 of, and that its quota names
 *            the others those whose key somebody claims      or some quota guarantees; nothing asked: all of these
 *   max      missing: 0, of others none; all: none           missing: none
 *   min      missing: 0                                      missing: 0
 *   sum      every resource anybody uses or claims           those of the above that some quota guarantees
 */
#include "aggregator/policy/quota/quota.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"

/* --- claims ----------------------------------------------------------------------------------- */

/* The claim of that name, or count. */
static size_t find_claim(const struct quota_claims *c, const char *name)
{
	size_t i = 0;

	while (i < c->count && c->of[i].name != name && strcmp(c->of[i].name, name) != 0)
		i++;
	return i;
}

static struct quota_claim *put_claim(struct quota_claims *c, const char *name)
{
	size_t at = find_claim(c, name);
	struct quota_claim *old = c->of;

	if (at < c->count)
		return &c->of[at];
	if (c->count == c->room) {
		c->room *= 2;
		c->of = mem_realloc(old == c->inlined ? NULL : old, c->room * sizeof(*c->of));
		if (old == c->inlined)
			memcpy(c->of, old, c->count * sizeof(*c->of));
	}
	c->of[c->count] = (struct quota_claim){.name = name};
	return &c->of[c->count++];
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

/* --- comparisons ------------------------------------------------------------------------------ */

static const struct quota_row *row_of(const struct quota_rows *r, const struct quota_claims *c,
				      size_t claim)
{
	return claim < RESOURCE_STANDARD ? &r->of[claim] : quota_rows_find(r, c->of[claim].name);
}

/* Upstream never compares `pods`. */
static bool is_compared(const struct quota_book *b, enum quota_bound bound,
			const struct quota_row *row, const char *name, size_t at)
{
	if (b->options.variant == QUOTA_UPSTREAM)
		return at != RESOURCE_PODS;
	if (bound == QUOTA_MAX)
		return row && row->in_max;
	return (bound == QUOTA_MIN && quota_names_row(row)) ||
	       quota_is_guaranteed(quota_rows_find(&b->sum, name));
}

static quota_amount upstream_max(const struct quota *q, const struct quota_row *row, size_t at)
{
	if (row && row->in_max)
		return row->max;
	return q->has_max && at < RESOURCE_STANDARD ? 0 : INT64_MAX;
}

static bool is_over(const struct quota_book *b, const struct quota_entry *e, enum quota_bound bound,
		    const struct quota_claim *claim, const struct quota_row *row, size_t at,
		    struct quota_excess *out)
{
	quota_amount used = row ? row->used : 0, most = row ? row->min : 0;
	quota_amount claimed = bound == QUOTA_SUM_OF_MIN ? claim->total : claim->own;
	bool upstream = b->options.variant == QUOTA_UPSTREAM;

	if (!is_compared(b, bound, row, claim->name, at))
		return false;
	if (bound == QUOTA_MAX)
		most = upstream ? upstream_max(&e->quota, row, at) : row->max;
	else if (bound == QUOTA_SUM_OF_MIN && !upstream && claim->floor > most)
		most = claim->floor;
	if (quota_clamp(used + claimed) <= most)
		return false;
	*out = (struct quota_excess){claim->name, used, claim->asked, claimed, most};
	return true;
}

bool quota_find_excess(const struct quota_book *b, const struct quota_entry *e,
		       enum quota_bound bound, const struct quota_claims *c,
		       struct quota_excess *out)
{
	const struct quota_rows *rows = bound == QUOTA_SUM_OF_MIN ? &b->sum : &e->rows;
	bool upstream = b->options.variant == QUOTA_UPSTREAM;
	/* Upstream: the sum over all has every resource, and max only those that are claimed. */
	bool unclaimed = upstream && bound != QUOTA_MIN ? bound == QUOTA_SUM_OF_MIN : c->all;

	for (size_t i = 0; i < c->count; i++)
		if ((c->all || upstream || c->of[i].asked > 0) &&
		    is_over(b, e, bound, &c->of[i], row_of(rows, c, i), i, out))
			return true;
	for (size_t i = RESOURCE_STANDARD; unclaimed && i < rows->count; i++) {
		const struct quota_row *row = &rows->of[i];
		const struct quota_claim none = {.name = row->name};

		if ((row->in_used || !upstream) && find_claim(c, row->name) == c->count &&
		    is_over(b, e, bound, &none, row, i, out))
			return true;
	}
	return false;
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
		if ((row ? row->used : 0) + claim->own > (row ? row->min : 0))
			return false;
		any = true;
	}
	return any;
}

/* --- for others ------------------------------------------------------------------------------- */

bool quota_is_over(const struct quota_book *b, enum quota_bound bound, const char *namespace,
		   const struct resources *more)
{
	const struct quota_entry *e = quota_book_entry(b, namespace);
	struct quota_excess excess;
	struct quota_claims c;
	bool over;

	if (!e)
		return false;
	quota_claims_init(&c, b->options.variant, more);
	over = quota_find_excess(b, e, bound, &c, &excess);
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
