/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a dump, one by one: into the model, or into the notes of what is left out. Which
 * object of two of one name counts, and what is said of kinds, does not depend on anything but the
 * files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/snapshot_state.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

static void see_time(struct snapshot *s, const cJSON *object, const char *member)
{
	int64_t ns;

	if (timefmt_parse(snapshot_member(object, member), &ns, NULL) == 0)
		snapshot_saw_time(&s->object_ns, ns);
}

static void see_times(struct snapshot *s, const cJSON *item)
{
	const cJSON *status = cJSON_GetObjectItemCaseSensitive(item, "status"), *condition;
	const cJSON *conditions = cJSON_GetObjectItemCaseSensitive(status, "conditions");

	see_time(s, cJSON_GetObjectItemCaseSensitive(item, "metadata"), "creationTimestamp");
	see_time(s, status, "startTime");
	cJSON_ArrayForEach(condition, conditions)
	{
		see_time(s, condition, "lastHeartbeatTime");
		see_time(s, condition, "lastTransitionTime");
	}
}

/* "Pod default/web", "Node a", as far as it says. */
static void name_object(const char *kind, const char *namespace, const char *name, char out[160])
{
	snprintf(out, 160, "%.40s %.50s%s%.63s", kind, namespace, *namespace ? "/" : "",
		 *name ? name : "without a name");
}

static void skip_object(struct snapshot *s, enum object_kind kind, const char *file,
			const char *object, const char *field, const char *why)
{
	struct model_source *source = &s->sources[kind];

	source->skipped++;
	snprintf(source->skipped_last, sizeof(source->skipped_last), "%s: %s%s%s", object, field,
		 *field ? ": " : "", why);
	snapshot_note(s, true, "%s: skipped %s: %s%s%s", file, object, field, *field ? ": " : "",
		      why);
}

static void note_unreadable(struct snapshot *s, enum object_kind kind, const cJSON *item,
			    const char *field, const char *why)
{
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(item, "metadata");
	const cJSON *spec = cJSON_GetObjectItemCaseSensitive(item, "spec");
	const char *name = snapshot_member(metadata, "name");
	char *text = mem_printf("%s%s%s", field, *field ? ": " : "", why);

	unreadables_put(&s->sources[kind].unreadable, snapshot_member(metadata, "namespace"),
			*name ? name : "without a name", snapshot_member(spec, "nodeName"), text);
	free(text);
}

/* Whether both say the same. */
static bool are_equal(const struct object *a, const struct object *b)
{
	struct buf x = BUF_INIT, y = BUF_INIT;
	bool equal;

	object_write(a, &x);
	object_write(b, &y);
	equal = x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
	buf_fini(&x);
	buf_fini(&y);
	return equal;
}

/* Takes the object over. */
static void put(struct snapshot *s, const char *file, struct object *o)
{
	const struct object *there = model_find(s->model, o->kind, o->namespace, o->name);
	char name[160];

	if (!there) {
		s->objects++;
		model_put(s->model, o);
		return;
	}
	if (!are_equal(there, o)) {
		name_object(object_kind_name(o->kind), o->namespace, o->name, name);
		skip_object(s, o->kind, file, name, "", "it is there twice, and the first counts");
	}
	object_drop(o);
}

static void pass_over(struct snapshot *s, const char *kind)
{
	size_t len = strlen(s->unused_kinds);

	s->unused++;
	if (*kind && !strstr(s->unused_kinds, kind) &&
	    len + strlen(kind) + 3 < sizeof(s->unused_kinds))
		snprintf(s->unused_kinds + len, sizeof(s->unused_kinds) - len, "%s%s",
			 len ? ", " : "", kind);
}

/*
 * Of several versions the last by name, so that the order of items does not matter. A Snapshot
 * tells it in its sources.
 */
static void see_kind(struct snapshot *s, enum object_kind kind, const char *version)
{
	struct model_source *source = &s->sources[kind];

	s->seen[kind] = true;
	if (strcmp(version, source->api_version) > 0)
		snprintf(source->api_version, sizeof(source->api_version), "%s", version);
}

static int add_object(struct snapshot *s, const struct snapshot_text *t, const char *version,
		      const char *kind_name, cJSON *item)
{
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(item, "metadata");
	char field[OBJECT_FIELD_MAX] = "", name[160];
	struct reason why = {""};
	enum object_kind kind;
	struct object *o;

	if (object_kind_find(version, kind_name, &kind)) {
		if (s->own)
			return snapshot_text_fail(t, "a Snapshot holds no %.64s (%.64s)", kind_name,
						  version);
		pass_over(s, kind_name);
		return 0;
	}
	if (!s->own)
		see_kind(s, kind, version);
	see_times(s, item);
	if (*version && !*snapshot_member(item, "apiVersion")) {
		cJSON_DeleteItemFromObjectCaseSensitive(item, "apiVersion");
		cJSON_AddStringToObject(item, "apiVersion", version);
	}
	if (object_read(kind, item, &o, field, &why)) {
		name_object(kind_name, snapshot_member(metadata, "namespace"),
			    snapshot_member(metadata, "name"), name);
		skip_object(s, kind, t->name, name, field, why.text);
		note_unreadable(s, kind, item, field, why.text);
		return 0;
	}
	put(s, t->name, o);
	return 0;
}

/*
 * What is not even an object of Kubernetes has no name but its place; a typed list says what it
 * should have been.
 */
static void skip_item(struct snapshot *s, const char *file, const char *version,
		      const char *kind_name, size_t index, const char *why)
{
	enum object_kind kind;
	char place[32];

	snprintf(place, sizeof(place), "items[%zu]", index);
	if (object_kind_find(version, kind_name, &kind) == 0)
		skip_object(s, kind, file, place, "", why);
	else
		snapshot_note(s, true, "%s: skipped %s: %s", file, place, why);
}

/* Items of a typed list need not say what they are. */
int snapshot_read_item(struct snapshot *s, struct snapshot_text *t, const char *version,
		       const char *kind, size_t index)
{
	const struct snapshot_text before = *t;
	const char *own_kind;
	cJSON *item;
	int rc = 0;

	if (snapshot_text_parse(t, &item))
		return -EINVAL;
	own_kind = snapshot_member(item, "kind");
	if (!cJSON_IsObject(item))
		skip_item(s, t->name, version, kind, index, "must be an object of Kubernetes");
	else if (*own_kind)
		rc = add_object(s, &before, snapshot_member(item, "apiVersion"), own_kind, item);
	else if (*kind)
		rc = add_object(s, &before, version, kind, item);
	else
		skip_item(s, t->name, version, kind, index,
			  "nothing says of what kind this object is");
	cJSON_Delete(item);
	return rc;
}

int snapshot_read_items(struct snapshot *s, struct snapshot_text *t, const char *version,
			const char *kind)
{
	bool first = true;
	size_t index = 0;
	int rc = snapshot_text_open(t, '[');

	while (rc == 0 && (rc = snapshot_text_item(t, &first)) == 1)
		rc = snapshot_read_item(s, t, version, kind, index++);
	return rc;
}
