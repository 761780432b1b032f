/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why two walks: kubectl sorts members by name, so "items" stands before the "kind" that says what
 * they are. The first walk over a document's members remembers where the long ones stand, the
 * second reads these item by item. So the memory that a dump needs is its text, its records, and
 * one item's tree.
 *
 * Nothing here looks at a clock: the moment of a dump is in the dump.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/slack_memory.h"
#include "aggregator/api/snapshot_state.h"
#include "aggregator/model/object_json.h"
#include "aggregator/policy/drain/drain.h"
#include "aggregator/state/join.h"
#include "shared/array.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "shared/utf8.h"
#include "shared/yaml_json.h"

enum { YAML_DEPTH_MAX = 200 };

#define YAML_BYTES_MAX ((size_t)2 << 30)
#define EVENKEEL       "evenkeel.io/"

struct snapshot *snapshot_new(void)
{
	struct snapshot *s = mem_zalloc(1, sizeof(*s));

	s->model = model_new();
	s->node_stats = stats_json_set_new();
	s->reservations = reservations_new();
	s->join = join_new();
	s->demand = demand_new();
	join_set_demand(s->join, s->demand);
	return s;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->use_count; i++)
		free(s->uses[i].node);
	free(s->uses);
	view_drop(s->view);
	model_free(s->model);
	stats_json_set_free(s->node_stats);
	reservations_free(s->reservations);
	join_free(s->join);
	demand_free(s->demand);
	plan_memory_fini(&s->memory);
	buf_fini(&s->notes.text);
	free(s);
}

const struct snapshot_notes *snapshot_notes(const struct snapshot *s)
{
	return &s->notes;
}

void snapshot_note(struct snapshot *s, bool skipped, const char *format, ...)
{
	char text[512];

	s->notes.skipped += skipped;
	if (skipped && s->notes.skipped > SNAPSHOT_NOTES_MAX)
		return;
	MEM_FORMAT(text, sizeof(text), format);
	utf8_clean(text); /* one line, whatever the names of objects are */
	buf_printf(&s->notes.text, "%s\n", text);
}

void snapshot_saw_time(int64_t *newest_ns, int64_t unix_ns)
{
	if (unix_ns > *newest_ns)
		*newest_ns = unix_ns;
}

/* --- documents -------------------------------------------------------------------------------- */

/* A document's short members, and where the long ones stand (at NULL: there is none). */
struct document {
	struct snapshot_text whole, items, list, usage;
	char kind[SNAPSHOT_KEY_MAX], version[SNAPSHOT_KEY_MAX];
	cJSON *time, *sources, *state, *error; /* owned */
	bool has_data;
	char extra[SNAPSHOT_KEY_MAX]; /* the first that no Snapshot has */
};

static void document_fini(struct document *d)
{
	cJSON_Delete(d->time);
	cJSON_Delete(d->sources);
	cJSON_Delete(d->state);
	cJSON_Delete(d->error);
}

static int parse_name(struct snapshot_text *t, char out[SNAPSHOT_KEY_MAX])
{
	cJSON *value;

	if (snapshot_text_parse(t, &value))
		return -EINVAL;
	if (cJSON_IsString(value))
		snprintf(out, SNAPSHOT_KEY_MAX, "%s", value->valuestring);
	cJSON_Delete(value);
	return 0;
}

static int parse_once(struct snapshot_text *t, cJSON **value)
{
	cJSON_Delete(*value);
	*value = NULL;
	return snapshot_text_parse(t, value);
}

static int look_at(struct document *d, struct snapshot_text *t, const char *key)
{
	if (strcmp(key, "kind") == 0)
		return parse_name(t, d->kind);
	if (strcmp(key, "apiVersion") == 0)
		return parse_name(t, d->version);
	if (strcmp(key, "time") == 0)
		return parse_once(t, &d->time);
	if (strcmp(key, "sources") == 0)
		return parse_once(t, &d->sources);
	if (strcmp(key, "state") == 0)
		return parse_once(t, &d->state);
	if (strcmp(key, "error") == 0)
		return parse_once(t, &d->error);
	if (strcmp(key, "items") == 0)
		d->items = *t;
	else if (strcmp(key, "list") == 0)
		d->list = *t;
	else if (strcmp(key, "usage") == 0)
		d->usage = *t;
	else if (strcmp(key, "data") == 0)
		d->has_data = true;
	else if (strcmp(key, "aggregatorRun") != 0 && !d->extra[0])
		snprintf(d->extra, sizeof(d->extra), "%s", key);
	return snapshot_text_skip(t);
}

