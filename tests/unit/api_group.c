/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api_group.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"

#define text_of(path) api_fixture_text(&f, path)

static struct api_fixture f;

#define EVENKEEL "/apis/evenkeel.io/v1"

static void test_access_requests(void **state)
{
	static const struct {
		const char *method, *path, *group, *verb, *resource, *namespace;
		const char *name; /* and the subresource, behind a space */
	} cases[] = {
		{"GET", "/v1/nodes", NULL, "get", "", "", ""},
		{"POST", "/v1/scores", NULL, "post", "", "", ""},
		{"GET", "/apis", NULL, "get", "", "", ""},
		{"GET", EVENKEEL, NULL, "get", "", "", ""},
		{"GET", EVENKEEL "/", NULL, "get", "", "", ""},
		{"GET", "/apis/other.io/v1/nodes", NULL, "get", "", "", ""},
		{"GET", EVENKEEL "/nodes", "evenkeel.io", "list", "nodes", "", ""},
		{"HEAD", EVENKEEL "/nodes/", "evenkeel.io", "list", "nodes", "", ""},
		{"GET", EVENKEEL "/nodes/a", "evenkeel.io", "get", "nodes", "", "a"},
		{"GET", EVENKEEL "/nodes/a/b", "evenkeel.io", "get", "nodes", "", "a b"},
		{"GET", EVENKEEL "/nodes/a/", "evenkeel.io", "get", "nodes", "", "a"},
		{"GET", EVENKEEL "/nodes//history", "evenkeel.io", "list", "?", "", ""},
		{"GET", EVENKEEL "/drains/history", "evenkeel.io", "get", "drains", "", "history"},
		{"GET", EVENKEEL "/namespaces/a/pods/b/history", "evenkeel.io", "get", "pods", "a",
		 "b history"},
		{"POST", EVENKEEL "/scores", "evenkeel.io", "create", "scores", "", ""},
		{"POST", EVENKEEL "/quotas/admit", "evenkeel.io", "create", "quotas", "", "admit"},
		{"PUT", EVENKEEL "/nodes/a", "evenkeel.io", "update", "nodes", "", "a"},
		{"POST", EVENKEEL "/acts/requests", "evenkeel.io", "create", "acts", "",
		 "requests"},
		{"PUT", API_GROUP_ACT_REPORT, "evenkeel.io", "update", "acts", "",
		 "current report"},
		{"POST", API_GROUP_WAVE_REPORT, "evenkeel.io", "create", "drains", "",
		 "current history"},
		{"DELETE", EVENKEEL "/nodes/a", "evenkeel.io", "delete", "nodes", "", "a"},
		{"GET", EVENKEEL "/namespaces", "evenkeel.io", "list", "namespaces", "", ""},
		{"GET", EVENKEEL "/namespaces/a", "evenkeel.io", "get", "namespaces", "", "a"},
		{"GET", EVENKEEL "/namespaces/a/pods", "evenkeel.io", "list", "pods", "a", ""},
		{"GET", EVENKEEL "/namespaces//pods", "evenkeel.io", "list", "pods", "", ""},
		{"GET", "/apis/metrics.k8s.io/v1beta1/namespaces/a/pods/b", "metrics.k8s.io", "get",
		 "pods", "a", "b"},
		{"GET",
		 EVENKEEL "/0123456789012345678901234567890123456789012345678901234567890123",
		 "evenkeel.io", "list", "?", "", ""},
	};
	struct access_request q;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[sizeof(q.name) + sizeof(q.subresource)];

		api_access_request(cases[i].method, cases[i].path, &q);
		assert_string_equal(q.path, cases[i].path);
		assert_string_equal(q.group ? q.group : "-", cases[i].group ? cases[i].group : "-");
		assert_string_equal(q.verb, cases[i].verb);
		assert_string_equal(q.resource, cases[i].resource);
		assert_string_equal(q.namespace, cases[i].namespace);
		snprintf(name, sizeof(name), "%s%s%s", q.name, q.subresource[0] ? " " : "",
			 q.subresource);
		assert_string_equal(name, cases[i].name);
	}
}

