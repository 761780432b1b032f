/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shipped images and manifests on a real node, from their installation to their removal. One
 * story: each test goes on where the former one ended.
 *
 *     installed     DaemonSet and Deployment become ready; the agent samples by BPF, with the rights the manifest gives
 *     measured      what a pod with limits uses and may use, as kubectl evenkeel tells it and as the kernel does
 *     sidecar       a native sidecar counts as the kubelet counts it, and its use is the pod's
 *     resized       a pod that is resized in place: requests and limits by the API and by the kernel
 *     autoscaled    kubectl top tells what evenkeel does, and an autoscaler follows the use that the kernel has of real pods
 *     updated       both are rolled over; no use that the agent had measured is lost with an aggregator
 *     removed       everything goes, each container by itself, and nothing was forbidden or failed on the way
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/node_bed.h"
#include "tests/node_box.h"
#include "tests/node_ends.h"
#include "tests/node_install.h"
#include "tests/node_truth.h"
#include "tests/stack.h"

/* Containers start and end, on a machine that may be busy with other tests. */
#define ROLL_SECONDS 180
/* So much of the pod's life is compared. */
#define COMPARED_NS (30 * NS_PER_SEC)
#define MOST_ERROR  0.05

#define LIMIT_MILLI 300
#define LIMIT_BYTES (128LL << 20)

#define METRICS_API "packaging/kubernetes/overlays/metrics-api/api-service.yaml"

static struct node_bed *bed;
static struct node_install *install;
static struct node_ends *ends;
static bool lost; /* something expected did not come: what is expected after it is not waited for */

/* A namespace of one pod, and what the kernel says of that. */
struct subject {
	const char *namespace;
	int64_t asked_ns;
	struct node_truth truth;
};

static struct subject shop = {.namespace = "shop"}, edge = {.namespace = "edge"};

/* --- what is awaited -------------------------------------------------------------------------- */

static int number_at(const cJSON *json, const char *path)
{
	const cJSON *item = json_at(json, path);

	return cJSON_IsNumber(item) ? item->valueint : 0;
}

static bool agents_are_out(void *ctx)
{
	(void)ctx;
	return node_install_is_rolled_out(install, "daemonsets", "evenkeel-agent");
}

static bool aggregators_are_out(void *ctx)
{
	(void)ctx;
	return node_install_is_rolled_out(install, "deployments", "evenkeel-aggregator");
}

/* What kubectl says of the pods goes to the log of a test that failed. */
static void expect(bool (*done)(void *ctx), void *ctx, const char *what)
{
	static const char *const words[] = {"describe", "pods", "--all-namespaces", NULL};
	struct buf out = BUF_INIT;

	if (node_bed_await(bed, done, ctx, lost ? 0 : ROLL_SECONDS))
		return;
	lost = true;
	control_plane_kubectl(bed->plane, words, &out);
	fprintf(stderr, "%s\n", out.data ? out.data : "no pods");
	buf_fini(&out);
	fail_msg("it did not come: %s; the last complaint: %s", what, install->said);
}

/* Nothing failed, and no right was missing, in the pods that there are now. */
static void check_log(const char *selector)
{
	static const char *const bad[] = {"orbidden", "error:"};
	const char *const words[] = {"logs", "-nevenkeel", "--tail=-1", "-l", selector, NULL};
	struct buf out = BUF_INIT;

	control_plane_kubectl(bed->plane, words, &out);
	assert_non_null(out.data);
	for (char *line = out.data; *line;) {
		char *end = strchrnul(line, '\n');
		size_t next = *end == '\n';

		*end = '\0';
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			if (strstr(line, bad[i]))
				fail_msg("the log of %s tells: %s", selector, line);
		line = end + next;
	}
	buf_fini(&out);
}

static void check_logs(void)
{
	check_log("app.kubernetes.io/name=evenkeel-agent");
	check_log("app.kubernetes.io/name=evenkeel-aggregator");
}

/* --- what evenkeel tells ---------------------------------------------------------------------- */

struct window {
	int64_t start_ns, end_ns;
	double mean;
};

static int64_t time_of(const cJSON *json, const char *path)
{
	const char *text = cJSON_GetStringValue(json_at(json, path));
	int64_t unix_ns = 0;

	if (text)
		timefmt_parse(text, &unix_ns, NULL);
	return unix_ns;
}

