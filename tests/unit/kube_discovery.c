/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery against servers of several ages, and against answers that are missing or make no sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/discovery.h"
#include "shared/buf.h"

/* What a server answers to a path; one without is a 404. */
struct answer {
	const char *path, *body;
	int code; /* 0: 200 with the body; else a fault, -1: no answer at all */
};

#define VERBS "\"verbs\":[\"create\",\"get\",\"list\",\"watch\"]}"
#define CORE                                                                                       \
	{                                                                                          \
		"/api/v1",                                                                         \
			"{\"resources\":[{\"name\":\"pods/status\"," VERBS                         \
			",{\"name\":\"pods\"," VERBS ",{\"name\":\"nodes\"," VERBS                 \
			",{\"name\":\"bindings\",\"verbs\":[\"create\"]}]}",                       \
			0                                                                          \
	}
#define V(name) "{\"groupVersion\":\"" name "\",\"version\":\"x\"},"
/* Versions in the server's order; whether their groups are apart does not matter. */
#define GROUPS(versions)                                                                           \
	{                                                                                          \
		"/apis", "{\"groups\":[{\"versions\":[" versions "{}]}]}", 0                       \
	}
#define RESOURCE(path, of)                                                                         \
	{                                                                                          \
		"/apis/" path, "{\"resources\":[{\"name\":\"" of "\"," VERBS "]}", 0               \
	}

static const struct answer *find(const struct answer *server, const char *path)
{
	static const struct answer none = {NULL, NULL, 404};

	for (; server->path; server++)
		if (strcmp(server->path, path) == 0)
			return server;
	return &none;
}

/* One run for those kinds; what was asked, each path followed by a space. */
static void discover_of(struct discovery *d, uint32_t wanted, const struct answer *server,
			struct buf *asked)
{
	char path[DISCOVERY_PATH_MAX];
	struct kube_status status;
	int questions = 0;

	buf_add_str(asked, "");
	discovery_begin(d, wanted);
	while (discovery_next(d, path)) {
		const struct answer *a = find(server, path);

		buf_printf(asked, "%s ", path);
		kube_status_set(&status, a->code < 0 ? 0 : a->code, "so it is");
		if (a->code)
			discovery_answer(d, NULL, 0, &status);
		else
			discovery_answer(d, a->body, strlen(a->body), NULL);
		assert_true(++questions < 100);
	}
}

static void discover(struct discovery *d, const struct answer *server, struct buf *asked)
{
	discover_of(d, UINT32_MAX, server, asked);
}

static void assert_served(const struct discovery *d, enum object_kind kind, const char *want)
{
	const char *version = "";

	assert_int_equal(discovery_find(d, kind, &version, NULL), DISCOVERY_SERVED);
	assert_string_equal(version, want);
}

static void assert_unserved(const struct discovery *d, enum object_kind kind)
{
	assert_int_equal(discovery_find(d, kind, NULL, NULL), DISCOVERY_UNSERVED);
}

static void assert_fault(const struct discovery *d, enum object_kind kind, int code)
{
	struct kube_status why;

	assert_int_equal(discovery_find(d, kind, NULL, &why), DISCOVERY_FAULT);
	assert_int_equal(why.code, code);
	assert_true(why.message[0] != '\0');
}

static void new_server_serves_new_versions(void **state)
{
	static const struct answer server[] = {
		GROUPS(V("apps/v1") V("policy/v1beta1") V("policy/v1") V("other.example/v1")
			       V("scheduling.sigs.k8s.io/v1alpha1")),
		CORE,
		RESOURCE("apps/v1", "replicasets"),
		RESOURCE("policy/v1", "poddisruptionbudgets"),
		RESOURCE("policy/v1beta1", "poddisruptionbudgets"),
		RESOURCE("scheduling.sigs.k8s.io/v1alpha1", "elasticquotas"),
		{0},
	};
	struct discovery d;
	struct buf asked = BUF_INIT;

	(void)state;
	discover(&d, server, &asked);
	assert_string_equal(asked.data, "/apis /api/v1 /apis/apps/v1 /apis/policy/v1 "
					"/apis/scheduling.sigs.k8s.io/v1alpha1 ");
	assert_served(&d, OBJECT_NODE, "v1");
	assert_served(&d, OBJECT_POD, "v1");
	assert_served(&d, OBJECT_REPLICA_SET, "apps/v1");
	assert_served(&d, OBJECT_POD_DISRUPTION_BUDGET, "policy/v1");
	assert_served(&d, OBJECT_ELASTIC_QUOTA, "scheduling.sigs.k8s.io/v1alpha1");
	assert_unserved(&d, OBJECT_STATEFUL_SET);
	assert_unserved(&d, OBJECT_STORAGE_CLASS);
	assert_unserved(&d, OBJECT_NAMESPACE);
	buf_fini(&asked);
}

