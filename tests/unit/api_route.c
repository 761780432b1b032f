/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "shared/mem.h"

#include "aggregator/api/route.h"
#include "tests/api_fixture.h"

static struct api_fixture f;

static void test_routes(void **state)
{
	static const struct {
		const char *method, *target;
		int status;
		const char *allow; /* with 405 */
	} cases[] = {
		{"GET", "/healthz", 200, NULL},
		{"HEAD", "/healthz", 200, NULL},
		{"POST", "/healthz", 405, "GET, HEAD"},
		{"GET", "/readyz", 200, NULL},
		{"GET", "/metrics", 200, NULL},
		{"HEAD", "/metrics", 200, NULL},
		{"PUT", "/metrics", 405, "GET, HEAD"},
		{"GET", "/v1/nodes", 200, NULL},
		{"HEAD", "/v1/nodes/alpha", 200, NULL},
		{"DELETE", "/v1/nodes/alpha", 405, "GET, HEAD"},
		{"GET", "/v1/scores", 405, "POST"},
		{"HEAD", "/v1/act", 200, NULL},
		{"POST", "/v1/act", 405, "GET, HEAD, PUT"},
		{"GET", "/v1/act/requests", 405, "POST"},
		{"PUT", "/v1/drain/history", 405, "GET, HEAD, POST"},
		{"POST", "/v1/drain/history", 400, NULL},
		{"HEAD", "/v1/scores", 405, "POST"},
		{"get", "/v1/nodes", 405, "GET, HEAD"},
		{"GET", "", 404, NULL},
		{"GET", "/v1", 404, NULL},
		{"GET", "/v1/", 404, NULL},
		{"GET", "/v1/nodesx", 404, NULL},
		{"GET", "/v1/pods/", 404, NULL},
		{"GET", "/v1/nodes/history", 404, NULL},
		{"POST", "/v1/nodes/alpha/history", 405, "GET, HEAD"},
		{"GET", "/v1/pods/shop/history", 404, NULL},
		{"HEAD", "/v1/pods/shop/web/history", 503, NULL},
		{"GET", "/watchers", 404, NULL},
		{"GET", "/healthz/", 404, NULL},
		{"GET", "/%00", 404, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_send(&f, cases[i].method, cases[i].target, ""),
				 cases[i].status);
		if (cases[i].allow)
			assert_string_equal(f.response.allow, cases[i].allow);
		else
			assert_null(f.response.allow);
		if (cases[i].status == 404)
			assert_string_equal(api_fixture_error(&f), "notFound");
		if (cases[i].status == 405)
			assert_string_equal(api_fixture_error(&f), "methodNotAllowed");
	}
}

static void test_health_bodies(void **state)
{
	static const char *const targets[] = {"/healthz", "/readyz"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(api_fixture_get(&f, targets[i]), 200);
		assert_string_equal(f.response.body.data, "ok\n");
		assert_string_equal(f.response.content_type, "text/plain; charset=utf-8");
	}
}

static void test_error_shape(void **state)
{
	struct api_response rs = {.status = 200};
	char long_text[1000];

	(void)state;
	buf_add_str(&rs.body, "half an answer");
	api_fail(&rs, FAIL_BAD_REQUEST, "pod.spec", "%s is \"bad\"\n", "it");
	assert_int_equal(rs.status, 400);
	assert_string_equal(rs.content_type, "application/json");
	assert_string_equal(rs.body.data,
			    "{\"error\":{\"code\":\"badRequest\","
			    "\"message\":\"it is \\\"bad\\\"\\u000a\",\"field\":\"pod.spec\"}}\n");
	api_fail(&rs, FAIL_NOT_FOUND, NULL, "no");
	assert_string_equal(rs.body.data,
			    "{\"error\":{\"code\":\"notFound\",\"message\":\"no\"}}\n");
	memset(long_text, 'x', sizeof(long_text));
	api_fail(&rs, FAIL_NOT_FOUND, NULL, "%.*s", (int)sizeof(long_text), long_text);
	assert_true(rs.body.len < 600);
	buf_fini(&rs.body);
}

