/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /openapi.json holds every route of the table, is a sound OpenAPI document, and is true: what
 * it lists is taken, what it does not list is refused, and answers are of the kinds and types it
 * says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/act_box.h"
#include "aggregator/api/route.h"
#include "aggregator/planner/drain_log.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/window_sums.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/quota_fixture.h"

#define POD                                                                                        \
	"{\"metadata\":{\"name\":\"x\",\"namespace\":\"shop\"},\"spec\":{\"containers\":[{"        \
	"\"name\":\"c\"}]}}"

static struct api_fixture f;
static cJSON *document;

static int read_no_buckets(struct bucket_source *source, const char *node,
			   const struct pod_stats *pod, struct window_buckets *out)
{
	(void)source, (void)node, (void)pod;
	out->count = 0;
	return 0;
}

static int open_fixture(void **state)
{
	static struct bucket_source source = {read_no_buckets};
	struct buf items = BUF_INIT;

	(void)state;
	buf_add_str(&items, quota_fixture_node("a", "cpu: 8, memory: 32Gi"));
	buf_add_str(&items, quota_fixture_quota("shop", "q", "cpu: 4", "cpu: 8"));
	buf_add_str(&items, quota_fixture_pod("shop", "p", "a", 0, "cpu: 1"));
	buf_add_str(&items, quota_fixture_pod("shop", "waits", "", 0, "cpu: 1"));
	api_fixture_open(&f, quota_fixture_view(items.data));
	buf_fini(&items);
	f.ctx.buckets = &source;
	f.ctx.acts = act_box_new(NULL);
	f.ctx.decisions = drain_log_new();
	f.ctx.reservations = reservations_new();
	assert_int_equal(reservations_claim(f.ctx.reservations,
					    &(struct reservation){.uid = "uid-shop-waits",
								  .namespace = "shop",
								  .name = "waits",
								  .node = "a"},
					    NULL, f.ctx.now_ns()),
			 0);
	assert_int_equal(api_fixture_get(&f, "/openapi.json"), 200);
	document = cJSON_Duplicate(f.json, true);
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	cJSON_Delete(document);
	act_box_free(f.ctx.acts);
	drain_log_free(f.ctx.decisions);
	reservations_free(f.ctx.reservations);
	api_fixture_close(&f);
	return 0;
}

/* --- the document ----------------------------------------------------------------------------- */

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *text(const cJSON *object, const char *name)
{
	const char *value = cJSON_GetStringValue(member(object, name));

	return value ? value : "";
}

/* Every "$ref" leads somewhere, and what has a type has one of JSON Schema's. */
static void check_schemas(const cJSON *value) /* NOLINT(misc-no-recursion) */
{
	static const char prefix[] = "#/components/schemas/";
	static const char *const types[] = {"object", "array", "string", "integer", "boolean"};
	const cJSON *ref = member(value, "$ref"), *type = member(value, "type"), *m;
	size_t known = 0;

	if (cJSON_IsString(ref)) {
		assert_int_equal(strncmp(ref->valuestring, prefix, sizeof(prefix) - 1), 0);
		assert_non_null(member(member(member(document, "components"), "schemas"),
				       ref->valuestring + sizeof(prefix) - 1));
	}
	for (size_t i = 0; cJSON_IsString(type) && i < sizeof(types) / sizeof(types[0]); i++)
		known += strcmp(types[i], type->valuestring) == 0;
	assert_true(!cJSON_IsString(type) || known == 1);
	if (cJSON_IsString(type) && strcmp(type->valuestring, "array") == 0)
		assert_non_null(member(value, "items"));
	cJSON_ArrayForEach (m, value)
		check_schemas(m);
}

static void document_is_sound(void **state)
{
	const cJSON *info = member(document, "info");

	(void)state;
	assert_string_equal(text(document, "openapi"), "3.1.0");
	assert_string_equal(text(info, "title"), "evenkeel");
	assert_true(*text(info, "version"));
	check_schemas(member(document, "paths"));
	check_schemas(member(member(document, "components"), "schemas"));
}