static int look_through(struct document *d, struct snapshot_text *t)
{
	char key[SNAPSHOT_KEY_MAX];
	bool first = true;
	int rc;

	*d = (struct document){.whole = *t};
	rc = snapshot_text_open(t, '{');
	while (rc == 0 && (rc = snapshot_text_member(t, &first, key)) == 1)
		rc = look_at(d, t, key);
	return rc;
}

/* --- a Snapshot ------------------------------------------------------------------------------- */

/* Two kinds have one name; older snapshots tell no resource. */
static int find_kind(const char *name, const char *resource, enum object_kind *kind)
{
	for (int k = 0; k < OBJECT_KINDS; k++)
		if (strcmp(object_kind_name((enum object_kind)k), name) == 0 &&
		    (!*resource ||
		     strcmp(object_kind_resource((enum object_kind)k), resource) == 0)) {
			*kind = (enum object_kind)k;
			return 0;
		}
	return -ENOENT;
}

static int find_state(const char *name, enum source_state *state)
{
	for (int i = 0; i < SOURCE_STATES; i++)
		if (strcmp(source_state_name((enum source_state)i), name) == 0) {
			*state = (enum source_state)i;
			return 0;
		}
	return -ENOENT;
}

static void read_unreadable(const cJSON *source, struct unreadables *out)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(source, "unreadable")) {
		unreadables_put(out, object_json_text(item, "namespace"),
				object_json_text(item, "name"), object_json_text(item, "node"),
				object_json_text(item, "reason"));
	}
	out->more |= cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(source, "moreUnreadable"));
}

/* A synced source is complete in the file; other sources keep their state. */
static int read_source(struct snapshot *s, const struct snapshot_text *t, size_t index,
		       const cJSON *item)
{
	const cJSON *skipped = cJSON_GetObjectItemCaseSensitive(item, "skipped");
	struct model_source source = {.state = SOURCE_NONE};
	enum object_kind kind;

	if (find_kind(object_json_text(item, "kind"), object_json_text(item, "resource"), &kind))
		return snapshot_text_fail(t,
					  "sources[%zu].kind: there is no such kind as \"%.64s\"",
					  index, object_json_text(item, "kind"));
	if (find_state(object_json_text(item, "state"), &source.state))
		return snapshot_text_fail(t,
					  "sources[%zu].state: there is no such state as \"%.64s\"",
					  index, object_json_text(item, "state"));
	if (timefmt_parse(object_json_text(item, "changed"), &source.changed_ns, NULL))
		return snapshot_text_fail(t, "sources[%zu].changed: must be a time", index);
	if (source.state == SOURCE_SYNCED)
		source.state = SOURCE_SNAPSHOT;
	if (cJSON_IsNumber(skipped) && skipped->valuedouble >= 0 && skipped->valuedouble < 1e15)
		source.skipped = (uint64_t)skipped->valuedouble;
	snprintf(source.api_version, sizeof(source.api_version), "%s",
		 object_json_text(item, "apiVersion"));
	snprintf(source.message, sizeof(source.message), "%s", object_json_text(item, "message"));
	snprintf(source.skipped_last, sizeof(source.skipped_last), "%s",
		 object_json_text(item, "skippedLast"));
	read_unreadable(item, &source.unreadable);
	s->sources[kind] = source;
	return 0;
}

static int read_sources(struct snapshot *s, const struct snapshot_text *t, const cJSON *list)
{
	const cJSON *item;
	size_t index = 0;

	if (list && !cJSON_IsArray(list))
		return snapshot_text_fail(t, "sources: must be a list");
	cJSON_ArrayForEach (item, list) {
		if (read_source(s, t, index++, item))
			return -EINVAL;
	}
	return 0;
}

static int check_snapshot(const struct snapshot *s, const struct document *d)
{
	const struct snapshot_text *t = &d->whole;

	if (strcmp(d->version, "evenkeel.io/v1") != 0)
		return snapshot_text_fail(t, "a Snapshot of %.64s; this is evenkeel.io/v1",
					  d->version);
	if (s->documents > 1)
		return snapshot_text_fail(t, "a Snapshot holds everything; give it alone");
	if (d->extra[0] || d->items.at || d->error || d->has_data)
		return snapshot_text_fail(t, "%s: is no member of a Snapshot",
					  d->extra[0]	? d->extra
					  : d->items.at ? "items"
					  : d->error	? "error"
							: "data");
	if (!d->list.at || !d->usage.at)
		return snapshot_text_fail(t, "%s: is missing in this Snapshot",
					  d->list.at ? "usage" : "list");
	return 0;
}

