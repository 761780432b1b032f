/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a dump: objects, one by one, into the model, or into the notes of what is left out;
 * a Usage object, item by item; and what was reserved.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/snapshot_state.h"
#include "aggregator/model/object_json.h"
#include "aggregator/policy/arith.h"
#include "shared/document.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/timefmt.h"

/*
 * --- objects
 *
 * The first of two objects of one name counts, so the result depends on the files alone.
 */

static void see_time(struct snapshot *s, const cJSON *object, const char *path)
{
	int64_t ns;

	if (timefmt_parse(document_text_or(object, path, ""), &ns, NULL) == 0)
		snapshot_saw_time(&s->object_ns, ns);
}

static void see_times(struct snapshot *s, const cJSON *item)
{
	const cJSON *conditions = document_at(item, "status.conditions"), *condition;

	see_time(s, item, "metadata.creationTimestamp");
	see_time(s, item, "status.startTime");
	cJSON_ArrayForEach (condition, conditions) {
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
	const char *name = document_text_or(item, "metadata.name", "");
	char *text = mem_printf("%s%s%s", field, *field ? ": " : "", why);

	unreadables_put(&s->sources[kind].unreadable,
			document_text_or(item, "metadata.namespace", ""),
			*name ? name : "without a name",
			document_text_or(item, "spec.nodeName", ""), text);
	free(text);
}

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
	if (!strstr(s->unused_kinds, kind) && len + strlen(kind) + 3 < sizeof(s->unused_kinds))
		snprintf(s->unused_kinds + len, sizeof(s->unused_kinds) - len, "%s%s",
			 len ? ", " : "", kind);
}

static int add_object(struct snapshot *s, const struct snapshot_text *t, const char *version,
		      const char *kind_name, cJSON *item)
{
	char field[OBJECT_FIELD_MAX] = "", name[160];
	struct error why = {""};
	enum object_kind kind;
	struct object *o;

	if (object_kind_find(version, kind_name, &kind)) {
		if (s->own)
			return snapshot_text_fail(t, "a Snapshot holds no %.64s (%.64s)", kind_name,
						  version);
		pass_over(s, kind_name);
		return 0;
	}
	if (!s->own) {
		struct model_source *source = &s->sources[kind];

		/*
		 * Of several versions the last by name, so that the order of items does not matter.
		 * A Snapshot tells it in its sources.
		 */
		s->seen[kind] = true;
		if (strcmp(version, source->api_version) > 0)
			snprintf(source->api_version, sizeof(source->api_version), "%s", version);
	}
	see_times(s, item);
	if (*version && !*object_json_text(item, "apiVersion")) {
		cJSON_DeleteItemFromObjectCaseSensitive(item, "apiVersion");
		cJSON_AddStringToObject(item, "apiVersion", version);
	}
	if (object_read(kind, item, &o, field, &why)) {
		name_object(kind_name, document_text_or(item, "metadata.namespace", ""),
			    document_text_or(item, "metadata.name", ""), name);
		skip_object(s, kind, t->name, name, field, why.text);
		note_unreadable(s, kind, item, field, why.text);
		return 0;
	}
	put(s, t->name, o);
	return 0;
}

/*
 * An item that is no object of Kubernetes is named by its place; a typed list gives its kind.
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
	own_kind = object_json_text(item, "kind");
	if (!cJSON_IsObject(item))
		skip_item(s, t->name, version, kind, index, "must be an object of Kubernetes");
	else if (*own_kind)
		rc = add_object(s, &before, object_json_text(item, "apiVersion"), own_kind, item);
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

/*
 * --- usage
 *
 * An error ends the reading; values that contradict each other are left out and noted.
 */

typedef int add_item(struct stats_json_set *set, cJSON *item, char field[JSON_IO_FIELD_MAX],
		     struct error *error);

/* path, list: "usage.", "nodes" */
static int read_item(struct snapshot *s, struct snapshot_text *t, const char *path,
		     const char *list, size_t index, add_item *add)
{
	const struct snapshot_text before = *t;
	char field[JSON_IO_FIELD_MAX] = "", name[ENTITY_NAME_MAX + 1];
	struct error why = {""};
	cJSON *item;
	const char *end;
	int64_t ns;

	if (snapshot_text_parse(t, &item))
		return -EINVAL;
	end = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "end"));
	if (end && timefmt_parse(end, &ns, NULL) == 0)
		snapshot_saw_time(&s->usage_ns, ns);
	snprintf(name, sizeof(name), "%s", object_json_text(item, "name"));
	if (add(s->node_stats, item, field, &why))
		return snapshot_text_fail(&before, "%s%s[%zu]%s%s: %s", path, list, index,
					  *field ? "." : "", field, why.text);
	if (why.text[0])
		snapshot_note(s, true, "%s: left out %s%s[%zu] (%s).%s", t->name, path, list, index,
			      name, why.text);
	return 0;
}

static int read_list(struct snapshot *s, struct snapshot_text *t, const char *path,
		     const char *list, add_item *add)
{
	bool first = true;
	size_t index = 0;
	int rc = snapshot_text_open(t, '[');

	while (rc == 0 && (rc = snapshot_text_item(t, &first)) == 1)
		rc = read_item(s, t, path, list, index++, add);
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
		rc = snapshot_text_fail(&before, "%s%s: must be %s, not \"%.64s\"", path, key, want,
					got ? got : "");
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
					  "%stime: must be a time such as 2026-01-31T12:00:00Z",
					  path);
	snapshot_saw_time(&s->usage_ns, ns);
	return 0;
}

