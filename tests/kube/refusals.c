/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refusals by quotas that end: a pod that filter refused is bound soon after the cause is gone,
 * by a real kube-scheduler that nobody else wakes. The aggregator has the rights that the manifests
 * give it and no others.
 *
 *   raised      its quota gets more
 *   victim      a pod of its quota is deleted
 *   runtime     others borrow, and may be preempted when they have run long enough
 *   rollout     a Deployment as large as its max replaces its pods
 *   role        the Role is missing: told, and well once it is bound
 *   claim       the claim is missing: told
 *
 * There is no kubelet: the test says what runs, and pods have no grace.
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
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/kube_quota_world.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

#define QUOTAS	"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/%s/elasticquotas/quota"
#define CLAIM	"/api/v1/namespaces/evenkeel/persistentvolumeclaims/evenkeel-nudge"
#define SECONDS 60
/* From the cause's end to the pod's node. */
#define SOON 5.0
/* A claim that could not be changed is tried again after ten. */
#define RETRIED 20.0

enum { MIN_RUNTIME_S = 12, REPLICAS = 5, ROOM = 10 };

static struct kube_testbed *bed;

/* One node of ten GPUs; a has all of its max. In JSON, but for the quotes. */
static const char story_full[] =
	"{'id':'a quota is used up',"
	"'nodes':[{'name':'n1','allocatable':{'pods':110,'nvidia.com/gpu':10}}],"
	"'quotas':[{'namespace':'a','min':{'nvidia.com/gpu':9},'max':{'nvidia.com/gpu':2}}],"
	"'pods':["
	"{'pod':'a1','namespace':'a','node':'n1','request':{'nvidia.com/gpu':1},'start':1},"
	"{'pod':'a2','namespace':'a','node':'n1','request':{'nvidia.com/gpu':1},'start':2}]}";

/*
 * b is within its min, and a borrows. The pod of b fits on n2, so filter is asked and refuses; the
 * scheduler finds candidates on n1, and asks for victims.
 */
static const char story_borrowed[] =
	"{'id':'a quota borrows',"
	"'nodes':[{'name':'n1','allocatable':{'pods':110,'nvidia.com/gpu':6}},"
	"{'name':'n2','allocatable':{'pods':110,'nvidia.com/gpu':4}}],"
	"'quotas':["
	"{'namespace':'a','min':{'nvidia.com/gpu':2},'max':{'nvidia.com/gpu':8}},"
	"{'namespace':'b','min':{'nvidia.com/gpu':6},'max':{'nvidia.com/gpu':8}}],"
	"'pods':["
	"{'pod':'a1','namespace':'a','node':'n1','request':{'nvidia.com/gpu':2},'start':1},"
	"{'pod':'a2','namespace':'a','node':'n1','request':{'nvidia.com/gpu':2},'start':2},"
	"{'pod':'a3','namespace':'a','node':'n1','request':{'nvidia.com/gpu':2},'start':3}]}";

static const char story_rollout[] =
	"{'id':'a Deployment has all of its max',"
	"'nodes':[{'name':'n1','allocatable':{'cpu':64000,'pods':110}}],"
	"'quotas':[{'namespace':'a','min':{'cpu':9000},'max':{'cpu':5000}}],'pods':[]}";

static const char deployment[] =
	"{'metadata':{'name':'web'},'spec':{'replicas':5,'selector':{'matchLabels':{'app':'web'}},"
	"'template':{'metadata':{'labels':{'app':'web'}},'spec':{'terminationGracePeriodSeconds':0,"
	"'containers':[{'name':'c','image':'none','resources':{'requests':{'cpu':'1'}}}]}}}}";

static void begin(const char *story)
{
	cJSON *json = kube_quota_world_parse(story);

	kube_quota_world_begin(bed, json);
	cJSON_Delete(json);
}

static void patch_quota(const char *namespace, const char *body)
{
	char *path = mem_printf(QUOTAS, namespace);

	control_plane_must(bed->plane, "PATCH", path, body);
	free(path);
}

/* --- one pod ---------------------------------------------------------------------------------- */

