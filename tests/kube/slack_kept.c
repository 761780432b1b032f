/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel-actuator keeps the objects of slack on a real control plane: balloons that a burst takes
 * the place of, objects that come, change and go with their classes, an object of somebody else, and
 * CapacityBuffers once the API server knows them. Nobody applies anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/kube_actuator.h"
#include "tests/kube_behind.h"
#include "tests/process.h"
#include "tests/stack.h"

/* Objects change once in a minute, and the actuator looks every 15 s. */
enum { NODES = 4, WEB = 4, BURST = 4, BATCH = 64, SECONDS = 120 };

static struct kube_testbed *bed;
static struct kube_behind behind;
static struct kube_actuator actuator;

#define DEPLOYMENTS  "/apis/apps/v1/namespaces/shop/deployments"
#define WEB_PODS     "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb"
#define BATCH_PODS   "/api/v1/namespaces/batch/pods"
#define BALLOON_PODS "/api/v1/namespaces/shop/pods?labelSelector=evenkeel.io%2Fslack-class"
#define BUFFERS	     "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/shop/capacitybuffers"

/* --- the cluster ------------------------------------------------------------------------------ */

static void post(const char *path, char *body)
{
	control_plane_must(bed->plane, "POST", path, body);
	free(body);
}

static void make_node(int i)
{
	post("/api/v1/nodes",
	     mem_printf("{\"metadata\":{\"name\":\"node-%d\",\"labels\":{\"kubernetes.io/"
			"hostname\":\"node-%d\"}},\"status\":{\"allocatable\":{\"cpu\":\"4\","
			"\"memory\":\"16Gi\",\"pods\":\"110\"},\"conditions\":[{\"type\":"
			"\"Ready\",\"status\":\"True\"}]}}",
			i, i));
}

static void make_namespace(const char *name)
{
	post("/api/v1/namespaces", mem_printf("{\"metadata\":{\"name\":\"%s\"}}", name));
}

/* slack: the annotation, or NULL. */
static void make_deployment(const char *namespace, const char *name, int replicas, const char *cpu,
			    const char *slack, const char *priority)
{
	char *path = mem_printf("/apis/apps/v1/namespaces/%s/deployments", namespace);

	post(path,
	     mem_printf("{\"metadata\":{\"name\":\"%s\",\"annotations\":{\"%s\":\"%s\"}},"
			"\"spec\":{\"replicas\":%d,\"selector\":{\"matchLabels\":{\"app\":\"%s\"}}"
			",\"template\":{\"metadata\":{\"labels\":{\"app\":\"%s\"}},\"spec\":{"
			"\"terminationGracePeriodSeconds\":0,%s\"containers\":[{\"name\":\"c\","
			"\"image\":\"none\",\"resources\":{\"requests\":{\"cpu\":\"%s\","
			"\"memory\":\"64Mi\"}}}]}}}}",
			name, slack ? "evenkeel.io/slack" : "note", slack ? slack : "", replicas,
			name, name, priority, cpu));
	free(path);
}

static cJSON *get(const char *path)
{
	struct buf answer = BUF_INIT;
	cJSON *json = NULL;

	if (control_plane_send(bed->plane, "GET", path, NULL, &answer) == 200)
		json = cJSON_Parse(answer.data);
	buf_fini(&answer);
	return json;
}

struct look {
	const char *path; /* of a list of pods */
	int pods, bound; /* at the last look */
	int want_pods, want_bound; /* -1: any */
};

static bool are_as_wanted(void *ctx)
{
	struct look *l = ctx;
	cJSON *list = get(l->path);
	const cJSON *pod;

	l->pods = l->bound = 0;
	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		l->pods++;
		l->bound += json_at(pod, "spec.nodeName") != NULL;
	}
	cJSON_Delete(list);
	return l->pods == l->want_pods && (l->want_bound < 0 || l->bound == l->want_bound);
}

static double expect_pods(const char *path, int pods, int bound)
{
	struct look l = {.path = path, .want_pods = pods, .want_bound = bound};
	int64_t began_ns = clock_mono_ns();

	if (!control_plane_await(bed->plane, are_as_wanted, &l, SECONDS))
		fail_msg("%s: %d of %d pods are bound; wanted %d of %d", path, l.bound, l.pods,
			 bound, pods);
	return (double)(clock_mono_ns() - began_ns) / NS_PER_SEC;
}

/* --- objects ---------------------------------------------------------------------------------- */

struct object {
	const char *path;
	int replicas; /* -1: it is to be gone */
};

