/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question is walked member by member (extender_scan.h). The pod and the names become trees. A list of whole nodes,
 * which may be a hundred megabytes, does not: of each item a tree is made for its name and thrown away, and what
 * passes is answered with the text it was sent as.
 */
#include "aggregator/api/extender_json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "aggregator/api/extender_scan.h"
#include "shared/jsonw.h"
#include "shared/mem.h"

struct parser {
	char *field;
	struct reason *reason;
};

static int fail(const struct parser *p, const char *why, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(const struct parser *p, const char *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->field, EXTENDER_FIELD_MAX, format, args);
	va_end(args);
	reason_set(p->reason, "%s", why);
	return -EINVAL;
}

static bool is_null(const struct extender_text *t)
{
	return t->len == 0 || (t->len == 4 && memcmp(t->at, "null", 4) == 0);
}

/* Of a key with its quotes. */
static bool is_key(const char *key, size_t len, const char *name)
{
	return len == strlen(name) + 2 && strncasecmp(key + 1, name, len - 2) == 0;
}

/* --- members of an object, whatever their case ---------------------------------------------------------------------- */

struct member {
	const char *name;
	struct extender_text *text;
};

/* One that nobody asked for must be JSON all the same. */
static int check_other(const struct parser *p, const char *path, const char *key, size_t key_len,
		       const struct extender_text *t)
{
	cJSON *tree = extender_scan_parse(t->at, t->len), *name = extender_scan_parse(key, key_len);
	bool ok = tree && cJSON_IsString(name);

	cJSON_Delete(tree);
	cJSON_Delete(name);
	return ok ? 0
		  : fail(p, "is not JSON", "%s%.*s", path, (int)(key_len < 66 ? key_len : 66), key);
}

static int find_members(const struct parser *p, const char *path, struct extender_text object,
			const struct member *members, size_t count)
{
	struct extender_scan s;
	struct extender_text t;
	const char *key;
	size_t key_len;
	int rc = 0;

	if (!extender_scan_open(&s, object.at, object.len, '{'))
		return fail(p, "must be a JSON object", "%s", path);
	while (!rc && extender_scan_member(&s, &key, &key_len, &t.at, &t.len)) {
		size_t i = 0;

		while (i < count && !is_key(key, key_len, members[i].name))
			i++;
		if (i < count)
			*members[i].text = t;
		else
			rc = check_other(p, path, key, key_len, &t);
	}
	return !rc && s.broken ? fail(p, "is not JSON", "%s", path) : rc;
}

static int parse_pod(const struct parser *p, const struct extender_text *t, cJSON **pod)
{
	if (is_null(t))
		return fail(p, "is missing", "Pod");
	*pod = extender_scan_parse(t->at, t->len);
	if (!*pod)
		return fail(p, "is not JSON", "Pod");
	return cJSON_IsObject(*pod) ? 0 : fail(p, "must be an object", "Pod");
}

/* --- filter and prioritize ------------------------------------------------------------------------------------------ */

static int parse_names(const struct parser *p, const struct extender_text *t,
		       struct extender_args *args)
{
	const cJSON *item;

	args->names = extender_scan_parse(t->at, t->len);
	if (!args->names)
		return fail(p, "is not JSON", "NodeNames");
	if (!cJSON_IsArray(args->names))
		return fail(p, "must be a list of node names", "NodeNames");
	args->nodes = mem_zalloc((size_t)cJSON_GetArraySize(args->names) + 1, sizeof(*args->nodes));
	for (item = args->names->child; item; item = item->next) {
		if (!cJSON_IsString(item))
			return fail(p, "must be the name of a node", "NodeNames[%zu]", args->count);
		args->nodes[args->count++].name = item->valuestring;
	}
	return 0;
}

/* The name goes to the arena, which may move: until all are there, a name's place in it stands for it. */
static int parse_node(const struct parser *p, const struct extender_text *t,
		      struct extender_args *args, size_t *place)
{
	cJSON *node = extender_scan_parse(t->at, t->len);
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(node, "metadata");
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "name"));
	size_t i = args->count;
	int rc = 0;

	*place = args->arena.len;
	if (!node)
		rc = fail(p, "is not JSON", "Nodes.items[%zu]", i);
	else if (!name || !*name)
		rc = fail(p, "must be a node with a name", "Nodes.items[%zu].metadata.name", i);
	else
		buf_add(&args->arena, name, strlen(name) + 1);
	cJSON_Delete(node);
	return rc;
}

static int parse_items(const struct parser *p, const struct extender_text *items,
		       struct extender_args *args)
{
	struct extender_text t;
	size_t room = 0, *places = NULL;
	struct extender_scan s;
	int rc = 0;

