/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /openapi.json: an OpenAPI 3.1 document of all routes, from the table by which requests are
 * routed and checked (route.h).
 *
 * Each object that is answered has a schema with what all of them share: apiVersion, kind, time,
 * and items where it is a list. A refusal is an Error, whatever its status. A path that answers any
 * method is told with GET.
 *
 * Which credentials a server wants is its operator's choice (packaging/docs/access.md), so all are
 * told, and that it may want none; health never does. 3.1 is the first version that has a word for
 * client certificates.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/route.h"
#include "shared/jsonw.h"

/* clang-format off */
#define INFO \
	"{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"evenkeel\",\"description\":" \
	"\"What machines really have left, and what may safely be done with it.\"," \
	"\"version\":\"" EVENKEEL_VERSION "\",\"license\":{\"name\":\"Apache-2.0\"}},"
/* Any of these; the empty one stands for a server that lets in everybody. */
#define SECURITY "\"security\":[{\"bearer\":[]},{\"clientCertificate\":[]},{}],"
#define SCHEMES \
	"\"securitySchemes\":{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":" \
	"\"One of the server's --token-file, or with --token-review one that the Kubernetes API " \
	"knows.\"},\"clientCertificate\":{\"type\":\"mutualTLS\",\"description\":" \
	"\"Signed by an authority of the server's --tls-client-ca.\"}},"
#define TEXT "{\"type\":\"string\"}"
/* Schema of an answer. Arguments: ",\"items\"" or "", the kind, and ITEMS or "". */
#define KIND \
	"{\"type\":\"object\",\"required\":[\"apiVersion\",\"kind\",\"time\"%s],\"properties\":" \
	"{\"apiVersion\":{\"type\":\"string\",\"enum\":[\"evenkeel.io/v1\"]},\"kind\":{\"type\":\"string\",\"enum\":[\"%s\"]}," \
	"\"time\":{\"type\":\"string\",\"format\":\"date-time\"}%s}}"
#define ITEMS ",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
#define ERROR \
	"{\"type\":\"object\",\"properties\":{\"error\":{\"type\":\"object\",\"properties\":" \
	"{\"code\":" TEXT ",\"message\":" TEXT ",\"field\":" TEXT "}}}}"
#define REFUSAL(description) \
	"{\"description\":\"" description "\",\"content\":{\"application/json\":{\"schema\":" \
	"{\"$ref\":\"#/components/schemas/Error\"}}}}"
/* clang-format on */

static void key_json(struct jsonw *w, const char *key, const char *json)
{
	jsonw_key(w, key);
	buf_add_str(jsonw_json(w), json);
}

/* --- schemas ---------------------------------------------------------------------------------- */

static void write_members(struct jsonw *w, const struct api_field *list);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables of route_table.c */
static void write_type(struct jsonw *w, const struct api_field *f)
{
	static const char *const types[] = {
		[API_STRING] = "\"type\":\"string\"",
		[API_INTEGER] = "\"type\":\"integer\",\"minimum\":1",
		[API_BOOLEAN] = "\"type\":\"boolean\"",
		[API_NAMES] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
		[API_OBJECT] = "\"type\":\"object\"",
		[API_POD] = "\"type\":[\"object\",\"string\"]",
		[API_COUNT] = "\"type\":\"integer\",\"minimum\":0",
		[API_NUMBER] = "\"type\":[\"null\",\"number\"],\"minimum\":0",
		[API_TIME] = "\"type\":\"string\",\"format\":\"date-time\"",
		[API_FIGURES] = "\"type\":[\"object\",\"number\"]",
		[API_OBJECTS] = "\"type\":\"array\"",
	};

	jsonw_object_open(w);
	buf_add_str(jsonw_json(w), types[f->type]);
	if (f->type == API_STRING && f->values) {
		jsonw_key_array(w, "enum");
		for (const char *const *v = f->values; *v; v++)
			jsonw_string(w, *v);
		jsonw_array_close(w);
	}
	if (f->of) {
		jsonw_key(w, "items");
		write_members(w, f->of);
	}
	jsonw_key_string(w, "description", f->about);
	jsonw_object_close(w);
}

static void write_kind(struct jsonw *w, const struct route *r)
{
	jsonw_key(w, r->kind);
	buf_printf(jsonw_json(w), KIND, r->list ? ",\"items\"" : "", r->kind, r->list ? ITEMS : "");
}

/* --- a route ---------------------------------------------------------------------------------- */

static void write_parameter(struct jsonw *w, const struct api_field *f, bool in_path)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "name", f->name);
	jsonw_key_string(w, "in", in_path ? "path" : "query");
	jsonw_key_bool(w, "required", in_path || f->required);
	jsonw_key(w, "schema");
	write_type(w, f);
	jsonw_object_close(w);
}

static void write_parameters(struct jsonw *w, const struct route *r)
{
	char name[32];

	jsonw_key_array(w, "parameters");
	for (const char *at = r->path; (at = strchr(at, '{')) != NULL; at++) {
		const struct api_field in_path = {name, API_STRING, NULL, NULL, true, "Which one."};

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, "}"), at + 1);
		write_parameter(w, &in_path, true);
	}
	for (const struct api_field *f = r->query; f && f->name; f++)
		write_parameter(w, f, false);
	jsonw_array_close(w);
}

