/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds, and the life of records: whoever holds one may read it on any thread; the last to drop
 * it frees it. Records are never changed, so the count of users is all that threads share.
 */
#include "aggregator/model/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_record.h"
#include "shared/array.h"
#include "shared/mem.h"
#include "shared/refs.h"

static const struct kind {
	const char *version, *name, *resource;
	bool namespaced;
} kinds[OBJECT_KINDS] = {
#define X(id, version, name, resource, namespaced)                                                 \
	[OBJECT_##id] = {version, name, resource, namespaced},
	OBJECT_KIND_TABLE(X)
#undef X
};

/* Where kinds of scheduler-plugins live besides the group of their version. */
static const char PLUGINS_GROUP[] = "scheduling.sigs.k8s.io";

const char *object_kind_name(enum object_kind kind)
{
	return kinds[kind].name;
}

const char *object_kind_resource(enum object_kind kind)
{
	return kinds[kind].resource;
}

int object_kind_resource_len(enum object_kind kind)
{
	return (int)strcspn(kinds[kind].resource, ".");
}

const char *object_kind_version(enum object_kind kind)
{
	return kinds[kind].version;
}

bool object_kind_namespaced(enum object_kind kind)
{
	return kinds[kind].namespaced;
}

/* "policy/v1" -> 6, "v1" -> 0: the core group has no name. */
static size_t group_length(const char *api_version)
{
	const char *slash = strchr(api_version, '/');

	return slash ? (size_t)(slash - api_version) : 0;
}

static bool has_group(const char *api_version, const char *group, size_t len)
{
	return group_length(api_version) == len && memcmp(api_version, group, len) == 0;
}

int object_kind_find(const char *api_version, const char *kind, enum object_kind *out)
{
	for (unsigned int k = 0; k < OBJECT_KINDS; k++) {
		const char *version = kinds[k].version;

		if (strcmp(kinds[k].name, kind) != 0)
			continue;
		if (!has_group(api_version, version, group_length(version)) &&
		    !((k == OBJECT_ELASTIC_QUOTA || k == OBJECT_COSCHEDULING_GROUP) &&
		      has_group(api_version, PLUGINS_GROUP, strlen(PLUGINS_GROUP))))
			continue;
		*out = (enum object_kind)k;
		return 0;
	}
	return -ENOENT;
}

struct object *object_hold(struct object *o)
{
	refs_hold(&o->users);
	return o;
}

void object_drop(struct object *o)
{
	if (!o || !refs_drop(&o->users))
		return;
	if (o->kind == OBJECT_POD)
		object_pod_fini((struct kube_pod *)o);
	else
		object_fini(o);
	free(o);
}

int object_compare(const struct object *a, const struct object *b)
{
	return strcmp(a->namespace, b->namespace) ?: strcmp(a->name, b->name);
}

void object_write(const struct object *o, struct buf *out)
{
	if (o->kind == OBJECT_POD)
		object_pod_write((const struct kube_pod *)o, out);
	else
		buf_add_str(out, o->text);
}

/* --- taints: one block of the array, and the strings behind it */

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
	return array_find_text(t->of, t->count, sizeof(*t->of), key);
}
