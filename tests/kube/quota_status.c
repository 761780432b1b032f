/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --write-quota-status against a real API server, with the rights of the manifests alone: what pods
 * request is in status.used, follows changes, and is not forced on another manager.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

#define QUOTAS "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/elasticquotas"
#define PODS   "/api/v1/namespaces/default/pods"

static struct kube_testbed *bed;

static bool is_served(void *context)
{
	(void)context;
	return control_plane_send(bed->plane, "GET", QUOTAS, NULL, NULL) == 200;
}

static void make_quota(const char *name)
{
	char *body =
		mem_printf("{\"apiVersion\":\"scheduling.x-k8s.io/v1alpha1\",\"kind\":"
			   "\"ElasticQuota\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"min\":{"
			   "\"cpu\":2},\"max\":{\"cpu\":4,\"memory\":\"8Gi\",\"a.b/c\":1}}}",
			   name);

	control_plane_must(bed->plane, "POST", QUOTAS, body);
	free(body);
}

/* On a node that need not be there. */
static void make_pod(const char *name, const char *cpu)
{
	char *body = mem_printf(
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"},\"spec\":{"
		"\"nodeName\":\"alpha\",\"containers\":[{\"name\":\"c\",\"image\":\"none\","
		"\"resources\":{\"requests\":{\"cpu\":\"%s\",\"memory\":\"1Gi\"}}}]}}",
		name, cpu);

	control_plane_must(bed->plane, "POST", PODS, body);
	free(body);
}

static bool has_used(void *context)
{
	struct buf answer = BUF_INIT;
	bool found;

	control_plane_send(bed->plane, "GET", QUOTAS "/quota", NULL, &answer);
	found = answer.data && strstr(answer.data, context);
	buf_fini(&answer);
	return found;
}

static void expect_used(const char *used)
{
	if (!await(has_used, (char *)used, 90))
		fail_msg("%s is not written", used);
}

/*
 * Bound to the restricted user: what clusterrole.yaml lets it read, and what the other manifest
 * lets it write.
 */
static void bind_role(const char *name)
{
	char *body =
		mem_printf("{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":"
			   "\"ClusterRoleBinding\",\"metadata\":{\"name\":\"%s\"},\"roleRef\":{"
			   "\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\","
			   "\"name\":\"%s\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"%s\"}]}",
			   name, name, CONTROL_RESTRICTED_USER);

	control_plane_must(bed->plane, "POST",
			   "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body);
	free(body);
}

static void test_written(void **state)
{
	(void)state;
	make_quota("quota");
	make_pod("one", "1500m");
	expect_used("\"used\":{\"a.b/c\":\"0\",\"cpu\":\"1500m\",\"memory\":\"1Gi\"}");
	make_pod("two", "500m");
	expect_used("\"used\":{\"a.b/c\":\"0\",\"cpu\":\"2\",\"memory\":\"2Gi\"}");
	control_plane_must(bed->plane, "DELETE", PODS "/two?gracePeriodSeconds=0", NULL);
	expect_used("\"cpu\":\"1500m\"");
}

static bool is_counted(void *context)
{
	const char *sample = context;
	struct buf metrics = BUF_INIT;
	char *url = mem_printf("http://127.0.0.1:%d/metrics", bed->aggregators[0].http_port);
	const char *at;
	bool counted;

	http_get(url, &metrics);
	at = metrics.data ? strstr(metrics.data, sample) : NULL;
	counted = at && strtod(at + strlen(sample), NULL) > 0;
	buf_fini(&metrics);
	free(url);
	return counted;
}

/* A controller that says so itself keeps its word. */
static void test_other_managers_keep_theirs(void **state)
{
	(void)state;
	control_plane_must(bed->plane, "PATCH", QUOTAS "/quota/status?fieldManager=other",
			   "{\"status\":{\"used\":{\"cpu\":\"777\"}}}");
	assert_true(await(is_counted,
			  (char *)"evenkeel_quota_status_writes_total{result=\"failed\"}", 60));
	expect_used("\"cpu\":\"777\"");
}

static void test_stops(void **state)
{
	(void)state;
	assert_int_equal(kube_testbed_stop_aggregator(bed, 0), 0);
}

static int open_bed(void **state)
{
	(void)state;
	control_plane_create(bed->plane, "packaging/kubernetes/crd/elasticquota.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/core/clusterrole.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/clusterrole-quota-status.yaml");
	bind_role("evenkeel-aggregator");
	bind_role("evenkeel-aggregator-quota-status");
	if (!await(is_served, NULL, 60))
		return -1;
	setenv("EVENKEEL_WRITE_QUOTA_STATUS", "true", 1);
	kube_testbed_start_aggregator(bed, 0, bed->plane->restricted);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written),
		cmocka_unit_test(test_other_managers_keep_theirs),
		cmocka_unit_test(test_stops),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, open_bed, NULL);
	kube_testbed_free(bed, failed != 0);
	curl_global_cleanup();
	return failed;
}