static void old_server_serves_old_versions(void **state)
{
	static const struct answer server[] = {
		GROUPS(V("policy/v1beta1") V("batch/v2") V("batch/v1")),
		CORE,
		RESOURCE("policy/v1beta1", "poddisruptionbudgets"),
		RESOURCE("batch/v1", "cronjobs"),
		RESOURCE("batch/v2", "jobs"),
		{0},
	};
	struct discovery d;
	struct buf asked = BUF_INIT;

	(void)state;
	discover(&d, server, &asked);
	assert_served(&d, OBJECT_POD_DISRUPTION_BUDGET, "policy/v1beta1");
	/* A version we never heard of is taken, once the one we know does not have it. */
	assert_served(&d, OBJECT_JOB, "batch/v2");
	assert_unserved(&d, OBJECT_ELASTIC_QUOTA);
	buf_fini(&asked);
}

/* 1.37 with its gate and v1alpha3 alone, beside scheduler-plugins: two resources of one name. */
static void groups_of_both_groups_are_found(void **state)
{
	static const struct answer server[] = {
		GROUPS(V("scheduling.k8s.io/v1") V("scheduling.k8s.io/v1alpha3")
			       V("scheduling.x-k8s.io/v1alpha1")),
		CORE,
		RESOURCE("scheduling.k8s.io/v1", "priorityclasses"),
		RESOURCE("scheduling.k8s.io/v1alpha3", "podgroups"),
		RESOURCE("scheduling.x-k8s.io/v1alpha1", "podgroups"),
		{0},
	};
	struct discovery d;
	struct buf asked = BUF_INIT;

	(void)state;
	discover(&d, server, &asked);
	assert_served(&d, OBJECT_PRIORITY_CLASS, "scheduling.k8s.io/v1");
	assert_served(&d, OBJECT_POD_GROUP, "scheduling.k8s.io/v1alpha3");
	assert_served(&d, OBJECT_COSCHEDULING_GROUP, "scheduling.x-k8s.io/v1alpha1");
	assert_unserved(&d, OBJECT_WORKLOAD);
	assert_unserved(&d, OBJECT_ELASTIC_QUOTA);
	buf_fini(&asked);
}

static void quota_of_either_group_is_found(void **state)
{
	static const struct answer server[] = {
		GROUPS(V("scheduling.sigs.k8s.io/v1alpha1") V("scheduling.x-k8s.io/v1alpha1")),
		CORE,
		RESOURCE("scheduling.x-k8s.io/v1alpha1", "podgroups"),
		RESOURCE("scheduling.sigs.k8s.io/v1alpha1", "elasticquotas"),
		{0},
	};
	struct discovery d;
	struct buf asked = BUF_INIT;

	(void)state;
	discover(&d, server, &asked);
	assert_served(&d, OBJECT_ELASTIC_QUOTA, "scheduling.sigs.k8s.io/v1alpha1");
	assert_served(&d, OBJECT_COSCHEDULING_GROUP, "scheduling.x-k8s.io/v1alpha1");
	assert_unserved(&d, OBJECT_POD_GROUP);
	buf_fini(&asked);
}

static void resource_that_cannot_be_watched_is_not_served(void **state)
{
	static const struct answer server[] = {
		{"/apis", "{\"groups\":[]}", 0},
		{"/api/v1", "{\"resources\":[{\"name\":\"nodes\",\"verbs\":[\"list\",\"get\"]}]}",
		 0},
		{0},
	};
	struct discovery d;
	struct buf asked = BUF_INIT;

	(void)state;
	discover(&d, server, &asked);
	assert_unserved(&d, OBJECT_NODE);
	buf_fini(&asked);
}

static void failure_leaves_open_what_depends_on_it(void **state)
{
	static const struct answer server[] = {
		GROUPS(V("policy/v1beta1") V("policy/v1") V("apps/v1") V("batch/v1")),
		CORE,
		{"/apis/policy/v1", NULL, 503},
		RESOURCE("policy/v1beta1", "poddisruptionbudgets"),
		{"/apis/apps/v1", NULL, -1},
		{0},
	};
	struct discovery d;
	struct buf asked = BUF_INIT;

	(void)state;
	discover(&d, server, &asked);
	assert_served(&d, OBJECT_NODE, "v1");
	assert_fault(&d, OBJECT_POD_DISRUPTION_BUDGET, 503);
	assert_null(strstr(asked.data, "policy/v1beta1"));
	assert_fault(&d, OBJECT_REPLICA_SET, 0);
	/* It went away between two answers. */
	assert_unserved(&d, OBJECT_JOB);
	buf_fini(&asked);
}

