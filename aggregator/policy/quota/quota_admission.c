/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a pod may start, and the numbers of a refusal.
 *
 *     no quota --> critical --> requests alone exceed max --> over max --> over the sum of mins --> admitted
 *      admitted     admitted       never (nothing helps)      refused        refused
 *
 * Max bounds the usage of the pod's namespace with the pods nominated for it. The sum of mins bounds
 * the usage of all quotas together, with nominated pods of other quotas that do not borrow. The
 * reservation of the asking pod is subtracted. A pod within its min that has a nominated node is not
 * held up by the sum (quota.h, promised).
 *
 * Claims are summed by resource first (struct quota_claims). A comparison looks at these resources in
 * the rows of one quota, or in the rows of the sums over all, and reports the first that is over:
 * standard resources in their order, then the others as they were asked for.
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
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"

const char *quota_admission_name(enum quota_admission g)
{
	static const char *const names[] = {
		[QUOTA_ADMITTED] = "admitted", [QUOTA_NO_QUOTA] = "noQuota",
		[QUOTA_CRITICAL] = "critical", [QUOTA_NEVER] = "never",
		[QUOTA_OVER_MAX] = "overMax",  [QUOTA_OVER_SUM] = "overSumMin",
	};

	return names[g];
}

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

enum part { PART_ASKED, PART_OWN, PART_TOTAL }; /* each counts for those before it, too */

static void add_amount(struct quota_claim *claim, enum part part, quota_amount amount)
{
	if (part == PART_ASKED)
		claim->asked += amount;
	if (part <= PART_OWN)
		claim->own += amount;
	claim->total += amount;
}

