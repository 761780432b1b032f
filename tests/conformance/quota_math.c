/* SPDX-License-Identifier: Apache-2.0 */
/* One quota's arithmetic: what pods add and take, and the comparisons, in upstream's variant. */
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/quota_values.h"

static const char QUOTA[] = "quota-0";

static struct quota_book *upstream_book(const struct quota *quotas, size_t count)
{
	struct quota_options o;

	quota_options_default(&o);
	o.variant = QUOTA_UPSTREAM;
	return quota_book_of(quotas, count, &o);
}

/* --- a sequence of pods */

static bool change(struct quota_book *b, const cJSON *requests, bool add, struct reason *why)
{
	for (const cJSON *item = requests ? requests->child : NULL; item; item = item->next) {
		struct resources r;
		bool read = quota_values_amounts(item, &r, why);

		if (read && add)
			quota_book_add(b, QUOTA, &r);
		else if (read)
			quota_book_subtract(b, QUOTA, &r);
		resources_fini(&r);
		if (!read)
			return false;
	}
	return true;
}

static bool run_change(const cJSON *c, struct quota_book *b, bool add, struct reason *why)
{
	const cJSON *expect = values_get(c, "expect");

	return change(b, values_get(c, "requests"), add, why) && expect &&
	       quota_values_same(&quota_book_find(b, QUOTA)->used, expect, true, "used", why);
}

/* --- one comparison */

static bool same_answer(const cJSON *c, bool got, struct reason *why)
{
	const cJSON *expect = values_get(c, "expect");

	if (cJSON_IsBool(expect) && cJSON_IsTrue(expect) == got)
		return true;
	values_fail(why, "the answer is %s", got ? "true" : "false");
	return false;
}

typedef bool compare(const struct quota_book *b, const char *namespace,
		     const struct resources *more);

static bool run_compare(const cJSON *c, const struct quota_book *b, compare *over,
			struct reason *why)
{
	const cJSON *request = values_get(c, "request");
	struct resources more;
	bool same = quota_values_amounts(request, &more, why) &&
		    same_answer(c, over(b, QUOTA, request ? &more : NULL), why);

	resources_fini(&more);
	return same;
}

/* --- what a new quota is made of */

/*
 * Cores are always bounded; of the others those that are named; `pods` is what was given, since
 * nothing compares it.
 */
static bool same_bounds(const struct quota_book *b, const cJSON *expect, bool max,
			struct reason *why)
{
	const struct quota *q = quota_book_find(b, QUOTA);
	struct resources got;
	int64_t bounds[2];
	bool same;

	resources_copy(&got, max ? &q->max : &q->min);
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++) {
		const char *name = resource_name((enum resource_id)id);

		if (id == RESOURCE_PODS)
			continue;
		quota_bounds(b, QUOTA, name, &bounds[0], &bounds[1]);
		resources_set(&got, (enum resource_id)id, bounds[max]);
	}
	same = quota_values_same(&got, expect, true, max ? "max" : "min", why);
	resources_fini(&got);
	return same;
}

static bool run_new(const cJSON *c, const struct quota_book *b, struct reason *why)
{
	static const char *const keys[] = {"min", "max", "used", NULL};
	const cJSON *expect = values_get(c, "expect");
	const cJSON *min = values_get(expect, "min"), *max = values_get(expect, "max");
	const cJSON *used = values_get(expect, "used");

	if (!min || !max || !used) {
		values_fail(why, "\"expect\" must have min, max and used");
		return false;
	}
	return values_only(expect, keys, why) && same_bounds(b, min, false, why) &&
	       same_bounds(b, max, true, why) &&
	       quota_values_same(&quota_book_find(b, QUOTA)->used, used, true, "used", why);
}

/* --- cases */

static bool run_op(const char *op, const cJSON *c, struct quota_book *b, struct reason *why)
{
	if (strcmp(op, "reserve") == 0)
		return run_change(c, b, true, why);
	if (strcmp(op, "unreserve") == 0)
		return run_change(c, b, false, why);
	if (strcmp(op, "used_over_min_with") == 0 || strcmp(op, "used_over_min") == 0)
		return run_compare(c, b, quota_over_min, why);
	if (strcmp(op, "used_over_max_with") == 0)
		return run_compare(c, b, quota_over_max, why);
	if (strcmp(op, "aggregated_used_over_min_with") == 0)
		return run_compare(c, b, quota_over_sum, why);
	if (strcmp(op, "new_info") == 0)
		return run_new(c, b, why);
	values_fail(why, "unknown op \"%s\"", op);
	return false;
}

/* A case's own members, or its spec_min and spec_max, as a list of one quota. */
static cJSON *quotas_of(const cJSON *c)
{
	static const char *const names[][2] = {{"min", "min"},
					       {"max", "max"},
					       {"used", "used"},
					       {"spec_min", "min"},
					       {"spec_max", "max"}};
	const cJSON *given = values_get(c, "quotas");
	cJSON *list, *one;

	if (given)
		return cJSON_Duplicate(given, true);
	list = cJSON_CreateArray();
	one = cJSON_CreateObject();
	cJSON_AddItemToArray(list, one);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (values_get(c, names[i][0]))
			cJSON_AddItemToObject(one, names[i][1],
					      cJSON_Duplicate(values_get(c, names[i][0]), true));
	return list;
}

enum outcome run_quota_math(const cJSON *c, struct reason *why)
{
	static const char *const keys[] = {"id",     "source",	 "upstream", "name",
					   "note",   "op",	 "used",     "min",
					   "max",    "request",	 "requests", "quotas",
					   "expect", "spec_min", "spec_max", NULL};
	const char *op = cJSON_GetStringValue(values_get(c, "op"));
	cJSON *list = quotas_of(c);
	struct quota *quotas = NULL;
	struct quota_book *b = NULL;
	size_t count = 0;
	bool passed =
		op && values_only(c, keys, why) && quota_values_quotas(list, &quotas, &count, why);

	if (passed) {
		b = upstream_book(quotas, count);
		passed = run_op(op, c, b, why);
	}
	quota_book_free(b);
	quota_values_free_all(quotas, count);
	cJSON_Delete(list);
	return passed ? PASSED : FAILED;
}
