/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the chart on a real API server: installation, upgrade, rollback, removal, which
 * leaves nothing, and the same for an installation that was made by `kubectl apply`.
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
#include "tests/helm.h"
#include "tests/kube_testbed.h"
#include "tests/manifests.h"
#include "tests/process.h"
#include "tests/stack.h"

enum { CHART_SINCE = 21, TIMEOUT_S = 60 };

#define IN_EVENKEEL "/namespaces/evenkeel/"
#define AGENT	    "/apis/apps/v1" IN_EVENKEEL "daemonsets/evenkeel-agent"
#define CLAIM	    "/api/v1" IN_EVENKEEL "persistentvolumeclaims/evenkeel-state"

static struct kube_testbed *bed;

#define HELM(...) helm_must((const char *const[]){__VA_ARGS__, NULL})
#define KUBE(...) kubectl_must((const char *const[]){__VA_ARGS__, NULL})

static void helm_must(const char *const *words)
{
	struct buf out = BUF_INIT, err = BUF_INIT;

	setenv("KUBECONFIG", bed->plane->admin, 1);
	if (helm_run(words, &out, &err))
		fail_msg("helm %s: %s", words[0], err.data ? err.data : "no word");
	print_message("%s", out.data ? out.data : "");
	buf_fini(&out);
	buf_fini(&err);
}

static void kubectl_must(const char *const *words)
{
	struct buf out = BUF_INIT;

	control_plane_kubectl(bed->plane, words, &out);
	buf_fini(&out);
}

/* An object of the server; the caller deletes it. NULL: it is not there. */
static cJSON *get(const char *path)
{
	struct buf answer = BUF_INIT;
	long status = control_plane_send(bed->plane, "GET", path, NULL, &answer);
	cJSON *object = status == 200 ? cJSON_Parse(answer.data) : NULL;

	assert_true(status == 200 || status == 404);
	buf_fini(&answer);
	return object;
}

static void expect_claim(bool there)
{
	cJSON *claim = get(CLAIM);

	assert_true(!claim == !there);
	cJSON_Delete(claim);
}

static void expect_agent(const char *image, const char *last_argument)
{
	cJSON *agent = get(AGENT);
	const cJSON *container =
		cJSON_GetArrayItem(json_at(agent, "spec.template.spec.containers"), 0);
	const cJSON *args = json_at(container, "args");

	assert_string_equal(manifests_text(container, "image"), image);
	assert_string_equal(cJSON_GetArrayItem(args, cJSON_GetArraySize(args) - 1)->valuestring,
			    last_argument);
	cJSON_Delete(agent);
}

/* Every kind that the manifests have, which the server lists by the label that they have. */
static const char kinds[] =
	"namespaces,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,services,"
	"persistentvolumeclaims,deployments,daemonsets,poddisruptionbudgets,networkpolicies,"
	"apiservices";

static size_t count_ours(void)
{
	static const char *const words[] = {"get",
					    kinds,
					    "--all-namespaces",
					    "--selector=app.kubernetes.io/part-of=evenkeel",
					    "--output=json",
					    NULL};
	struct buf out = BUF_INIT;
	cJSON *list;
	size_t count;

	control_plane_kubectl(bed->plane, words, &out);
	list = cJSON_Parse(out.data);
	count = (size_t)cJSON_GetArraySize(json_at(list, "items"));
	cJSON_Delete(list);
	buf_fini(&out);
	return count;
}

/* What helm itself keeps of releases. */
static size_t count_releases(void)
{
	cJSON *list = control_plane_kubectl_get(bed->plane, "secrets"), *secret;
	size_t count = 0;

	cJSON_ArrayForEach (secret, json_at(list, "items"))
		count += strcmp(manifests_text(secret, "type"), "helm.sh/release.v1") == 0;
	cJSON_Delete(list);
	return count;
}

static bool nothing_is_left(void *unused)
{
	cJSON *namespace = get("/api/v1/namespaces/evenkeel");
	bool gone = !namespace;

	(void)unused;
	cJSON_Delete(namespace);
	return gone && count_ours() == 0;
}

