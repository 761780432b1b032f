/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aggregator behind a real API server (APIService, aggregation layer): the command answers by a
 * person's kubeconfig and RBAC alone, kubectl top and an autoscaler get the aggregator's numbers,
 * and nobody but the API server's front proxy names users.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <math.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/file.h"
#include "shared/mem.h"
#include "tests/kube_behind.h"
#include "tests/kube_person.h"
#include "tests/kube_testbed.h"
#include "tests/kube_usage.h"
#include "tests/process.h"
#include "tests/stack.h"

#define METRICS	   "/apis/metrics.k8s.io/v1beta1"
#define METRICS_V1 "/apis/metrics.k8s.io/v1"

enum { NODES = 6, WEB_NODES = 4, HPA_SECONDS = 120 };

static struct kube_testbed *bed;
static struct kube_behind behind;
static struct tls_identity stranger_authority, stranger, other_name;
static char *alice, *bob, *mallory; /* kubeconfigs */

/* --- requests --------------------------------------------------------------------------------- */

static void must(const char *method, const char *path, char *body)
{
	control_plane_must(bed->plane, method, path, body);
	free(body);
}

/* A request as admin through the API server; the caller deletes the JSON. */
static cJSON *get(const char *path, long status)
{
	struct buf answer = BUF_INIT;
	long got = control_plane_send(bed->plane, "GET", path, NULL, &answer);
	cJSON *json = cJSON_Parse(answer.data ? answer.data : "");

	if (got != status)
		fail_msg("%s: %ld instead of %ld: %.400s", path, got, status,
			 answer.data ? answer.data : "");
	buf_fini(&answer);
	return json;
}

static const char *text_at(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));

	return text ? text : "";
}

/* --- the cluster ------------------------------------------------------------------------------ */

/* Those of the autoscaled workload have room for one of its pods each. */
static void make_node(int i)
{
	bool web = i >= NODES - WEB_NODES;
	char *path = mem_printf("/api/v1/nodes/node-%d/status", i);

	must("POST", "/api/v1/nodes",
	     mem_printf("{\"metadata\":{\"name\":\"node-%d\",\"labels\":{\"kind\":\"%s\"}},"
			"\"spec\":{\"unschedulable\":%s}}",
			i, web ? "web" : "plain", web ? "false" : "true"));
	must("PATCH", path,
	     mem_printf("{\"status\":{\"capacity\":{\"cpu\":\"%s\",\"memory\":\"64Gi\",\"pods\":"
			"\"10\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
			web ? "150m" : "16"));
	free(path);
}

/* Whose first digits differ. */
static void container_id(int i, char id[65])
{
	snprintf(id, 65, "%016x%048x", i + 1, 0);
}

/* A kubelet reports a running pod, which an autoscaler may have removed. */
static void start_pod(const char *name, int i)
{
	char *path = mem_printf("/api/v1/namespaces/shop/pods/%s/status", name), *body;
	char id[65];

	container_id(i, id);
	body = mem_printf(
		"{\"status\":{\"phase\":\"Running\",\"startTime\":\"2026-01-01T00:00:00Z\","
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
		"\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}],\"containerStatuses\":[{"
		"\"name\":\"main\",\"containerID\":\"containerd://%s\",\"ready\":true,"
		"\"image\":\"x\",\"imageID\":\"x\",\"restartCount\":0,\"state\":{"
		"\"running\":{\"startedAt\":\"2026-01-01T00:00:00Z\"}}}]}}",
		id);
	control_plane_send(bed->plane, "PATCH", path, body, NULL);
	free(body);
	free(path);
}

static char *pod_uid(const char *name)
{
	char *path = mem_printf("/api/v1/namespaces/shop/pods/%s", name);
	cJSON *pod = get(path, 200);
	char *uid = mem_strdup(text_at(pod, "metadata.uid"));

	cJSON_Delete(pod);
	free(path);
	return uid;
}

/* Two pods that are measured, and one that is not. */
static void make_pods(void)
{
	must("POST", "/api/v1/namespaces", mem_strdup("{\"metadata\":{\"name\":\"shop\"}}"));
	for (int i = 0; i < 3; i++) {
		char *name = mem_printf("pod-%d", i);

		must("POST", "/api/v1/namespaces/shop/pods",
		     mem_printf("{\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":\"a%d\"}},"
				"\"spec\":{\"nodeName\":\"node-%d\",\"containers\":[{\"name\":"
				"\"main\",\"image\":\"x\"}]}}",
				name, i, i % 2));
		start_pod(name, i);
		free(name);
	}
}