/*
 * The pod of the namespace as `kubectl evenkeel pods` tells it, with its use in the longest window;
 * NULL while it does not.
 */
static cJSON *ask_for_pod(const char *namespace, struct window *w, cJSON **answer)
{
	const char *const words[] = {"pods", "-n", namespace, NULL};
	const cJSON *window;
	cJSON *pod;

	*answer = node_install_ask(install, words);
	pod = cJSON_GetArrayItem(json_at(*answer, "items"), 0);
	window = json_at(pod, "usage.cpuMillicores.windows.15m");
	if (!window)
		return NULL;
	w->start_ns = time_of(window, "start");
	w->end_ns = time_of(window, "end");
	w->mean = json_at(window, "mean")->valuedouble;
	return pod;
}

/* --- installed -------------------------------------------------------------------------------- */

static void kubectl(const char *verb, const char *option, const char *what)
{
	const char *const words[] = {verb, option, what, NULL};
	struct buf out = BUF_INIT;

	control_plane_kubectl(bed->plane, words, &out);
	buf_fini(&out);
}

/* What the agent says of itself. */
static void print_agent_log(void)
{
	static const char *const words[] = {"logs", "-nevenkeel", "-l",
					    "app.kubernetes.io/name=evenkeel-agent", NULL};
	struct buf out = BUF_INIT;

	control_plane_kubectl(bed->plane, words, &out);
	fprintf(stderr, "%s\n", out.data ? out.data : "the agent has no log");
	buf_fini(&out);
}

/* The agent that was heard last; each start is another. "" before the first. */
static char heard_run[40];

/*
 * By an agent other than the last. A node that is sampled by files, where BPF can be had, is one
 * whose agent lacks a right.
 */
static bool is_sampled_by_bpf(void *ctx)
{
	static const char *const words[] = {"nodes", NULL};
	cJSON *answer = node_install_ask(install, words);
	const cJSON *node = json_item(answer, NODE_BED_NAME);
	const char *tier = cJSON_GetStringValue(json_at(node, "source.tier")),
		   *state = cJSON_GetStringValue(json_at(node, "source.state")),
		   *id = cJSON_GetStringValue(json_at(node, "source.runId"));
	bool is = tier && state && id && strcmp(state, "fresh") == 0 && strcmp(id, heard_run) != 0;

	(void)ctx;
	if (is) {
		print_message("          the agent samples by %s\n", tier);
		if (strcmp(tier, "T0") != 0 && strcmp(tier, "T1") != 0) {
			print_agent_log();
			fail();
		}
		snprintf(heard_run, sizeof(heard_run), "%s", id);
	}
	cJSON_Delete(answer);
	return is;
}

static void test_installed(void **state)
{
	(void)state;
	ends = node_ends_new(bed);
	install = node_install_new(bed, bed->plane->version->installation);
	expect(aggregators_are_out, NULL, "a ready Deployment");
	expect(is_sampled_by_bpf, NULL, "a fresh node");
	print_message("          measured %.1f s after the installation began\n",
		      (double)(clock_mono_ns() - install->applied_ns) / NS_PER_SEC);
	expect(agents_are_out, NULL, "a ready DaemonSet");
	/* The aggregator sets its caBundle within a minute. */
	kubectl("apply", "-f", METRICS_API);
}

/* --- measured --------------------------------------------------------------------------------- */

static bool pod_has_cgroup(void *ctx)
{
	struct subject *s = ctx;
	char *path = mem_printf("/api/v1/namespaces/%s/pods", s->namespace);
	cJSON *pods = node_bed_get(bed, path);
	const char *uid = cJSON_GetStringValue(
		json_at(cJSON_GetArrayItem(json_at(pods, "items"), 0), "metadata.uid"));
	bool has = uid && node_truth_find(&s->truth, uid);

	if (has)
		node_truth_sample(&s->truth);
	cJSON_Delete(pods);
	free(path);
	return has;
}

/* The same span as a window's, which begins with the interval in which the pod did: millicores. */
static struct node_truth_range true_mean(const struct node_truth *truth, const struct window *w)
{
	int64_t born_ns = truth->samples[0].unix_ns;

	return node_truth_cpu_milli(truth, w->start_ns > born_ns ? w->start_ns : born_ns,
				    w->end_ns);
}

