/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster model against a real API server: a hundred nodes and some four hundred pods, bound by
 * the real scheduler, of which /v1/nodes and /v1/pods must tell exactly what kubectl reports,
 * whatever happens to the cluster and to the connection. What is compared, and how it is worked out
 * anew from kubectl's JSON: tests/kube_truth.c.
 *
 * The tests are one story, in order: a right and a resource that are missing at first are looked
 * for once a minute, so they are given in the second test and awaited in the last. Aggregator 0 may
 * see everything, aggregator 1 what the restricted user's role lets it.
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
#include "tests/kube_truth.h"
#include "tests/kube_world.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { ALL, RESTRICTED };

static struct kube_testbed *bed;
static size_t bound; /* pods that have a node, as the story goes */

static void patch(const char *path, const char *body)
{
	control_plane_must(bed->plane, "PATCH", path, body);
}

static void expect_as_kubectl(void)
{
	kube_testbed_expect(bed, ALL, bound);
}

static void expect_synced(const char *resource)
{
	cJSON_Delete(kube_testbed_expect_state(bed, ALL, resource, "synced"));
}

static double relists_of(const char *resource)
{
	cJSON *told = kube_testbed_expect_state(bed, ALL, resource, "synced");
	double relists = json_at(told, "relists")->valuedouble;

	cJSON_Delete(told);
	return relists;
}

/* --- what is there at first ------------------------------------------------------------------ */

/*
 * Both begin with an empty cluster, so that everything comes by events, in whatever order the
 * controllers make it.
 */
static void test_created(void **state)
{
	(void)state;
	control_plane_create(bed->plane, "tests/kube/role.yaml");
	kube_testbed_start_aggregator(bed, ALL, bed->plane->admin);
	kube_testbed_start_aggregator(bed, RESTRICTED, bed->plane->restricted);
	kube_world_make(bed->plane);
	bound = WORLD_PODS;
	kube_testbed_expect(bed, ALL, bound + 1); /* with the one that will have ended */
	kube_world_run_pods(bed->plane);
	expect_as_kubectl();
	kube_testbed_expect(bed, RESTRICTED, bound);
}

/*
 * The rule is named as one would write it into a role; then it is there, as is the missing
 * resource.
 */
static void test_missing_is_told(void **state)
{
	static const char *const words[] = {"list", "poddisruptionbudgets", "policy"};
	cJSON *told = kube_testbed_expect_state(bed, ALL, "elasticquotas", "absent");
	const char *message;

	(void)state;
	cJSON_Delete(told);
	told = kube_testbed_expect_state(bed, RESTRICTED, "poddisruptionbudgets", "forbidden");
	message = cJSON_GetStringValue(json_at(told, "message"));
	print_message("          told: %s\n", message ? message : "nothing");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_true(message && strstr(message, words[i]));
	cJSON_Delete(told);
	control_plane_create(bed->plane, "tests/kube/role-budgets.yaml");
	kube_world_make_quotas(bed->plane);
}

/* --- changes --------------------------------------------------------------------------------- */

static void change_nodes(void)
{
	patch("/api/v1/nodes/node-000",
	      "{\"metadata\":{\"labels\":{\"zone\":null,\"example.com/pool\":\"spare\"}}}");
	patch("/api/v1/nodes/node-001", "{\"spec\":{\"unschedulable\":true}}");
	patch("/api/v1/nodes/node-007", "{\"spec\":{\"unschedulable\":null}}");
	patch("/api/v1/nodes/node-002/status",
	      "{\"status\":{\"capacity\":{\"cpu\":\"12\",\"hugepages-2Mi\":\"64Mi\"},"
	      "\"allocatable\":{\"cpu\":\"11500m\",\"memory\":\"7000000001\"}}}");
	patch("/api/v1/nodes/node-005/status",
	      "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}}");
}

#define API_RESOURCES                                                                              \
	"{\"requests\":{\"cpu\":\"111m\",\"memory\":\"200Mi\"},\"limits\":{\"memory\":\"0.5Gi\"}}"

/*
 * Replicas more and fewer, and a template with other resources, which is another ReplicaSet of the
 * same Deployment.
 */
static void change_workloads(void)
{
	patch("/apis/apps/v1/namespaces/shop/deployments/web", "{\"spec\":{\"replicas\":90}}");
	patch("/apis/apps/v1/namespaces/batch/deployments/idle", "{\"spec\":{\"replicas\":20}}");
	bound = bound + 30 - 40;
	patch("/apis/apps/v1/namespaces/shop/deployments/api",
	      "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"api\",\"image\":"
	      "\"none\",\"resources\":" API_RESOURCES "}]}}}}");
	patch("/api/v1/namespaces/shop/pods/cache-0",
	      "{\"metadata\":{\"labels\":{\"role\":\"first\"}}}");
	/* Its job makes another; what has ended is not told of. */
	for (int i = 0; i < 3; i++)
		kube_world_end_pod(bed->plane, "batch", "job-name=report");
}

/*
 * The old pods of the Deployment are gone, or the comparison could be over before anything
 * happened.
 */
static bool api_is_replaced(void *ctx)
{
	cJSON *list = control_plane_kubectl_get(bed->plane, "pods");
	const cJSON *pod;
	size_t old = 0, new = 0;

	(void)ctx;
	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		const char *app = cJSON_GetStringValue(json_at(pod, "metadata.labels.app"));
		const cJSON *c = json_at(pod, "spec.containers");
		const char *cpu =
			c ? cJSON_GetStringValue(json_at(c->child, "resources.requests.cpu"))
			  : NULL;

		if (app && cpu && strcmp(app, "api") == 0)
			*(strcmp(cpu, "111m") == 0 ? &new : &old) += 1;
	}
	cJSON_Delete(list);
	return old == 0 && new == 80;
}

