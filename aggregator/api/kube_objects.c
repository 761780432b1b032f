/* SPDX-License-Identifier: Apache-2.0 */
/*
 * {"items":[{"name":"a",..},..],"continue":"T"}
 *     --> {"items":[{"metadata":{"name":"a"},"name":"a",..},..],"continue":"T","metadata":{"continue":"T"}}
 *     --> {"kind":"Table",..,"rows":[{"cells":["a",..],"object":{..,"metadata":{"name":"a"}}},..],"metadata":{..}}
 *
 * Answers are written without metadata, which only clients of the API server read. The items are
 * parsed one by one and otherwise copied: a tree of a whole list would take ten times its size.
 */
#include "aggregator/api/kube_objects.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "shared/document.h"

enum { COLUMNS_MAX = 4 };

struct column {
	const char *title;
	const char *path; /* of the value in an item; of a list the text of the first */
	double unit; /* of the title, in that of the value; 0: a text */
};

#define CPU    "usage.cpuMillicores.latest.value"
#define MEMORY "usage.workingSetBytes.latest.value"
#define MIB    (1 << 20)

/* The name of an item is what the path of a single object has; columns follow it. */
static const struct form {
	const char *resource;
	const char *name;
	struct column columns[COLUMNS_MAX];
} forms[] = {
	{"nodes",
	 "name",
	 {{"State", "source.state", 0}, {"CPU(m)", CPU, 1}, {"Memory(Mi)", MEMORY, MIB}}},
	{"pods", "name", {{"Node", "node", 0}, {"CPU(m)", CPU, 1}, {"Memory(Mi)", MEMORY, MIB}}},
	{"quotas", "namespace", {{"Verdict", "verdict", 0}}},
	{"slacks",
	 "name",
	 {{"Verdict", "verdict", 0}, {"Wanted", "wanted", 1}, {"Placed", "placed", 1}}},
	{"drains", "name", {{"Verdict", "verdict", 0}, {"Reason", "reasons", 0}}},
};

static const struct form *form_of(const char *resource)
{
	static const struct form other = {.name = "name"};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (strcmp(forms[i].resource, resource) == 0)
			return &forms[i];
	return &other;
}

/* --- tables ----------------------------------------------------------------------------------- */

bool kube_objects_want_table(const struct api_request *rq)
{
	const char *accept = rq->header ? rq->header(rq, "Accept") : NULL;

	return accept && strstr(accept, "as=Table");
}

void kube_objects_open_table(struct jsonw *w, const char *const *columns)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "kind", "Table");
	jsonw_key_string(w, "apiVersion", "meta.k8s.io/v1");
	jsonw_key_array(w, "columnDefinitions");
	for (size_t i = 0; columns[i]; i++) {
		jsonw_object_open(w);
		jsonw_key_string(w, "name", columns[i]);
		jsonw_key_string(w, "type", "string");
		jsonw_key_string(w, "format", i ? "" : "name");
		jsonw_key_string(w, "description", "");
		jsonw_key_int(w, "priority", 0);
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
	jsonw_key_array(w, "rows");
}

void kube_objects_open_row(struct jsonw *w, const char *name)
{
	jsonw_object_open(w);
	jsonw_key_array(w, "cells");
	jsonw_string(w, name);
}

void kube_objects_open_row_object(struct jsonw *w)
{
	jsonw_key_object(w, "object");
	jsonw_key_string(w, "kind", "PartialObjectMetadata");
	jsonw_key_string(w, "apiVersion", "meta.k8s.io/v1");
}

/* --- items ------------------------------------------------------------------------------------ */

/* An answer that is changed. */
struct change {
	const struct form *form;
	const char *name; /* of the path; "": of each item */
	bool table;
	const char *end; /* of the answer */
	struct jsonw w;
};

/* Items without a name, such as scores and decisions about drains, are about a node. */
static const char *name_of(const struct change *c, const cJSON *item)
{
	return *c->name ? c->name
			: document_text_or(item, c->form->name, document_text_or(item, "node", ""));
}

