/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of pods on a real API server: PodGroups of Kubernetes where it serves them, and those of
 * scheduler-plugins from the moment their resource is there, hold a node whose pod they need.
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

#define PODS	       "/api/v1/namespaces/default/pods"
#define GROUPS	       "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
#define PLUGINS_GROUPS "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
#define SECONDS	       60

static struct kube_testbed *bed;

static void make_node(const char *name)
{
	char *body = mem_printf(
		"{\"metadata\":{\"name\":\"%s\"},\"status\":{\"allocatable\":{\"cpu\":\"4\","
		"\"memory\":\"8Gi\",\"pods\":\"110\"},\"capacity\":{\"cpu\":\"4\",\"memory\":"
		"\"8Gi\",\"pods\":\"110\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
		"\"True\"}]}}",
		name);

	control_plane_must(bed->plane, "POST", "/api/v1/nodes", body);
	free(body);
}

/* labels, spec: members. */
static void make_pod(const char *name, const char *node, const char *labels, const char *spec)
{
	char *body = mem_printf(
		"{\"metadata\":{\"name\":\"%s\",\"labels\":{%s},\"annotations\":{"
		"\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"true\"}},\"spec\":{%s"
		"\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":"
		"{\"requests\":{\"cpu\":\"500m\"}}}]}}",
		name, labels, spec, node);
	char *status = mem_printf(PODS "/%s/status", name);

	control_plane_must(bed->plane, "POST", PODS, body);
	control_plane_must(bed->plane, "PATCH", status,
			   "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
			   "\"status\":\"True\"}]}}");
	free(body);
	free(status);
}

static void remove_pod(const char *name)
{
	char *path = mem_printf(PODS "/%s?gracePeriodSeconds=0", name);

	control_plane_must(bed->plane, "DELETE", path, NULL);
	free(path);
}

static char *get_plan(void)
{
	cJSON *json = kube_testbed_get(bed, 0, "/v1/drain");
	char *plan = json ? cJSON_PrintUnformatted(json) : NULL;

	cJSON_Delete(json);
	return plan;
}

/* A pod moves, and that text is in the plan; "": no group falls. */
static bool is_told(void *text)
{
	char *plan = get_plan();
	bool told = plan && strstr(plan, text) && strstr(plan, "\"moves\":[{") &&
		    (*(char *)text || !strstr(plan, "PodGroupBelowMinimum"));

	free(plan);
	return told;
}

static void expect(const char *text)
{
	char *plan;

	if (await(is_told, (void *)text, SECONDS))
		return;
	plan = get_plan();
	fail_msg("\"%s\" is not told in %s", text, plan ? plan : "no plan");
}

#define FALLS "group default/train needs 2, would have 1: 1 pod of other nodes must leave, too"

/* It comes and goes while the aggregator watches. */
static void test_groups_of_kubernetes(void **state)
{
	static const char member[] = "\"schedulingGroup\":{\"podGroupName\":\"train\"},";

	(void)state;
	if (!bed->plane->version->api_options[0]) {
		print_message("SKIP: this API server knows no groups\n");
		skip();
	}
	cJSON_Delete(kube_testbed_expect_state(bed, 0, "podgroups", "synced"));
	make_pod("m0", "alpha", "", member);
	make_pod("m1", "bravo", "", member);
	expect("");
	control_plane_must(bed->plane, "POST", GROUPS,
			   "{\"metadata\":{\"name\":\"train\"},\"spec\":{\"schedulingPolicy\":{"
			   "\"gang\":{\"minCount\":2}}}}");
	expect(FALLS);
	control_plane_must(bed->plane, "DELETE", GROUPS "/train", NULL);
	/* What a controller, which is not here, does when no pod is left. */
	control_plane_must(bed->plane, "PATCH", GROUPS "/train",
			   "{\"metadata\":{\"finalizers\":null}}");
	expect("");
	remove_pod("m0");
	remove_pod("m1");
}

static bool is_served(void *context)
{
	(void)context;
	return control_plane_send(bed->plane, "GET", PLUGINS_GROUPS, NULL, NULL) == 200;
}

/* The resource comes when the aggregator has long been there. */
static void test_groups_of_plugins(void **state)
{
	static const char member[] = "\"scheduling.x-k8s.io/pod-group\":\"train\"";

	(void)state;
	cJSON_Delete(kube_testbed_expect_state(bed, 0, "podgroups.scheduling.x-k8s.io", "absent"));
	make_pod("l0", "alpha", member, "");
	make_pod("l1", "bravo", member, "");
	expect("");
	control_plane_create(bed->plane, "tests/kube/podgroup.yaml");
	assert_true(await(is_served, NULL, SECONDS));
	control_plane_must(bed->plane, "POST", PLUGINS_GROUPS,
			   "{\"apiVersion\":\"scheduling.x-k8s.io/v1alpha1\",\"kind\":\"PodGroup\","
			   "\"metadata\":{\"name\":\"train\"},\"spec\":{\"minMember\":2}}");
	cJSON_Delete(kube_testbed_expect_state(bed, 0, "podgroups.scheduling.x-k8s.io", "synced"));
	expect(FALLS);
	control_plane_must(bed->plane, "PATCH", PLUGINS_GROUPS "/train",
			   "{\"spec\":{\"minMember\":1}}");
	expect("");
}

static int open_bed(void **state)
{
	static const char *const options[] = {"--plan-interval",
					      "1s",
					      "--extra-capacity-min-rate",
					      "0",
					      "--scale-down-unneeded-time",
					      "0s",
					      NULL};

	(void)state;
	make_node("alpha");
	make_node("bravo");
	kube_testbed_start_aggregator_with(bed, 0, bed->plane->admin, options);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups_of_kubernetes),
		cmocka_unit_test(test_groups_of_plugins),
	};
	int failed;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, open_bed, NULL);
	kube_testbed_free(bed, failed != 0);
	curl_global_cleanup();
	return failed;
}