/* Looks at the cgroup each time, and once a second at what evenkeel tells. */
static bool is_measured_long_enough(void *ctx)
{
	struct subject *s = ctx;
	struct window w = {0};
	cJSON *answer;

	node_truth_sample(&s->truth);
	if (clock_mono_ns() - s->asked_ns < NS_PER_SEC)
		return false;
	s->asked_ns = clock_mono_ns();
	ask_for_pod(s->namespace, &w, &answer);
	cJSON_Delete(answer);
	return w.end_ns - w.start_ns >= COMPARED_NS;
}

/*
 * Applies the file, awaits that its pod is measured for long enough, and compares its use, which is
 * bounded by the limit, with the kernel's. The pod as evenkeel tells it; the caller deletes *answer.
 */
static cJSON *measure(struct subject *s, const char *file, int limit_milli, cJSON **answer)
{
	struct window w = {0};
	struct node_truth_range true_milli;
	cJSON *pod;

	kubectl("apply", "-f", file);
	expect(pod_has_cgroup, s, "a cgroup");
	expect(is_measured_long_enough, s, "a measured pod");
	pod = ask_for_pod(s->namespace, &w, answer);
	assert_non_null(pod);
	node_truth_sample(&s->truth);
	true_milli = true_mean(&s->truth, &w);
	print_message("          over %.1f s: %.2f to %.2f millicores by the kernel, %.2f by "
		      "evenkeel\n",
		      (double)(w.end_ns - w.start_ns) / NS_PER_SEC, true_milli.low, true_milli.high,
		      w.mean);
	assert_true(true_milli.low > limit_milli / 6.0); /* it ran, however busy the machine is */
	assert_true(w.mean >= (1 - MOST_ERROR) * true_milli.low);
	assert_true(w.mean <= (1 + MOST_ERROR) * true_milli.high);
	return pod;
}

static void check_limits(const cJSON *json, int milli, int64_t bytes)
{
	assert_int_equal(number_at(json, "kernelLimits.cpuMillicores"), milli);
	assert_int_equal(number_at(json, "kernelLimits.memoryBytes"), bytes);
}

static void test_measured(void **state)
{
	cJSON *answer, *pod;

	(void)state;
	pod = measure(&shop, "tests/node/workload.yaml", LIMIT_MILLI, &answer);
	assert_string_equal(cJSON_GetStringValue(json_at(pod, "namespace")), "shop");
	assert_string_equal(cJSON_GetStringValue(json_at(pod, "node")), NODE_BED_NAME);
	assert_memory_equal(cJSON_GetStringValue(json_at(pod, "name")), "batch-", 6);
	assert_int_equal(number_at(pod, "limits.cpuMillicores"), LIMIT_MILLI);
	check_limits(pod, LIMIT_MILLI, LIMIT_BYTES);
	check_limits(cJSON_GetArrayItem(json_at(pod, "containers"), 0), LIMIT_MILLI, LIMIT_BYTES);
	cJSON_Delete(answer);
}

/* --- sidecar and resized ---------------------------------------------------------------------- */

#define MIB (1LL << 20)

/* What the pod in edge requests and may use. */
struct bounds {
	int request_milli, limit_milli;
	int64_t request_bytes, limit_bytes;
};

static bool tells_bounds(const cJSON *pod, const struct bounds *b)
{
	return number_at(pod, "requests.cpuMillicores") == b->request_milli &&
	       number_at(pod, "requests.memoryBytes") == b->request_bytes &&
	       number_at(pod, "limits.cpuMillicores") == b->limit_milli &&
	       number_at(pod, "limits.memoryBytes") == b->limit_bytes &&
	       number_at(pod, "kernelLimits.cpuMillicores") == b->limit_milli &&
	       number_at(pod, "kernelLimits.memoryBytes") == b->limit_bytes;
}

/* The kubelet sets the pod's cgroup by its own sums. */
static bool kernel_has_bounds(const struct bounds *b)
{
	struct node_truth_bounds kernel = node_truth_bounds(&edge.truth);
	int shares = b->request_milli * 1024 / 1000;
	bool requested = kernel.shares >= 0 ? kernel.shares == shares
					    : kernel.weight == node_truth_weight(shares);

	print_message("          the kernel: %.0f %s, %.1f millicores, %.0f bytes\n",
		      kernel.shares >= 0 ? kernel.shares : kernel.weight,
		      kernel.shares >= 0 ? "shares" : "of weight", kernel.cpu_milli,
		      kernel.mem_bytes);
	return requested && fabs(kernel.cpu_milli - b->limit_milli) < 0.5 &&
	       kernel.mem_bytes == (double)b->limit_bytes;
}

