/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares are computed for one resource and all quotas at a time (quota_share.h): O(resources *
 * quotas) for a list. The answer for a quota has the resources that it names, and guaranteed ones
 * that it uses or waits for; a resource that min does not name has a min of 0.
 */
#include "aggregator/policy/quota/balance.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"
#include "shared/mem.h"

bool quota_names(const struct quota *q, const char *resource)
{
	int64_t amount;

	return resources_find(&q->min, resource, &amount) ||
	       resources_find(&q->max, resource, &amount);
}

static void add_named(struct resources *to, const char *name, quota_amount amount)
{
	resources_set_named(to, name, int_clamp(resources_amount(to, name) + amount));
}

/* --- amounts */

/* All names of min and max. */
static struct resources named_by(const struct quota *q)
{
	struct resources named;

	resources_copy(&named, &q->min);
	resources_max(&named, &q->max);
	return named;
}

/* `pending` has the names of all quotas. */
void quota_balances_of(const struct quota_book *b, struct quota_balances *out)
{
	size_t count = quota_book_count(b);
	const char *name;
	int64_t amount;

	*out = (struct quota_balances){0};
	for (size_t i = 0; i < count; i++) {
		const struct quota *q = quota_book_at(b, i);
		struct resources named = named_by(q);

		for (size_t at = 0; resources_next(&named, &at, &name, &amount);)
			add_named(&out->pending, name, resources_amount(&q->pending, name));
		resources_fini(&named);
	}
	out->of = mem_zalloc(QUOTA_BALANCES_MAX, sizeof(*out->of));
	for (size_t at = 0; out->count < QUOTA_BALANCES_MAX &&
			    resources_next(&out->pending, &at, &name, &amount);) {
		struct quota_balance_row *row = &out->of[out->count++];

		row->resource = name;
		row->of = mem_zalloc(count + 1, sizeof(*row->of));
		quota_share_read(b, name, row->of, &row->sum);
	}
}

void quota_balances_fini(struct quota_balances *b)
{
	for (size_t i = 0; i < b->count; i++)
		free(b->of[i].of);
	free(b->of);
	resources_fini(&b->pending);
}

/* Pending pods with equal requests. */
struct pod_batch {
	const struct resources *requests; /* of one; NULL: there are none */
	uint32_t count;
};

static bool find_held(const struct quota *q, const struct quota_balances *all,
		      const struct pod_batch *pods, struct quota_balance *out)
{
	bool held = false;
	int64_t max;

	for (size_t k = 0; k < all->count; k++) {
		const char *name = all->of[k].resource;
		int64_t asked = quota_amount_of_pod(pods->requests, name);

		if (asked <= 0 || !resources_find(&q->max, name, &max) ||
		    (quota_amount)resources_amount(&q->used, name) + asked <= max)
			continue;
		add_named(&out->held, name, (quota_amount)asked * pods->count);
		held = true;
	}
	return held;
}

static void judge(const struct quota_book *b, size_t i, const struct quota_balances *all,
		  const struct pod_batch *pods, struct quota_balance *out)
{
	const struct quota *q = quota_book_at(b, i);
	struct resources lacked = RESOURCES_NONE;
	bool within;

	if (!pods->count || find_held(q, all, pods, out))
		return;
	within = quota_within_min(b, q->namespace, pods->requests);
	if (within)
		quota_find_lacked(b, pods->requests, &lacked);
	for (size_t k = 0; k < all->count; k++) {
		const struct quota_balance_row *row = &all->of[k];
		int64_t asked = quota_amount_of_pod(pods->requests, row->resource);

		if (asked <= 0)
			continue;
		if ((quota_amount)row->of[i].used + asked > row->of[i].min)
			add_named(&out->waiting, row->resource, (quota_amount)asked * pods->count);
		if (within && row->sum.guaranteed > 0 &&
		    ((quota_amount)row->sum.used + asked > row->sum.guaranteed ||
		     resources_amount(&lacked, row->resource) > 0))
			add_named(&out->starved, row->resource, (quota_amount)asked * pods->count);
	}
	resources_fini(&lacked);
}

/* Pods of a workload are neighbours by name and mostly have equal requests. */
static void judge_pending(const struct quota_book *b, size_t i, const struct quota_balances *all,
			  struct quota_balance *out)
{
	const char *namespace = quota_book_at(b, i)->namespace;
	struct pod_batch pods = {NULL, 0};
	const struct kube_pod *pod;

	for (size_t at = 0; (pod = quota_next_pending(b, namespace, &at));) {
		const struct resources *requests = kube_pod_requests(pod);

		if (!pods.requests || !resources_equal(requests, pods.requests)) {
			judge(b, i, all, &pods, out);
			pods = (struct pod_batch){requests, 0};
		}
		pods.count++;
	}
	judge(b, i, all, &pods, out);
}

void quota_balance_of(const struct quota_book *b, size_t i, const struct quota_balances *all,
		      struct quota_balance *out)
{
	*out = (struct quota_balance){.borrowed = RESOURCES_NONE};
	for (size_t k = 0; k < all->count; k++) {
		const struct quota_balance_row *row = &all->of[k];

		if (!quota_names(quota_book_at(b, i), row->resource) &&
		    (row->sum.guaranteed <= 0 || row->of[i].wanted <= 0 ||
		     strcmp(row->resource, resource_name(RESOURCE_PODS)) == 0))
			continue;
		resources_set_named(&out->guaranteed, row->resource, row->of[i].min);
		resources_set_named(&out->borrowed, row->resource, row->of[i].borrowed);
		resources_set_named(&out->lent, row->resource, row->of[i].lent);
		resources_set_named(&out->fair, row->resource, row->of[i].fair);
	}
	out->told = named_by(quota_book_at(b, i));
	resources_max(&out->told, &out->guaranteed);
	judge_pending(b, i, all, out);
}

