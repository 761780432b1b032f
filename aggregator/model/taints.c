/* SPDX-License-Identifier: Apache-2.0 */
/* Taints in one block: the array, and the strings behind it. */
#include "aggregator/model/taints.h"

#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/mem.h"

static bool is_taint(const cJSON *item)
{
	return *object_json_text(item, "key") != '\0';
}

void taints_read(const cJSON *json, struct taints *out)
{
	const cJSON *first = object_json_first(json);
	size_t count = 0, bytes = 0;
	char *room;

	*out = (struct taints){.unreadable = json && !cJSON_IsArray(json)};
	for (const cJSON *item = first; item; item = item->next) {
		if (is_taint(item)) {
			count++;
			bytes += strlen(object_json_text(item, "key")) +
				 strlen(object_json_text(item, "value")) +
				 strlen(object_json_text(item, "effect")) + 3;
		} else {
			out->unreadable = true;
		}
	}
	if (count == 0)
		return;
	out->of = mem_alloc(count * sizeof(*out->of) + bytes);
	room = (char *)(out->of + count);
	for (const cJSON *item = first; item; item = item->next) {
		struct taint *t = &out->of[out->count];

		if (!is_taint(item))
			continue;
		t->key = mem_put_text(&room, object_json_text(item, "key"));
		t->value = mem_put_text(&room, object_json_text(item, "value"));
		t->effect = mem_put_text(&room, object_json_text(item, "effect"));
		out->count++;
	}
}

void taints_fini(struct taints *t)
{
	free(t->of);
	*t = (struct taints){0};
}

const struct taint *taints_find(const struct taints *t, const char *key)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->of[i].key, key) == 0)
			return &t->of[i];
	return NULL;
}