static void need_sidecars(void)
{
	if (bed->plane->version->sidecars)
		return;
	print_message("SKIP: Kubernetes 1.%d has no native sidecars and no resize of pods\n",
		      bed->plane->version->minor);
	skip();
}

static const cJSON *named(const cJSON *list, const char *key, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, list) {
		const char *is = cJSON_GetStringValue(json_at(item, key));

		if (is && strcmp(is, name) == 0)
			return item;
	}
	return NULL;
}

/* evenkeel tells ids, and the API of which container: "containerd://ID". */
static const cJSON *container_of(const cJSON *pod, const char *kind, const char *name)
{
	cJSON *web = node_bed_get(bed, "/api/v1/namespaces/edge/pods/web");
	const char *id = cJSON_GetStringValue(
		json_at(named(json_at(json_at(web, "status"), kind), "name", name), "containerID"));
	const cJSON *found =
		id ? named(json_at(pod, "containers"), "id", id + strlen("containerd://")) : NULL;

	cJSON_Delete(web);
	return found;
}

static void test_sidecar(void **state)
{
	/* max(app + proxy, setup + proxy) */
	static const struct bounds first = {150, 300, 128 * MIB, 192 * MIB};
	cJSON *answer, *pod;
	const cJSON *proxy;

	(void)state;
	need_sidecars();
	pod = measure(&edge, "tests/node/sidecar.yaml", 200, &answer);
	proxy = container_of(pod, "initContainerStatuses", "proxy");
	assert_non_null(proxy);
	check_limits(proxy, 200, 96 * MIB);
	assert_true(number_at(proxy, "usage.cpuMillicores.latest.value") > 200 / 6);
	assert_true(kernel_has_bounds(&first));
	assert_true(tells_bounds(pod, &first));
	cJSON_Delete(answer);
}

static bool is_resized(void *ctx)
{
	struct window w = {0};
	cJSON *answer, *pod = ask_for_pod(edge.namespace, &w, &answer);
	bool is = pod && !json_at(pod, "resize") && tells_bounds(pod, ctx);

	cJSON_Delete(answer);
	return is;
}

static void test_resized(void **state)
{
	/* app + proxy, which are more than setup + proxy now */
	static struct bounds then = {190, 400, 160 * MIB, 224 * MIB};
	static const char *const words[] = {
		"patch",
		"-nedge",
		"pod/web",
		"--subresource=resize",
		"--patch",
		"{\"spec\":{\"initContainers\":[{\"name\":\"proxy\",\"resources\":{"
		"\"requests\":{\"cpu\":\"70m\"},\"limits\":{\"cpu\":\"150m\"}}}],"
		"\"containers\":[{\"name\":\"app\",\"resources\":{"
		"\"requests\":{\"cpu\":\"120m\",\"memory\":\"96Mi\"},"
		"\"limits\":{\"cpu\":\"250m\",\"memory\":\"128Mi\"}}}]}}",
		NULL};
	struct window w = {0};
	struct buf out = BUF_INIT;
	cJSON *answer, *pod;

	(void)state;
	need_sidecars();
	control_plane_kubectl(bed->plane, words, &out);
	buf_fini(&out);
	expect(is_resized, &then, "a resized pod");
	assert_true(kernel_has_bounds(&then));
	pod = ask_for_pod(edge.namespace, &w, &answer);
	check_limits(container_of(pod, "initContainerStatuses", "proxy"), 150, 96 * MIB);
	check_limits(container_of(pod, "containerStatuses", "app"), 250, 128 * MIB);
	cJSON_Delete(answer);
}

/* --- autoscaled ------------------------------------------------------------------------------- */

#define WEB	     "/apis/apps/v1/namespaces/web/deployments/web"
#define WEB_REPLICAS 3

/* So many are wanted by the autoscaler, and ready. */
static bool is_scaled(void *ctx)
{
	int want = *(const int *)ctx;
	cJSON *web = node_bed_get(bed, WEB);
	bool is = number_at(web, "spec.replicas") == want &&
		  number_at(web, "status.replicas") == want &&
		  number_at(web, "status.updatedReplicas") == want &&
		  number_at(web, "status.readyReplicas") == want;

	cJSON_Delete(web);
	return is;
}