void quota_balance_fini(struct quota_balance *b)
{
	resources_fini(&b->guaranteed);
	resources_fini(&b->borrowed);
	resources_fini(&b->lent);
	resources_fini(&b->fair);
	resources_fini(&b->held);
	resources_fini(&b->starved);
	resources_fini(&b->waiting);
	resources_fini(&b->told);
}

/* --- states */

const char *quota_state_name(enum quota_state s)
{
	static const char *const names[QUOTA_STATES] = {
		[QUOTA_STATE_OVER_MAX] = "overMax",    [QUOTA_STATE_AT_MAX] = "atMax",
		[QUOTA_STATE_STARVED] = "starved",     [QUOTA_STATE_WAITING] = "waiting",
		[QUOTA_STATE_BORROWING] = "borrowing", [QUOTA_STATE_LENDING] = "lending",
		[QUOTA_STATE_UNUSED] = "unused",       [QUOTA_STATE_WITHIN] = "within",
	};

	return names[s];
}

enum quota_state quota_state_of(const struct quota *q, const struct quota_balance *b,
				const char *resource)
{
	int64_t min = resources_amount(&b->guaranteed, resource),
		used = resources_amount(&q->used, resource), max;

	if (resources_find(&q->max, resource, &max) && used > max)
		return QUOTA_STATE_OVER_MAX;
	if (resources_amount(&b->starved, resource) > 0)
		return QUOTA_STATE_STARVED;
	if (resources_amount(&b->held, resource) > 0)
		return QUOTA_STATE_AT_MAX;
	if (resources_amount(&b->waiting, resource) > 0)
		return QUOTA_STATE_WAITING;
	if (used > min)
		return QUOTA_STATE_BORROWING;
	if (resources_amount(&b->lent, resource) > 0)
		return QUOTA_STATE_LENDING;
	return min > 0 && used == 0 ? QUOTA_STATE_UNUSED : QUOTA_STATE_WITHIN;
}

/* "4.0", or less than the min in the object: "3.0 (a part of min 4.0)". */
static struct error guaranteed_text(const struct quota *q, const struct quota_balance *b,
				    const char *name)
{
	int64_t min = resources_amount(&q->min, name);
	int64_t guaranteed = resources_amount(&b->guaranteed, name);
	struct error out;

	if (guaranteed < min)
		error_set(&out, "%s (a part of min %s)", quota_amount_text(name, guaranteed).text,
			  quota_amount_text(name, min).text);
	else
		error_set(&out, "%s", quota_amount_text(name, guaranteed).text);
	return out;
}

static struct quota_text text_of(const struct resources *r, const char *name)
{
	return quota_amount_text(name, resources_amount(r, name));
}

void quota_state_tell(const struct quota *q, const struct quota_balance *b, const char *resource,
		      struct error *error)
{
	struct quota_text used = text_of(&q->used, resource);
	struct error min = guaranteed_text(q, b, resource);

	switch (quota_state_of(q, b, resource)) {
	case QUOTA_STATE_OVER_MAX:
		error_set(error,
			  "%.100s: %s is used of max %s; no pod that asks for it starts until "
			  "others have ended",
			  resource, used.text, text_of(&q->max, resource).text);
		break;
	case QUOTA_STATE_STARVED:
		error_set(error,
			  "%.100s: pending pods ask for %s, and only %s is used of the "
			  "guaranteed %s: evenkeel quota preempt says which pods could give way",
			  resource, text_of(&b->starved, resource).text, used.text, min.text);
		break;
	case QUOTA_STATE_AT_MAX:
		error_set(error,
			  "%.100s: pending pods ask for %s, and %s is used of max %s: they wait "
			  "until pods of this quota end, or max is raised",
			  resource, text_of(&b->held, resource).text, used.text,
			  text_of(&q->max, resource).text);
		break;
	case QUOTA_STATE_WAITING:
		error_set(error,
			  "%.100s: %s is used of the guaranteed %s, and pending pods ask for %s: "
			  "they wait for what others leave",
			  resource, used.text, min.text, text_of(&b->waiting, resource).text);
		break;
	case QUOTA_STATE_BORROWING:
		error_set(error,
			  "%.100s: %s is used, %s of it borrowed beyond the guaranteed %s: others "
			  "may take that back",
			  resource, used.text, text_of(&b->borrowed, resource).text, min.text);
		break;
	case QUOTA_STATE_LENDING:
		error_set(error,
			  "%.100s: %s is used of the guaranteed %s, and others have %s of the rest",
			  resource, used.text, min.text, text_of(&b->lent, resource).text);
		break;
	case QUOTA_STATE_UNUSED:
		error_set(error, "%.100s: nothing is used of the guaranteed %s", resource,
			  min.text);
		break;
	default:
		if (resources_amount(&b->guaranteed, resource) > 0)
			error_set(error, "%.100s: %s is used of the guaranteed %s", resource,
				  used.text, min.text);
		else
			error_set(error, "%.100s: %s is used, and nothing guaranteed", resource,
				  used.text);
		break;
	}
}