static int read_workloads(struct snapshot *s, const struct snapshot_text *t, const cJSON *state)
{
	struct error why = {""};
	char *text;
	int rc;

	if (!cJSON_GetObjectItemCaseSensitive(state, "workloads"))
		return 0;
	text = cJSON_PrintUnformatted(state);
	rc = join_recall(s->join, text, strlen(text), &why);
	free(text);
	return rc ? snapshot_text_fail(t, "state.%s", why.text) : 0;
}

static int read_demand(struct snapshot *s, const struct snapshot_text *t, const cJSON *state)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(state, "demand");
	struct error why = {""};

	if (!list || !demand_read_records(s->demand, list, &why))
		return 0;
	return snapshot_text_fail(t, "state.%s", why.text);
}

/* The text is read here as it will be later, so that errors name the file. */
static int read_memory(struct snapshot *s, const struct snapshot_text *t, const cJSON *state,
		       enum plan_part part)
{
	const char *name = plan_part_name(part);
	const cJSON *memory = cJSON_GetObjectItemCaseSensitive(state, name);
	struct slack_state *slack = slack_state_new();
	struct drain_state *drain = drain_state_new();
	struct error why = {""};
	char *text = memory ? cJSON_PrintUnformatted(memory) : NULL;
	int rc = 0;

	if (text && part == PLAN_SLACK)
		rc = slack_memory_read(slack, text, strlen(text), &why);
	else if (text)
		rc = drain_state_read(drain, text, strlen(text), INT64_MAX, s->time_ns, &why);
	slack_state_free(slack);
	drain_state_free(drain);
	free(s->memory.of[part]);
	s->memory.of[part] = text;
	return rc ? snapshot_text_fail(t, "state.%s: %s", name, why.text) : 0;
}

/* Of a Snapshot whose time is known. */
static int read_state(struct snapshot *s, const struct snapshot_text *t, const cJSON *state)
{
	static const char *const known[] = {"ledger", "workloads", "demand",
					    "slack",  "drain",	   NULL};
	int rc;

	if (!cJSON_IsObject(state))
		return snapshot_text_fail(t, "state: must be an object");
	for (const cJSON *item = state->child; item; item = item->next)
		if (!array_has_text(known, item->string))
			return snapshot_text_fail(
				t, "state.%.64s: is unknown here; take a newer evenkeel",
				item->string);
	rc = snapshot_read_reservations(s, t, cJSON_GetObjectItemCaseSensitive(state, "ledger"));
	if (!rc)
		rc = read_workloads(s, t, state);
	if (!rc)
		rc = read_demand(s, t, state);
	for (int p = 0; !rc && p < PLAN_PARTS; p++)
		rc = read_memory(s, t, state, (enum plan_part)p);
	return rc;
}

static int read_snapshot(struct snapshot *s, const struct document *d)
{
	const char *time = cJSON_GetStringValue(d->time);
	struct snapshot_text usage = d->usage, list = d->list;
	struct document inner = {.kind = ""};
	int rc;

	if (check_snapshot(s, d))
		return -EINVAL;
	if (!time || timefmt_parse(time, &s->time_ns, NULL) || s->time_ns < 0)
		return snapshot_text_fail(&d->whole,
					  "time: must be a time such as 2026-01-31T12:00:00Z");
	s->own = true;
	s->standalone = !d->sources;
	rc = read_sources(s, &d->whole, d->sources);
	if (!rc)
		rc = read_state(s, &d->whole, d->state);
	if (!rc)
		rc = look_through(&inner, &list);
	if (!rc && strcmp(inner.kind, "List") != 0)
		rc = snapshot_text_fail(&inner.whole, "list.kind: must be List");
	if (!rc && !inner.items.at)
		rc = snapshot_text_fail(&inner.whole, "list.items: is missing");
	if (!rc)
		rc = snapshot_read_items(s, &inner.items, "", "");
	document_fini(&inner);
	return rc ? rc : snapshot_read_usage(s, &usage, "usage.");
}

int snapshot_use_view(struct snapshot *s, struct view *v, int64_t now_ns, const char *state,
		      size_t len, struct error *error)
{
	const struct snapshot_text t = {"the record", state, state, state + len, error};
	cJSON *doc = cJSON_ParseWithLength(state, len);
	int rc;

	s->own = true;
	s->view = v;
	s->time_ns = now_ns;
	rc = read_state(s, &t, doc);
	cJSON_Delete(doc);
	return rc;
}

