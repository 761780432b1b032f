/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of amounts is four fixed places and a sorted array of the others, so two lists are
 * combined by one walk over both, like the merge of two sorted files. Most lists have no others,
 * and then nothing is allocated. Sums saturate: no list however absurd can wrap around to a small
 * one. Nothing here can fail.
 */
#include "aggregator/model/resources.h"

#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"

static const char *const names[RESOURCE_STANDARD] = {
	[RESOURCE_CPU] = "cpu",
	[RESOURCE_MEMORY] = "memory",
	[RESOURCE_EPHEMERAL_STORAGE] = "ephemeral-storage",
	[RESOURCE_PODS] = "pods",
};

/* The new amount; `had`: there was one, else `a` is 0. */
typedef int64_t combine(bool had, int64_t a, int64_t b);

const char *resource_name(enum resource_id id)
{
	return names[id];
}

bool resource_is_bytes(const char *name)
{
	return strcmp(name, names[RESOURCE_MEMORY]) == 0 ||
	       strcmp(name, names[RESOURCE_EPHEMERAL_STORAGE]) == 0 ||
	       strncmp(name, "hugepages-", 10) == 0;
}

bool resource_is_limited(const char *name)
{
	return strcmp(name, names[RESOURCE_CPU]) == 0 || resource_is_bytes(name) ||
	       strchr(name, '/');
}

/* RESOURCE_STANDARD when it is none of them. */
static enum resource_id standard_id(const char *name)
{
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		if (strcmp(names[id], name) == 0)
			return (enum resource_id)id;
	return RESOURCE_STANDARD;
}

void resources_fini(struct resources *r)
{
	for (uint32_t i = 0; i < r->extended_count; i++)
		free(r->extended[i].name);
	free(r->extended);
	*r = RESOURCES_NONE;
}

void resources_copy(struct resources *to, const struct resources *from)
{
	*to = *from;
	to->extended = NULL;
	if (!from->extended_count)
		return;
	to->extended = mem_zalloc(from->extended_count, sizeof(*to->extended));
	for (uint32_t i = 0; i < from->extended_count; i++) {
		to->extended[i].name = mem_strdup(from->extended[i].name);
		to->extended[i].amount = from->extended[i].amount;
	}
}

bool resources_has(const struct resources *r, enum resource_id id)
{
	return r->has & (1U << id);
}

void resources_set(struct resources *r, enum resource_id id, int64_t amount)
{
	r->has |= (uint8_t)(1U << id);
	r->of[id] = amount;
}

bool resources_find(const struct resources *r, const char *name, int64_t *amount)
{
	enum resource_id id = standard_id(name);
	size_t place;
	bool found;

	if (id < RESOURCE_STANDARD) {
		if (resources_has(r, id))
			*amount = r->of[id];
		return resources_has(r, id);
	}
	place = array_find_name(r->extended, r->extended_count, sizeof(*r->extended), name, &found);
	if (found)
		*amount = r->extended[place].amount;
	return found;
}

int64_t resources_amount(const struct resources *r, const char *name)
{
	int64_t amount = 0;

	resources_find(r, name, &amount);
	return amount;
}

void resources_set_named(struct resources *r, const char *name, int64_t amount)
{
	enum resource_id id = standard_id(name);
	struct resource_extended *at;
	size_t place;
	bool found;

	if (id < RESOURCE_STANDARD) {
		resources_set(r, id, amount);
		return;
	}
	place = array_find_name(r->extended, r->extended_count, sizeof(*r->extended), name, &found);
	if (!found) {
		r->extended =
			mem_realloc(r->extended, (r->extended_count + 1) * sizeof(*r->extended));
		at = r->extended + place;
		memmove(at + 1, at, (r->extended_count - place) * sizeof(*at));
		at->name = mem_strdup(name);
		r->extended_count++;
	}
	r->extended[place].amount = amount;
}

bool resources_next(const struct resources *r, size_t *at, const char **name, int64_t *amount)
{
	size_t extended;

	for (; *at < RESOURCE_STANDARD; ++*at) {
		if (resources_has(r, (enum resource_id)(*at))) {
			*name = names[*at];
			*amount = r->of[(*at)++];
			return true;
		}
	}
	extended = *at - RESOURCE_STANDARD;
	if (extended >= r->extended_count)
		return false;
	*name = r->extended[extended].name;
	*amount = r->extended[extended].amount;
	++*at;
	return true;
}

static int64_t sum(bool had, int64_t a, int64_t b)
{
	(void)had;
	return int_clamp((__int128)a + b);
}

static int64_t difference(bool had, int64_t a, int64_t b)
{
	(void)had;
	return int_clamp((__int128)a - b);
}

static int64_t larger(bool had, int64_t a, int64_t b)
{
	return had && a > b ? a : b;
}

static void combine_all(struct resources *to, const struct resources *other, combine *value)
{
	uint32_t i = 0, k = 0, count = 0;
	struct resource_extended *merged;

	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		if (resources_has(other, id))
			resources_set(to, (enum resource_id)id,
				      value(resources_has(to, id), to->of[id], other->of[id]));
	if (!other->extended_count)
		return;
	merged = mem_zalloc((size_t)to->extended_count + other->extended_count, sizeof(*merged));
	while (i < to->extended_count || k < other->extended_count) {
		int order = i == to->extended_count ? 1
			    : k == other->extended_count
				    ? -1
				    : strcmp(to->extended[i].name, other->extended[k].name);

		if (order <= 0) {
			merged[count] = to->extended[i++];
			if (order == 0)
				merged[count].amount = value(true, merged[count].amount,
							     other->extended[k++].amount);
		} else {
			merged[count].name = mem_strdup(other->extended[k].name);
			merged[count].amount = value(false, 0, other->extended[k++].amount);
		}
		count++;
	}
	free(to->extended);
	to->extended = mem_realloc(merged, count * sizeof(*merged));
	to->extended_count = count;
}

void resources_add(struct resources *to, const struct resources *more)
{
	combine_all(to, more, sum);
}

void resources_max(struct resources *to, const struct resources *other)
{
	combine_all(to, other, larger);
}

void resources_subtract(struct resources *to, const struct resources *less)
{
	combine_all(to, less, difference);
}

bool resources_equal(const struct resources *a, const struct resources *b)
{
	if (a->has != b->has || a->extended_count != b->extended_count)
		return false;
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		if (resources_has(a, id) && a->of[id] != b->of[id])
			return false;
	for (uint32_t i = 0; i < a->extended_count; i++)
		if (a->extended[i].amount != b->extended[i].amount ||
		    strcmp(a->extended[i].name, b->extended[i].name) != 0)
			return false;
	return true;
}
