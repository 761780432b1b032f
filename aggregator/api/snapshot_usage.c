/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Usage object, item by item. What it says must be exact, so anything wrong in it ends the
 * reading; values that contradict each other are left out and noted.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/snapshot_state.h"
#include "shared/timefmt.h"

typedef int add_item(struct page_json_set *set, cJSON *item, char field[PAGE_JSON_FIELD_MAX],
		     struct reason *reason);

/* Where one list of items goes. */
struct destination {
	struct snapshot *snapshot;
	const char *path, *list; /* "usage.", "nodes" */
	add_item *add;
};

static void see_end(struct snapshot *s, const cJSON *item)
{
	const char *end = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "end"));
	int64_t ns;

	if (end && timefmt_parse(end, &ns, NULL) == 0)
		snapshot_saw_time(&s->usage_ns, ns);
}

static int read_item(const struct destination *to, struct snapshot_text *t, size_t index)
{
	const struct snapshot_text before = *t;
	char field[PAGE_JSON_FIELD_MAX] = "", name[ENTITY_NAME_MAX + 1];
	struct reason why = {""};
	cJSON *item;

	if (snapshot_text_parse(t, &item))
		return -EINVAL;
	see_end(to->snapshot, item);
	snprintf(name, sizeof(name), "%s", snapshot_member(item, "name"));
	if (to->add(to->snapshot->pages, item, field, &why))
		return snapshot_text_fail(&before, "%s%s[%zu]%s%s: %s", to->path, to->list, index,
					  *field ? "." : "", field, why.text);
	if (why.text[0])
		snapshot_note(to->snapshot, true, "%s: left out %s%s[%zu] (%s).%s", t->name,
			      to->path, to->list, index, name, why.text);
	return 0;
}

static int read_list(const struct destination *to, struct snapshot_text *t)
{
	bool first = true;
	size_t index = 0;
	int rc = snapshot_text_open(t, '[');

	while (rc == 0 && (rc = snapshot_text_item(t, &first)) == 1)
		rc = read_item(to, t, index++);
	return rc;
}

/* A member that must be this text. */
static int check_text(struct snapshot_text *t, const char *path, const char *key, const char *want)
{
	const struct snapshot_text before = *t;
	const char *got;
	cJSON *value;
	int rc = 0;

	if (snapshot_text_parse(t, &value))
		return -EINVAL;
	got = cJSON_GetStringValue(value);
	if (!got || strcmp(got, want) != 0)
		rc = snapshot_text_fail(&before, "%s%s: must be %s", path, key, want);
	cJSON_Delete(value);
	return rc;
}

static int read_time(struct snapshot *s, struct snapshot_text *t, const char *path)
{
	const struct snapshot_text before = *t;
	const char *text;
	int64_t ns = -1;
	cJSON *value;

	if (snapshot_text_parse(t, &value))
		return -EINVAL;
	text = cJSON_GetStringValue(value);
	if (text)
		timefmt_parse(text, &ns, NULL);
	cJSON_Delete(value);
	if (ns < 0)
		return snapshot_text_fail(&before,
					  "%stime: must be a time such as "
					  "2026-01-31T12:00:00Z",
					  path);
	snapshot_saw_time(&s->usage_ns, ns);
	return 0;
}

static int read_member(struct snapshot *s, struct snapshot_text *t, const char *path,
		       const char *key)
{
	const struct destination nodes = {s, path, "nodes", page_json_add_node};
	const struct destination pods = {s, path, "pods", page_json_add_pod};

	if (strcmp(key, "apiVersion") == 0)
		return check_text(t, path, key, "evenkeel.io/v1");
	if (strcmp(key, "kind") == 0)
		return check_text(t, path, key, "Usage");
	if (strcmp(key, "time") == 0)
		return read_time(s, t, path);
	if (strcmp(key, "nodes") == 0)
		return read_list(&nodes, t);
	if (strcmp(key, "pods") == 0)
		return read_list(&pods, t);
	return snapshot_text_fail(t, "%s%s: is no member of a Usage object", path, key);
}

int snapshot_read_usage(struct snapshot *s, struct snapshot_text *t, const char *path)
{
	char key[SNAPSHOT_KEY_MAX];
	bool first = true;
	int rc = snapshot_text_open(t, '{');

	s->has_usage = true;
	while (rc == 0 && (rc = snapshot_text_member(t, &first, key)) == 1)
		rc = read_member(s, t, path, key);
	return rc;
}
