/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The installation for the version of Kubernetes on a real API server of it: it is taken as it is,
 * taken again it changes nothing, its pods are let in on every node, and the rights it gives are
 * those that are needed. There is no kubelet, so the pods do not run here; the aggregator does,
 * outside, as the ServiceAccount, with a token that the API made for it.
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
#include <sys/stat.h>

#include "shared/mem.h"
#include "tests/kube_testbed.h"
#include "tests/process.h"
#include "tests/stack.h"

#define ACCOUNT	 "system:serviceaccount:evenkeel:"
#define CRITICAL "packaging/kubernetes/critical-pods.yaml"

enum {
	NODES = 3,
	POLICIES_SINCE = 30, /* minor version with ValidatingAdmissionPolicy */
};

static struct kube_testbed *bed;
static struct buf said;

static size_t lines_with(const char *word)
{
	size_t count = 0;

	for (const char *at = said.data; (at = strstr(at, word)); at++)
		count++;
	return count;
}

/* --- taken ------------------------------------------------------------------------------------ */

#define BUDGET "evenkeel-aggregator"

/* How often the server has changed the specification of the aggregator's budget, and 1. */
static double budget_generation(void)
{
	char *path = mem_printf("/apis/%s/namespaces/evenkeel/poddisruptionbudgets/" BUDGET,
				bed->plane->version->budgets);
	struct buf answer = BUF_INIT;
	cJSON *budget;
	double generation;

	assert_int_equal(control_plane_send(bed->plane, "GET", path, NULL, &answer), 200);
	budget = cJSON_Parse(answer.data);
	generation = cJSON_GetNumberValue(json_at(budget, "metadata.generation"));
	cJSON_Delete(budget);
	buf_fini(&answer);
	free(path);
	return generation;
}

/*
 * A budget of policy/v1 says that patches replace its selector, so kubectl always sends it and says
 * "configured": whether that changes anything, its generation says.
 */
static void test_applies(void **state)
{
	const char *installation = bed->plane->version->installation;
	size_t objects;

	(void)state;
	if (bed->plane->version->minor >= POLICIES_SINCE)
		control_plane_apply(bed->plane, "-k", "packaging/kubernetes/crd", &said);
	else
		control_plane_create(bed->plane, "packaging/kubernetes/crd/elasticquota.yaml");
	control_plane_apply(bed->plane, "-f", installation, &said);
	print_message("%s", said.data);
	objects = lines_with("\n");
	assert_true(objects > 15);
	assert_int_equal(lines_with(" created\n"), objects);
	/* What the server fills in is not what we left open to be changed back. */
	control_plane_apply(bed->plane, "-f", installation, &said);
	print_message("%s", said.data);
	assert_int_equal(lines_with(" unchanged\n") +
				 lines_with("poddisruptionbudget.policy/" BUDGET " configured\n"),
			 objects);
	assert_true(budget_generation() == 1);
}

static bool is_refused(void *context)
{
	buf_clear(&said);
	control_plane_send(bed->plane, "POST",
			   "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/"
			   "elasticquotas?dryRun=All",
			   context, &said);
	return said.data && strstr(said.data, "min is above max: cpu");
}

/* The policies of the folder hold some seconds after they are made. */
static void test_quotas_are_validated(void **state)
{
	(void)state;
	if (bed->plane->version->minor >= POLICIES_SINCE &&
	    !await(is_refused,
		   (char *)"{\"apiVersion\":\"scheduling.x-k8s.io/"
			   "v1alpha1\",\"kind\":\"ElasticQuota\","
			   "\"metadata\":{\"name\":\"q\"},\"spec\":{\"min\":{\"cpu\":2},\"max\":{"
			   "\"cpu\":1}}}",
		   60))
		fail_msg("a min above max is taken: %s", said.data);
}

/* A node that nothing may be put on: not ready, and tainted. */
static void make_node(int i)
{
	char *body = mem_printf(
		"{\"metadata\":{\"name\":\"node-%d\",\"labels\":{\"kubernetes.io/os\":\"linux\","
		"\"kubernetes.io/arch\":\"amd64\"}},\"spec\":{\"unschedulable\":%s,\"taints\":[{"
		"\"key\":\"example.com/own\",\"effect\":\"NoExecute\"}]}}",
		i, i ? "true" : "false");
	char *path = mem_printf("/api/v1/nodes/node-%d/status", i);

	control_plane_must(bed->plane, "POST", "/api/v1/nodes", body);
	control_plane_must(
		bed->plane, "PATCH", path,
		"{\"status\":{\"allocatable\":{\"cpu\":\"1\",\"memory\":\"1Gi\",\"pods\":"
		"\"10\"},\"capacity\":{\"cpu\":\"1\",\"memory\":\"1Gi\",\"pods\":\"10\"},"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}}");
	free(body);
	free(path);
}

struct pods {
	size_t agents, bound_agents, aggregators;
};

static bool pods_are_made(void *ctx)
{
	struct pods *is = ctx;
	cJSON *list = control_plane_kubectl_get(bed->plane, "pods");
	const cJSON *pod;

	*is = (struct pods){0};
	cJSON_ArrayForEach (pod, json_at(list, "items")) {
		const char *name = cJSON_GetStringValue(json_at(pod, "metadata.name"));
		bool agent = strstr(name, "evenkeel-agent-") == name;

		*(agent ? &is->agents : &is->aggregators) += 1;
		is->bound_agents += agent && json_at(pod, "spec.nodeName");
	}
	cJSON_Delete(list);
	return is->bound_agents == NODES && is->aggregators == 1;
}

