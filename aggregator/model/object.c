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
	int order = strcmp(a->namespace, b->namespace);

	return order ? order : strcmp(a->name, b->name);
}

void object_write(const struct object *o, struct buf *out)
{
	if (o->kind == OBJECT_POD)
		object_pod_write((const struct kube_pod *)o, out);
	else
		buf_add_str(out, o->text);
}
