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
#include "aggregator/api/view_json.h"
#include "shared/jsonw.h"

/* The ways in, by name. */
#define BEARER	    "bearer"
#define CERTIFICATE "clientCertificate"

/* --- schemas ---------------------------------------------------------------------------------- */

static void write_ref(struct jsonw *w, const char *schema)
{
	char text[96];

	snprintf(text, sizeof(text), "#/components/schemas/%s", schema);
	jsonw_object_open(w);
	jsonw_key_string(w, "$ref", text);
	jsonw_object_close(w);
}

static void write_values(struct jsonw *w, const char *const *values)
{
	jsonw_key_array(w, "enum");
	for (; *values; values++)
		jsonw_string(w, *values);
	jsonw_array_close(w);
}

static void write_members(struct jsonw *w, const struct api_field *list);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables of route_describe.c */
static void write_type(struct jsonw *w, const struct api_field *f)
{
	static const char *const types[] = {
		[API_STRING] = "string",
		[API_INTEGER] = "integer",
		[API_BOOLEAN] = "boolean",
		[API_NAMES] = "array",
		[API_OBJECT] = "object",
		[API_COUNT] = "integer",
		[API_TIME] = "string",
		[API_REPORTED_REQUESTS] = "array",
		[API_REPORTED_NODES] = "array",
		[API_REPORTED_DESTINATIONS] = "array",
		[API_REPORTED_RESCUES] = "array",
		[API_WAVE_NODES] = "array",
	};

	jsonw_object_open(w);
	if (f->type == API_POD || f->type == API_FIGURES || f->type == API_NUMBER) {
		jsonw_key_array(w, "type");
		jsonw_string(w, f->type == API_NUMBER ? "null" : "object");
		jsonw_string(w, f->type == API_POD ? "string" : "number");
		jsonw_array_close(w);
	} else {
		jsonw_key_string(w, "type", types[f->type]);
	}
	if (f->type == API_INTEGER || f->type == API_COUNT || f->type == API_NUMBER)
		jsonw_key_int(w, "minimum", f->type == API_INTEGER);
	if (f->type == API_TIME)
		jsonw_key_string(w, "format", "date-time");
	if (f->type == API_STRING && f->values)
		write_values(w, f->values);
	if (f->type == API_NAMES) {
		jsonw_key_object(w, "items");
		jsonw_key_string(w, "type", "string");
		jsonw_object_close(w);
	}
	if (api_members_of(f->type)) {
		jsonw_key(w, "items");
		write_members(w, api_members_of(f->type));
	}
	jsonw_key_string(w, "description", f->about);
	jsonw_object_close(w);
}

static void write_member(struct jsonw *w, const char *name, const char *type, const char *format)
{
	jsonw_key_object(w, name);
	jsonw_key_string(w, "type", type);
	jsonw_key_text(w, "format", format);
	jsonw_object_close(w);
}

static void write_constant(struct jsonw *w, const char *name, const char *value)
{
	const char *const values[] = {value, NULL};

	jsonw_key_object(w, name);
	jsonw_key_string(w, "type", "string");
	write_values(w, values);
	jsonw_object_close(w);
}

static void write_items(struct jsonw *w)
{
	jsonw_key_object(w, "items");
	jsonw_key_string(w, "type", "array");
	jsonw_key_object(w, "items");
	jsonw_key_string(w, "type", "object");
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_kind(struct jsonw *w, const struct api_description *is)
{
	jsonw_key_object(w, is->kind);
	jsonw_key_string(w, "type", "object");
	jsonw_key_array(w, "required");
	jsonw_string(w, "apiVersion");
	jsonw_string(w, "kind");
	jsonw_string(w, "time");
	if (is->list)
		jsonw_string(w, "items");
	jsonw_array_close(w);
	jsonw_key_object(w, "properties");
	write_constant(w, "apiVersion", "evenkeel.io/v1");
	write_constant(w, "kind", is->kind);
	write_member(w, "time", "string", "date-time");
	if (is->list)
		write_items(w);
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_error(struct jsonw *w)
{
	jsonw_key_object(w, "Error");
	jsonw_key_string(w, "type", "object");
	jsonw_key_object(w, "properties");
	jsonw_key_object(w, "error");
	jsonw_key_string(w, "type", "object");
	jsonw_key_object(w, "properties");
	write_member(w, "code", "string", NULL);
	write_member(w, "message", "string", NULL);
	write_member(w, "field", "string", NULL);
	jsonw_object_close(w);
	jsonw_object_close(w);
	jsonw_object_close(w);
	jsonw_object_close(w);
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
		const struct api_field in_path = {name, API_STRING, NULL, true, "Which one."};

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, "}"), at + 1);
		write_parameter(w, &in_path, true);
	}
	for (const struct api_field *f = r->is->query; f && f->name; f++)
		write_parameter(w, f, false);
	jsonw_array_close(w);
}

