/* SPDX-License-Identifier: Apache-2.0 */
/* One quota's arithmetic: what pods add and take, and the comparisons, in upstream's variant. */
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/quota_values.h"
#include "tests/quota_fixture.h"

static const char QUOTA[] = "quota-0";

static struct quota_book *upstream_book(const struct quota *quotas, size_t count)
{
	struct quota_options o;

	quota_options_default(&o);
	o.variant = QUOTA_UPSTREAM;
	return quota_fixture_book(quotas, count, &o);
}

/* --- a sequence of pods */

static bool change(struct quota_book *b, const cJSON *requests, bool add, struct error *error)
{
	for (const cJSON *item = requests ? requests->child : NULL; item; item = item->next) {
		struct resources r;
		bool read = quota_values_amounts(item, &r, error);

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

static bool run_change(const cJSON *c, struct quota_book *b, bool add, struct error *error)
{
	const cJSON *expect = values_get(c, "expect");

	return change(b, values_get(c, "requests"), add, error) && expect &&
	       quota_values_same(&quota_book_find(b, QUOTA)->used, expect, true, "used", error);
}

/* --- one comparison */

static bool same_answer(const cJSON *c, bool got, struct error *error)
{
	const cJSON *expect = values_get(c, "expect");

	if (cJSON_IsBool(expect) && cJSON_IsTrue(expect) == got)
		return true;
	values_fail(error, "the answer is %s", got ? "true" : "false");
	return false;
}

static bool run_compare(const cJSON *c, const struct quota_book *b, enum quota_bound bound,
			struct error *error)
{
	const cJSON *request = values_get(c, "request");
	struct resources more;
	bool same = quota_values_amounts(request, &more, error) &&
		    same_answer(c, quota_is_over(b, bound, QUOTA, request ? &more : NULL), error);

	resources_fini(&more);
	return same;
}

/* --- what a new quota is made of */

/*
 * Cores are always bounded; of the others those that are named; `pods` is what was given, since
 * nothing compares it.
 */
static bool same_bounds(const struct quota_book *b, const cJSON *expect, bool max,
			struct error *error)
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
	same = quota_values_same(&got, expect, true, max ? "max" : "min", error);
	resources_fini(&got);
	return same;
}

static bool run_new(const cJSON *c, const struct quota_book *b, struct error *error)
{
	static const char *const keys[] = {"min", "max", "used", NULL};
	const cJSON *expect = values_get(c, "expect");
	const cJSON *min = values_get(expect, "min"), *max = values_get(expect, "max");
	const cJSON *used = values_get(expect, "used");

	if (!min || !max || !used) {
		values_fail(error, "\"expect\" must have min, max and used");
		return false;
	}
	return values_only(expect, keys, error) && same_bounds(b, min, false, error) &&
	       same_bounds(b, max, true, error) &&
	       quota_values_same(&quota_book_find(b, QUOTA)->used, used, true, "used", error);
}

/* --- cases */

static bool run_op(const char *op, const cJSON *c, struct quota_book *b, struct error *error)
{
	if (strcmp(op, "reserve") == 0)
		return run_change(c, b, true, error);
	if (strcmp(op, "unreserve") == 0)
		return run_change(c, b, false, error);
	if (strcmp(op, "used_over_min_with") == 0 || strcmp(op, "used_over_min") == 0)
		return run_compare(c, b, QUOTA_MIN, error);
	if (strcmp(op, "used_over_max_with") == 0)
		return run_compare(c, b, QUOTA_MAX, error);
	if (strcmp(op, "aggregated_used_over_min_with") == 0)
		return run_compare(c, b, QUOTA_SUM_OF_MIN, error);
	if (strcmp(op, "new_info") == 0)
		return run_new(c, b, error);
	values_fail(error, "unknown op \"%s\"", op);
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

enum outcome run_quota_math(const cJSON *c, struct error *error)
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
	bool passed = op && values_only(c, keys, error) &&
		      quota_values_quotas(list, &quotas, &count, error);

	if (passed) {
		b = upstream_book(quotas, count);
		passed = run_op(op, c, b, error);
	}
	quota_book_free(b);
	quota_values_free_all(quotas, count);
	cJSON_Delete(list);
	return passed ? PASSED : FAILED;
}