static void test_updated(void **state)
{
	(void)state;
	change_nodes();
	change_workloads();
	assert_true(control_plane_await(bed->plane, api_is_replaced, NULL, 60));
	expect_as_kubectl();
	kube_world_run_pods(bed->plane);
	expect_as_kubectl();
}

/* --- deletion -------------------------------------------------------------------------------- */

enum { DELETED_NODES = 10 };

static void remove_object(const char *path)
{
	control_plane_must(bed->plane, "DELETE", path, NULL);
}

/*
 * Cordoned, so that the scheduler leaves it alone, and gone; then its pods, which their controllers
 * make anew elsewhere. A daemon that came back between the two is collected after a while, as in
 * any cluster.
 */
static void delete_node(size_t i)
{
	char *node = mem_printf("/api/v1/nodes/node-%03zu", i);

	patch(node, "{\"spec\":{\"unschedulable\":true}}");
	remove_object(node);
	kube_world_empty_node(bed->plane, i);
	free(node);
}

static void test_deleted(void **state)
{
	(void)state;
	remove_object(
		"/apis/apps/v1/namespaces/batch/deployments/gpu?propagationPolicy=Background");
	remove_object("/api/v1/namespaces/shop/pods/alone");
	for (size_t i = 0; i < DELETED_NODES; i++)
		delete_node(WORLD_NODES - 1 - i);
	bound = bound - 8 - 1 - DELETED_NODES;
	expect_as_kubectl();
}

/* --- connections ----------------------------------------------------------------------------- */

/* Meanwhile what was known is told on, and that it may be old. */
static void test_server_is_killed_and_restarted(void **state)
{
	cJSON *before = kube_testbed_items(bed, ALL, "/v1/pods"), *after;

	(void)state;
	control_plane_kill_api(bed->plane, 0);
	cJSON_Delete(kube_testbed_expect_state(bed, ALL, "pods", "stale"));
	after = kube_testbed_items(bed, ALL, "/v1/pods");
	assert_int_equal(cJSON_GetArraySize(after), cJSON_GetArraySize(before));
	assert_true(cJSON_GetArraySize(after) > 300);
	cJSON_Delete(before);
	cJSON_Delete(after);
	control_plane_start_api(bed->plane, 0, true);
	patch("/api/v1/nodes/node-010", "{\"metadata\":{\"labels\":{\"after\":\"restart\"}}}");
	patch("/apis/apps/v1/namespaces/batch/deployments/idle", "{\"spec\":{\"replicas\":25}}");
	bound += 5;
	expect_as_kubectl();
	expect_synced("nodes");
	expect_synced("pods");
}

/*
 * What happened meanwhile came through another door, and etcd has forgotten how: the watches cannot
 * go on from where they were, so only new lists can tell that nodes and pods are gone.
 */
static void test_watch_is_expired(void **state)
{
	double node_lists = relists_of("nodes"), pod_lists = relists_of("pods");

	(void)state;
	control_plane_start_api(bed->plane, 1, true);
	control_plane_kill_api(bed->plane, 0);
	cJSON_Delete(kube_testbed_expect_state(bed, ALL, "pods", "stale"));
	patch("/api/v1/nodes/node-011", "{\"metadata\":{\"labels\":{\"behind\":\"your-back\"}}}");
	kube_world_make_node(bed->plane, WORLD_NODES);
	remove_object("/api/v1/namespaces/shop/pods/chosen-1");
	remove_object("/api/v1/namespaces/shop/pods/chosen-2");
	bound = bound + 1 - 2; /* the daemon on the new node */
	control_plane_compact(bed->plane);
	control_plane_start_api(bed->plane, 0, false);
	control_plane_kill_api(bed->plane, 1);
	expect_as_kubectl();
	assert_true(relists_of("nodes") > node_lists);
	assert_true(relists_of("pods") > pod_lists);
}

/* --- what was missing ------------------------------------------------------------------------ */

static void expect_objects(int aggregator, const char *resource, double count)
{
	cJSON *told = kube_testbed_expect_state(bed, aggregator, resource, "synced");

	assert_true(json_at(told, "objects")->valuedouble == count);
	assert_null(json_at(told, "message"));
	cJSON_Delete(told);
}

static void test_absent_resource_appears(void **state)
{
	(void)state;
	expect_objects(ALL, "elasticquotas", 2);
}

static void test_forbidden_is_granted(void **state)
{
	(void)state;
	expect_objects(RESTRICTED, "poddisruptionbudgets", 1);
	kube_testbed_expect(bed, RESTRICTED, bound);
}

static void test_stops(void **state)
{
	(void)state;
	assert_int_equal(kube_testbed_stop_aggregator(bed, ALL), 0);
	assert_int_equal(kube_testbed_stop_aggregator(bed, RESTRICTED), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_created),
		cmocka_unit_test(test_missing_is_told),
		cmocka_unit_test(test_updated),
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_server_is_killed_and_restarted),
		cmocka_unit_test(test_watch_is_expired),
		cmocka_unit_test(test_absent_resource_appears),
		cmocka_unit_test(test_forbidden_is_granted),
		cmocka_unit_test(test_stops),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	return failed != 0;
}