static struct kube_usage fed;

static void feed(struct kube_load *loads, size_t count)
{
	char *url = mem_printf("tcp://127.0.0.1:%d", bed->aggregators[0].ingest_port);

	kube_usage_send_loads(&fed, loads, count, url, bed->key_path);
	free(url);
}

static char *uids[2], ids[2][65];

static bool pods_are_measured(void *ctx)
{
	struct buf answer = BUF_INIT;
	long status = control_plane_send(bed->plane, "GET", METRICS "/namespaces/shop/pods/pod-1",
					 NULL, &answer);

	(void)ctx;
	buf_fini(&answer);
	return status == 200;
}

/* 1.5 cores and 812 millicores, whose parts are seen in the last digit. */
static void feed_pods(void)
{
	struct kube_load loads[2] = {
		{"node-0", uids[0], ids[0], 1500.25, 0, 3e9 + 4096},
		{"node-1", uids[1], ids[1], 812, 0, 123456789},
	};

	feed(loads, 2);
	assert_true(await(pods_are_measured, NULL, 60));
}

static int open_bed(void **state)
{
	(void)state;
	kube_behind_install(&behind, bed);
	tls_identity_make(&stranger_authority, &(struct tls_wish){.name = "front-proxy-ca"});
	tls_identity_make(&stranger,
			  &(struct tls_wish){.name = "front-proxy", .issuer = &stranger_authority});
	tls_identity_make(&other_name, &(struct tls_wish){.name = "another-client",
							  .issuer = &bed->plane->proxy_authority});
	for (int i = 0; i < NODES; i++)
		make_node(i);
	make_pods();
	for (int i = 0; i < 2; i++) {
		char *name = mem_printf("pod-%d", i);

		uids[i] = pod_uid(name);
		container_id(i, ids[i]);
		free(name);
	}
	alice = control_plane_person(bed->plane, "alice");
	bob = control_plane_person(bed->plane, "bob");
	mallory = control_plane_person(bed->plane, "mallory");
	control_plane_bind(bed->plane, NULL, "ClusterRole", "evenkeel-view", "ServiceAccount",
			   "alice");
	control_plane_bind(bed->plane, "shop", "ClusterRole", "view", "ServiceAccount", "bob");
	kube_behind_start(&behind, bed->plane->restricted, NULL);
	feed_pods();
	return 0;
}

/* --- by a kubeconfig -------------------------------------------------------------------------- */

static void test_available(void **state)
{
	(void)state;
	kube_behind_await(&behind, "v1.evenkeel.io");
	kube_behind_await(&behind, "v1.metrics.k8s.io");
	kube_behind_await(&behind, "v1beta1.metrics.k8s.io");
}

static void expect_kind(const char *resource, const char *kind)
{
	char *path = mem_printf("/apis/evenkeel.io/v1%s", resource);
	cJSON *answer = get(path, 200);

	assert_string_equal(text_at(answer, "kind"), kind);
	cJSON_Delete(answer);
	free(path);
}

static void test_command(void **state)
{
	(void)state;
	feed_pods();
	kube_person_runs(alice, WORDS("nodes"), 0, "node-0");
	kube_person_runs(alice, WORDS("pods", "-n", "shop"), 0, "pod-1");
	kube_person_runs(alice, WORDS("scores", "--pod", "tests/docs/pod.yaml"), 0, "node-0");
	kube_person_runs(alice, WORDS("doctor", "-o", "json"), 0, "");
	kube_person_runs(alice, WORDS("version"), 0, "server  " EVENKEEL_VERSION);
	expect_kind("/slacks", "SlackList");
	expect_kind("/drains", "DrainPlan");
	expect_kind("/drains/history", "DrainHistory");
	expect_kind("/snapshots", "Snapshot");
	/* An object that the server does not know is missing, not the server. */
	kube_person_runs(alice, WORDS("nodes", "elsewhere"), 4, "\"elsewhere\" is not known");
}