static void expect_nothing_left(void)
{
	if (!await(nothing_is_left, NULL, TIMEOUT_S))
		fail_msg("%zu objects are left", count_ours());
	assert_int_equal(count_releases(), 0);
}

static void test_installs(void **state)
{
	cJSON *objects = helm_render((const char *const[]){NULL});

	(void)state;
	HELM("install", "evenkeel", HELM_CHART);
	assert_int_equal(count_ours(), cJSON_GetArraySize(objects));
	expect_agent("localhost/evenkeel-agent:" EVENKEEL_VERSION,
		     "--cgroup-root=/host/sys/fs/cgroup");
	expect_claim(false);
	cJSON_Delete(objects);
}

static void test_upgrades(void **state)
{
	(void)state;
	HELM("upgrade", "evenkeel", HELM_CHART, "--set",
	     "image.registry=registry.example/ek,image.tag=v9,agent.verbose=true");
	expect_agent("registry.example/ek/evenkeel-agent:v9", "--verbose");
	HELM("upgrade", "evenkeel", HELM_CHART, "--reset-then-reuse-values", "--set",
	     "overlays.claim=true");
	expect_agent("registry.example/ek/evenkeel-agent:v9", "--verbose");
	expect_claim(true);
}

static bool claim_is_gone(void *unused)
{
	cJSON *claim = get(CLAIM);

	(void)unused;
	cJSON_Delete(claim);
	return !claim;
}

static void test_rolls_back(void **state)
{
	(void)state;
	HELM("rollback", "evenkeel", "1");
	expect_agent("localhost/evenkeel-agent:" EVENKEEL_VERSION,
		     "--cgroup-root=/host/sys/fs/cgroup");
	assert_true(await(claim_is_gone, NULL, TIMEOUT_S));
	assert_int_equal(count_releases(), 4);
}

/* Nor the Secrets that the aggregator makes, which no release knows. */
static void test_removal_leaves_nothing(void **state)
{
	(void)state;
	control_plane_must(bed->plane, "POST", "/api/v1" IN_EVENKEEL "secrets",
			   "{\"metadata\":{\"name\":\"evenkeel-tls\"}}");
	HELM("uninstall", "evenkeel");
	expect_nothing_left();
}

static void test_takes_over_from_kubectl(void **state)
{
	(void)state;
	KUBE("apply", "--filename=packaging/kubernetes/install.yaml");
	HELM("install", "evenkeel", HELM_CHART, "--take-ownership", "--force-conflicts", "--set",
	     "image.tag=v9");
	expect_agent("localhost/evenkeel-agent:v9", "--cgroup-root=/host/sys/fs/cgroup");
	HELM("uninstall", "evenkeel");
	expect_nothing_left();
}

/* The namespace stays with what it has, where it is not the chart's. */
static void test_namespace_of_others_stays(void **state)
{
	cJSON *namespace;

	(void)state;
	HELM("install", "evenkeel", HELM_CHART, "--namespace=evenkeel", "--create-namespace",
	     "--set", "namespace.create=false");
	HELM("uninstall", "evenkeel", "--namespace=evenkeel");
	assert_int_equal(count_ours(), 0);
	namespace = get("/api/v1/namespaces/evenkeel");
	assert_non_null(namespace);
	cJSON_Delete(namespace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_installs),
		cmocka_unit_test(test_upgrades),
		cmocka_unit_test(test_rolls_back),
		cmocka_unit_test(test_removal_leaves_nothing),
		cmocka_unit_test(test_takes_over_from_kubectl),
		cmocka_unit_test(test_namespace_of_others_stays),
	};
	int failed;

	if (!helm_is_here() || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 0;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	if (bed->plane->version->minor < CHART_SINCE) {
		print_message("SKIP: the chart is for Kubernetes 1.21 and later\n");
		kube_testbed_free(bed, false);
		return 0;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	return failed != 0;
}
