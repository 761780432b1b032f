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

static void add_name(struct textbuf *s, const struct quota *q, const char *namespace)
{
	textbuf_add(s, namespace);
	textbuf_add(s, q->name[0] ? "/" : " (the default one)");
	textbuf_add(s, q->name);
}

static void add_part(struct textbuf *s, const struct quota_verdict *v, int64_t amount,
		     const char *what)
{
	quota_add_amount(s, v->resource, amount);
	textbuf_add(s, what);
}

/* "cpu: 4.0 used + 1.0 nominated + 2.0 asked is over " */
static void add_sum(struct textbuf *s, const struct quota_verdict *v, const char *used)
{
	textbuf_add(s, v->resource);
	textbuf_add(s, ": ");
	add_part(s, v, v->used, used);
	if (v->nominated)
		add_part(s, v, v->nominated, " nominated + ");
	add_part(s, v, v->asked, " asked is over ");
}

/* The amount over the bound. */
static int64_t missing(const struct quota_verdict *v)
{
	return quota_clamp((quota_amount)v->used + v->nominated + v->asked - v->bound);
}

static void tell_never(struct textbuf *s, const struct quota *q, const struct quota_ask *ask,
		       const struct quota_verdict *v)
{
	textbuf_add(s, v->resource);
	textbuf_add(s, ": ");
	add_part(s, v, v->asked, " asked is alone over max ");
	add_part(s, v, v->bound, " of quota ");
	add_name(s, q, ask->namespace);
	textbuf_add(s, ": waiting does not help; ask for less, or raise max");
}

static void tell_max(struct textbuf *s, const struct quota *q, const struct quota_ask *ask,
		     const struct quota_verdict *v)
{
	add_sum(s, v, " used + ");
	textbuf_add(s, "max ");
	add_part(s, v, v->bound, " of quota ");
	add_name(s, q, ask->namespace);
	textbuf_add(s, ": wait for ");
	add_part(s, v, missing(v), " to be freed, or raise max");
}

/* Borrowers hold up a pod within its min: they must give back. */
static void tell_sum(struct textbuf *s, const struct quota *q, const struct quota_ask *ask,
		     const struct quota_verdict *v, const struct quota_row *sum, bool borrows)
{
	add_sum(s, v, " used by all quotas + ");
	if (sum && sum->min < sum->named) {
		add_part(s, v, v->bound, ", which is all that nodes have for their min of ");
		add_part(s, v, quota_clamp(sum->named), ": wait for ");
	} else {
		add_part(s, v, v->bound, ", the sum of their min: wait for ");
	}
	add_part(s, v, missing(v), " to be freed, ");
	if (!borrows)
		textbuf_add(s, "by itself or by preempting those who borrow, as quota ");
	else
		textbuf_add(s, "or raise a min; quota ");
	add_name(s, q, ask->namespace);
	textbuf_add(s, borrows ? " would borrow" : " is within its min");
}

/* q NULL: the namespace has no quota. */
static void tell_admitted(const struct quota_ask *ask, const struct quota *q,
			  struct quota_verdict *v)
{
	struct textbuf s;

	textbuf_start(&s, v->error.text, sizeof(v->error.text));
	if (!q) {
		textbuf_add(&s, "namespace ");
		textbuf_add(&s, ask->namespace);
		textbuf_add(&s, " has no quota");
		return;
	}
	if (v->reason == QUOTA_CRITICAL) {
		textbuf_add(&s, "priority ");
		textbuf_add_int(&s, ask->priority);
		textbuf_add(&s, " is critical: not held up by quota ");
		add_name(&s, q, ask->namespace);
		return;
	}
	textbuf_add(&s, "within max of quota ");
	add_name(&s, q, ask->namespace);
	textbuf_add(&s, " and the sum of all min");
}

/* --- the decision ----------------------------------------------------------------------------- */

static void admit(struct quota_verdict *v, enum quota_admission reason, const struct quota_ask *ask,
		  const struct quota *q)
{
	v->reason = reason;
	v->admitted = true;
	tell_admitted(ask, q, v);
}

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
	enum quota_variant variant = b->options.variant;
	struct quota_excess x;
	struct textbuf s;

	textbuf_start(&s, v->error.text, sizeof(v->error.text));
	if (variant == QUOTA_CORRECTED && asks_too_much(e, ask, &x)) {
		refuse(v, QUOTA_NEVER, &x, NULL);
		tell_never(&s, &e->quota, ask, v);
	} else if (quota_find_excess(b, e, QUOTA_MAX, c, &x)) {
		refuse(v, QUOTA_OVER_MAX, &x, ask->reserved);
		tell_max(&s, &e->quota, ask, v);
	} else if (quota_find_excess(b, e, QUOTA_SUM_OF_MIN, c, &x)) {
		refuse(v, QUOTA_OVER_SUM, &x, ask->reserved);
		tell_sum(&s, &e->quota, ask, v, quota_rows_find(&b->sum, x.name), borrows(b, e, c));
	} else {
		admit(v, QUOTA_ADMITTED, ask, &e->quota);
	}
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
