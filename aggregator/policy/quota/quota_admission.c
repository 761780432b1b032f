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
 */
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

/* --- what is claimed -------------------------------------------------------------------------- */

/*
 * Upstream: without the nominated pod. Corrected: with it, since a pod that would borrow has no
 * claim before one within its min.
 */
static bool is_over_min(const struct quota_book *b, const struct quota_entry *e,
			const struct resources *more)
{
	enum quota_variant v = b->options.variant;
	struct quota_excess excess;
	struct quota_claims c;
	bool over;

	quota_claims_init(&c, v, v == QUOTA_UPSTREAM ? NULL : more);
	over = quota_find_excess(b, e, QUOTA_MIN, &c, &excess);
	quota_claims_fini(&c);
	return over;
}

static void add_nominated(const struct quota_book *b, const struct quota_ask *ask,
			  const struct quota_nominated *n, struct quota_claims *c)
{
	enum quota_variant v = b->options.variant;
	const struct quota_entry *e;

	if (strcmp(n->uid, ask->uid) == 0)
		return;
	if (strcmp(n->namespace, ask->namespace) == 0) {
		if (n->priority >= ask->priority)
			quota_claims_add(c, v, QUOTA_OWN, 1, n->requests);
		return;
	}
	e = quota_book_entry(b, n->namespace);
	if (e && !is_over_min(b, e, n->requests))
		quota_claims_add(c, v, QUOTA_TOTAL, 1, n->requests);
}

void quota_claims_read(const struct quota_book *b, const struct quota_entry *e,
		       const struct quota_ask *ask, struct quota_claims *c)
{
	enum quota_variant v = b->options.variant;

	quota_claims_init(c, v, ask->requests);
	for (size_t i = 0; i < ask->nominated_count; i++)
		add_nominated(b, ask, &ask->nominated[i], c);
	if (ask->reserved)
		quota_claims_add(c, v, QUOTA_OWN, -1, ask->reserved);
	if (v == QUOTA_CORRECTED && e && ask->promised && quota_claims_within_min(b, e, c))
		for (size_t i = 0; i < c->count; i++)
			c->of[i].floor = INT64_MAX;
}

/* --- texts ------------------------------------------------------------------------------------ */

/* "team-a/elastic" */
static void write_name(const struct quota *q, const char *namespace, struct error *out)
{
	error_set(out, "%s%s%s", namespace, q->name[0] ? "/" : " (the default one)", q->name);
}

static void admit(struct quota_verdict *v, enum quota_admission reason, const struct quota_ask *ask,
		  const struct quota *q)
{
	struct error name;

	v->reason = reason;
	v->admitted = true;
	if (!q) {
		error_set(&v->error, "namespace %s has no quota", ask->namespace);
		return;
	}
	write_name(q, ask->namespace, &name);
	if (reason == QUOTA_CRITICAL)
		error_set(&v->error, "priority %d is critical: not held up by quota %s",
			  ask->priority, name.text);
	else
		error_set(&v->error, "within max of quota %s and the sum of all min", name.text);
}

/* Borrowers hold up a pod within its min: they must give back. */
static void tell_sum(struct quota_verdict *v, const char *claims, const char *name,
		     const struct quota_row *sum, bool borrows)
{
	char bound[QUOTA_TEXT_MAX], named[QUOTA_TEXT_MAX], missing[QUOTA_TEXT_MAX];
	bool scaled = sum && sum->min < sum->named;

	quota_amount_text(v->resource, v->bound, bound);
	quota_amount_text(v->resource, scaled ? quota_clamp(sum->named) : 0, named);
	quota_amount_text(v->resource,
			  quota_clamp((quota_amount)v->used + v->nominated + v->asked - v->bound),
			  missing);
	error_set(&v->error, "%s %s, %s%s: wait for %s to be freed, %squota %s%s", claims, bound,
		  scaled ? "which is all that nodes have for their min of "
			 : "the sum of their min",
		  scaled ? named : "", missing,
		  borrows ? "or raise a min; " : "by itself or by preempting those who borrow, as ",
		  name, borrows ? " would borrow" : " is within its min");
}

/* "cpu: 4.0 used + 1.0 nominated + 2.0 asked is over" */
static void write_claims(const struct quota_verdict *v, struct error *out)
{
	char used[QUOTA_TEXT_MAX], nominated[QUOTA_TEXT_MAX], asked[QUOTA_TEXT_MAX];

	quota_amount_text(v->resource, v->used, used);
	quota_amount_text(v->resource, v->nominated, nominated);
	quota_amount_text(v->resource, v->asked, asked);
	error_set(out, "%s: %s used%s + %s%s%s asked is over", v->resource, used,
		  v->reason == QUOTA_OVER_SUM ? " by all quotas" : "",
		  v->nominated ? nominated : "", v->nominated ? " nominated + " : "", asked);
}

static void tell_max(struct quota_verdict *v, const char *claims, const char *name)
{
	char bound[QUOTA_TEXT_MAX], asked[QUOTA_TEXT_MAX], missing[QUOTA_TEXT_MAX];

	quota_amount_text(v->resource, v->bound, bound);
	quota_amount_text(v->resource, v->asked, asked);
	quota_amount_text(v->resource,
			  quota_clamp((quota_amount)v->used + v->nominated + v->asked - v->bound),
			  missing);
	if (v->reason == QUOTA_NEVER)
		error_set(&v->error,
			  "%s: %s asked is alone over max %s of quota %s: waiting does not help; "
			  "ask for less, or raise max",
			  v->resource, asked, bound, name);
	else
		error_set(&v->error, "%s max %s of quota %s: wait for %s to be freed, or raise max",
			  claims, bound, name, missing);
}

/* --- the decision ----------------------------------------------------------------------------- */

static void refuse(struct quota_verdict *v, enum quota_admission reason,
		   const struct quota_excess *x, const struct resources *reserved)
{
	int64_t taken = reserved ? quota_amount_of_pod(reserved, x->name) : 0;

	v->reason = reason;
	v->admitted = false;
	v->resource = x->name;
	v->used = quota_clamp(x->used - taken);
	v->asked = quota_clamp(x->asked);
	v->nominated = quota_clamp(x->claimed + taken - x->asked);
	v->bound = quota_clamp(x->bound);
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

/* Corrected: the same test as in preemption. */
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
	struct error claims, name;
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
	write_name(&e->quota, ask->namespace, &name);
	write_claims(v, &claims);
	if (v->reason == QUOTA_OVER_SUM)
		tell_sum(v, claims.text, name.text, quota_rows_find(&b->sum, x.name),
			 borrows(b, e, c));
	else
		tell_max(v, claims.text, name.text);
}

void quota_admit(const struct quota_book *b, const struct quota_ask *ask, struct quota_verdict *v)
{
	const struct quota_entry *e = quota_book_entry(b, ask->namespace);
	struct quota_claims c;

	*v = (struct quota_verdict){.reason = QUOTA_ADMITTED};
	if (!e) {
		admit(v, QUOTA_NO_QUOTA, ask, NULL);
		return;
	}
	if (b->options.variant == QUOTA_CORRECTED &&
	    ask->priority >= b->options.critical_priority) {
		admit(v, QUOTA_CRITICAL, ask, &e->quota);
		return;
	}
	quota_claims_read(b, e, ask, &c);
	judge(b, e, ask, &c, v);
	quota_claims_fini(&c);
}