static void no_list_of_groups_leaves_all_open(void **state)
{
	static const struct answer servers[][2] = {
		{{"/apis", NULL, 403}, {0}},
		{{"/apis", "", 0}, {0}},
		{{"/apis", "<html>", 0}, {0}},
		{{"/apis", "[]", 0}, {0}},
		{{"/apis", "{\"groups\":{}}", 0}, {0}},
		{{"/apis", NULL, -1}, {0}},
	};
	struct discovery d;

	(void)state;
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		struct buf asked = BUF_INIT;

		discover(&d, servers[i], &asked);
		assert_string_equal(asked.data, "/apis ");
		for (int kind = 0; kind < OBJECT_KINDS; kind++)
			assert_fault(&d, (enum object_kind)kind, i == 0 ? 403 : 0);
		buf_fini(&asked);
	}
}

static void odd_members_are_passed_over(void **state)
{
	static const struct answer server[] = {
		{"/apis",
		 "{\"groups\":[1,null,{},{\"versions\":7},{\"versions\":[null,{\"groupVersion\":5},"
		 "{\"groupVersion\":\"policy/v1/../../secrets\"},{\"groupVersion\":\"policy/"
		 "v1\"}]}]}",
		 0},
		{"/api/v1",
		 "{\"resources\":[3,{\"name\":4},{\"name\":\"nodes\"},{\"name\":\"nodes\","
		 "\"verbs\":"
		 "[1,\"list\",\"watch\"]}]}",
		 0},
		RESOURCE("policy/v1", "poddisruptionbudgets"),
		{0},
	};
	struct discovery d;
	struct buf asked = BUF_INIT;

	(void)state;
	discover(&d, server, &asked);
	assert_served(&d, OBJECT_NODE, "v1");
	assert_served(&d, OBJECT_POD_DISRUPTION_BUDGET, "policy/v1");
	assert_null(strstr(asked.data, "secrets"));
	buf_fini(&asked);
}

/* As it is asked every few seconds, a kind whose group is not there costs one request. */
static void what_is_not_wanted_is_not_asked_about(void **state)
{
	static const struct answer without[] = {
		GROUPS(V("apps/v1") V("policy/v1")), CORE, RESOURCE("apps/v1", "replicasets"), {0}};
	static const struct answer with[] = {GROUPS(V("apps/v1") V("scheduling.x-k8s.io/v1alpha1")),
					     CORE,
					     RESOURCE("scheduling.x-k8s.io/v1alpha1",
						      "elasticquotas"),
					     {0}};
	struct buf asked = BUF_INIT;
	struct discovery d;

	(void)state;
	discover_of(&d, 1U << OBJECT_ELASTIC_QUOTA, without, &asked);
	assert_unserved(&d, OBJECT_ELASTIC_QUOTA);
	discover_of(&d, 1U << OBJECT_ELASTIC_QUOTA, with, &asked);
	assert_served(&d, OBJECT_ELASTIC_QUOTA, "scheduling.x-k8s.io/v1alpha1");
	assert_string_equal(asked.data, "/apis /apis /apis/scheduling.x-k8s.io/v1alpha1 ");
	buf_fini(&asked);
}

static void more_versions_than_fit_are_passed_over(void **state)
{
	struct buf body = BUF_INIT;
	struct discovery d;
	char path[DISCOVERY_PATH_MAX];

	(void)state;
	buf_add_str(&body, "{\"groups\":[{\"versions\":[");
	for (int i = 0; i < 500; i++)
		buf_printf(&body, "{\"groupVersion\":\"policy/v%d\"},", i);
	buf_add_str(&body, "{}]}]}");
	discovery_begin(&d, UINT32_MAX);
	assert_true(discovery_next(&d, path));
	discovery_answer(&d, body.data, body.len, NULL);
	assert_int_equal(d.count, DISCOVERY_VERSIONS_MAX);
	buf_fini(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_server_serves_new_versions),
		cmocka_unit_test(old_server_serves_old_versions),
		cmocka_unit_test(groups_of_both_groups_are_found),
		cmocka_unit_test(quota_of_either_group_is_found),
		cmocka_unit_test(resource_that_cannot_be_watched_is_not_served),
		cmocka_unit_test(failure_leaves_open_what_depends_on_it),
		cmocka_unit_test(no_list_of_groups_leaves_all_open),
		cmocka_unit_test(odd_members_are_passed_over),
		cmocka_unit_test(what_is_not_wanted_is_not_asked_about),
		cmocka_unit_test(more_versions_than_fit_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