static void test_paths(void **state)
{
	static const struct {
		const char *remote, *local, *namespace;
	} cases[] = {
		{EVENKEEL "/nodes", "/v1/nodes", ""},
		{EVENKEEL "/nodes/a", "/v1/nodes/a", ""},
		{EVENKEEL "/drains", "/v1/drain", ""},
		{EVENKEEL "/drains/history", "/v1/drain/history", ""},
		{EVENKEEL "/acts", "/v1/act", ""},
		{EVENKEEL "/acts/requests", "/v1/act/requests", ""},
		{EVENKEEL "/statuses", "/v1/status", ""},
		{EVENKEEL "/fleets", "/v1/fleet", ""},
		{EVENKEEL "/diagnoses", "/v1/doctor", ""},
		{EVENKEEL "/quotas/preempt", "/v1/quotas/preempt", ""},
		{EVENKEEL "/nodes/a/history", "/v1/nodes/a/history", ""},
		{EVENKEEL "/namespaces/shop/pods", "/v1/pods", "shop"},
		{EVENKEEL "/namespaces/shop/pods/a/history", "/v1/pods/shop/a/history", "shop"},
		/* Whose namespace is the path's, whatever the name looks like. */
		{EVENKEEL "/namespaces/shop/pods/kube-system/a/history",
		 "/v1/pods/shop/kube-system/a/history", "shop"},
	};
	static const char *const strange[] = {
		"/v1/nodes",
		EVENKEEL,
		EVENKEEL "/elsewhere",
		EVENKEEL "/namespaces/shop/nodes",
		EVENKEEL "/namespaces/shop/snapshots",
		EVENKEEL "/pods/kube-system/a/history",
		EVENKEEL "/nodes//history",
		"/apis/metrics.k8s.io/v1beta1/nodes",
	};
	char room[API_LOCAL_LEN], namespace[ACCESS_RESOURCE_LEN];
	char *path;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_string_equal(api_group_local_path(cases[i].remote, room, namespace),
				    cases[i].local);
		assert_string_equal(namespace, cases[i].namespace);
		if (*namespace)
			continue;
		path = api_group_remote_path(cases[i].local);
		assert_string_equal(path, cases[i].remote);
		free(path);
	}
	assert_string_equal(api_group_local_path(API_GROUP_ACT_REPORT, room, namespace), "/v1/act");
	assert_string_equal(api_group_local_path(EVENKEEL "/drains/any/history", room, namespace),
			    "/v1/drain/history");
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		assert_ptr_equal(api_group_local_path(strange[i], room, namespace), strange[i]);
	path = api_group_remote_path("/v1/pods?limit=5&namespace=shop&node=a");
	assert_string_equal(path, EVENKEEL "/namespaces/shop/pods?limit=5&namespace=shop&node=a");
	free(path);
	path = api_group_remote_path("/v1/pods/shop/a/history?from=1");
	assert_string_equal(path, EVENKEEL "/namespaces/shop/pods/a/history?from=1");
	free(path);
	path = api_group_remote_path("/v1/slack?class=a");
	assert_string_equal(path, EVENKEEL "/slacks?class=a");
	free(path);
	assert_null(api_group_remote_path("/metrics"));
	assert_null(api_group_remote_path("/v1/nodesx"));
}

static void expect_verbs(const char *name, const char *kind, bool namespaced, const char *verbs)
{
	const cJSON *resource, *verb;
	char found[64] = "";

	cJSON_ArrayForEach (resource, api_fixture_at(f.json, "resources")) {
		if (strcmp(cJSON_GetStringValue(api_fixture_at(resource, "name")), name) != 0)
			continue;
		cJSON_ArrayForEach (verb, api_fixture_at(resource, "verbs")) {
			strncat(found, verb->valuestring, sizeof(found) - strlen(found) - 1);
			strncat(found, " ", sizeof(found) - strlen(found) - 1);
		}
		assert_string_equal(cJSON_GetStringValue(api_fixture_at(resource, "kind")), kind);
		assert_int_equal(cJSON_IsTrue(api_fixture_at(resource, "namespaced")), namespaced);
	}
	assert_string_equal(found, verbs);
}