static void add_claims(struct quota_claims *c, enum quota_variant v, enum part part, int sign,
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

/* more NULL: no pod. Upstream does not count pods. */
static void claims_init(struct quota_claims *c, enum quota_variant v, const struct resources *more)
{
	c->all = !more;
	c->count = RESOURCE_STANDARD;
	c->room = QUOTA_CLAIMS_INLINE;
	c->of = c->inlined;
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		c->of[id] = (struct quota_claim){.name = resource_name((enum resource_id)id)};
	if (more)
		add_claims(c, v, PART_ASKED, 1, more);
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
	if (int_clamp(used + claimed) <= most)
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

/* --- what is claimed -------------------------------------------------------------------------- */

/*
 * Upstream ignores the nominated pod when it checks the min of its quota. Corrected: a pod that would
 * borrow has no claim before one within its min.
 */
static void add_nominated(const struct quota_book *b, const struct quota_ask *ask,
			  const struct quota_nominated *n, struct quota_claims *c)
{
	enum quota_variant v = b->options.variant;

	if (strcmp(n->uid, ask->uid) == 0)
		return;
	if (strcmp(n->namespace, ask->namespace) == 0) {
		if (n->priority >= ask->priority)
			add_claims(c, v, PART_OWN, 1, n->requests);
	} else if (quota_book_entry(b, n->namespace) &&
		   !quota_is_over(b, QUOTA_MIN, n->namespace,
				  v == QUOTA_UPSTREAM ? NULL : n->requests)) {
		add_claims(c, v, PART_TOTAL, 1, n->requests);
	}
}

void quota_claims_read(const struct quota_book *b, const struct quota_entry *e,
		       const struct quota_ask *ask, struct quota_claims *c)
{
	enum quota_variant v = b->options.variant;

	claims_init(c, v, ask->requests);
	for (size_t i = 0; i < ask->nominated_count; i++)
		add_nominated(b, ask, &ask->nominated[i], c);
	if (ask->reserved)
		add_claims(c, v, PART_OWN, -1, ask->reserved);
	if (v == QUOTA_CORRECTED && e && ask->promised && quota_claims_within_min(b, e, c))
		for (size_t i = 0; i < c->count; i++)
			c->of[i].floor = INT64_MAX;
}

/* --- texts ------------------------------------------------------------------------------------ */

/* Behind the namespace in the name of a quota: "team-a/elastic". */
static const char *slash_of(const struct quota *q)
{
	return q->name[0] ? "/" : " (the default one)";
}

static void admit(struct quota_verdict *v, enum quota_admission reason, const struct quota_ask *ask,
		  const struct quota *q)
{
	v->reason = reason;
	v->admitted = true;
	if (!q)
		error_set(&v->error, "namespace %s has no quota", ask->namespace);
	else if (reason == QUOTA_CRITICAL)
		error_set(&v->error, "priority %d is critical: not held up by quota %s%s%s",
			  ask->priority, ask->namespace, slash_of(q), q->name);
	else
		error_set(&v->error, "within max of quota %s%s%s and the sum of all min",
			  ask->namespace, slash_of(q), q->name);
}

static struct quota_text text_of(const struct quota_verdict *v, quota_amount amount)
{
	return quota_amount_text(v->resource, int_clamp(amount));
}

/* Borrowers hold up a pod within its min: they must give back. */
static void tell_refusal(struct quota_verdict *v, const struct quota_ask *ask,
			 const struct quota *q, const struct quota_row *sum, bool borrows)
{
	struct quota_text bound = text_of(v, v->bound), asked = text_of(v, v->asked);
	quota_amount missing = (quota_amount)v->used + v->nominated + v->asked - v->bound;
	bool scaled = sum && sum->min < sum->named;
	struct error claims;

	error_set(&claims, "%s: %s used%s + %s%s%s asked is over", v->resource,
		  text_of(v, v->used).text, v->reason == QUOTA_OVER_SUM ? " by all quotas" : "",
		  v->nominated ? text_of(v, v->nominated).text : "",
		  v->nominated ? " nominated + " : "", asked.text);
	if (v->reason == QUOTA_NEVER)
		error_set(
			&v->error,
			"%s: %s asked is alone over max %s of quota %s%s%s: waiting does not help; "
			"ask for less, or raise max",
			v->resource, asked.text, bound.text, ask->namespace, slash_of(q), q->name);
	else if (v->reason == QUOTA_OVER_MAX)
		error_set(&v->error,
			  "%s max %s of quota %s%s%s: wait for %s to be freed, or raise max",
			  claims.text, bound.text, ask->namespace, slash_of(q), q->name,
			  text_of(v, missing).text);
	else
		error_set(&v->error, "%s %s, %s%s: wait for %s to be freed, %squota %s%s%s%s",
			  claims.text, bound.text,
			  scaled ? "which is all that nodes have for their min of "
				 : "the sum of their min",
			  scaled ? text_of(v, sum->named).text : "", text_of(v, missing).text,
			  borrows ? "or raise a min; "
				  : "by itself or by preempting those who borrow, as ",
			  ask->namespace, slash_of(q), q->name,
			  borrows ? " would borrow" : " is within its min");
}

/* --- the decision ----------------------------------------------------------------------------- */

static void refuse(struct quota_verdict *v, enum quota_admission reason,
		   const struct quota_excess *x, const struct resources *reserved)
{
	int64_t taken = reserved ? quota_amount_of_pod(reserved, x->name) : 0;

	v->reason = reason;
	v->admitted = false;
	v->resource = x->name;
	v->used = int_clamp(x->used - taken);
	v->asked = int_clamp(x->asked);
	v->nominated = int_clamp(x->claimed + taken - x->asked);
	v->bound = int_clamp(x->bound);
}

/* Compares max with the requests of the pod alone. */
static bool asks_too_much(const struct quota_entry *e, const struct quota_ask *ask,
			  struct quota_excess *x)
{
	const char *name;
	int64_t amount;

	for (size_t at = 0; resources_next(ask->requests, &at, &name, &amount);) {
		const struct quota_row *row = quota_rows_find(&e->rows, name);

		if (!row || !row->in_max || amount <= 0 || amount <= row->max)
			continue;
		*x = (struct quota_excess){name, 0, amount, amount, row->max};
		return true;
	}
	return false;
}

/*
 * Whether the pod borrows, for the text of a refusal; it may while max and the sum of mins hold
 * (judge()). Corrected: the same test as in preemption.
 */
static bool borrows(const struct quota_book *b, const struct quota_entry *e,
		    const struct quota_claims *c)
{
	struct quota_excess x;

	if (b->options.variant == QUOTA_CORRECTED)
		return !quota_claims_within_min(b, e, c);
	return quota_find_excess(b, e, QUOTA_MIN, c, &x);
}

static void judge(const struct quota_book *b, const struct quota_entry *e,
		  const struct quota_ask *ask, const struct quota_claims *c,
		  struct quota_verdict *v)
{
	struct quota_excess x;

	if (b->options.variant == QUOTA_CORRECTED && asks_too_much(e, ask, &x)) {
		refuse(v, QUOTA_NEVER, &x, NULL);
	} else if (quota_find_excess(b, e, QUOTA_MAX, c, &x)) {
		refuse(v, QUOTA_OVER_MAX, &x, ask->reserved);
	} else if (quota_find_excess(b, e, QUOTA_SUM_OF_MIN, c, &x)) {
		refuse(v, QUOTA_OVER_SUM, &x, ask->reserved);
	} else {
		admit(v, QUOTA_ADMITTED, ask, &e->quota);
		return;
	}
	tell_refusal(v, ask, &e->quota, quota_rows_find(&b->sum, x.name), borrows(b, e, c));
}

void quota_admit(const struct quota_book *b, const struct quota_ask *ask, struct quota_verdict *v)
{
	const struct quota_entry *e = quota_book_entry(b, ask->namespace);
	struct quota_claims c;

	*v = (struct quota_verdict){.reason = QUOTA_ADMITTED};
	if (!e) {
		admit(v, QUOTA_NO_QUOTA, ask, NULL);
	} else if (b->options.variant == QUOTA_CORRECTED &&
		   ask->priority >= b->options.critical_priority) {
		admit(v, QUOTA_CRITICAL, ask, &e->quota);
	} else {
		quota_claims_read(b, e, ask, &c);
		judge(b, e, ask, &c, v);
		quota_claims_fini(&c);
	}
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
	claims_init(&c, b->options.variant, more);
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
	claims_init(&c, b->options.variant, more);
	within = quota_claims_within_min(b, e, &c);
	quota_claims_fini(&c);
	return within;
}

void quota_bounds(const struct quota_book *b, const char *namespace, const char *resource,
		  int64_t *min, int64_t *max)
{
	const struct quota_entry *e = quota_book_entry(b, namespace);
	const struct quota_row *row = quota_rows_find(&e->rows, resource);
	bool upstream = b->options.variant == QUOTA_UPSTREAM;
	size_t at = row ? (size_t)(row - e->rows.of) : RESOURCE_STANDARD;

	*min = row && !(upstream && at == RESOURCE_PODS) ? int_clamp(row->min) : 0;
	*max = INT64_MAX;
	if (upstream && at != RESOURCE_PODS)
		*max = int_clamp(upstream_max(&e->quota, row, at));
	else if (!upstream && row && row->in_max)
		*max = int_clamp(row->max);
}