int snapshot_set_sources(struct model *m, const char *sources, size_t len, struct error *error)
{
	const struct snapshot_text t = {"the record", sources, sources, sources + len, error};
	cJSON *list = cJSON_ParseWithLength(sources, len);
	struct snapshot *s = snapshot_new();
	int rc = list ? read_sources(s, &t, list) : snapshot_text_fail(&t, "sources: is no JSON");

	for (int k = 0; k < OBJECT_KINDS && !rc; k++)
		model_set_source(m, (enum object_kind)k, &s->sources[k]);
	snapshot_free(s);
	cJSON_Delete(list);
	return rc;
}

/* --- any document ----------------------------------------------------------------------------- */

/* Right for the aggregator, too, which has no --usage. */
#define MEASUREMENTS                                                                               \
	"which only the command evenkeel takes, as --usage; a snapshot is the cluster's objects"

/* Files that are often mistaken for a snapshot, with the remedy. */
static int refuse(const struct document *d)
{
	const struct snapshot_text *t = &d->whole;

	if (d->error)
		return snapshot_text_fail(t, "this is an aggregator's error: %.200s",
					  object_json_text(d->error, "message"));
	if (strcmp(d->kind, "Usage") == 0)
		return snapshot_text_fail(t, "this is a Usage object, " MEASUREMENTS);
	if (d->has_data && !*d->kind)
		return snapshot_text_fail(t, "this is an answer of /watcher, " MEASUREMENTS);
	if (strncmp(d->version, EVENKEEL, strlen(EVENKEEL)) == 0)
		return snapshot_text_fail(t,
					  "this is a %s of evenkeel's API, which has no more than "
					  "was asked for; take GET /v1/snapshot",
					  d->kind);
	return snapshot_text_fail(t, "this has no kind: give what kubectl prints with -o json or "
				     "-o yaml, or what GET /v1/snapshot does");
}

static int read_document(struct snapshot *s, struct snapshot_text *t)
{
	char kind[SNAPSHOT_KEY_MAX];
	struct snapshot_text single;
	struct document d;
	int rc = look_through(&d, t);
	size_t len = strlen(d.kind);

	single = d.whole;
	s->documents++;
	if (rc)
		goto free_document;
	if (s->own) {
		rc = snapshot_text_fail(
			&d.whole, "a Snapshot was given, which holds everything; give it alone");
	} else if (!*d.kind || (strncmp(d.version, EVENKEEL, strlen(EVENKEEL)) == 0 &&
				strcmp(d.kind, "Snapshot") != 0)) {
		rc = refuse(&d);
	} else if (strcmp(d.kind, "Snapshot") == 0) {
		rc = read_snapshot(s, &d);
	} else if (len >= 4 && strcmp(d.kind + len - 4, "List") == 0 && d.items.at) {
		snprintf(kind, sizeof(kind), "%.*s", (int)len - 4, d.kind); /* of "PodList" */
		rc = snapshot_read_items(s, &d.items, d.version, kind);
	} else {
		rc = snapshot_read_item(s, &single, "", "", 0);
	}
free_document:
	document_fini(&d);
	return rc;
}

/* The text, or what it is as JSON, which then is in *json. */
static int as_json(struct snapshot_text *t, struct buf *json)
{
	const struct yaml_json_limits limits = {YAML_DEPTH_MAX, YAML_BYTES_MAX};
	struct snapshot_text at = *t;
	size_t documents;

	if (t->end - t->at >= 3 && memcmp(t->at, "\xEF\xBB\xBF", 3) == 0)
		at.at += 3;
	if (snapshot_text_more(&at) && *at.at == '{') {
		*t = at;
		return 0;
	}
	if (yaml_json_convert(t->name, t->start, (size_t)(t->end - t->start), &limits, json,
			      &documents, t->error))
		return -EINVAL;
	t->start = t->at = json->data ? json->data : "";
	t->end = t->start + json->len;
	return 0;
}

int snapshot_add(struct snapshot *s, const char *name, const char *text, size_t len,
		 struct error *error)
{
	struct snapshot_text t = {name, text, text, text + len, error};
	size_t before = s->documents;
	struct buf json = BUF_INIT;
	int rc = as_json(&t, &json);

	while (!rc && snapshot_text_more(&t))
		rc = read_document(s, &t);
	if (!rc && s->documents == before)
		rc = error_fail(error, -EINVAL, "%s: there is nothing in it", name);
	buf_fini(&json);
	return rc;
}