static void test_discovery(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/apis?timeout=32s"), 200);
	assert_string_equal(text_of("kind"), "APIGroupList");
	assert_string_equal(text_of("groups.0.preferredVersion.groupVersion"), "evenkeel.io/v1");
	assert_string_equal(text_of("groups.1.versions.0.groupVersion"), "metrics.k8s.io/v1");
	assert_string_equal(text_of("groups.1.versions.1.groupVersion"), "metrics.k8s.io/v1beta1");
	assert_string_equal(text_of("groups.1.preferredVersion.version"), "v1");
	assert_null(api_fixture_at(f.json, "groups.2"));
	assert_int_equal(api_fixture_get(&f, "/apis/metrics.k8s.io"), 200);
	assert_string_equal(text_of("kind"), "APIGroup");
	assert_string_equal(text_of("name"), "metrics.k8s.io");
	assert_int_equal(api_fixture_get(&f, EVENKEEL), 200);
	assert_string_equal(text_of("kind"), "APIResourceList");
	assert_string_equal(text_of("groupVersion"), "evenkeel.io/v1");
	expect_verbs("nodes", "Node", false, "get list ");
	expect_verbs("pods", "Pod", true, "get list ");
	expect_verbs("quotas", "Quota", false, "create get list ");
	expect_verbs("scores", "Score", false, "create ");
	expect_verbs("drains", "DrainPlan", false, "get list ");
	expect_verbs("drains/history", "WaveReport", false, "create ");
	expect_verbs("acts", "Act", false, "create list ");
	expect_verbs("acts/report", "Act", false, "update ");
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(api_fixture_get(&f, i ? "/apis/metrics.k8s.io/v1beta1"
						       : "/apis/metrics.k8s.io/v1"),
				 200);
		assert_string_equal(text_of("groupVersion"),
				    i ? "metrics.k8s.io/v1beta1" : "metrics.k8s.io/v1");
		expect_verbs("nodes", "NodeMetrics", false, "get list ");
		expect_verbs("pods", "PodMetrics", true, "get list ");
	}
	assert_int_equal(api_fixture_get(&f, "/apis/metrics.k8s.io/v2"), 404);
	assert_int_equal(api_fixture_get(&f, "/openapi/v2"), 200);
	assert_string_equal(text_of("swagger"), "2.0");
	assert_int_equal(api_fixture_get(&f, "/openapi/v3"), 200);
	assert_non_null(api_fixture_at(f.json, "paths"));
}

static void test_resources(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/nodes?limit=1"), 200);
	assert_string_equal(api_fixture_names(&f), "alpha");
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/nodes/bravo"), 200);
	assert_string_equal(text_of("name"), "bravo");
	/* The path's namespace holds against the query's: pods of the fixture have none. */
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/pods"), 200);
	assert_string_not_equal(api_fixture_names(&f), "");
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/namespaces/shop/pods?namespace="), 200);
	assert_string_equal(api_fixture_names(&f), "");
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/namespaces/shop/nodes"), 404);
	assert_int_equal(api_fixture_send(&f, "POST", EVENKEEL "/fits", "{}"), 400);
	assert_string_equal(http_fixture_error_field(&f), "pod");
	assert_true(api_work_of(EVENKEEL "/quotas/preempt", "", 0) == API_WORK_LONG);
	assert_true(api_access_class(EVENKEEL "/nodes") == API_ACCESS_GUARDED);
}