static bool is_as_expected(void *ctx)
{
	const struct object *o = ctx;
	cJSON *json = get(o->path);
	const cJSON *replicas = json_at(json, "spec.replicas");
	bool same = o->replicas < 0 ? !json : replicas && replicas->valueint == o->replicas;

	cJSON_Delete(json);
	return same;
}

static void expect_object(const char *list, const char *name, int replicas)
{
	char *path = mem_printf("%s/%s", list, name);
	struct object o = {path, replicas};

	if (!control_plane_await(bed->plane, is_as_expected, &o, SECONDS))
		fail_msg("%s does not come to have %d replicas", path, replicas);
	free(path);
}

/* The name of the only Deployment of balloons in the namespace; the caller frees it. */
static char *balloon_name(void)
{
	cJSON *list = get(DEPLOYMENTS "?labelSelector=app.kubernetes.io%2Fpart-of%3Devenkeel");
	char *name;

	assert_int_equal(cJSON_GetArraySize(json_at(list, "items")), 1);
	name = mem_strdup(json_at(json_at(list, "items")->child, "metadata.name")->valuestring);
	cJSON_Delete(list);
	return name;
}

/* Not removed: the ReplicaSet would keep its copy. */
static void annotate(const char *value)
{
	char *body =
		mem_printf("{\"metadata\":{\"annotations\":{\"evenkeel.io/slack\":%s}}}", value);

	control_plane_must(bed->plane, "PATCH", DEPLOYMENTS "/web", body);
	free(body);
}

/* --- stories ---------------------------------------------------------------------------------- */

static void test_a_burst_takes_the_room_of_balloons(void **state)
{
	struct look batch = {.path = BATCH_PODS};
	double seconds;

	(void)state;
	expect_pods(BALLOON_PODS, BURST, BURST);
	make_deployment("batch", "batch", BATCH, "250m", NULL, "\"priorityClassName\":\"batch\",");
	/* Batch pods push out nobody, and leave no room. */
	expect_pods(BATCH_PODS, BATCH, NODES * 4 * 4 - 2 * WEB - 2 * BURST);
	expect_pods(BALLOON_PODS, BURST, BURST);
	control_plane_must(bed->plane, "PATCH", DEPLOYMENTS "/web/scale",
			   "{\"spec\":{\"replicas\":8}}");
	seconds = expect_pods(WEB_PODS, WEB + BURST, WEB + BURST);
	print_message("          %d pods were bound within %.1f s\n", BURST, seconds);
	are_as_wanted(&batch);
	assert_int_equal(batch.bound, NODES * 4 * 4 - 2 * WEB - 2 * BURST);
	expect_pods(BALLOON_PODS, BURST, 0);
	control_plane_must(bed->plane, "DELETE",
			   "/apis/apps/v1/namespaces/batch/deployments/"
			   "batch?propagationPolicy=Background",
			   NULL);
	expect_pods(BALLOON_PODS, BURST, BURST);
}

/* A part of evenkeel, by the field manager of balloons. */
static void make_own(void)
{
	post(DEPLOYMENTS "?fieldManager=evenkeel",
	     mem_strdup(
		     "{\"metadata\":{\"name\":\"own\",\"labels\":{\"app.kubernetes.io/part-of\":"
		     "\"evenkeel\"}},\"spec\":{\"replicas\":0,\"selector\":{\"matchLabels\":{"
		     "\"app\":\"own\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"own\"}},"
		     "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"none\"}]}}}}"));
}

/* Deployments without the selector of balloons stay. */
static void test_objects_follow_their_classes(void **state)
{
	char *name = balloon_name();

	(void)state;
	annotate("\"2\"");
	expect_object(DEPLOYMENTS, name, 2);
	expect_pods(BALLOON_PODS, 2, 2);
	make_own();
	annotate("\"0\"");
	expect_object(DEPLOYMENTS, name, -1);
	expect_pods(BALLOON_PODS, 0, 0);
	expect_object(DEPLOYMENTS, "own", 0);
	control_plane_must(bed->plane, "DELETE", DEPLOYMENTS "/own", NULL);
	expect_object(DEPLOYMENTS, "own", -1);
	annotate("\"1\"");
	expect_object(DEPLOYMENTS, name, 1);
	free(name);
}

/* Applied by somebody else, as it is written. */
static void test_a_foreign_object_is_left_alone(void **state)
{
	char *name = balloon_name(), *path = mem_printf(DEPLOYMENTS "/%s", name), *told;

	(void)state;
	kube_actuator_stop(&actuator, SIGTERM);
	control_plane_must(bed->plane, "DELETE", path, NULL);
	expect_object(DEPLOYMENTS, name, -1);
	make_deployment("shop", name, 7, "1m", NULL, "");
	kube_actuator_start(&actuator, 0);
	told = mem_printf("Deployment shop/%s is left alone: it is there", name);
	kube_actuator_expect(&actuator, told, SECONDS);
	expect_object(DEPLOYMENTS, name, 7);
	control_plane_must(bed->plane, "DELETE", path, NULL);
	expect_object(DEPLOYMENTS, name, 1);
	free(told);
	free(path);
	free(name);
}