/* Each way in is described; health alone needs none, and says so. */
static void ways_in_are_told(void **state)
{
	const cJSON *schemes = member(member(document, "components"), "securitySchemes");
	const cJSON *security = member(document, "security"), *way;
	size_t empty = 0;

	(void)state;
	assert_string_equal(text(member(schemes, "bearer"), "scheme"), "bearer");
	assert_string_equal(text(member(schemes, "clientCertificate"), "type"), "mutualTLS");
	assert_int_equal(cJSON_GetArraySize(security), 3);
	cJSON_ArrayForEach (way, security) {
		empty += way->child == NULL;
		assert_true(!way->child || member(schemes, way->child->string));
	}
	assert_int_equal(empty, 1);
}

static const char *method_of(const struct route *r)
{
	if (r->method && strcmp(r->method, "PUT") == 0)
		return "put";
	return r->method && strcmp(r->method, "POST") == 0 ? "post" : "get";
}

static const cJSON *operation_of(const struct route *r)
{
	return member(member(member(document, "paths"), r->path), method_of(r));
}

static size_t count_fields(const struct api_field *list)
{
	size_t count = 0;

	while (list && list[count].name)
		count++;
	return count;
}

/* Those "in" path are the words in braces; the rest are the table's, by their names. */
static void check_parameters(const struct route *r, const cJSON *operation)
{
	const cJSON *parameters = member(operation, "parameters"), *p;
	size_t names = 0;
	char braced[32];
	size_t in_path = 0, in_query = 0;

	cJSON_ArrayForEach (p, parameters) {
		assert_non_null(member(p, "schema"));
		assert_true(cJSON_IsBool(member(p, "required")));
		if (strcmp(text(p, "in"), "path") == 0) {
			snprintf(braced, sizeof(braced), "{%s}", text(p, "name"));
			assert_non_null(strstr(r->path, braced));
			assert_true(cJSON_IsTrue(member(p, "required")));
			in_path++;
		} else {
			const struct api_field *field = api_field_find(text(p, "name"), r->query);
			const cJSON *minimum = member(member(p, "schema"), "minimum");

			assert_non_null(field);
			if (field->type == API_INTEGER || field->type == API_COUNT)
				assert_int_equal(minimum->valueint, field->type == API_INTEGER);
			in_query++;
		}
	}
	for (const char *at = r->path; (at = strchr(at, '{')) != NULL; at++)
		names++;
	assert_int_equal(in_path, names);
	assert_int_equal(in_query, count_fields(r->query));
}

static void check_answer(const struct route *r, const cJSON *operation)
{
	const cJSON *responses = member(operation, "responses"), *content, *m;
	const char *status = r->status == 202 ? "202" : "200";
	char ref[96];

	assert_non_null(member(responses, "default"));
	assert_true(*text(member(responses, status), "description"));
	content = member(member(responses, status), "content");
	assert_true(!route_content_type(r) == !content);
	if (!content)
		return;
	m = member(member(content, route_content_type(r)), "schema");
	snprintf(ref, sizeof(ref), "#/components/schemas/%s", r->kind ? r->kind : "");
	assert_string_equal(text(m, "$ref"), r->kind ? ref : "");
}

static void check_guard(const struct route *r, const cJSON *operation)
{
	const cJSON *responses = member(operation, "responses");
	const cJSON *security = member(operation, "security");
	bool open = strcmp(r->path, "/healthz") == 0 || strcmp(r->path, "/readyz") == 0 ||
		    strcmp(r->path, "/") == 0 || strcmp(r->path, "/page/{file}") == 0;

	assert_true(open == (security != NULL));
	assert_int_equal(cJSON_GetArraySize(security), 0);
	assert_true(open == !member(responses, "401"));
	assert_true(open == !member(responses, "403"));
}