/* What kubectl needs: names, continue tokens, and a limit for every list. */
static void test_metadata(void **state)
{
	const char *plain;

	(void)state;
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/nodes?limit=2"), 200);
	assert_string_equal(text_of("kind"), "NodeList");
	assert_string_equal(text_of("items.0.metadata.name"), "alpha");
	assert_string_equal(text_of("items.1.metadata.name"), text_of("items.1.name"));
	assert_string_not_equal(text_of("metadata.continue"), "");
	assert_string_equal(text_of("metadata.continue"), text_of("continue"));
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/nodes"), 200);
	assert_string_equal(text_of("metadata.continue"), "");
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/nodes/bravo"), 200);
	assert_string_equal(text_of("metadata.name"), "bravo");
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/statuses?limit=500"), 200);
	assert_string_equal(text_of("metadata.name"), "statuses");
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/statuses?watch=true"), 400);
	/* Nothing but the metadata is added, and nothing to other clients. */
	assert_int_equal(api_fixture_get(&f, "/v1/nodes"), 200);
	assert_null(api_fixture_at(f.json, "items.0.metadata"));
	assert_int_equal(api_fixture_get(&f, "/v1/status?limit=500"), 400);
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/bravo"), 200);
	plain = strstr(f.response.body.data, "\"name\"");
	assert_non_null(plain);
	plain = mem_strdup(plain);
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/nodes/bravo"), 200);
	assert_non_null(strstr(f.response.body.data, plain));
	free((char *)plain);
}

static void expect_row(size_t i, const char *name, const char *first, const char *second)
{
	static const char *const paths[] = {"object.metadata.name", "cells.0", "cells.1",
					    "cells.2"};
	const char *const want[] = {name, name, first, second};

	for (size_t k = 0; k < 4 && want[k]; k++) {
		char path[48];

		snprintf(path, sizeof(path), "rows.%zu.%s", i, paths[k]);
		assert_string_equal(text_of(path), want[k]);
	}
}

static void test_tables(void **state)
{
	(void)state;
	f.accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/nodes?limit=2"), 200);
	assert_string_equal(text_of("kind"), "Table");
	assert_string_equal(text_of("columnDefinitions.0.name"), "Name");
	assert_string_equal(text_of("columnDefinitions.2.name"), "CPU(m)");
	assert_string_not_equal(text_of("metadata.continue"), "");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "rows")), 2);
	expect_row(0, "alpha", "fresh", NULL);
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/nodes/bravo"), 200);
	assert_string_equal(text_of("kind"), "Table");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "rows")), 1);
	expect_row(0, "bravo", NULL, NULL);
	/* Columns that an answer has not are empty. */
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/namespaces/shop/pods"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "rows")), 0);
	assert_string_equal(text_of("columnDefinitions.1.name"), "Node");
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/names"), 200);
	expect_row(0, "names", NULL, NULL);
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/nodes/nobody"), 404);
	assert_string_equal(text_of("kind"), "Status");
	assert_int_equal(api_fixture_get(&f, "/v1/nodes"), 200);
	assert_string_equal(text_of("kind"), "NodeList");
	f.accept = NULL;
}

/* Clients of Kubernetes read the Status, the command reads "error". */
static void test_failures(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, EVENKEEL "/nodes/nobody"), 404);
	assert_string_equal(text_of("kind"), "Status");
	assert_string_equal(text_of("status"), "Failure");
	assert_string_equal(text_of("reason"), "NotFound");
	assert_string_equal(text_of("message"), text_of("error.message"));
	assert_string_equal(api_fixture_error(&f), "notFound");
	assert_true(cJSON_GetNumberValue(api_fixture_at(f.json, "code")) == 404);
	assert_int_equal(api_fixture_send(&f, "POST", EVENKEEL "/nodes", "{}"), 405);
	assert_string_equal(text_of("reason"), "MethodNotAllowed");
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/nobody"), 404);
	assert_null(api_fixture_at(f.json, "kind"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_access_requests), cmocka_unit_test(test_paths),
		API_FIXTURE_TEST(test_discovery, &f),	API_FIXTURE_TEST(test_resources, &f),
		API_FIXTURE_TEST(test_metadata, &f),	API_FIXTURE_TEST(test_tables, &f),
		API_FIXTURE_TEST(test_failures, &f),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
