/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The amounts of a quota: min, max and used of a resource in one row. The four standard resources
 * have fixed rows; the others follow, sorted by name, as the quota and its pods name them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/quota_internal.h"
#include "shared/array.h"

void quota_rows_init(struct quota_rows *r)
{
	r->count = RESOURCE_STANDARD;
	r->of = mem_zalloc(r->count, sizeof(*r->of));
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		r->of[id].name = resource_name((enum resource_id)id);
}

void quota_rows_fini(struct quota_rows *r)
{
	for (size_t i = RESOURCE_STANDARD; i < r->count; i++)
		free((char *)r->of[i].name);
	free(r->of);
	*r = (struct quota_rows){0, NULL};
}

/* Where the row is, or belongs. */
static size_t place_of(const struct quota_rows *r, const char *name, bool *found)
{
	const struct quota_row *others = r->of + RESOURCE_STANDARD;

	*found = true;
	for (size_t id = 0; id < RESOURCE_STANDARD; id++)
		if (r->of[id].name == name || strcmp(r->of[id].name, name) == 0)
			return id;
	return RESOURCE_STANDARD +
	       array_find_name(others, r->count - RESOURCE_STANDARD, sizeof(*others), name, found);
}

const struct quota_row *quota_rows_find(const struct quota_rows *r, const char *name)
{
	bool found;
	size_t at = place_of(r, name, &found);

	return found ? &r->of[at] : NULL;
}

struct quota_row *quota_rows_put(struct quota_rows *r, const char *name)
{
	bool found;
	size_t at = place_of(r, name, &found);

	if (found)
		return &r->of[at];
	r->of = mem_realloc(r->of, (r->count + 1) * sizeof(*r->of));
	memmove(r->of + at + 1, r->of + at, (r->count - at) * sizeof(*r->of));
	r->count++;
	r->of[at] = (struct quota_row){.name = mem_strdup(name)};
	return &r->of[at];
}

int64_t quota_clamp(quota_amount a)
{
	if (a > INT64_MAX)
		return INT64_MAX;
	return a < -INT64_MAX ? -INT64_MAX : (int64_t)a;
}

int64_t quota_amount_of_pod(const struct resources *requests, const char *name)
{
	int64_t amount = strcmp(name, resource_name(RESOURCE_PODS)) == 0;

	resources_find(requests, name, &amount);
	return amount;
}

/* --- amounts as text -------------------------------------------------------------------------- */

/* With at least one decimal, and no more than needed. */
static struct quota_text cores(int64_t milli)
{
	int decimals = milli % 100 == 0 ? 1 : milli % 10 == 0 ? 2 : 3;
	static const int64_t unit[] = {1000, 100, 10, 1};
	int64_t rest = milli % 1000 / unit[decimals];
	struct quota_text out;

	snprintf(out.text, sizeof(out.text), "%s%lld.%0*lld", milli < 0 ? "-" : "",
		 llabs((long long)(milli / 1000)), decimals, llabs((long long)rest));
	return out;
}

struct quota_text quota_amount_text(const char *resource, int64_t amount)
{
	static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	struct quota_text out;
	unsigned int unit = 0;

	if (strcmp(resource, resource_name(RESOURCE_CPU)) == 0)
		return cores(amount);
	while (resource_is_bytes(resource) && amount && amount % 1024 == 0 &&
	       unit < sizeof(units) / sizeof(units[0]) - 1) {
		amount /= 1024;
		unit++;
	}
	snprintf(out.text, sizeof(out.text), "%lld%s", (long long)amount, units[unit]);
	return out;
}