static struct kube_quota_pod submit(const char *namespace, const char *name, int gpus, int priority)
{
	struct kube_quota_pod w = {.bed = bed, .namespace = namespace, .name = name};
	char *text = mem_printf("{\"pod\":\"%s\",\"namespace\":\"%s\",\"priority\":%d,\"request\":"
				"{\"nvidia.com/gpu\":%d}}",
				name, namespace, priority, gpus);
	cJSON *pod = cJSON_Parse(text);

	kube_quota_world_make_pod(bed, pod);
	cJSON_Delete(pod);
	free(text);
	if (!await(kube_quota_pod_is_refused, &w, SECONDS))
		fail_msg("the scheduler does not refuse %s", name);
	print_message("          %s\n", kube_quota_pod_refusal(&w));
	assert_null(json_at(w.seen, "spec.nodeName"));
	return w;
}

/* Until it has a node, in so many seconds at most, beyond waits for a CPU. */
static void expect_bound(struct kube_quota_pod *w, const char *since, double most)
{
	double seconds, waited_s = kube_testbed_waited_s(bed);
	int64_t began_ns = clock_mono_ns();

	if (!await(kube_quota_pod_is_bound, w, SECONDS))
		fail_msg("%s is not bound: %s", w->name, kube_quota_pod_refusal(w));
	seconds = (double)(clock_mono_ns() - began_ns) / NS_PER_SEC;
	waited_s = kube_testbed_waited_s(bed) - waited_s;
	print_message("          bound %.2f s after %s\n", seconds, since);
	assert_true(seconds <= most + waited_s);
	cJSON_Delete(w->seen);
}

/* --- stories ---------------------------------------------------------------------------------- */

static void bind_restricted(const char *kind, const char *path, const char *role)
{
	char *body = mem_printf("{\"metadata\":{\"name\":\"test-%s\"},\"roleRef\":{\"apiGroup\":"
				"\"rbac.authorization.k8s.io\",\"kind\":\"%s\",\"name\":\"%s\"},"
				"\"subjects\":[{\"apiGroup\":\"rbac.authorization.k8s.io\","
				"\"kind\":\"User\",\"name\":\"" CONTROL_RESTRICTED_USER "\"}]}",
				role, kind, role);

	control_plane_must(bed->plane, "POST", path, body);
	free(body);
}

/*
 * The scheduler's own preemption is on. The aggregator may read, and what the manifests bind comes
 * with the first story.
 */
static void test_bed_is_made(void **state)
{
	static const char *const options[] = {"--nudge-claim", "evenkeel/evenkeel-nudge",
					      "--events=pods", NULL};

	(void)state;
	control_plane_create(bed->plane, "packaging/kubernetes/crd/elasticquota.yaml");
	control_plane_create(bed->plane, "tests/kube/role.yaml");
	control_plane_create(bed->plane, "tests/kube/role-budgets.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/core/namespace.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/core/nudge.yaml");
	control_plane_create(bed->plane, "packaging/kubernetes/overlays/events/events.yaml");
	bind_restricted("ClusterRole", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			"evenkeel-events");
	kube_testbed_start_aggregator_with(bed, 0, bed->plane->restricted, options);
	cJSON_Delete(kube_testbed_expect_state(bed, 0, "elasticquotas", "synced"));
	kube_quota_world_start_scheduler(bed, "");
}

static int clear(void **state)
{
	(void)state;
	kube_quota_world_clear(bed);
	return 0;
}

static bool is_told(void *ctx)
{
	cJSON *status = kube_testbed_get(bed, 0, "/v1/status");
	const char *nudge = cJSON_GetStringValue(json_at(status, "refusedPods.nudge"));
	bool told = nudge && strcmp(nudge, ctx) == 0;

	cJSON_Delete(status);
	return told;
}

static bool has_event(void *ctx)
{
	cJSON *list = kube_quota_world_get(bed, "/api/v1/namespaces/a/events");
	const cJSON *event;
	bool found = false;

	cJSON_ArrayForEach (event, json_at(list, "items")) {
		const char *reason = cJSON_GetStringValue(json_at(event, "reason"));

		if (!reason || strcmp(reason, "RefusedByEvenkeel") != 0)
			continue;
		found |= strcmp(json_at(event, "involvedObject.name")->valuestring, ctx) == 0 &&
			 strstr(json_at(event, "message")->valuestring, "is over max 2") != NULL;
	}
	cJSON_Delete(list);
	return found;
}