static void every_route_is_described(void **state)
{
	const cJSON *ids = cJSON_CreateObject();
	size_t paths = 0;

	(void)state;
	for (const struct route *r = api_routes; r->path; r++)
		paths += r == api_routes || strcmp(r->path, r[-1].path) != 0;
	assert_int_equal(cJSON_GetArraySize(member(document, "paths")), paths);
	for (const struct route *r = api_routes; r->path; r++) {
		const cJSON *operation = operation_of(r), *body;

		if (!operation)
			fail_msg("%s is not described", r->path);
		assert_true(*text(operation, "summary"));
		check_guard(r, operation);
		assert_null(member(ids, text(operation, "operationId")));
		cJSON_AddTrueToObject((cJSON *)ids, text(operation, "operationId"));
		check_parameters(r, operation);
		check_answer(r, operation);
		body = member(operation, "requestBody");
		assert_int_equal(strcmp(method_of(r), "get") != 0, body != NULL);
	}
	cJSON_Delete((cJSON *)ids);
}

/* --- that it is true -------------------------------------------------------------------------- */

/* Of namespace "shop", and of what is called "a" otherwise. */
static char *target_of(const struct route *r, const char *parameter, const char *value)
{
	struct buf target = BUF_INIT;

	for (const char *at = r->path; *at; at++) {
		if (*at != '{') {
			buf_add_char(&target, *at);
			continue;
		}
		buf_add_str(&target, strncmp(at, "{namespace}", 11) == 0 ? "shop" : "a");
		at = strchr(at, '}');
	}
	if (parameter)
		buf_printf(&target, "?%s=%s", parameter, value);
	buf_add_str(&target, "");
	return target.data;
}

static int get_with(const struct route *r, const char *parameter, const char *value)
{
	char *target = target_of(r, parameter, value);
	int status = api_fixture_get(&f, target);

	free(target);
	return status;
}

static bool is_unknown(void)
{
	const char *message = cJSON_GetStringValue(api_fixture_at(f.json, "error.message"));

	return message && (strncmp(message, "unknown parameter", 17) == 0 ||
			   strcmp(message, "is not a member of this request") == 0);
}

static void expect_refusal(int status, const char *field)
{
	assert_int_equal(status, 400);
	assert_string_equal(http_fixture_error_field(&f), field);
}

static void check_parameter(const struct route *r, const struct api_field *p)
{
	get_with(r, p->name, "1");
	assert_false(is_unknown());
	if (p->type == API_INTEGER)
		expect_refusal(get_with(r, p->name, "0"), p->name);
	if (!p->values)
		return;
	expect_refusal(get_with(r, p->name, "neither"), p->name);
	for (size_t i = 0; p->values[i]; i++)
		if (get_with(r, p->name, p->values[i]) != 200)
			fail_msg("%s?%s=%s: %s", r->path, p->name, p->values[i],
				 f.response.body.data);
}

static void parameters_are_those_described(void **state)
{
	(void)state;
	for (const struct route *r = api_routes; r->path; r++) {
		if (!r->query || r->lenient || route_is_posted(r))
			continue;
		expect_refusal(get_with(r, "x-y", "1"), "x-y");
		assert_true(is_unknown());
		for (const struct api_field *p = r->query; p->name; p++)
			check_parameter(r, p);
	}
}

/* A body that the route takes. */
static const char *body_of(const struct route *r)
{
	if (r->handler == api_act_request)
		return "{\"action\":\"drain\",\"nodes\":[\"a\"]}";
	if (r->handler == api_act_report)
		return "{\"holder\":\"one\",\"transitions\":1}";
	if (r->handler == api_drain_report)
		return "{\"kind\":\"WaveReport\",\"plan\":\"p\",\"outcome\":\"drained\","
		       "\"begin\":\"2026-01-31T12:00:00Z\",\"end\":\"2026-01-31T12:01:00Z\"}";
	if (r->handler == api_quotas_reserve)
		return "{\"plan\":\"0\",\"namespace\":\"shop\",\"name\":\"waits\","
		       "\"uid\":\"uid-shop-waits\"}";
	return "{\"pod\":" POD "}";
}