static int read_member(struct snapshot *s, struct snapshot_text *t, const char *path,
		       const char *key)
{
	if (strcmp(key, "apiVersion") == 0)
		return check_text(t, path, key, STATS_JSON_VERSION);
	if (strcmp(key, "kind") == 0)
		return check_text(t, path, key, "Usage");
	if (strcmp(key, "time") == 0)
		return read_time(s, t, path);
	if (strcmp(key, "nodes") == 0)
		return read_list(s, t, path, key, stats_json_add_node);
	if (strcmp(key, "pods") == 0)
		return read_list(s, t, path, key, stats_json_add_pod);
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

/*
 * --- reservations: so that the command line scores as the aggregator would have
 *
 * Reservations that the objects show already are not written, so none depends on generations of the
 * former model.
 *
 *   "ledger":[{"namespace","name","uid","state"[,"node"],"requests":{"cpu":"500m",..},"expectedCpuMillicores","priority",
 *              "made","expires"},..]
 */

/* As quantities of Kubernetes. */
static void write_requests(struct jsonw *w, const struct resources *r)
{
	const char *name;
	char text[32];
	int64_t amount;
	size_t at = 0;

	jsonw_key_object(w, "requests");
	while (resources_next(r, &at, &name, &amount)) {
		bool milli = name == resource_name(RESOURCE_CPU);

		snprintf(text, sizeof(text), "%" PRId64 "%s", amount, milli ? "m" : "");
		jsonw_key_string(w, name, text);
	}
	jsonw_object_close(w);
}

void snapshot_write_reservation(struct jsonw *w, const struct reservation *e)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "namespace", e->namespace);
	jsonw_key_string(w, "name", e->name);
	jsonw_key_string(w, "uid", e->uid);
	jsonw_key_string(w, "state", reservations_state_name(e->state));
	jsonw_key_text(w, "node", e->node);
	write_requests(w, &e->requests);
	jsonw_key_int(w, "expectedCpuMillicores", e->expected_cpu_milli);
	jsonw_key_int(w, "expectedHighCpuMillicores", e->expected_high_cpu_milli);
	jsonw_key_int(w, "expectedMemoryBytes", e->expected_mem_bytes);
	jsonw_key_int(w, "priority", e->priority);
	jsonw_key_time_exact(w, "made", e->made_ns);
	jsonw_key_time_exact(w, "expires", e->expires_ns);
	jsonw_object_close(w);
}

/* Sets *bad if the member is no number within the bounds. */
static double read_number(const cJSON *item, const char *name, double least, double most, bool *bad)
{
	double number = cJSON_GetNumberValue(object_json_find(item, name));
	bool good = number >= least && number <= most;

	*bad |= !good;
	return good ? number : 0;
}

static int read_entry(struct snapshot *s, const struct snapshot_text *t, const cJSON *item,
		      size_t index)
{
	char field[OBJECT_FIELD_MAX] = "";
	struct error why = {""};
	struct object_fault fault = {field, sizeof(field), &why, false};
	const struct object_json of = {item, &fault, NULL, "", 0};
	struct reservation e = {
		.uid = object_json_text(item, "uid"),
		.namespace = object_json_text(item, "namespace"),
		.name = object_json_text(item, "name"),
		.node = object_json_text(item, "node"),
	};
	bool bad = !cJSON_IsObject(item) || !*e.uid || !*e.name;
	int rc = -EINVAL;

	e.expected_cpu_milli =
		round_saturating(read_number(item, "expectedCpuMillicores", 0, 0x1p63, &bad));
	e.expected_high_cpu_milli =
		round_saturating(read_number(item, "expectedHighCpuMillicores", 0, 0x1p63, &bad));
	e.expected_mem_bytes =
		round_saturating(read_number(item, "expectedMemoryBytes", 0, 0x1p63, &bad));
	e.priority = (int32_t)read_number(item, "priority", INT32_MIN, INT32_MAX, &bad);
	if (bad)
		return snapshot_text_fail(t,
					  "state.ledger[%zu]: must be a reservation with uid, "
					  "name, expectedCpuMillicores, expectedHighCpuMillicores, "
					  "expectedMemoryBytes and priority",
					  index);
	object_json_resources(&of, "requests", &e.requests);
	if (fault.found)
		snapshot_text_fail(t, "state.ledger[%zu].%.160s: %.200s", index, field, why.text);
	else if ((rc = reservations_reserve(s->reservations, &e, s->time_ns)) != 0)
		snapshot_text_fail(t, "state.ledger[%zu]: is too long, or one too many", index);
	resources_fini(&e.requests);
	return rc ? -EINVAL : 0;
}

int snapshot_read_reservations(struct snapshot *s, const struct snapshot_text *t, const cJSON *list)
{
	size_t index = 0;

	if (!list)
		return 0;
	if (!cJSON_IsArray(list))
		return snapshot_text_fail(t, "state.ledger: must be a list");
	for (const cJSON *item = list->child; item; item = item->next)
		if (read_entry(s, t, item, index++))
			return -EINVAL;
	return 0;
}