/* As kubectl's plugin, by the environment that kubectl passes on. */
static void test_plugin(void **state)
{
	char *folder = mem_printf("%s/plugins", bed->folder), *link, *path, *kubectl, *file;
	char *program = realpath(program_path("evenkeel"), NULL);
	char *argv[] = {NULL,	      (char *)"evenkeel", (char *)"nodes",
			(char *)"-o", (char *)"name",	  NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;

	(void)state;
	feed_pods();
	assert_int_equal(mkdir(folder, 0700), 0);
	link = mem_printf("%s/kubectl-evenkeel", folder);
	assert_int_equal(symlink(program, link), 0);
	path = mem_printf("%s:%s", folder, getenv("PATH"));
	kubectl = argv[0] = mem_printf("%s/kubectl", bed->plane->bin);
	/* The second file has the person, the first is not there. */
	file = mem_printf("%s/none:%s", folder, alice);
	setenv("PATH", path, 1);
	setenv("KUBECONFIG", file, 1);
	if (process_run(argv, &out, &err) != 0 || !strstr(out.data, "node/node-0\n"))
		fail_msg("%s %s", out.data ? out.data : "", err.data ? err.data : "");
	unsetenv("KUBECONFIG");
	setenv("PATH", strchr(path, ':') + 1, 1);
	buf_fini(&out);
	buf_fini(&err);
	free(program);
	free(folder);
	free(link);
	free(path);
	free(kubectl);
	free(file);
}

static bool sees_pods(void *kubeconfig)
{
	struct buf out = BUF_INIT;
	int code = kube_person_run(kubeconfig, WORDS("pods", "-n", "shop"), &out);

	buf_fini(&out);
	return code == 0 || code == 4; /* what is measured may be late by then */
}

/* The API server's own refusal comes first; ours is asked for beside it in the attacks. */
static void test_roles(void **state)
{
	(void)state;
	feed_pods();
	kube_person_runs(
		mallory, WORDS("nodes"), 1,
		"needs the rule {apiGroups: [evenkeel.io], resources: [nodes], verbs: [list]}");
	kube_person_runs(mallory, WORDS("scores", "--pod", "tests/docs/pod.yaml"), 1,
			 "resources: [scores], verbs: [create]");
	/* The role view of one namespace, once the controller has put our rules into it. */
	control_plane_start_controllers(bed->plane);
	assert_true(await(sees_pods, bob, 60));
	feed_pods();
	kube_person_runs(bob, WORDS("pods", "-n", "shop"), 0, "pod-0");
	kube_person_runs(bob, WORDS("pods"), 1, "resources: [pods], verbs: [list]");
	kube_person_runs(bob, WORDS("pods", "-n", "default"), 1,
			 "resources: [pods], verbs: [list]");
	kube_person_runs(bob, WORDS("nodes"), 1, "resources: [nodes], verbs: [list]");
}

static void test_acts(void **state)
{
	(void)state;
	kube_person_try_acts(bed, alice);
}

/* --- one namespace ---------------------------------------------------------------------------- */

static const char *const as_bob[] = {"X-Remote-User: system:serviceaccount:default:bob", NULL};

/* As bob, through the API server and past it: the same answer. */
static void expect_as_bob(const char *path, const char *has, const char *has_not)
{
	char *word = mem_printf("--kubeconfig=%s", bob);
	struct buf answer = BUF_INIT;

	control_plane_kubectl(bed->plane, WORDS(word, "get", "--raw", path), &answer);
	for (int direct = 0; direct < 2; direct++) {
		if (direct &&
		    kube_direct_ask(bed, path, &bed->plane->proxy, as_bob, &answer) != 200)
			fail_msg("%s: %.400s", path, answer.data);
		buf_add_str(&answer, "");
		if (!strstr(answer.data, has) || strstr(answer.data, has_not))
			fail_msg("%s, %d: %.400s", path, direct, answer.data);
	}
	buf_fini(&answer);
	free(word);
}

/* Whatever the query says, the namespace is that of the path, which RBAC has seen. */
static void test_one_namespace(void **state)
{
	(void)state;
	must("POST", "/api/v1/namespaces/default/pods",
	     mem_strdup("{\"metadata\":{\"name\":\"hidden\"},\"spec\":{\"nodeName\":\"node-0\","
			"\"containers\":[{\"name\":\"main\",\"image\":\"x\"}]}}"));
	feed_pods();
	expect_as_bob("/apis/evenkeel.io/v1/namespaces/shop/pods", "\"pod-0\"", "hidden");
	expect_as_bob("/apis/evenkeel.io/v1/namespaces/shop/pods?namespace=default", "\"pod-0\"",
		      "hidden");
	expect_as_bob("/apis/evenkeel.io/v1/namespaces/shop/pods/pod-0/history", "\"PodHistory\"",
		      "hidden");
}

/* --- metrics.k8s.io --------------------------------------------------------------------------- */

/* The newest value of an item of `evenkeel nodes|pods -o json`. */
static double told(const char *what, const char *name, const char *member)
{
	char *at = mem_printf("usage.%s.latest.value", member);
	struct buf out = BUF_INIT;
	double value = NAN;
	const cJSON *item;
	cJSON *list;

	assert_int_equal(kube_person_run(alice, WORDS(what, "-o", "json"), &out), 0);
	list = cJSON_Parse(out.data);
	cJSON_ArrayForEach (item, json_at(list, "items"))
		if (strcmp(text_at(item, "name"), name) == 0)
			value = cJSON_GetNumberValue(json_at(item, at));
	cJSON_Delete(list);
	buf_fini(&out);
	free(at);
	return value;
}

/* kubectl top rounds millicores up and mebibytes down. */
static void expect_top(const char *const *words, const char *what, const char *name)
{
	double milli = ceil(told(what, name, "cpuMillicores"));
	double mib = floor(told(what, name, "workingSetBytes") / (1 << 20));
	struct buf out = BUF_INIT;
	unsigned int cpu, memory;
	const char *line;
	bool node = strcmp(what, "nodes") == 0;

	control_plane_kubectl(bed->plane, words, &out);
	line = strstr(out.data, name);
	assert_non_null(line);
	line += strlen(name);
	if (sscanf(line, node ? " %um %*u%% %uMi" : " %um %uMi", &cpu, &memory) != 2 ||
	    cpu != milli || memory != mib)
		fail_msg("%s: %.0fm %.0fMi, but kubectl says %s", name, milli, mib, out.data);
	buf_fini(&out);
}

static void test_top(void **state)
{
	(void)state;
	feed_pods();
	expect_top(WORDS("top", "nodes", "--no-headers"), "nodes", "node-0");
	expect_top(WORDS("top", "nodes", "--no-headers"), "nodes", "node-1");
	expect_top(WORDS("top", "pods", "-n", "shop", "--no-headers"), "pods", "pod-0");
	expect_top(WORDS("top", "pods", "-A", "-l", "app=a1"), "pods", "pod-1");
}

static void expect_items(const char *path, const char *kind, int count, const char *first)
{
	cJSON *list = get(path, 200);
	const cJSON *items = json_at(list, "items");

	if (strcmp(text_at(list, "kind"), kind) != 0 || cJSON_GetArraySize(items) != count ||
	    (count && strcmp(text_at(cJSON_GetArrayItem(items, 0), "metadata.name"), first) != 0))
		fail_msg("%s: %s", path, cJSON_PrintUnformatted(list));
	cJSON_Delete(list);
}

static void test_conformance(void **state)
{
	cJSON *one;

	(void)state;
	feed_pods();
	expect_items(METRICS "/nodes", "NodeMetricsList", 2, "node-0");
	expect_items(METRICS "/nodes?labelSelector=kind%3Dplain", "NodeMetricsList", 2, "node-0");
	expect_items(METRICS "/nodes?labelSelector=kind%3Dweb", "NodeMetricsList", 0, "");
	expect_items(METRICS "/nodes?fieldSelector=metadata.name%3Dnode-1", "NodeMetricsList", 1,
		     "node-1");
	/* pod-2 runs and is not measured. */
	expect_items(METRICS "/pods", "PodMetricsList", 2, "pod-0");
	expect_items(METRICS "/namespaces/shop/pods", "PodMetricsList", 2, "pod-0");
	expect_items(METRICS "/namespaces/default/pods", "PodMetricsList", 0, "");
	expect_items(METRICS "/namespaces/shop/pods?labelSelector=app%3Da1", "PodMetricsList", 1,
		     "pod-1");
	expect_items(METRICS "/pods?fieldSelector=metadata.namespace%3Dshop,metadata.name!%3Dpod-0",
		     "PodMetricsList", 1, "pod-1");
	one = get(METRICS "/namespaces/shop/pods/pod-0", 200);
	assert_string_equal(text_at(one, "kind"), "PodMetrics");
	assert_string_equal(text_at(one, "apiVersion"), "metrics.k8s.io/v1beta1");
	assert_string_equal(text_at(one, "metadata.namespace"), "shop");
	assert_string_equal(text_at(cJSON_GetArrayItem(json_at(one, "containers"), 0), "name"),
			    "main");
	assert_string_equal(text_at(cJSON_GetArrayItem(json_at(one, "containers"), 0), "usage.cpu"),
			    "1500250u");
	cJSON_Delete(one);
	one = get(METRICS "/nodes/node-1", 200);
	assert_string_equal(text_at(one, "kind"), "NodeMetrics");
	assert_string_equal(text_at(one, "usage.cpu"), "812m");
	cJSON_Delete(one);
	one = get(METRICS "/namespaces/shop/pods/pod-2", 404);
	assert_string_equal(text_at(one, "kind"), "Status");
	assert_string_equal(text_at(one, "reason"), "NotFound");
	cJSON_Delete(one);
	cJSON_Delete(get(METRICS "/nodes/node-5", 404));
	expect_items(METRICS_V1 "/nodes", "NodeMetricsList", 2, "node-0");
	expect_items(METRICS_V1 "/namespaces/shop/pods?labelSelector=app%3Da1", "PodMetricsList", 1,
		     "pod-1");
	cJSON_Delete(get(METRICS "/nodes?fieldSelector=spec.x%3D1", 400));
	cJSON_Delete(get(METRICS "/nodes?watch=true", 405));
}

/* `kubectl get` with those words prints a line that has these parts in that order. */
static void expect_get(const char *const *words, const char *const *parts)
{
	const char *all[12] = {"get"};
	struct buf out = BUF_INIT;

	for (size_t n = 1; *words; words++, n++)
		all[n] = *words;
	feed_pods(); /* kubectl may take seconds, and nodes are late after 30 s */
	if (!control_plane_count_lines(bed->plane, all, parts, &out))
		fail_msg("kubectl get %s lacks %s: %s", all[1], *parts, out.data);
	buf_fini(&out);
}

static void test_table(void **state)
{
	(void)state;
	expect_get(WORDS("nodes.metrics.k8s.io"), WORDS("NAME", "WINDOW"));
	expect_get(WORDS("nodes.metrics.k8s.io"), WORDS("node-0", "1500250u"));
	expect_get(WORDS("pods.v1beta1.metrics.k8s.io", "-A"), WORDS("shop", "pod-1"));
	expect_get(WORDS("nodes.evenkeel.io"), WORDS("NAME", "STATE", "CPU(M)", "MEMORY(MI)"));
	expect_get(WORDS("nodes.evenkeel.io"), WORDS("node-1", "fresh", "812", "118"));
	expect_get(WORDS("nodes.evenkeel.io", "node-1", "--no-headers"), WORDS("node-1", "fresh"));
	expect_get(WORDS("nodes.evenkeel.io", "-o", "name"), WORDS("node.evenkeel.io/node-0"));
	/* In pages of one. */
	expect_get(WORDS("nodes.evenkeel.io", "--chunk-size=1", "-o", "name"),
		   WORDS("node.evenkeel.io/node-5"));
	expect_get(WORDS("pods.evenkeel.io", "-n", "shop"), WORDS("pod-0", "node-0", "1500"));
	expect_get(WORDS("pods.evenkeel.io", "-A"), WORDS("shop", "pod-1", "node-1", "812"));
	expect_get(WORDS("drains.evenkeel.io"), WORDS("node-0", "needed"));
	expect_get(WORDS("slacks.evenkeel.io", "-o", "name"), WORDS("slack.evenkeel.io/"));
	expect_get(WORDS("statuses.evenkeel.io"), WORDS("statuses"));
}

/* --- attacks ---------------------------------------------------------------------------------- */

static void expect_directly(const struct tls_identity *identity, const char *const *headers,
			    const char *path, long status, const char *says)
{
	struct buf answer = BUF_INIT;
	long got = kube_direct_ask(bed, path, identity, headers, &answer);

	if (got != status || !strstr(answer.data, says))
		fail_msg("%s: %ld instead of %ld: %.400s", path, got, status, answer.data);
	buf_fini(&answer);
}

static bool sees_pods_as(void *headers)
{
	struct buf answer = BUF_INIT;
	long status = kube_direct_ask(bed, "/apis/evenkeel.io/v1/namespaces/shop/pods",
				      &bed->plane->proxy, headers, &answer);
	bool sees = status == 200 && strstr(answer.data, "PodList");

	buf_fini(&answer);
	return sees;
}

static void test_attacks(void **state)
{
	static const char *const root[] = {"X-Remote-User: admin", "X-Remote-Group: system:masters",
					   NULL};
	static const char *const carol[] = {"X-Remote-User: carol", NULL};
	static const char *const nobody[] = {"X-Remote-User: nobody",
					     "X-Remote-Group: system:authenticated", NULL};
	const char nodes[] = "/apis/evenkeel.io/v1/nodes";
	char huge[20000] = "X-Remote-Extra-Scopes: ";
	const char *const with_huge[] = {root[0], root[1], huge, NULL};

	(void)state;
	/* What the API server's own certificate may. */
	expect_directly(&bed->plane->proxy, root, nodes, 200, "NodeList");
	/* No certificate; one of another authority of the same name; another name. */
	expect_directly(NULL, root, nodes, 401, "\"kind\":\"Status\"");
	expect_directly(&stranger, root, nodes, 401, "\"reason\":\"Unauthorized\"");
	expect_directly(&other_name, root, nodes, 401, "");
	expect_directly(&bed->plane->proxy, NULL, nodes, 401, "");
	/* A user without roles, whatever it asks for. */
	expect_directly(&bed->plane->proxy, nobody, nodes, 403,
			"nobody may not list nodes: a role bound to it needs the rule {apiGroups: "
			"[evenkeel.io], resources: [nodes], verbs: [list]}");
	expect_directly(&bed->plane->proxy, nobody, "/apis/evenkeel.io/v1/namespaces/shop/nodes",
			403, "may not list nodes in namespace shop");
	expect_directly(&bed->plane->proxy, nobody, METRICS "/namespaces/shop/pods/pod-0", 403,
			"may not get pods in namespace shop");
	/* Who may get pods need not be allowed to get pods/history. */
	must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	     mem_strdup(
		     "{\"metadata\":{\"name\":\"only-pods\"},\"rules\":[{\"apiGroups\":["
		     "\"evenkeel.io\"],\"resources\":[\"pods\"],\"verbs\":[\"get\",\"list\"]}]}"));
	control_plane_bind(bed->plane, "shop", "ClusterRole", "only-pods", "User", "carol");
	/* Once the API server knows of it. */
	assert_true(await(sees_pods_as, (void *)carol, 60));
	expect_directly(&bed->plane->proxy, carol,
			"/apis/evenkeel.io/v1/namespaces/shop/pods/pod-0/history", 403,
			"carol may not get pods in namespace shop: a role bound to it needs the "
			"rule {apiGroups: [evenkeel.io], resources: [pods/history], verbs: [get]}");
	expect_directly(&bed->plane->proxy, nobody, "/v1/nodes", 403, "may not get /v1/nodes");
	expect_directly(&bed->plane->proxy, nobody, "/apis/evenkeel.io/v1", 200, "APIResourceList");
	/* A header beyond the memory of a connection. */
	memset(huge + strlen(huge), 'x', sizeof(huge) - strlen(huge) - 1);
	expect_directly(&bed->plane->proxy, with_huge, nodes, 431, "");
}