/* NOLINTNEXTLINE(misc-no-recursion): as write_type() */
static void write_members(struct jsonw *w, const struct api_field *list)
{
	bool any = false;

	jsonw_object_open(w);
	jsonw_key_string(w, "type", "object");
	for (const struct api_field *f = list; f->name; f++) {
		if (!f->required)
			continue;
		if (!any) {
			jsonw_key_array(w, "required");
		}
		any = true;
		jsonw_string(w, f->name);
	}
	if (any)
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

static void write_body_schema(struct jsonw *w, const struct api_description *is)
{
	if (is->body) {
		write_members(w, is->body);
		return;
	}
	jsonw_object_open(w);
	jsonw_key_string(w, "type", "object");
	jsonw_key_string(w, "description", is->about);
	jsonw_object_close(w);
}

/* "text/plain; charset=utf-8" is a type and its parameters: the key is all of it. */
static void open_content(struct jsonw *w, const char *type)
{
	jsonw_key_object(w, type);
	jsonw_key(w, "schema");
}

static void write_body(struct jsonw *w, const struct api_description *is)
{
	jsonw_key_object(w, "requestBody");
	jsonw_key_bool(w, "required", true);
	jsonw_key_object(w, "content");
	open_content(w, "application/json");
	write_body_schema(w, is);
	jsonw_object_close(w);
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_plain(struct jsonw *w, const char *type)
{
	jsonw_object_open(w);
	jsonw_key_string(w, "type",
			 strncmp(type, "application/json", 16) == 0 ? "object" : "string");
	jsonw_object_close(w);
}

static void write_content(struct jsonw *w, const struct api_description *is)
{
	jsonw_key_object(w, "content");
	open_content(w, api_content_type(is));
	if (is->kind)
		write_ref(w, is->kind);
	else
		write_plain(w, api_content_type(is));
	jsonw_object_close(w);
	if (is->other_type) {
		open_content(w, is->other_type);
		write_plain(w, is->other_type);
		jsonw_object_close(w);
	}
	jsonw_object_close(w);
}

static void write_refusal(struct jsonw *w, const char *status, const char *description)
{
	jsonw_key_object(w, status);
	jsonw_key_string(w, "description", description);
	jsonw_key_object(w, "content");
	open_content(w, "application/json");
	write_ref(w, "Error");
	jsonw_object_close(w);
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_responses(struct jsonw *w, const struct api_description *is, bool guarded)
{
	jsonw_key_object(w, "responses");
	jsonw_key_object(w, is->status == 202 ? "202" : "200");
	jsonw_key_string(w, "description", is->kind ? is->kind : is->summary);
	if (api_content_type(is))
		write_content(w, is);
	jsonw_object_close(w);
	if (guarded) {
		write_refusal(w, "401", "No credentials, or none that are known");
		write_refusal(w, "403", "The token's owner may not");
		write_refusal(w, "429", "Too many requests come from this address");
	}
	write_refusal(w, "default", "A refusal");
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

	if (r->method && strcmp(r->method, "GET") != 0)
		method = strcmp(r->method, "PUT") == 0 ? "put" : "post";
	jsonw_key_object(w, method);
	write_id(w, method, r);
	jsonw_key_string(w, "summary", r->is->summary);
	write_parameters(w, r);
	if (r->is->posted)
		write_body(w, r->is);
	write_responses(w, r->is, guarded);
	if (!guarded) {
		jsonw_key_array(w, "security");
		jsonw_array_close(w);
	}
	jsonw_object_close(w);
}

/* The methods of a path stand together in the table. */
static void write_paths(struct jsonw *w, const struct route *routes, size_t count)
{
	jsonw_key_object(w, "paths");
	for (size_t i = 0; i < count; i++) {
		if (!i || strcmp(routes[i].path, routes[i - 1].path) != 0)
			jsonw_key_object(w, routes[i].path);
		write_operation(w, &routes[i]);
		if (i + 1 == count || strcmp(routes[i].path, routes[i + 1].path) != 0)
			jsonw_object_close(w);
	}
	jsonw_object_close(w);
}

/* Each once: routes may answer the same one. */
static void write_schemas(struct jsonw *w, const struct route *routes, size_t count)
{
	jsonw_key_object(w, "schemas");
	write_error(w);
	for (size_t i = 0; i < count; i++) {
		size_t first = 0;

		while (routes[i].is->kind && first < i &&
		       !(routes[first].is->kind &&
			 strcmp(routes[first].is->kind, routes[i].is->kind) == 0))
			first++;
		if (routes[i].is->kind && first == i)
			write_kind(w, routes[i].is);
	}
	jsonw_object_close(w);
}

/* --- all of it -------------------------------------------------------------------------------- */

static void write_info(struct jsonw *w)
{
	jsonw_key_string(w, "openapi", "3.1.0");
	jsonw_key_object(w, "info");
	jsonw_key_string(w, "title", "evenkeel");
	jsonw_key_string(w, "description",
			 "What machines really have left, and what may safely be done with it.");
	jsonw_key_string(w, "version", EVENKEEL_VERSION);
	jsonw_key_object(w, "license");
	jsonw_key_string(w, "name", "Apache-2.0");
	jsonw_object_close(w);
	jsonw_object_close(w);
}

static void write_scheme(struct jsonw *w, const char *name, const char *type, const char *scheme,
			 const char *description)
{
	jsonw_key_object(w, name);
	jsonw_key_string(w, "type", type);
	jsonw_key_text(w, "scheme", scheme);
	jsonw_key_string(w, "description", description);
	jsonw_object_close(w);
}

static void write_schemes(struct jsonw *w)
{
	jsonw_key_object(w, "securitySchemes");
	write_scheme(w, BEARER, "http", "bearer",
		     "One of the server's --token-file, or with --token-review one that the "
		     "Kubernetes API knows.");
	write_scheme(w, CERTIFICATE, "mutualTLS", NULL,
		     "Signed by an authority of the server's --tls-client-ca.");
	jsonw_object_close(w);
}

/* Any of these; the empty one stands for a server that lets in everybody. */
static void write_security(struct jsonw *w)
{
	static const char *const ways[] = {BEARER, CERTIFICATE, NULL};

	jsonw_key_array(w, "security");
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		jsonw_object_open(w);
		if (ways[i]) {
			jsonw_key_array(w, ways[i]);
			jsonw_array_close(w);
		}
		jsonw_object_close(w);
	}
	jsonw_array_close(w);
}

void api_openapi(const struct api_context *ctx, const struct api_request *rq,
		 struct api_response *rs)
{
	const struct route *routes;
	struct jsonw w;
	size_t count;

	(void)ctx;
	(void)rq;
	routes = api_routes(&count);
	rs->content_type = "application/json";
	jsonw_init(&w, &rs->body);
	jsonw_object_open(&w);
	write_info(&w);
	write_security(&w);
	write_paths(&w, routes, count);
	jsonw_key_object(&w, "components");
	write_schemes(&w);
	write_schemas(&w, routes, count);
	jsonw_object_close(&w);
	jsonw_object_close(&w);
	buf_add_char(&rs->body, '\n');
}