/* Without a Role the API says no, and that is told; with it the pod is bound. */
static void test_a_missing_role_is_told(void **state)
{
	struct kube_quota_pod w;

	(void)state;
	begin(story_full);
	w = submit("a", "a3", 1, 0);
	patch_quota("a", "{\"spec\":{\"max\":{\"nvidia.com/gpu\":\"3\"}}}");
	if (!await(is_told, (void *)"forbidden", SECONDS))
		fail_msg("/v1/status does not tell that the claim is forbidden");
	bind_restricted("Role",
			"/apis/rbac.authorization.k8s.io/v1/namespaces/evenkeel/rolebindings",
			"evenkeel-nudge");
	expect_bound(&w, "the Role", RETRIED);
	assert_true(await(is_told, (void *)"ok", SECONDS));
}

/* What the API says of a claim that is not there; the aggregator goes on. */
static void test_a_missing_claim_is_told(void **state)
{
	bool told = false;

	(void)state;
	begin(story_full);
	/* No controller takes off what guards claims in use. */
	control_plane_must(bed->plane, "PATCH", CLAIM, "{\"metadata\":{\"finalizers\":null}}");
	kube_quota_world_delete(bed, mem_strdup(CLAIM));
	/* A pod whose scheduler asks again by itself needs no claim: then the next one is to tell. */
	for (int max = 3; max <= ROOM && !told; max++) {
		char *name = mem_printf("late-%d", max);
		char *patch = mem_printf("{\"spec\":{\"max\":{\"nvidia.com/gpu\":\"%d\"}}}", max);

		cJSON_Delete(submit("a", name, 1, 0).seen);
		patch_quota("a", patch);
		told = await(is_told, (void *)"notFound", RETRIED);
		free(patch);
		free(name);
	}
	if (!told)
		fail_msg("/v1/status does not tell that the claim is missing");
}

static void test_quota_is_raised(void **state)
{
	struct kube_quota_pod w;

	(void)state;
	begin(story_full);
	w = submit("a", "a4", 1, 0);
	if (!await(has_event, (void *)"a4", SECONDS))
		fail_msg("the pod has no event that tells why");
	patch_quota("a", "{\"spec\":{\"max\":{\"nvidia.com/gpu\":\"3\"}}}");
	expect_bound(&w, "max was raised", SOON);
}

static void test_victim_is_gone(void **state)
{
	struct kube_quota_pod w;

	(void)state;
	begin(story_full);
	w = submit("a", "a3", 1, 0);
	kube_quota_world_delete(bed, mem_strdup("/api/v1/namespaces/a/pods/a1"));
	expect_bound(&w, "a1 was deleted", SOON);
}

static void start_at(const char *name, int64_t unix_ns)
{
	char time[TIMEFMT_LEN], *path, *body;

	timefmt_rfc3339(unix_ns, time);
	path = mem_printf("/api/v1/namespaces/a/pods/%s/status", name);
	body = mem_printf("{\"status\":{\"startTime\":\"%s\"}}", time);
	control_plane_must(bed->plane, "PATCH", path, body);
	free(body);
	free(path);
}

static void test_min_runtime_ends(void **state)
{
	static const char *const borrowers[] = {"a1", "a2", "a3"};
	int64_t now_ns, end_ns; /* Unix time; starts are told in whole seconds */
	struct kube_quota_pod w;
	char *body =
		mem_printf("{\"metadata\":{\"annotations\":{\"evenkeel.io/min-runtime\":\"%ds\"}}}",
			   MIN_RUNTIME_S);

	(void)state;
	/* Kubernetes 1.20 evicts by itself what it found, and never asks for victims. */
	if (bed->plane->version->minor < 37) {
		print_message("          this scheduler never asks for victims\n");
		free(body);
		return;
	}
	begin(story_borrowed);
	patch_quota("a", body);
	free(body);
	now_ns = clock_wall_ns();
	end_ns = now_ns - now_ns % NS_PER_SEC + MIN_RUNTIME_S * NS_PER_SEC;
	for (size_t i = 0; i < 3; i++)
		start_at(borrowers[i], now_ns - now_ns % NS_PER_SEC);
	w = submit("b", "b1", 4, 10);
	while (clock_wall_ns() < end_ns - NS_PER_SEC / 2)
		assert_false(await(kube_quota_pod_is_bound, &w, 0.2) && clock_wall_ns() < end_ns);
	while (clock_wall_ns() < end_ns)
		usleep(10000);
	expect_bound(&w, "min-runtime ended", SOON);
}