/* --- an autoscaler ---------------------------------------------------------------------------- */

static int replicas_now(void)
{
	cJSON *web = get("/apis/apps/v1/namespaces/shop/deployments/web", 200);
	int replicas = (int)cJSON_GetNumberValue(json_at(web, "spec.replicas"));

	cJSON_Delete(web);
	return replicas;
}

/* Starts pods that have a node, and tells the use of all that run; true: so many are wanted. */
static bool has_scaled(void *ctx)
{
	const int *want = ctx; /* replicas, and millicores of each pod */
	struct kube_load loads[WEB_NODES];
	char web_ids[WEB_NODES][65];
	cJSON *pods = get("/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb", 200);
	const cJSON *pod;
	size_t count = 0;

	cJSON_ArrayForEach (pod, json_at(pods, "items")) {
		const char *node = text_at(pod, "spec.nodeName");
		int place = *node ? (int)strtol(node + strlen("node-"), NULL, 10) : 0;

		if (!*node || json_at(pod, "metadata.deletionTimestamp") || count == WEB_NODES)
			continue;
		if (strcmp(text_at(pod, "status.phase"), "Running") != 0)
			start_pod(text_at(pod, "metadata.name"), 16 + place);
		container_id(16 + place, web_ids[count]);
		loads[count] = (struct kube_load){
			node, text_at(pod, "metadata.uid"), web_ids[count], want[1], 0, 1e8};
		count++;
	}
	if (count)
		feed(loads, count);
	cJSON_Delete(pods);
	return replicas_now() == want[0];
}