/* One code never stands for two statuses, so a client may go by either. */
static void test_codes(void **state)
{
	static const struct {
		enum api_failure failure;
		int status;
		const char *code;
	} cases[] = {
		{FAIL_BAD_REQUEST, 400, "badRequest"},
		{FAIL_NOT_FOUND, 404, "notFound"},
		{FAIL_METHOD_NOT_ALLOWED, 405, "methodNotAllowed"},
		{FAIL_TOO_LARGE, 413, "tooLarge"},
		{FAIL_BUSY, 503, "busy"},
		{FAIL_NO_DATA, 503, "noData"},
	};
	struct api_response rs = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *want = mem_printf("{\"error\":{\"code\":\"%s\",\"message\":\"x\"}}\n",
					cases[i].code);

		api_fail(&rs, cases[i].failure, NULL, "x");
		assert_int_equal(rs.status, cases[i].status);
		assert_string_equal(rs.body.data, want);
		free(want);
	}
	buf_fini(&rs.body);
}

/*
 * A word in another place, or an escape that may be one, only sends a short question the long way.
 */
static void test_kinds_of_work(void **state)
{
	static const struct {
		const char *path, *body;
		enum api_work work;
	} cases[] = {
		{"/v1/scores", "", API_WORK_SHORT},
		{"/v1/scores", "{}", API_WORK_SHORT},
		{"//v1/scores", "{\"pod\":{}}", API_WORK_SHORT},
		{"/v1/scores", "{\"explain\":true}", API_WORK_LONG},
		{"/v1/scores", "{\"fits\":true}", API_WORK_LONG},
		{"/v1/scores", "{\"\\u0066its\":true}", API_WORK_LONG},
		{"/v1/scores", "{\"pod\":{\"metadata\":{\"name\":\"fits\"}}}", API_WORK_LONG},
		{"/v1/scores", "{\"pod\":\"{spec: {}}\"}", API_WORK_LONG},
		{"/v1/scores", "{\"nodes\":[\"pod\"],\"pod\"\t: \r\n\"a\"}", API_WORK_LONG},
		{"/v1/scores", "{\"nodes\":[\"pod\",\"pod\"]}", API_WORK_SHORT},
		{"/v1/scores", "{\"pod\"", API_WORK_SHORT},
		{"/v1/quotas/admit", "{\"pod\":{\"spec\":{}}}", API_WORK_SHORT},
		{"/v1/quotas/admit", "{\"pod\":\"{spec: {}}\"}", API_WORK_LONG},
		{"/v1/fit", "{}", API_WORK_LONG},
		{"/v1/nodes/n", "", API_WORK_SHORT},
		{"/extender/preempt", "{}", API_WORK_SCHEDULER},
		{"/extender/filter", "", API_WORK_SCHEDULER},
		{"//extender/prioritize", "{\"explain\":1}", API_WORK_SCHEDULER},
		{"/healthz", "", API_WORK_NOW},
		{"/nowhere", "", API_WORK_NOW},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(api_work_of(cases[i].path, cases[i].body, strlen(cases[i].body)),
				 cases[i].work);
}

/* Every parameter with a list of values refuses any other, in the same words, before its handler. */
static void test_values_of_parameters(void **state)
{
	size_t checked = 0;

	(void)state;
	for (const struct route *r = api_routes; r->path; r++) {
		const struct api_field *q = r->query;

		for (; q && q->name && !r->lenient; q++) {
			char target[64], field[64];

			if (!q->values)
				continue;
			/* A name in braces is a name like any other. */
			snprintf(target, sizeof(target), "%s?%s=5ome", r->path, q->name);
			snprintf(field, sizeof(field), "\"field\":\"%s\"", q->name);
			assert_int_equal(api_fixture_get(&f, target), 400);
			assert_non_null(strstr(f.response.body.data, field));
			assert_non_null(strstr(f.response.body.data,
					       q->type == API_BOOLEAN
						       ? "\\\"5ome\\\" is neither true nor false"
						       : "\\\"5ome\\\"; there are "));
			checked++;
		}
	}
	assert_in_range(checked, 8, 30);
}

#define TEST(name) API_FIXTURE_TEST(name, &f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_routes),	TEST(test_kinds_of_work), TEST(test_health_bodies),
		TEST(test_error_shape), TEST(test_codes),	  TEST(test_values_of_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
