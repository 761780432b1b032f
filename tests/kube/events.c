/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --events against a real API server, with the rights of the manifests alone: kubectl shows what is
 * told of nodes, quotas and refused pods, the rate holds, and the API takes repetitions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/event_writer.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

#define QUOTAS	"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/elasticquotas"
#define PODS	"/api/v1/namespaces/default/pods"
#define SECONDS 60

static struct kube_testbed *bed;

static void must(const char *method, const char *path, char *body)
{
	control_plane_must(bed->plane, method, path, body);
	free(body);
}

/* --- what kubectl shows ----------------------------------------------------------------------- */

/* How many lines of `kubectl get events -A` of evenkeel's have these words in that order. */
static int count_events(const char *const *words)
{
	static const char *const get[] = {
		"get", "events", "-A", "--no-headers", "--field-selector", "source=evenkeel", NULL};
	struct buf out = BUF_INIT;
	int count = control_plane_count_lines(bed->plane, get, words, &out);

	buf_fini(&out);
	return count;
}

static bool is_shown(void *words)
{
	return count_events(words) > 0;
}

#define WORDS(...) ((const char *[]){__VA_ARGS__, NULL})

static void expect_event(const char **words)
{
	if (!await(is_shown, words, SECONDS))
		fail_msg("kubectl shows no event %s", words[2]);
}

/* --- the cluster ------------------------------------------------------------------------------ */

static void make_node(const char *name)
{
	char *path = mem_printf("/api/v1/nodes/%s/status", name);

	must("POST", "/api/v1/nodes", mem_printf("{\"metadata\":{\"name\":\"%s\"}}", name));
	must("PATCH", path,
	     mem_strdup("{\"status\":{\"capacity\":{\"cpu\":\"8\",\"memory\":\"32Gi\",\"pods\":"
			"\"10\"},\"allocatable\":{\"cpu\":\"8\",\"memory\":\"32Gi\",\"pods\":"
			"\"10\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"));
	free(path);
}

/* A pod without a controller: its node is needed. node "": it waits. */
static void make_pod(const char *name, const char *node, const char *cpu)
{
	must("POST", PODS,
	     mem_printf("{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s%s%s\"schedulerName\":"
			"\"nobody\",\"containers\":[{\"name\":\"c\",\"image\":\"none\","
			"\"resources\":{\"requests\":{\"cpu\":\"%s\"}}}]}}",
			name, *node ? "\"nodeName\":\"" : "", node, *node ? "\"," : "", cpu));
}

static void delete_pod(const char *name)
{
	char *path = mem_printf(PODS "/%s?gracePeriodSeconds=0", name);

	must("DELETE", path, NULL);
	free(path);
}

static bool is_served(void *context)
{
	(void)context;
	return control_plane_send(bed->plane, "GET", QUOTAS, NULL, NULL) == 200;
}