static void test_autoscaler(void **state)
{
	int up[] = {WEB_NODES, 180}, down[] = {1, 2};

	(void)state;
	must("POST", "/apis/apps/v1/namespaces/shop/deployments",
	     mem_strdup(
		     "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"replicas\":1,\"selector\":{"
		     "\"matchLabels\":{\"app\":\"web\"}},\"template\":{\"metadata\":{\"labels\":{"
		     "\"app\":\"web\"}},\"spec\":{\"terminationGracePeriodSeconds\":0,"
		     "\"containers\":[{\"name\":\"main\",\"image\":\"x\",\"resources\":{"
		     "\"requests\":{\"cpu\":\"100m\"}}}]}}}}"));
	must("POST", "/apis/autoscaling/v1/namespaces/shop/horizontalpodautoscalers",
	     mem_strdup("{\"metadata\":{\"name\":\"web\"},\"spec\":{\"scaleTargetRef\":{"
			"\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\"},"
			"\"minReplicas\":1,\"maxReplicas\":4,\"targetCPUUtilizationPercentage\":"
			"50}}"));
	if (!await(has_scaled, up, HPA_SECONDS))
		fail_msg("%d replicas under load", replicas_now());
	print_message("          scaled up to %d replicas\n", replicas_now());
	if (!await(has_scaled, down, HPA_SECONDS))
		fail_msg("%d replicas without load", replicas_now());
	print_message("          scaled down to %d replicas\n", replicas_now());
}