/* NOLINTNEXTLINE(misc-no-recursion): as write_type() */
static void write_members(struct jsonw *w, const struct api_field *list)
{
	size_t required = 0;

	jsonw_object_open(w);
	jsonw_key_string(w, "type", "object");
	for (const struct api_field *f = list; f->name; f++) {
		if (!f->required)
			continue;
		if (!required++)
			jsonw_key_array(w, "required");
		jsonw_string(w, f->name);
	}
	if (required)
		jsonw_array_close(w);
	jsonw_key_bool(w, "additionalProperties", false);
	jsonw_key_object(w, "properties");
	for (const struct api_field *f = list; f->name; f++) {
		jsonw_key(w, f->name);
		write_type(w, f);
	}
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_body_schema(struct jsonw *w, const struct route *r)
{
	if (r->body) {
		write_members(w, r->body);
		return;
	}
	jsonw_object_open(w);
	jsonw_key_string(w, "type", "object");
	jsonw_key_string(w, "description", r->about);
	jsonw_object_close(w);
}

/* "text/plain; charset=utf-8" is a type and its parameters: the key is all of it. */
static void open_content(struct jsonw *w, const char *type)
{
	jsonw_key_object(w, type);
	jsonw_key(w, "schema");
}

static void write_plain(struct jsonw *w, const char *type)
{
	open_content(w, type);
	buf_add_str(jsonw_json(w),
		    strncmp(type, "application/json", 16) == 0 ? "{\"type\":\"object\"}" : TEXT);
	jsonw_object_close(w);
}

static void write_content(struct jsonw *w, const struct route *r)
{
	jsonw_key_object(w, "content");
	if (r->kind) {
		open_content(w, route_content_type(r));
		buf_printf(jsonw_json(w), "{\"$ref\":\"#/components/schemas/%s\"}", r->kind);
		jsonw_object_close(w);
	} else {
		write_plain(w, route_content_type(r));
	}
	if (r->other_type)
		write_plain(w, r->other_type);
	jsonw_object_close(w);
}

static void write_responses(struct jsonw *w, const struct route *r, bool guarded)
{
	jsonw_key_object(w, "responses");
	jsonw_key_object(w, r->status == 202 ? "202" : "200");
	jsonw_key_string(w, "description", r->kind ? r->kind : r->summary);
	if (route_content_type(r))
		write_content(w, r);
	jsonw_object_close(w);
	if (guarded) {
		key_json(w, "401", REFUSAL("No credentials, or none that are known"));
		key_json(w, "403", REFUSAL("The token's owner may not"));
		key_json(w, "429", REFUSAL("Too many requests come from this address"));
	}
	key_json(w, "default", REFUSAL("A refusal"));
	jsonw_object_close(w);
}

/* "GET /v1/nodes/{name}" is getV1NodesName. */
static void write_id(struct jsonw *w, const char *method, const struct route *r)
{
	char id[128];
	size_t len = (size_t)snprintf(id, sizeof(id), "%s", method);
	bool begins = true;

	for (const char *at = r->path; *at && len < sizeof(id) - 1; at++) {
		if (isalnum((unsigned char)*at))
			id[len++] = (char)(begins ? toupper((unsigned char)*at) : *at);
		begins = !isalnum((unsigned char)*at);
	}
	id[len] = '\0';
	jsonw_key_string(w, "operationId", id);
}

static void write_operation(struct jsonw *w, const struct route *r)
{
	bool guarded = api_access_class(r->path) != API_ACCESS_PUBLIC;
	const char *method = "get";

	if (route_is_posted(r))
		method = strcmp(r->method, "PUT") == 0 ? "put" : "post";
	jsonw_key_object(w, method);
	write_id(w, method, r);
	jsonw_key_string(w, "summary", r->summary);
	write_parameters(w, r);
	if (route_is_posted(r)) {
		jsonw_key_object(w, "requestBody");
		jsonw_key_bool(w, "required", true);
		jsonw_key_object(w, "content");
		open_content(w, "application/json");
		write_body_schema(w, r);
		jsonw_object_close(w);
		jsonw_object_close(w);
		jsonw_object_close(w);
	}
	write_responses(w, r, guarded);
	if (!guarded) {
		jsonw_key_array(w, "security");
		jsonw_array_close(w);
	}
	jsonw_object_close(w);
}

static void write_paths(struct jsonw *w)
{
	const char *path = "";

	jsonw_key_object(w, "paths");
	for (const struct route *r = api_routes; r->path; r++) {
		if (strcmp(path, r->path) != 0)
			jsonw_key_object(w, r->path);
		path = r->path;
		write_operation(w, r);
		if (!r[1].path || strcmp(path, r[1].path) != 0)
			jsonw_object_close(w);
	}
	jsonw_object_close(w);
}

/* Each once: routes may answer the same one. */
static void write_schemas(struct jsonw *w)
{
	jsonw_key_object(w, "schemas");
	key_json(w, "Error", ERROR);
	for (const struct route *r = api_routes; r->path; r++) {
		const struct route *first = api_routes;

		while (r->kind && !(first->kind && strcmp(first->kind, r->kind) == 0))
			first++;
		if (r->kind && first == r)
			write_kind(w, r);
	}
	jsonw_object_close(w);
}

void api_openapi(const struct api_context *ctx, const struct api_request *rq,
		 struct api_response *rs)
{
	struct jsonw w;

	(void)ctx;
	(void)rq;
	rs->content_type = "application/json";
	jsonw_init(&w, &rs->body);
	buf_add_str(&rs->body, INFO SECURITY);
	write_paths(&w);
	buf_add_str(&rs->body, ",\"components\":{" SCHEMES);
	w.comma = false;
	write_schemas(&w);
	buf_add_str(&rs->body, "}}\n");
}