static int open_bed(void **state)
{
	static const char *const options[] = {"--events=nodes,quotas,pods", "--plan-interval=1s",
					      NULL};

	(void)state;
	control_plane_create(bed->plane, "packaging/kubernetes/crd/elasticquota.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/core/namespace.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/core/clusterrole.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/overlays/events/events.yaml");
	control_plane_bind(bed->plane, NULL, "ClusterRole", "evenkeel-aggregator", "User",
			   CONTROL_RESTRICTED_USER);
	control_plane_bind(bed->plane, NULL, "ClusterRole", "evenkeel-events", "User",
			   CONTROL_RESTRICTED_USER);
	if (!await(is_served, NULL, SECONDS))
		return -1;
	make_node("alpha");
	make_node("beta");
	make_pod("one", "alpha", "3");
	kube_testbed_start_aggregator_with(bed, 0, bed->plane->restricted, options);
	return 0;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void test_nodes(void **state)
{
	static const char *const describe[] = {"describe", "node", "beta", NULL};
	struct buf out = BUF_INIT;

	(void)state;
	expect_event(WORDS("default", "Normal", "NodeUnneeded", "node/beta"));
	make_pod("two", "beta", "1");
	expect_event(WORDS("default", "Normal", "NodeNeeded", "node/beta"));
	assert_int_equal(count_events(WORDS("node/alpha")), 0);
	assert_int_equal(control_plane_count_lines(bed->plane, describe,
						   WORDS("NodeNeeded", "evenkeel"), &out),
			 1);
	buf_fini(&out);
}

static uint64_t sample(const char *result)
{
	char *url = mem_printf("http://127.0.0.1:%d/metrics", bed->aggregators[0].http_port);
	char *name = mem_printf("evenkeel_events_total{result=\"%s\"} ", result);
	struct buf metrics = BUF_INIT;
	const char *at;
	uint64_t value = 0;

	http_get(url, &metrics);
	at = metrics.data ? strstr(metrics.data, name) : NULL;
	if (at)
		value = strtoull(at + strlen(name), NULL, 10);
	buf_fini(&metrics);
	free(name);
	free(url);
	return value;
}

static bool is_limited(void *context)
{
	(void)context;
	return sample("limited") > 0;
}

/* The verdict is what it was a moment ago: nothing more is told of that within five minutes. */
static void test_rate(void **state)
{
	(void)state;
	assert_int_equal(sample("limited"), 0);
	delete_pod("two");
	assert_true(await(is_limited, NULL, SECONDS));
	assert_int_equal(count_events(WORDS("NodeUnneeded", "node/beta")), 1);
}

/* --- quotas and pods -------------------------------------------------------------------------- */

static void test_quotas(void **state)
{
	(void)state;
	must("POST", QUOTAS,
	     mem_strdup(
		     "{\"apiVersion\":\"scheduling.x-k8s.io/v1alpha1\",\"kind\":\"ElasticQuota\","
		     "\"metadata\":{\"name\":\"quota\"},\"spec\":{\"min\":{\"cpu\":4},\"max\":{"
		     "\"cpu\":2}}}"));
	expect_event(WORDS("default", "Warning", "QuotaOverMax", "elasticquota/quota", "cpu"));
	expect_event(WORDS("default", "Warning", "QuotaMinOverMax", "elasticquota/quota", "cpu"));
}

static void test_pods(void **state)
{
	cJSON *pod, *args = cJSON_CreateObject(), *answer = NULL;
	struct buf text = BUF_INIT;
	char *body;

	(void)state;
	make_pod("late", "", "1");
	assert_int_equal(control_plane_send(bed->plane, "GET", PODS "/late", NULL, &text), 200);
	pod = cJSON_Parse(text.data);
	cJSON_AddItemToObject(args, "Pod", pod);
	cJSON_AddItemToObject(args, "NodeNames", cJSON_CreateStringArray(WORDS("alpha"), 1));
	body = cJSON_PrintUnformatted(args);
	assert_int_equal(kube_testbed_post(bed, 0, "/extender/filter", body, &answer), 200);
	expect_event(WORDS("default", "Warning", "RefusedByEvenkeel", "pod/late",
			   "ElasticQuota overMax"));
	cJSON_Delete(answer);
	cJSON_Delete(args);
	buf_fini(&text);
	free(body);
}

/* --- the API ---------------------------------------------------------------------------------- */

/* What is written of an event that repeats itself, as admin. */
static void test_repetitions(void **state)
{
	static const struct object_event event = {.api_version = "v1",
						  .kind = "Node",
						  .namespace = "",
						  .name = "alpha",
						  .uid = "",
						  .reason = "NodeKept",
						  .note = "it is said again"};
	struct buf path = BUF_INIT, body = BUF_INIT, answer = BUF_INIT;
	cJSON *json;

	(void)state;
	event_writer_create(&event, "evenkeel", "evenkeel.test", clock_wall_ns(), &path, &body);
	must("POST", path.data, mem_strdup(body.data));
	for (unsigned int count = 2; count <= 3; count++) {
		buf_clear(&path);
		buf_clear(&body);
		event_writer_repeat(&event, "evenkeel.test", count, clock_wall_ns(), &path, &body);
		must("PATCH", path.data, mem_strdup(body.data));
	}
	assert_int_equal(control_plane_send(bed->plane, "GET",
					    "/api/v1/namespaces/default/events/evenkeel.test", NULL,
					    &answer),
			 200);
	json = cJSON_Parse(answer.data);
	assert_int_equal(cJSON_GetNumberValue(json_at(json, "count")), 3);
	assert_int_equal(count_events(WORDS("NodeKept", "node/alpha", "it is said again")), 1);
	cJSON_Delete(json);
	buf_fini(&path);
	buf_fini(&body);
	buf_fini(&answer);
}

static void test_stops(void **state)
{
	(void)state;
	assert_int_equal(sample("failed"), 0);
	assert_true(sample("written") >= 5);
	assert_int_equal(kube_testbed_stop_aggregator(bed, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes),	    cmocka_unit_test(test_rate),
		cmocka_unit_test(test_quotas),	    cmocka_unit_test(test_pods),
		cmocka_unit_test(test_repetitions), cmocka_unit_test(test_stops),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, open_bed, NULL);
	kube_testbed_free(bed, failed != 0);
	curl_global_cleanup();
	return failed;
}