	if (!extender_scan_open(&s, items->at, items->len, '['))
		return fail(p, "must be a list of nodes", "Nodes.items");
	while (!rc && extender_scan_item(&s, &t.at, &t.len)) {
		if (args->count == room) {
			room = room ? 2 * room : 64;
			args->nodes = mem_realloc(args->nodes, room * sizeof(*args->nodes));
			places = mem_realloc(places, room * sizeof(*places));
		}
		rc = parse_node(p, &t, args, &places[args->count]);
		if (!rc)
			args->nodes[args->count++].text = t;
	}
	if (!rc && s.broken)
		rc = fail(p, "is not JSON", "Nodes.items");
	for (size_t i = 0; i < args->count; i++)
		args->nodes[i].name = args->arena.data + places[i];
	free(places);
	return rc;
}

static int parse_nodes(const struct parser *p, const struct extender_text *t,
		       struct extender_args *args)
{
	struct extender_text items = {NULL, 0};
	const struct member members[] = {{"items", &items}};
	int rc = find_members(p, "Nodes", *t, members, 1);

	args->full = true;
	if (rc || is_null(&items))
		return rc;
	return parse_items(p, &items, args);
}

static int parse_args(const struct parser *p, struct extender_text body, struct extender_args *args)
{
	struct extender_text pod = {NULL, 0}, nodes = {NULL, 0}, names = {NULL, 0};
	const struct member members[] = {{"Pod", &pod}, {"Nodes", &nodes}, {"NodeNames", &names}};
	int rc = 0;

	if (memchr(body.at, '\0', body.len))
		return fail(p, "the body must be a JSON object", "%s", "");
	rc = find_members(p, "", body, members, sizeof(members) / sizeof(members[0]));
	if (!rc)
		rc = parse_pod(p, &pod, &args->pod);
	if (rc)
		return rc;
	if (!is_null(&names))
		return parse_names(p, &names, args);
	return is_null(&nodes) ? 0 : parse_nodes(p, &nodes, args);
}

int extender_args_parse(const char *body, size_t len, struct extender_args *args,
			char field[EXTENDER_FIELD_MAX], struct reason *reason)
{
	const struct parser p = {field, reason};
	int rc;

	*args = (struct extender_args){.arena = BUF_INIT};
	field[0] = '\0';
	rc = parse_args(&p, (struct extender_text){body, len}, args);
	if (rc)
		extender_args_fini(args);
	return rc;
}

void extender_args_fini(struct extender_args *args)
{
	cJSON_Delete(args->pod);
	cJSON_Delete(args->names);
	free(args->nodes);
	buf_fini(&args->arena);
	*args = (struct extender_args){.arena = BUF_INIT};
}

static void write_passed(struct jsonw *w, const struct extender_filter_result *r)
{
	if (!r->full) {
		jsonw_key(w, "NodeNames");
		jsonw_array_open(w);
		for (size_t i = 0; i < r->passed_count; i++)
			jsonw_string(w, r->passed[i].name);
		jsonw_array_close(w);
		return;
	}
	buf_add_str(w->out, w->comma ? "," : "");
	buf_add_str(w->out, "\"Nodes\":{\"metadata\":{},\"items\":[");
	for (size_t i = 0; i < r->passed_count; i++) {
		if (i > 0)
			buf_add_char(w->out, ',');
		buf_add(w->out, r->passed[i].text.at, r->passed[i].text.len);
	}
	buf_add_str(w->out, "]}");
	w->comma = true;
}

static void write_refused(struct jsonw *w, const char *key, const struct extender_refused *of,
			  size_t count)
{
	if (!count)
		return;
	jsonw_key(w, key);
	jsonw_object_open(w);
	for (size_t i = 0; i < count; i++)
		jsonw_key_string(w, of[i].node, of[i].why);
	jsonw_object_close(w);
}

void extender_write_filter_result(struct buf *out, const struct extender_filter_result *r)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_object_open(&w);
	write_passed(&w, r);
	write_refused(&w, "FailedNodes", r->failed, r->failed_count);
	write_refused(&w, "FailedAndUnresolvableNodes", r->unresolvable, r->unresolvable_count);
	if (*r->error)
		jsonw_key_string(&w, "Error", r->error);
	jsonw_object_close(&w);
}

void extender_write_priorities(struct buf *out, const struct extender_priority *of, size_t count)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_array_open(&w);
	for (size_t i = 0; i < count; i++) {
		jsonw_object_open(&w);
		jsonw_key_string(&w, "Host", of[i].host);
		jsonw_key_int(&w, "Score", of[i].score);
		jsonw_object_close(&w);
	}
	jsonw_array_close(&w);
}