/* --- a rollout -------------------------------------------------------------------------------- */

/* What a kubelet would do: pods with a node run, and are ready. */
static void run_pods(const cJSON *list)
{
	const cJSON *pod;

	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		char *path;

		if (!json_at(pod, "spec.nodeName") || json_at(pod, "status.startTime"))
			continue;
		path = mem_printf("/api/v1/namespaces/a/pods/%s/status",
				  json_at(pod, "metadata.name")->valuestring);
		control_plane_send(bed->plane, "PATCH", path,
				   "{\"status\":{\"phase\":\"Running\",\"startTime\":"
				   "\"2026-01-01T00:00:00Z\",\"conditions\":[{\"type\":\"Ready\","
				   "\"status\":\"True\"},{\"type\":\"PodScheduled\",\"status\":"
				   "\"True\"}]}}",
				   NULL);
		free(path);
	}
}

/* All replicas are of the newest template and ready, and no other is left. */
static bool is_rolled_out(void *ctx)
{
	cJSON *list = kube_quota_world_get(bed, "/api/v1/namespaces/a/pods");
	const cJSON *pod;
	int ready = 0;

	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		const char *version =
			cJSON_GetStringValue(json_at(pod, "metadata.annotations.version"));

		ready += json_at(pod, "status.startTime") && version && strcmp(version, ctx) == 0;
	}
	run_pods(list);
	ready = cJSON_GetArraySize(json_at(list, "items")) == REPLICAS ? ready : 0;
	cJSON_Delete(list);
	return ready == REPLICAS;
}

static void roll_out(const char *version, double most)
{
	char *body = mem_printf("{\"spec\":{\"template\":{\"metadata\":{\"annotations\":"
				"{\"version\":\"%s\"}}}}}",
				version);
	double seconds, waited_s = kube_testbed_waited_s(bed);
	int64_t began_ns = clock_mono_ns();

	control_plane_must(bed->plane, "PATCH", "/apis/apps/v1/namespaces/a/deployments/web", body);
	free(body);
	if (!await(is_rolled_out, (void *)version, SECONDS))
		fail_msg("the rollout does not end");
	seconds = (double)(clock_mono_ns() - began_ns) / NS_PER_SEC;
	waited_s = kube_testbed_waited_s(bed) - waited_s;
	print_message("          %d pods replaced in %.2f s\n", REPLICAS, seconds);
	assert_true(seconds <= most + waited_s);
}

static bool is_empty(void *ctx)
{
	cJSON *list = kube_quota_world_get(bed, "/api/v1/namespaces/a/pods");
	bool empty = cJSON_GetArraySize(json_at(list, "items")) == 0;

	(void)ctx;
	cJSON_Delete(list);
	return empty;
}

/* Each pod that goes lets the next one in. */
static void test_rolling_restart_at_max(void **state)
{
	cJSON *json = kube_quota_world_parse(deployment);
	char *body = cJSON_PrintUnformatted(json);

	(void)state;
	begin(story_rollout);
	control_plane_must(bed->plane, "POST", "/apis/apps/v1/namespaces/a/deployments", body);
	cJSON_free(body);
	cJSON_Delete(json);
	roll_out("1", SECONDS);
	roll_out("2", REPLICAS * SOON);
	control_plane_must(bed->plane, "DELETE", "/apis/apps/v1/namespaces/a/deployments/web",
			   "{\"propagationPolicy\":\"Foreground\"}");
	if (!await(is_empty, NULL, SECONDS))
		fail_msg("pods of the Deployment are left");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bed_is_made),
		cmocka_unit_test_teardown(test_a_missing_role_is_told, clear),
		cmocka_unit_test_teardown(test_quota_is_raised, clear),
		cmocka_unit_test_teardown(test_victim_is_gone, clear),
		cmocka_unit_test_teardown(test_min_runtime_ends, clear),
		cmocka_unit_test_teardown(test_rolling_restart_at_max, clear),
		cmocka_unit_test_teardown(test_a_missing_claim_is_told, clear),
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