/* By the controllers of the cluster, and with all that admission asks. */
static void test_pods_are_let_in(void **state)
{
	struct pods pods;

	(void)state;
	for (int i = 0; i < NODES; i++)
		make_node(i);
	if (!await(pods_are_made, &pods, 90))
		fail_msg("%zu of %d agents have a node, %zu pods of the aggregator",
			 pods.bound_agents, NODES, pods.aggregators);
	assert_int_equal(pods.agents, NODES);
}

/* --- rights ----------------------------------------------------------------------------------- */

/* Whether the API lets a user do what the attributes of a SubjectAccessReview say. */
static bool may(const char *user, const char *attributes)
{
	char *body = mem_printf("{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":"
				"\"SubjectAccessReview\",\"spec\":{\"user\":\"%s\",%s}}",
				user, attributes);
	struct buf answer = BUF_INIT;
	cJSON *review;
	bool allowed;

	assert_int_equal(control_plane_send(bed->plane, "POST",
					    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
					    body, &answer),
			 201);
	review = cJSON_Parse(answer.data);
	allowed = cJSON_IsTrue(json_at(review, "status.allowed"));
	cJSON_Delete(review);
	buf_fini(&answer);
	free(body);
	return allowed;
}

#define OBJECTS(verb, group, resource)                                                             \
	"\"resourceAttributes\":{\"verb\":\"" verb "\",\"group\":\"" group                         \
	"\",\"resource\":\"" resource "\"}"
#define SECRET(verb, namespace, name)                                                              \
	"\"resourceAttributes\":{\"verb\":\"" verb                                                 \
	"\",\"resource\":\"secrets\",\"namespace\":\"" namespace "\",\"name\":\"" name "\"}"
#define PATH(verb, path) "\"nonResourceAttributes\":{\"verb\":\"" verb "\",\"path\":\"" path "\"}"

static void test_rights(void **state)
{
	static const struct {
		const char *attributes;
		bool aggregator;
	} cases[] = {
		{OBJECTS("watch", "", "pods"), true},
		{OBJECTS("list", "policy", "poddisruptionbudgets"), true},
		{OBJECTS("create", "authentication.k8s.io", "tokenreviews"), true},
		{OBJECTS("create", "authorization.k8s.io", "subjectaccessreviews"), true},
		{PATH("get", "/v1/nodes"), true},
		{PATH("post", "/v1/scores"), true},
		{PATH("post", "/extender/filter"), false},
		{OBJECTS("list", "", "secrets"), false},
		{SECRET("get", "evenkeel", "evenkeel-tls"), true},
		{SECRET("patch", "evenkeel", "evenkeel-enrolment"), true},
		{SECRET("create", "evenkeel", ""), true},
		{SECRET("get", "evenkeel", "evenkeel-key"), false},
		{SECRET("get", "default", "evenkeel-tls"), false},
		{SECRET("create", "default", ""), false},
		{OBJECTS("delete", "", "pods"), false},
		{OBJECTS("create", "", "pods/eviction"), false},
		{OBJECTS("patch", "", "nodes"), false},
		{OBJECTS("patch", "scheduling.x-k8s.io", "elasticquotas/status"), false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("          %s: %d\n", cases[i].attributes, cases[i].aggregator);
		assert_int_equal(may(ACCOUNT "evenkeel-aggregator", cases[i].attributes),
				 cases[i].aggregator);
		assert_false(may(ACCOUNT "evenkeel-agent", cases[i].attributes));
	}
}

/*
 * Groups of pods are there where a feature gate or scheduler-plugins brings them, devices where
 * the version has them.
 */
static bool may_be_absent(const char *resource)
{
	return strncmp(resource, "podgroups", 9) == 0 || strcmp(resource, "workloads") == 0 ||
	       strncmp(resource, "device", 6) == 0 || strcmp(resource, "resourceslices") == 0 ||
	       strncmp(resource, "resourceclaim", 13) == 0;
}

/* Of all kinds that it is told to follow; one whose CRD was just made is not served at once. */
static bool hears_all(void *ctx)
{
	cJSON *status = kube_testbed_get(bed, 0, "/v1/status");
	const cJSON *told;
	size_t kinds = 0;
	bool all = true;
	struct buf *list = ctx;

	buf_clear(list);
	cJSON_ArrayForEach (told, json_at(status, "kubernetes.resources")) {
		const char *is = cJSON_GetStringValue(json_at(told, "state"));
		const char *resource = cJSON_GetStringValue(json_at(told, "resource"));

		buf_printf(list, "          %s: %s\n", resource, is);
		all = all && (strcmp(is, "synced") == 0 ||
			      (strcmp(is, "absent") == 0 && may_be_absent(resource)));
		kinds++;
	}
	cJSON_Delete(status);
	return all && kinds >= 14;
}

/* As that account no kind is forbidden, and none of those that exist is missing. */
static void test_aggregator_sees_all(void **state)
{
	char *kubeconfig = kube_testbed_account(bed, "evenkeel", "evenkeel-aggregator");
	struct buf list = BUF_INIT;
	bool heard;

	(void)state;
	kube_testbed_start_aggregator(bed, 0, kubeconfig);
	heard = await(hears_all, &list, 60);
	print_message("%s", list.data);
	assert_true(heard);
	assert_int_equal(kube_testbed_stop_aggregator(bed, 0), 0);
	buf_fini(&list);
	free(kubeconfig);
}

/* Where the system's priorities are guarded, this opens them; elsewhere it does nothing. */
static void test_critical_pods(void **state)
{
	(void)state;
	control_plane_create(bed->plane, CRITICAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_applies),
		cmocka_unit_test(test_quotas_are_validated),
		cmocka_unit_test(test_pods_are_let_in),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_aggregator_sees_all),
		cmocka_unit_test(test_critical_pods),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	kube_testbed_free(bed, failed != 0);
	buf_fini(&said);
	return failed != 0;
}
