/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods are not borrowed from anybody in particular, so what a quota has lent is a share: of each resource
 *
 *   lent = unused * min(all borrowed, all unused) / all unused        of the quota, of all quotas
 *
 * which sums up to what is borrowed, but for rounding. Only resources that a quota names are looked at; what is not in min has a min of 0.
 */
#include "aggregator/policy/quota/balance.h"

#include <string.h>

#include "aggregator/policy/quota/quota_text.h"

bool quota_names(const struct quota *q, const char *resource)
{
	int64_t amount;

	return resources_find(&q->min, resource, &amount) ||
	       resources_find(&q->max, resource, &amount);
}

/* 0 where there is no such key. */
static int64_t amount_of(const struct resources *r, const char *name)
{
	int64_t amount = 0;

	resources_find(r, name, &amount);
	return amount;
}

static void add_named(struct resources *to, const char *name, int64_t amount)
{
	int64_t sum, before = amount_of(to, name);

	if (__builtin_add_overflow(before, amount, &sum))
		sum = INT64_MAX;
	resources_set_named(to, name, sum);
}

/* --- amounts */

/* Calls back for every resource that the quota names, once. */
typedef void visit(const struct quota *q, const char *name, void *context);

static void each_named(const struct quota *q, visit *call, void *context)
{
	const char *name;
	int64_t amount, other;

	for (size_t at = 0; resources_next(&q->min, &at, &name, &amount);)
		call(q, name, context);
	for (size_t at = 0; resources_next(&q->max, &at, &name, &amount);)
		if (!resources_find(&q->min, name, &other))
			call(q, name, context);
}

static void add_totals(const struct quota *q, const char *name, void *context)
{
	int64_t min = amount_of(&q->min, name), used = amount_of(&q->used, name);
	struct quota_totals *t = context;

	add_named(&t->min, name, min);
	add_named(&t->used, name, used);
	add_named(&t->pending, name, amount_of(&q->pending, name));
	add_named(&t->borrowed, name, used > min ? used - min : 0);
	add_named(&t->unused, name, used < min ? min - used : 0);
}

void quota_totals_of(const struct quota_book *b, struct quota_totals *t)
{
	*t = (struct quota_totals){.min = RESOURCES_NONE};
	for (size_t i = 0; i < quota_book_count(b); i++)
		each_named(quota_book_at(b, i), add_totals, t);
}

void quota_totals_fini(struct quota_totals *t)
{
	resources_fini(&t->min);
	resources_fini(&t->used);
	resources_fini(&t->pending);
	resources_fini(&t->borrowed);
	resources_fini(&t->unused);
}

struct balancing {
	const struct quota_totals *totals;
	struct quota_balance *out;
};

static void balance(const struct quota *q, const char *name, void *context)
{
	const struct balancing *job = context;
	int64_t min = amount_of(&q->min, name), used = amount_of(&q->used, name);
	int64_t all_borrowed = amount_of(&job->totals->borrowed, name),
		all_unused = amount_of(&job->totals->unused, name);
	int64_t given = all_borrowed < all_unused ? all_borrowed : all_unused;

	resources_set_named(&job->out->borrowed, name, used > min ? used - min : 0);
	resources_set_named(&job->out->lent, name,
			    used < min ? (int64_t)((__int128)(min - used) * given / all_unused)
				       : 0);
}

void quota_balance_of(const struct quota *q, const struct quota_totals *t, struct quota_balance *b)
{
	struct balancing job = {t, b};

	*b = (struct quota_balance){.borrowed = RESOURCES_NONE};
	each_named(q, balance, &job);
}

void quota_balance_fini(struct quota_balance *b)
{
	resources_fini(&b->borrowed);
	resources_fini(&b->lent);
}

/* --- states */

const char *quota_state_name(enum quota_state s)
{
	static const char *const names[QUOTA_STATES] = {
		[QUOTA_STATE_OVER_MAX] = "overMax", [QUOTA_STATE_STARVED] = "starved",
		[QUOTA_STATE_WAITING] = "waiting",  [QUOTA_STATE_BORROWING] = "borrowing",
		[QUOTA_STATE_LENDING] = "lending",  [QUOTA_STATE_UNUSED] = "unused",
		[QUOTA_STATE_WITHIN] = "within",
	};

	return names[s];
}

enum quota_state quota_state_of(const struct quota *q, const struct quota_balance *b,
				const char *resource)
{
	int64_t min = amount_of(&q->min, resource), used = amount_of(&q->used, resource), max;

	if (resources_find(&q->max, resource, &max) && used > max)
		return QUOTA_STATE_OVER_MAX;
	if (amount_of(&q->pending, resource) > 0)
		return used < min ? QUOTA_STATE_STARVED : QUOTA_STATE_WAITING;
	if (used > min)
		return QUOTA_STATE_BORROWING;
	if (amount_of(&b->lent, resource) > 0)
		return QUOTA_STATE_LENDING;
	return min > 0 && used == 0 ? QUOTA_STATE_UNUSED : QUOTA_STATE_WITHIN;
}

struct numbers {
	char used[QUOTA_TEXT_MAX], min[QUOTA_TEXT_MAX], max[QUOTA_TEXT_MAX],
		pending[QUOTA_TEXT_MAX], borrowed[QUOTA_TEXT_MAX], lent[QUOTA_TEXT_MAX];
};

static void write_numbers(const struct quota *q, const struct quota_balance *b, const char *name,
			  struct numbers *n)
{
	quota_amount_text(name, amount_of(&q->used, name), n->used);
	quota_amount_text(name, amount_of(&q->min, name), n->min);
	quota_amount_text(name, amount_of(&q->max, name), n->max);
	quota_amount_text(name, amount_of(&q->pending, name), n->pending);
	quota_amount_text(name, amount_of(&b->borrowed, name), n->borrowed);
	quota_amount_text(name, amount_of(&b->lent, name), n->lent);
}

void quota_state_tell(const struct quota *q, const struct quota_balance *b, const char *resource,
		      struct reason *why)
{
	struct numbers n;

	write_numbers(q, b, resource, &n);
	switch (quota_state_of(q, b, resource)) {
	case QUOTA_STATE_OVER_MAX:
		reason_set(why,
			   "%.100s: %s is used of max %s; no pod that asks for it starts until "
			   "others have ended",
			   resource, n.used, n.max);
		break;
	case QUOTA_STATE_STARVED:
		reason_set(why,
			   "%.100s: pending pods ask for %s, and only %s is used of the "
			   "guaranteed %s",
			   resource, n.pending, n.used, n.min);
		break;
	case QUOTA_STATE_WAITING:
		reason_set(why,
			   "%.100s: pending pods ask for %s beyond the guaranteed %s, of which %s "
			   "is used: they wait for what others leave",
			   resource, n.pending, n.min, n.used);
		break;
	case QUOTA_STATE_BORROWING:
		reason_set(why,
			   "%.100s: %s is used, %s of it borrowed beyond the guaranteed %s: others "
			   "may take that back",
			   resource, n.used, n.borrowed, n.min);
		break;
	case QUOTA_STATE_LENDING:
		reason_set(
			why,
			"%.100s: %s is used of the guaranteed %s, and others have %s of the rest",
			resource, n.used, n.min, n.lent);
		break;
	case QUOTA_STATE_UNUSED:
		reason_set(why, "%.100s: nothing is used of the guaranteed %s", resource, n.min);
		break;
	default:
		reason_set(why, "%.100s: %s is used of the guaranteed %s", resource, n.used, n.min);
		break;
	}
}