static const char buffer_kind[] =
	"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
	"\"metadata\":{\"name\":\"capacitybuffers.autoscaling.x-k8s.io\",\"annotations\":{"
	"\"api-approved.kubernetes.io\":\"unapproved, for a test\"}},\"spec\":{\"group\":"
	"\"autoscaling.x-k8s.io\",\"scope\":\"Namespaced\",\"names\":{\"plural\":"
	"\"capacitybuffers\",\"kind\":\"CapacityBuffer\"},\"versions\":[{\"name\":\"v1beta1\","
	"\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","
	"\"x-kubernetes-preserve-unknown-fields\":true}}}]}}";

static void test_buffers_take_over(void **state)
{
	char *name = balloon_name();

	(void)state;
	control_plane_must(bed->plane, "POST",
			   "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", buffer_kind);
	expect_object(BUFFERS, name, 1);
	expect_object(DEPLOYMENTS, name, -1);
	expect_pods(BALLOON_PODS, 0, 0);
	annotate("\"0\"");
	expect_object(BUFFERS, name, -1);
	free(name);
}

#define ROLE "clusterroles/evenkeel-actuator-slack"

/* The rule for namespaces is needed by slack of no workload, of which there is none here. */
static void test_each_rule_is_needed(void **state)
{
	static const struct kube_actuator_rule rules[] = {
		{ROLE, "get", "slacks", "slack: GET /apis/evenkeel.io/v1/slacks: HTTP 403"},
		{ROLE, "list", "deployments", "slack: GET /apis/apps/v1/deployments: HTTP 403"},
		{ROLE, "patch", "priorityclasses",
		 "PriorityClass /evenkeel-slack is not applied: "},
	};

	(void)state;
	kube_actuator_expect_rules(&actuator, rules, sizeof(rules) / sizeof(rules[0]), 1, NULL,
				   NULL);
}

/* It is held again after it has expired, whoever held it. */
static void test_the_lease_is_deleted(void **state)
{
	(void)state;
	kube_actuator_expect(&actuator, "the lease is held: transition", SECONDS);
	control_plane_must(bed->plane, "DELETE",
			   "/apis/coordination.k8s.io/v1/namespaces/evenkeel/leases/"
			   "evenkeel-actuator",
			   NULL);
	kube_actuator_expect(&actuator, "the lease is held by nobody", SECONDS);
	kube_actuator_expect(&actuator, "the lease is held: transition 1", SECONDS);
}

/* --- the bed ---------------------------------------------------------------------------------- */

static int open_bed(void **state)
{
	static const char *const options[] = {"--plan-interval",
					      "1s",
					      "--extra-capacity-min-rate",
					      "0",
					      "--slack-unneeded-time",
					      "1s",
					      NULL};

	(void)state;
	kube_behind_install(&behind, bed);
	kube_behind_start(&behind, bed->plane->admin, options);
	kube_behind_await(&behind, "v1.evenkeel.io");
	bed->behind = true;
	for (int i = 0; i < NODES; i++)
		make_node(i);
	make_namespace("shop");
	make_namespace("batch");
	post("/apis/scheduling.k8s.io/v1/priorityclasses",
	     mem_strdup("{\"metadata\":{\"name\":\"batch\"},\"value\":0,\"preemptionPolicy\":"
			"\"Never\"}"));
	make_deployment("shop", "web", WEB, "500m", "4", "");
	expect_pods(WEB_PODS, WEB, WEB);
	kube_actuator_install(&actuator, bed, "slack", "actuator-slack/slack.yaml");
	kube_actuator_start(&actuator, 0);
	return 0;
}

static int close_bed(void **state)
{
	(void)state;
	kube_actuator_stop(&actuator, SIGTERM);
	kube_actuator_fini(&actuator);
	kube_behind_fini(&behind);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_burst_takes_the_room_of_balloons),
		cmocka_unit_test(test_objects_follow_their_classes),
		cmocka_unit_test(test_a_foreign_object_is_left_alone),
		cmocka_unit_test(test_the_lease_is_deleted),
		cmocka_unit_test(test_each_rule_is_needed),
		cmocka_unit_test(test_buffers_take_over),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, open_bed, close_bed);
	kube_testbed_free(bed, failed != 0);
	return failed != 0;
}