/* The document at hand; *t is behind it then. */
static int read_measurements(struct snapshot *s, struct snapshot_text *t)
{
	struct document d;
	cJSON *doc = NULL;
	int rc = look_through(&d, t);

	if (rc)
		goto free_document;
	if (strcmp(d.kind, "Usage") == 0) {
		rc = snapshot_read_usage(s, &d.whole, "");
	} else if (d.error) {
		rc = refuse(&d);
	} else if (*d.kind) {
		bool own = strcmp(d.kind, "Snapshot") == 0;

		rc = snapshot_text_fail(
			&d.whole,
			"this is a %s; --usage takes a Usage object, or an answer of /watcher%s",
			d.kind, own ? "; give it as the snapshot" : "");
	} else {
		struct snapshot_text whole = d.whole;

		rc = snapshot_text_parse(&whole, &doc);
		if (!rc)
			rc = snapshot_read_watcher(s, &d.whole, doc);
	}
free_document:
	cJSON_Delete(doc);
	document_fini(&d);
	return rc;
}

int snapshot_add_usage(struct snapshot *s, const char *name, const char *text, size_t len,
		       struct error *error)
{
	struct snapshot_text t = {name, text, text, text + len, error};
	struct buf json = BUF_INIT;
	int rc;

	snprintf(s->usage_name, sizeof(s->usage_name), "%s", name);
	if (s->own)
		return error_fail(error, -EINVAL,
				  "%s: a Snapshot has measurements of its own; give it alone",
				  name);
	rc = as_json(&t, &json);
	if (!rc && !snapshot_text_more(&t))
		rc = error_fail(error, -EINVAL, "%s: there is nothing in it", name);
	if (!rc)
		rc = read_measurements(s, &t);
	if (!rc && snapshot_text_more(&t))
		rc = snapshot_text_fail(&t, "there is more behind the measurements");
	buf_fini(&json);
	return rc;
}

/* --- the view --------------------------------------------------------------------------------- */

static int64_t moment(const struct snapshot *s)
{
	if (s->own)
		return s->time_ns;
	return s->usage_ns ? s->usage_ns : s->object_ns;
}

static void set_sources(struct snapshot *s, int64_t now_ns)
{
	for (int k = 0; k < OBJECT_KINDS; k++) {
		struct model_source *source = &s->sources[k];

		if (!s->own) {
			source->state = s->seen[k] ? SOURCE_SNAPSHOT : SOURCE_NONE;
			source->changed_ns = now_ns;
			if (!s->seen[k])
				snprintf(source->message, sizeof(source->message),
					 "no %s is in the files",
					 object_kind_name((enum object_kind)k));
		}
		model_set_source(s->model, (enum object_kind)k, source);
	}
}

static int check_objects(const struct snapshot *s, struct error *error)
{
	if (s->own || s->objects || s->notes.skipped)
		return 0;
	return error_fail(error, -EINVAL,
			  "nothing of what evenkeel looks at is in the snapshot%s%s",
			  s->unused ? ", only objects of other kinds: " : "", s->unused_kinds);
}

int snapshot_take_model(struct snapshot *s, struct model **m, struct error *error)
{
	int rc = check_objects(s, error);

	if (rc)
		return rc;
	set_sources(s, moment(s));
	*m = s->model;
	s->model = NULL;
	return 0;
}

struct reservations *snapshot_take_reservations(struct snapshot *s)
{
	struct reservations *set = s->reservations;

	s->reservations = NULL;
	return set;
}

void snapshot_take_memory(struct snapshot *s, struct plan_memory *m)
{
	*m = s->memory;
	s->memory = (struct plan_memory){0};
}

int snapshot_view(struct snapshot *s, struct view **v, int64_t *now_ns, struct error *error)
{
	struct node_stats **node_stats;
	size_t count;

	*now_ns = moment(s);
	if (s->view) {
		*v = s->view;
		s->view = NULL;
		return 0;
	}
	if (check_objects(s, error))
		return -EINVAL;
	snapshot_use_watcher(s);
	if (stats_json_set_stats(s->node_stats, &node_stats, &count, error))
		return -EINVAL;
	set_sources(s, *now_ns);
	*v = join_view(s->join, node_stats, count, s->standalone ? NULL : model_cluster(s->model),
		       *now_ns);
	for (size_t i = 0; i < count; i++)
		node_stats_drop(node_stats[i]);
	free(node_stats);
	return 0;
}
