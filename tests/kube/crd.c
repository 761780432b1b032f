/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource definition that is shipped, on a real API server: it is taken, and its schema
 * refuses what no quota can mean.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"

#define QUOTAS "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/elasticquotas"

static struct kube_testbed *bed;

static bool is_served(void *context)
{
	(void)context;
	return control_plane_send(bed->plane, "GET", QUOTAS, NULL, NULL) == 200;
}

/* The status with which a quota of that spec is answered; what the server says replaces *answer. */
static long create(const char *name, const char *spec, struct buf *answer)
{
	char *body = mem_printf("{\"apiVersion\":\"scheduling.x-k8s.io/v1alpha1\",\"kind\":"
				"\"ElasticQuota\",\"metadata\":{\"name\":\"%s\"},\"spec\":%s}",
				name, spec);
	long status = control_plane_send(bed->plane, "POST", QUOTAS, body, answer);

	free(body);
	return status;
}

static void test_schema(void **state)
{
	static const struct {
		const char *spec;
		const char *refused; /* what the server names; NULL: it takes the quota */
	} cases[] = {
		{"{\"min\":{\"cpu\":2,\"memory\":\"1.5Gi\"},\"max\":{\"cpu\":\"+500m\",\"a/"
		 "b\":\"1e3\"}}",
		 NULL},
		{"{}", NULL},
		{"{\"min\":{\"cpu\":0,\"memory\":\"0\"}}", NULL},
		{"{\"min\":{\"cpu\":\"-1\"}}", "spec.min.cpu"},
		{"{\"min\":{\"cpu\":-1}}", "spec.min.cpu"},
		{"{\"max\":{\"memory\":\"-0.5Gi\"}}", "spec.max.memory"},
		{"{\"max\":{\"memory\":\"1 Gi\"}}", "spec.max.memory"},
		{"{\"max\":{\"memory\":\"1Gb\"}}", "spec.max.memory"},
		{"{\"max\":{\"memory\":\"1e0.5\"}}", "spec.max.memory"},
		{"{\"max\":{\"memory\":\"\"}}", "spec.max.memory"},
		{"{\"max\":{\"memory\":true}}", "spec.max.memory"},
		{"{\"max\":{\"memory\":1.5}}", "spec.max.memory"},
		{"{\"max\":[]}", "spec.max"},
	};
	struct buf answer = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *name = mem_printf("case-%zu", i);
		long status = create(name, cases[i].spec, &answer);

		print_message("          %s: %ld\n", cases[i].spec, status);
		assert_int_equal(status, cases[i].refused ? 422 : 201);
		if (cases[i].refused)
			assert_non_null(strstr(answer.data, cases[i].refused));
		free(name);
	}
	buf_fini(&answer);
}

/* Its own verb changes the status, and nothing else does. */
static void test_status_is_apart(void **state)
{
	struct buf answer = BUF_INIT;

	(void)state;
	control_plane_must(bed->plane, "PATCH", QUOTAS "/case-0/status",
			   "{\"status\":{\"used\":{\"cpu\":\"1\"}},\"spec\":{\"min\":null}}");
	control_plane_must(bed->plane, "PATCH", QUOTAS "/case-0",
			   "{\"status\":{\"used\":{\"cpu\":\"2\"}}}");
	assert_int_equal(control_plane_send(bed->plane, "GET", QUOTAS "/case-0", NULL, &answer),
			 200);
	assert_non_null(strstr(answer.data, "\"used\":{\"cpu\":\"1\"}"));
	assert_non_null(strstr(answer.data, "\"min\":{\"cpu\":2"));
	assert_int_equal(control_plane_send(bed->plane, "PATCH", QUOTAS "/case-0/status",
					    "{\"status\":{\"used\":{\"cpu\":\"-1\"}}}", NULL),
			 422);
	buf_fini(&answer);
}

static int open_bed(void **state)
{
	(void)state;
	control_plane_create(bed->plane, "packaging/kubernetes/crd/elasticquota.yaml");
	return await(is_served, NULL, 60) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_status_is_apart),
	};
	int failed;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, open_bed, NULL);
	kube_testbed_free(bed, failed != 0);
	curl_global_cleanup();
	return failed;
}