static int post_member(const struct route *r, const char *name, const char *value)
{
	cJSON *body = cJSON_Parse(body_of(r));
	char *text;
	int status;

	cJSON_DeleteItemFromObjectCaseSensitive(body, name);
	cJSON_AddItemToObject(body, name, cJSON_Parse(value));
	text = cJSON_PrintUnformatted(body);
	status = api_fixture_send(&f, r->method, r->path, text);
	free(text);
	cJSON_Delete(body);
	return status;
}

static void check_body_member(const struct route *r, const struct api_field *m)
{
	/* Of no member's type. */
	const char *wrong = m->type == API_STRING || m->type == API_BOOLEAN ? "7" : "true";
	size_t len = strlen(m->name);

	if (post_member(r, m->name, wrong) != 400 || is_unknown() ||
	    strncmp(http_fixture_error_field(&f), m->name, len) != 0)
		fail_msg("%s, %s: %s: %s", r->path, m->name, wrong, f.response.body.data);
	if (m->values)
		expect_refusal(post_member(r, m->name, "\"neither\""), m->name);
	for (size_t i = 0; m->values && m->values[i]; i++) {
		char *value = mem_printf("\"%s\"", m->values[i]);

		/* To pause names no nodes. */
		if (post_member(r, m->name, value) / 100 != 2 &&
		    strcmp(http_fixture_error_field(&f), "nodes") != 0)
			fail_msg("%s, %s: %s: %s", r->path, m->name, value, f.response.body.data);
		free(value);
	}
	if (m->required)
		assert_int_equal(api_fixture_send(&f, r->method, r->path, "{}"), 400);
}

static void members_are_those_described(void **state)
{
	(void)state;
	for (const struct route *r = api_routes; r->path; r++) {
		const struct api_field *m = r->body;

		if (!m)
			continue;
		expect_refusal(post_member(r, "surplus", "1"), "surplus");
		assert_true(is_unknown());
		for (; m->name; m++)
			check_body_member(r, m);
	}
}

/*
 * What can be asked of this cluster; who is not heard makes two routes answer 503, and its pods are
 * not measured.
 */
static void answers_are_of_the_kind_described(void **state)
{
	size_t kinds = 0;

	(void)state;
	for (const struct route *r = api_routes; r->path; r++) {
		char *target = target_of(r, NULL, NULL);
		const char *method = route_is_posted(r) ? r->method : "GET";

		if (!r->kind || strcmp(r->kind, "PodHistory") == 0)
			goto next;
		if (api_fixture_send(&f, method, target, route_is_posted(r) ? body_of(r) : "") !=
		    (r->status ? r->status : 200))
			fail_msg("%s: %s", target, f.response.body.data);
		assert_string_equal(text(f.json, "kind"), r->kind);
		assert_string_equal(text(f.json, "apiVersion"), "evenkeel.io/v1");
		assert_true(*text(f.json, "time"));
		assert_string_equal(f.response.content_type, route_content_type(r));
		assert_true(!r->list || cJSON_IsArray(member(f.json, "items")));
		kinds++;
	next:
		free(target);
	}
	assert_true(kinds >= 13);
}

static void folders_alone_are_what_stands_before_them(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/?limit=1"), 200);
	assert_string_equal(text(f.json, "kind"), "NodeList");
	expect_refusal(api_fixture_get(&f, "/v1/nodes/a?limit=1"), "limit");
	assert_int_equal(api_fixture_get(&f, "/v1/quotas/"), 200);
	assert_string_equal(text(f.json, "kind"), "QuotaList");
	assert_int_equal(api_fixture_get(&f, "/v1/slack/"), 404);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(document_is_sound),
		cmocka_unit_test(ways_in_are_told),
		cmocka_unit_test(every_route_is_described),
		cmocka_unit_test(parameters_are_those_described),
		cmocka_unit_test(members_are_those_described),
		cmocka_unit_test(answers_are_of_the_kind_described),
		cmocka_unit_test(folders_alone_are_what_stands_before_them),
	};

	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