static void write_metadata(struct change *c, const cJSON *item)
{
	jsonw_key_object(&c->w, "metadata");
	jsonw_key_string(&c->w, "name", name_of(c, item));
	if (strcmp(c->form->name, "namespace") != 0)
		jsonw_key_text(&c->w, "namespace", document_text(item, "namespace"));
	jsonw_object_close(&c->w);
}

static void write_cell(struct jsonw *w, const struct column *column, const cJSON *item)
{
	const cJSON *value = document_at(item, column->path);
	char text[32] = "";

	if (cJSON_IsArray(value))
		value = document_at(value->child, "text");
	if (column->unit > 0 && cJSON_IsNumber(value))
		snprintf(text, sizeof(text), "%.0f", value->valuedouble / column->unit);
	jsonw_string(w, cJSON_IsString(value) ? value->valuestring : text);
}

/* Copies or lists the object that begins there, which has members; what follows it. */
static const char *write_item(struct change *c, const char *at)
{
	const char *end;
	cJSON *item = cJSON_ParseWithLengthOpts(at, (size_t)(c->end - at), &end, false);

	assert(cJSON_IsObject(item) && item->child);
	if (c->table) {
		kube_objects_open_row(&c->w, name_of(c, item));
		for (size_t i = 0; i < COLUMNS_MAX && c->form->columns[i].title; i++)
			write_cell(&c->w, &c->form->columns[i], item);
		jsonw_array_close(&c->w);
		kube_objects_open_row_object(&c->w);
		write_metadata(c, item);
		jsonw_object_close(&c->w);
		jsonw_object_close(&c->w);
	} else {
		jsonw_object_open(&c->w);
		write_metadata(c, item); /* the kind is inferred from the list's */
		buf_add_char(c->w.out, ',');
		buf_add(c->w.out, at + 1, (size_t)(end - at) - 1);
		c->w.comma = true;
	}
	cJSON_Delete(item);
	return end;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void open_table(struct change *c)
{
	const char *titles[COLUMNS_MAX + 2] = {"Name"};

	for (size_t i = 0; i < COLUMNS_MAX; i++)
		titles[i + 1] = c->form->columns[i].title;
	kube_objects_open_table(&c->w, titles);
}

static void write_continue(struct change *c, const char *rest)
{
	static const char key[] = "\"continue\":\"";
	const char *token = strstr(rest, key);

	jsonw_key_object(&c->w, "metadata");
	if (token) {
		token += strlen(key);
		jsonw_key(&c->w, "continue");
		jsonw_text(&c->w, token, strcspn(token, "\""));
	}
	jsonw_object_close(&c->w);
	jsonw_object_close(&c->w);
	buf_add_char(c->w.out, '\n');
}

static void write_list(struct change *c, const char *text, const char *items)
{
	const char *at = items;

	if (c->table)
		open_table(c);
	else
		buf_add(c->w.out, text, (size_t)(items - text));
	while (*at == '{') {
		at = write_item(c, at);
		at += *at == ',';
	}
	if (c->table)
		jsonw_array_close(&c->w);
	else
		buf_add(c->w.out, at, (size_t)(strrchr(at, '}') - at));
	c->w.comma = true;
	write_continue(c, at);
}

static void write_one(struct change *c, const char *text)
{
	if (c->table)
		open_table(c);
	write_item(c, text);
	if (c->table) {
		jsonw_array_close(&c->w);
		jsonw_object_close(&c->w);
	}
	buf_add_char(c->w.out, '\n');
}

void kube_objects_of(const struct api_request *rq, const struct access_request *path,
		     struct api_response *rs)
{
	static const char items[] = "\"items\":[";
	struct change c = {.form = form_of(path->resource), .table = kube_objects_want_table(rq)};
	struct buf changed = BUF_INIT;
	const char *list;

	if (rs->status != 200 || !rs->body.len || rs->body.data[0] != '{' || path->subresource[0])
		return;
	c.end = rs->body.data + rs->body.len;
	jsonw_init(&c.w, &changed);
	list = strstr(rs->body.data, items);
	c.name = list ? "" : path->name[0] ? path->name : path->resource;
	if (list)
		write_list(&c, rs->body.data, list + strlen(items));
	else
		write_one(&c, rs->body.data);
	buf_fini(&rs->body);
	rs->body = changed;
	if (rs->etag && c.table)
		rs->etag ^= 1;
}