/* --- without ---------------------------------------------------------------------------------- */

static bool says_not_available(void *ctx)
{
	struct buf out = BUF_INIT;
	int code = kube_person_run(alice, WORDS("nodes"), &out);
	bool says = code != 0 && strstr(out.data, "evenkeel is not installed in this cluster, or "
						  "its APIService is not available");

	(void)ctx;
	buf_fini(&out);
	return says;
}

static void test_aggregator_gone(void **state)
{
	(void)state;
	assert_int_equal(kube_testbed_stop_aggregator(bed, 0), 0);
	assert_true(await(says_not_available, NULL, 60));
}

static void test_api_service_gone(void **state)
{
	(void)state;
	must("DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1.evenkeel.io", NULL);
	assert_true(await(says_not_available, NULL, 60));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_available),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_plugin),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_acts),
		cmocka_unit_test(test_one_namespace),
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_conformance),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_attacks),
		cmocka_unit_test(test_autoscaler),
		cmocka_unit_test(test_aggregator_gone),
		cmocka_unit_test(test_api_service_gone),
	};
	struct tls_identity *const made[] = {&stranger_authority, &stranger, &other_name};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	bed = kube_testbed_new_bare();
	if (!bed)
		return 0;
	failed = cmocka_run_group_tests(tests, open_bed, NULL);
	kube_testbed_free(bed, failed != 0);
	kube_behind_fini(&behind);
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		tls_identity_fini(made[i]);
	for (int i = 0; i < 2; i++)
		free(uids[i]);
	free(alice);
	free(bob);
	free(mallory);
	curl_global_cleanup();
	return failed;
}