static double value_of(const cJSON *item, const char *member)
{
	char path[64];
	const cJSON *value;

	snprintf(path, sizeof(path), "usage.%s.latest.value", member);
	value = json_at(item, path);
	return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

/* kubectl top rounds millicores up and mebibytes down. False: it has no such line yet. */
static bool check_top(const struct buf *top, const cJSON *item, const char *name)
{
	double milli = ceil(value_of(item, "cpuMillicores")),
	       mib = floor(value_of(item, "workingSetBytes") / MIB);
	const char *line = top->data ? strstr(top->data, name) : NULL;
	unsigned int cpu, memory;

	if (!line)
		return false;
	line += strlen(name);
	/* Of a node with shares of what it has. */
	if ((sscanf(line, " %um %*u%% %uMi", &cpu, &memory) != 2 &&
	     sscanf(line, " %um %uMi", &cpu, &memory) != 2) ||
	    cpu != milli || memory != mib)
		fail_msg("%s: %.0fm %.0fMi by evenkeel, but kubectl top says %s", name, milli, mib,
			 top->data);
	return true;
}

/* When the interval ended that the first item of an answer tells of. */
static int64_t end_of(const cJSON *answer)
{
	return time_of(cJSON_GetArrayItem(json_at(answer, "items"), 0),
		       "usage.cpuMillicores.latest.end");
}

/*
 * `kubectl top`, and what evenkeel tells of the same interval, which the caller deletes; NULL: another
 * one came meanwhile.
 */
static cJSON *ask_both(const char *const *words, struct buf *top)
{
	const char *all[8] = {"top"};
	cJSON *before = node_install_ask(install, words), *after;
	bool same;

	for (size_t n = 0; words[n]; n++)
		all[n + 1] = words[n];
	control_plane_kubectl(bed->plane, all, top);
	after = node_install_ask(install, words);
	same = end_of(before) && end_of(before) == end_of(after);
	cJSON_Delete(after);
	if (same)
		return before;
	cJSON_Delete(before);
	return NULL;
}

static bool nodes_agree(void *ctx)
{
	static const char *const words[] = {"nodes", NULL};
	struct buf top = BUF_INIT;
	cJSON *told = ask_both(words, &top);
	bool agree = told && check_top(&top, json_item(told, NODE_BED_NAME), NODE_BED_NAME);

	(void)ctx;
	cJSON_Delete(told);
	buf_fini(&top);
	return agree;
}

/* kubectl top tells of a pod the sum of its containers, of which these have one. */
static bool pods_agree(void *ctx)
{
	static const char *const words[] = {"pods", "-nweb", NULL};
	struct buf top = BUF_INIT;
	cJSON *told = ask_both(words, &top);
	const cJSON *pod;
	int compared = 0;

	(void)ctx;
	cJSON_ArrayForEach (pod, json_at(told, "items")) {
		const cJSON *container = named(json_at(pod, "containers"), "name", "main");

		compared += container &&
			    check_top(&top, container, cJSON_GetStringValue(json_at(pod, "name")));
	}
	cJSON_Delete(told);
	buf_fini(&top);
	return compared == WEB_REPLICAS;
}

static void test_autoscaled(void **state)
{
	static const char *const idle[] = {
		"patch",
		"-nweb",
		"deployment/web",
		"--type=json",
		"--patch",
		"[{\"op\":\"remove\",\"path\":\"/spec/template/spec/containers/0/args\"}]",
		NULL};
	int up = WEB_REPLICAS, down = 1;
	int64_t began_ns = clock_mono_ns();
	struct buf out = BUF_INIT;

	(void)state;
	kubectl("apply", "-f", "tests/node/autoscaled.yaml");
	expect(is_scaled, &up, "three replicas under load");
	print_message("          scaled up after %.1f s\n",
		      (double)(clock_mono_ns() - began_ns) / NS_PER_SEC);
	expect(nodes_agree, NULL, "kubectl top nodes of one interval");
	expect(pods_agree, NULL, "kubectl top pods of one interval");
	control_plane_kubectl(bed->plane, idle, &out);
	began_ns = clock_mono_ns();
	expect(is_scaled, &down, "one replica without load");
	print_message("          scaled down after %.1f s\n",
		      (double)(clock_mono_ns() - began_ns) / NS_PER_SEC);
	kubectl("delete", "--wait=false", "namespace/web");
	buf_fini(&out);
}

/* --- updated ---------------------------------------------------------------------------------- */

static void change_template(const char *kind_and_name)
{
	const char *const patch = "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{"
				  "\"evenkeel.io/test\":\"changed\"}}}}}";
	const char *const words[] = {"patch", "-nevenkeel", kind_and_name, "--patch", patch, NULL};
	struct buf out = BUF_INIT;

	control_plane_kubectl(bed->plane, words, &out);
	buf_fini(&out);
}

/* The window that an aggregator which never saw it has from the agent's ring: as long as before. */
static bool reaches_back(void *ctx)
{
	const struct window *before = ctx;
	struct window w = {0};
	cJSON *answer;
	bool does = ask_for_pod(shop.namespace, &w, &answer) && w.end_ns > before->end_ns &&
		    w.start_ns <= before->start_ns;

	cJSON_Delete(answer);
	return does;
}

/* Sets the window. */
static bool is_told(void *ctx)
{
	cJSON *answer;
	bool is = ask_for_pod(shop.namespace, ctx, &answer);

	cJSON_Delete(answer);
	return is;
}

static void test_updated(void **state)
{
	struct window before = {0};

	(void)state;
	expect(is_told, &before, "the pod's windows");
	check_logs();
	change_template("deployment/evenkeel-aggregator");
	expect(aggregators_are_out, NULL, "a Deployment that is ready again");
	expect(reaches_back, &before, "what the agent had measured before");
	change_template("daemonset/evenkeel-agent");
	expect(agents_are_out, NULL, "a DaemonSet that is ready again");
	expect(is_sampled_by_bpf, NULL, "a fresh node");
}

/* --- removed ---------------------------------------------------------------------------------- */

static bool is_removed(void *ctx)
{
	cJSON *namespace = node_bed_get(bed, "/api/v1" INSTALL_NAMESPACE);
	bool gone = !namespace && !node_truth_any_pod();

	(void)ctx;
	cJSON_Delete(namespace);
	return gone;
}

/* Outside the namespace. */
static void check_nothing_is_left(void)
{
	static const char *const words[] = {
		"get",	  "clusterroles,clusterrolebindings,apiservices,priorityclasses",
		"-l",	  "app.kubernetes.io/part-of=evenkeel",
		"-oname", NULL};
	struct buf out = BUF_INIT;

	control_plane_kubectl(bed->plane, words, &out);
	if (out.len)
		fail_msg("left: %s", out.data);
	buf_fini(&out);
}

static void test_removed(void **state)
{
	size_t agents, aggregators, bad_agents, bad_aggregators;

	(void)state;
	check_logs();
	kubectl("delete", "--wait=false", "namespace/shop");
	if (bed->plane->version->sidecars)
		kubectl("delete", "--wait=false", "namespace/edge");
	kubectl("delete", "-f", METRICS_API);
	kubectl("delete", "-f", bed->plane->version->installation);
	expect(is_removed, NULL, "no namespace, and no cgroup of a pod");
	check_nothing_is_left();
	/* Each was there twice, as the first and the changed version; every end was by itself. */
	agents = node_ends_count(ends, "localhost/evenkeel-agent", &bad_agents);
	aggregators = node_ends_count(ends, "localhost/evenkeel-aggregator", &bad_aggregators);
	if (agents != 2 || aggregators != 2 || bad_agents || bad_aggregators)
		fail_msg("%zu agents ended, %zu of them badly, and %zu aggregators, %zu badly",
			 agents, bad_agents, aggregators, bad_aggregators);
}

/* --- all of it -------------------------------------------------------------------------------- */

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_installed),  cmocka_unit_test(test_measured),
		cmocka_unit_test(test_sidecar),	   cmocka_unit_test(test_resized),
		cmocka_unit_test(test_autoscaled), cmocka_unit_test(test_updated),
		cmocka_unit_test(test_removed),
	};
	int failed;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	bed = node_bed_new();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	node_ends_free(ends);
	node_install_free(install);
	node_bed_free(bed, failed != 0);
	curl_global_cleanup();
	return failed;
}

int main(void)
{
	struct error error = {""};
	int status;

	if (!node_bed_is_possible())
		return 0;
	status = node_box_run(run, &error);
	if (status < 0)
		printf("SKIP: %s\n", error.text);
	return status < 0 ? 0 : status;
}
