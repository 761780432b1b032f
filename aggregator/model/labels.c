/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels are a sorted array, so that a key is found by halving: a pod has a dozen, and a selector
 * asks for two. They live in one block with their strings, the array first. Selectors are in
 * labels_selector.c.
 */
#include "aggregator/model/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/array.h"
#include "shared/mem.h"

/* The members that are wanted, in the order of the object; *count of them. */
static int collect(const cJSON *json, bool (*wanted)(const char *key),
		   struct object_member *members, size_t *count, struct error *error)
{
	*count = 0;
	for (const cJSON *item = json->child; item; item = item->next) {
		if (wanted && !wanted(item->string))
			continue;
		if (!cJSON_IsString(item) && !cJSON_IsNull(item))
			return error_fail(error, -EINVAL, "\"%.100s\" must be a string",
					  item->string);
		members[*count] = (struct object_member){item, *count};
		++*count;
	}
	return 0;
}

/* Without those that are null. */
static void copy_members(struct object_member *members, size_t all, struct labels *out)
{
	size_t count = 0, size;
	char *at;

	for (size_t i = 0; i < all; i++)
		if (cJSON_IsString(members[i].item))
			members[count++] = members[i];
	size = count * sizeof(struct label);
	out->count = count;
	out->of = NULL;
	if (!count)
		return;
	for (size_t i = 0; i < count; i++)
		size += strlen(members[i].item->string) + strlen(members[i].item->valuestring) + 2;
	out->of = mem_alloc(size);
	at = (char *)(out->of + count);
	for (size_t i = 0; i < count; i++) {
		out->of[i].key = mem_put_text(&at, members[i].item->string);
		out->of[i].value = mem_put_text(&at, members[i].item->valuestring);
	}
}

int labels_read_some(const cJSON *json, bool (*wanted)(const char *key), struct labels *out,
		     struct error *error)
{
	struct object_member *members;
	size_t count;
	int err;

	if (!json || cJSON_IsNull(json)) {
		*out = (struct labels){0};
		return 0;
	}
	if (!cJSON_IsObject(json))
		return error_fail(error, -EINVAL, "must be an object of strings");
	members = mem_zalloc((size_t)cJSON_GetArraySize(json), sizeof(*members));
	err = collect(json, wanted, members, &count, error);
	if (!err)
		copy_members(members, object_members_sort(members, count), out);
	free(members);
	return err;
}

int labels_read(const cJSON *json, struct labels *out, struct error *error)
{
	return labels_read_some(json, NULL, out, error);
}

void labels_fini(struct labels *l)
{
	free(l->of);
	*l = (struct labels){0};
}

const char *labels_find(const struct labels *l, const char *key)
{
	bool found;
	size_t at = array_find_name(l->of, l->count, sizeof(*l->of), key, &found);

	return found ? l->of[at].value : NULL;
}
