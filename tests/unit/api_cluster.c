/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and pods where a Kubernetes API is followed: what it knows beside what is measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/cluster_fixture.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

#define number(path) api_fixture_number(&f, path)

static struct api_fixture f;

static int setup(void **state)
{
	(void)state;
	api_fixture_open(&f, cluster_fixture_new());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	api_fixture_close(&f);
	return 0;
}

/* What stands at the path of the last answer, without measurements, as compact text. */
static void check(const char *path, const char *want)
{
	static const char *const measured[] = {"usage",	  "contention", "containers",
					       "machine", "source",	"measured"};
	cJSON *part = cJSON_Duplicate(api_fixture_at(f.json, path), 1);
	char *text;

	assert_non_null(part);
	for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++)
		cJSON_DeleteItemFromObject(part, measured[i]);
	text = cJSON_PrintUnformatted(part);
	assert_string_equal(text, want);
	free(text);
	cJSON_Delete(part);
}

#define BASE "\"capacity\":{\"cpuMillicores\":4000,\"memoryBytes\":8589934592,\"pods\":110"
#define ALLOCATABLE                                                                                \
	"},\"allocatable\":{\"cpuMillicores\":3800,\"memoryBytes\":7516192768,\"pods\":110"

/* --- nodes ------------------------------------------------------------------------------------ */

static void test_node_of_both(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/alpha"), 200);
	check("", "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Node\","
		  "\"time\":\"2026-01-31T12:00:00Z\",\"name\":\"alpha\",\"uid\":\"uid-alpha\","
		  "\"labels\":{\"kubernetes.io/hostname\":\"alpha\",\"zone\":\"a\"},"
		  "\"ready\":true,\"unschedulable\":false," BASE ",\"nvidia.com/gpu\":2" ALLOCATABLE
		  ",\"nvidia.com/gpu\":2},"
		  "\"requests\":{\"cpuMillicores\":1725,\"memoryBytes\":2784354560},"
		  "\"limits\":{\"cpuMillicores\":2125,\"memoryBytes\":3321225472},"
		  "\"unlimitedContainers\":{\"cpu\":1,\"memory\":1},"
		  "\"kernelLimits\":{\"cpuMillicores\":2130,\"memoryBytes\":2247483392,"
		  "\"unlimitedContainers\":{\"cpu\":2,\"memory\":2},\"unknownPods\":0},"
		  "\"limitRatio\":{\"declared\":{\"cpu\":0.559211,\"memory\":0.441876},"
		  "\"kernel\":{\"cpu\":0.560526,\"memory\":0.299019}},\"pods\":3}");
	assert_true(number("usage.cpuMillicores.latest.value") == 1100);
}

/* No agent: what the API knows is there, what the kernel enforces is not. */
static void test_node_without_an_agent(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/lima"), 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(f.json, "source.state")), "none");
	check("", "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Node\","
		  "\"time\":\"2026-01-31T12:00:00Z\",\"name\":\"lima\",\"uid\":\"uid-lima\","
		  "\"labels\":{\"kubernetes.io/hostname\":\"lima\",\"zone\":\"b\"},"
		  "\"ready\":true,\"unschedulable\":true," BASE ALLOCATABLE "},"
		  "\"requests\":{\"cpuMillicores\":0,\"memoryBytes\":0},"
		  "\"limits\":{\"cpuMillicores\":0,\"memoryBytes\":0},"
		  "\"unlimitedContainers\":{\"cpu\":0,\"memory\":0},"
		  "\"kernelLimits\":{\"cpuMillicores\":0,\"memoryBytes\":0,"
		  "\"unlimitedContainers\":{\"cpu\":0,\"memory\":0},\"unknownPods\":0},"
		  "\"limitRatio\":{\"declared\":{\"cpu\":0,\"memory\":0}},\"pods\":0}");
}

/* An agent whose pods are all unknown to it says nothing of what the kernel enforces. */
static void test_kernel_unknown(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/bravo"), 200);
	assert_true(number("kernelLimits.unknownPods") == 1);
	assert_null(api_fixture_at(f.json, "limitRatio.kernel"));
	assert_true(number("limitRatio.declared.cpu") == 0.263158);
}

static void test_node_unknown_to_the_api(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/stray"), 200);
	check("", "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Node\","
		  "\"time\":\"2026-01-31T12:00:00Z\",\"name\":\"stray\",\"unknownToApi\":true,"
		  "\"capacity\":{\"cpuMillicores\":4000,\"memoryBytes\":8589934592},"
		  "\"allocatable\":{\"cpuMillicores\":3800,\"memoryBytes\":7516192768}}");
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/ghost"), 200);
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "unknownToApi")));
	assert_true(number("requests.cpuMillicores") == 100);
	/* While nodes are being listed nobody knows. */
	view_slot_publish(f.ctx.views, cluster_fixture_with(SOURCE_LISTING, ""));
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/stray"), 200);
	assert_null(api_fixture_at(f.json, "unknownToApi"));
	view_slot_publish(f.ctx.views, cluster_fixture_with(SOURCE_STALE, ""));
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/stray"), 200);
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "unknownToApi")));
}

/*
 * alpha: limits 2125m, 1 container without one that requests 100m; the kernel leaves 2 pods
 * unbounded.
 */
static void test_what_no_limit_counts_as(void **state)
{
	static const struct {
		const char *target;
		double declared, kernel;
	} cases[] = {
		{"/v1/nodes/alpha?unlimited=", 2125.0 / 3800, 2130.0 / 3800},
		{"/v1/nodes/alpha?unlimited=ignore", 2125.0 / 3800, 2130.0 / 3800},
		{"/v1/nodes/alpha?unlimited=allocatable", 2125.0 / 3800 + 1, 2130.0 / 3800 + 2},
		/* The pod unknown to the API requests nothing that is known. */
		{"/v1/nodes/alpha?unlimited=requests", 2225.0 / 3800, 2730.0 / 3800},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_get(&f, cases[i].target), 200);
		assert_in_range((int64_t)(number("limitRatio.declared.cpu") * 1e6),
				(int64_t)(cases[i].declared * 1e6) - 1,
				(int64_t)(cases[i].declared * 1e6) + 1);
		assert_in_range((int64_t)(number("limitRatio.kernel.cpu") * 1e6),
				(int64_t)(cases[i].kernel * 1e6) - 1,
				(int64_t)(cases[i].kernel * 1e6) + 1);
		assert_true(number("limits.cpuMillicores") == 2125);
	}
}

#define MIB 1048576LL
#define LIMITED                                                                                    \
	"{\"resources\":{\"requests\":{\"cpu\":\"200m\",\"memory\":\"64Mi\"},"                     \
	"\"limits\":{\"cpu\":\"400m\",\"memory\":\"128Mi\"}}}"
#define UNLIMITED "{\"resources\":{\"requests\":{\"cpu\":\"70m\",\"memory\":\"32Mi\"}}}"

static const struct {
	const char *uid, *containers;
	size_t limited, unlimited; /* cgroups seen */
} mixed_pods[] = {
	{"u0", LIMITED "," LIMITED, 2, 0},
	{"u1", LIMITED "," UNLIMITED, 1, 1},
	{"u2", UNLIMITED "," LIMITED "," UNLIMITED, 1, 2},
	{"u3", UNLIMITED, 0, 1},
	{"u4", UNLIMITED "," LIMITED, 1, 2}, /* with its sandbox */
};

enum { MIXED_PODS = sizeof(mixed_pods) / sizeof(mixed_pods[0]), MIXED_MOST = 4 };

/* A node of 4 CPUs and 4 GiB allocatable whose kernel enforces what its pods declare. */
static struct view *view_of_mixed_pods(void)
{
	static const struct kernel_limits limited = {400,	 128 * MIB, LIMIT_NONE, LIMIT_NONE,
						     LIMIT_NONE, 0,	    0},
					  both = {800,	      256 * MIB, LIMIT_NONE, LIMIT_NONE,
						  LIMIT_NONE, 0,	 0},
					  none = {LIMIT_NONE, LIMIT_NONE, LIMIT_NONE, LIMIT_NONE,
						  LIMIT_NONE, 0,	  0};
	static const char *const names[MIXED_MOST] = {"a", "b", "c", "d"};
	static const char *const ids[MIXED_MOST] = {"aaaaaaaaaaaaaaaa00", "bbbbbbbbbbbbbbbb00",
						    "cccccccccccccccc00", "dddddddddddddddd00"};
	struct container_stats containers[MIXED_PODS][MIXED_MOST] = {0};
	struct pod_stats pods[MIXED_PODS];
	struct model *m = model_new();
	struct join *j = join_new();
	struct node_stats *stats;
	struct view *v;

	model_put(m, model_fixture_node("n", 5, 5));
	for (size_t i = 0; i < MIXED_PODS; i++) {
		size_t count = mixed_pods[i].limited + mixed_pods[i].unlimited;
		char *json = mem_printf("{\"metadata\":{\"namespace\":\"d\",\"name\":\"%s\","
					"\"uid\":\"%s\"},\"spec\":{\"nodeName\":\"n\","
					"\"containers\":[%s]},\"status\":{\"phase\":\"Running\","
					"\"containerStatuses\":[{\"name\":\"main\",\"containerID\":"
					"\"containerd://%s\"}]}}",
					mixed_pods[i].uid, mixed_pods[i].uid,
					mixed_pods[i].containers, ids[0]);

		model_put(m, model_fixture_object(OBJECT_POD, json));
		free(json);
		pods[i] = join_fixture_pod(mixed_pods[i].uid, mixed_pods[i].uid,
					   VIEW_FIXTURE_NOW_NS, 900, 10, 1024);
		for (size_t c = 0; c < count; c++)
			containers[i][c] = (struct container_stats){
				.name = names[c],
				.id = ids[c],
				.limits = c < mixed_pods[i].limited ? &limited : &none,
			};
		pods[i].containers = containers[i];
		pods[i].container_count = (uint32_t)count;
		pods[i].limits = mixed_pods[i].unlimited ? &none : &both;
	}
	stats = join_fixture_stats("n", VIEW_FIXTURE_NOW_NS, pods, MIXED_PODS);
	v = join_view(j, &stats, 1, model_cluster(m), VIEW_FIXTURE_NOW_NS);
	node_stats_drop(stats);
	join_free(j);
	model_free(m);
	return v;
}

/* Where the kernel enforces what is declared, both ratios are one, whatever no limit counts as. */
static void test_ratios_agree(void **state)
{
	static const struct {
		const char *target;
		double cpu, memory;
	} cases[] = {
		/* 5 limited containers of 400m and 128 MiB, 5 others of 70m and 32 MiB. */
		{"/v1/nodes?unlimited=ignore", 2000.0 / 4000, 640.0 / 4096},
		{"/v1/nodes?unlimited=allocatable", 2000.0 / 4000 + 5, 640.0 / 4096 + 5},
		{"/v1/nodes?unlimited=requests", 2350.0 / 4000, 800.0 / 4096},
	};

	(void)state;
	view_slot_publish(f.ctx.views, view_of_mixed_pods());
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_get(&f, cases[i].target), 200);
		assert_float_equal(number("items.0.limitRatio.declared.cpu"), cases[i].cpu, 1e-6);
		assert_float_equal(number("items.0.limitRatio.kernel.cpu"), cases[i].cpu, 1e-6);
		assert_float_equal(number("items.0.limitRatio.declared.memory"), cases[i].memory,
				   1e-6);
		assert_float_equal(number("items.0.limitRatio.kernel.memory"), cases[i].memory,
				   1e-6);
		assert_true(number("total.kernelLimits.unlimitedContainers.cpu") == 5);
		assert_true(number("total.kernelLimits.cpuMillicores") == 2000);
	}
}

/* The cgroup's name where the API told none. */
static void test_containers_have_their_names(void **state)
{
	(void)state;
	view_slot_publish(f.ctx.views, view_of_mixed_pods());
	assert_int_equal(api_fixture_get(&f, "/v1/pods"), 200);
	check("items.0.containers.0.name", "\"main\"");
	check("items.0.containers.0.cgroup", "\"a\"");
	check("items.0.containers.0.id", "\"aaaaaaaaaaaaaaaa00\"");
	check("items.0.containers.1.name", "\"b\"");
	assert_null(api_fixture_at(f.json, "items.0.containers.1.cgroup"));
}

static void test_total(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/nodes?limit=1"), 200);
	assert_string_equal(api_fixture_names(&f), "alpha");
	check("total",
	      "{\"nodes\":5,\"knownToApi\":3,\"ready\":2,\"unschedulable\":1,"
	      "\"capacity\":{\"cpuMillicores\":12000,\"memoryBytes\":25769803776,\"pods\":330,"
	      "\"nvidia.com/gpu\":2},"
	      "\"allocatable\":{\"cpuMillicores\":11400,\"memoryBytes\":22548578304,\"pods\":330,"
	      "\"nvidia.com/gpu\":2},"
	      "\"requests\":{\"cpuMillicores\":2325,\"memoryBytes\":3321225472},"
	      "\"limits\":{\"cpuMillicores\":3125,\"memoryBytes\":4394967296},"
	      "\"unlimitedContainers\":{\"cpu\":2,\"memory\":2},"
	      "\"kernelLimits\":{\"cpuMillicores\":2130,\"memoryBytes\":2247483392,"
	      "\"unlimitedContainers\":{\"cpu\":2,\"memory\":2},\"unknownPods\":1},"
	      "\"limitRatio\":{\"declared\":{\"cpu\":0.274123,\"memory\":0.194911},"
	      "\"kernel\":{\"cpu\":0.560526,\"memory\":0.299019}},\"pods\":4}");
	assert_int_equal(api_fixture_get(&f, "/v1/nodes?labelSelector=zone=b"), 200);
	assert_true(number("total.nodes") == 2);
	assert_true(number("total.requests.cpuMillicores") == 600);
}

static void test_names(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/names"), 200);
	assert_string_equal(api_fixture_at(f.json, "kind")->valuestring, "Names");
	check("nodes", "[\"alpha\",\"bravo\",\"ghost\",\"lima\",\"stray\"]");
	check("namespaces", "[\"batch\",\"db\",\"kube-system\",\"shop\"]");
	check("slackClasses", "[]");
}

static void test_nodes_by_label(void **state)
{
	static const struct {
		const char *target, *names;
	} cases[] = {
		{"/v1/nodes", "alpha bravo ghost lima stray"},
		{"/v1/nodes?labelSelector=zone=b", "bravo lima"},
		{"/v1/nodes?labelSelector=zone+in+(a,b)", "alpha bravo lima"},
		{"/v1/nodes?labelSelector=!zone", "ghost stray"},
		{"/v1/nodes?labelSelector=zone=b&node=lima", "lima"},
		{"/v1/nodes?labelSelector=zone=b&limit=1", "bravo"},
		{"/v1/nodes?labelSelector=zone=x", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_get(&f, cases[i].target), 200);
		assert_string_equal(api_fixture_names(&f), cases[i].names);
	}
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/nobody"), 404);
	assert_non_null(strstr(f.response.body.data, "and the API has none of that name"));
}

/* --- pods ------------------------------------------------------------------------------------- */

static void test_pods_in_order(void **state)
{
	static const struct {
		const char *target, *names;
	} cases[] = {
		{"/v1/pods", "kubepods/burstable/podzzzz done tiny pg-0 dns wait web-1 web-2"},
		{"/v1/pods?namespace=shop", "wait web-1 web-2"},
		{"/v1/pods?namespace=shop&node=bravo", "web-2"},
		{"/v1/pods?node=ghost", "dns"},
		{"/v1/pods?node=nobody", ""},
		{"/v1/pods?labelSelector=app=web", "web-1 web-2"},
		{"/v1/pods?labelSelector=app,app!=web", "pg-0 wait"},
		{"/v1/pods?labelSelector=!app&namespace=batch", "done tiny"},
		{"/v1/pods?sort=cpu",
		 "pg-0 web-1 tiny kubepods/burstable/podzzzz done dns wait web-2"},
		{"/v1/pods?sort=cpu&limit=2", "pg-0 web-1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_get(&f, cases[i].target), 200);
		assert_string_equal(api_fixture_names(&f), cases[i].names);
	}
}

static void test_pod_of_both(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/pods?namespace=shop&node=alpha"), 200);
	check("items.0",
	      "{\"namespace\":\"shop\",\"name\":\"web-1\",\"uid\":\"aaaa\","
	      "\"labels\":{\"app\":\"web\"},\"node\":\"alpha\",\"phase\":\"Running\","
	      "\"qosClass\":\"Burstable\",\"workload\":{\"kind\":\"Deployment\",\"name\":\"web\"},"
	      "\"requests\":{\"cpuMillicores\":600,\"memoryBytes\":536870912},"
	      "\"limits\":{\"cpuMillicores\":1000,\"memoryBytes\":1073741824},"
	      "\"unlimitedContainers\":{\"cpu\":1,\"memory\":1},"
	      "\"kernelLimits\":{\"cpuMillicores\":null,\"memoryBytes\":8053063680,"
	      "\"memoryHighBytes\":null,\"swapBytes\":null,\"pids\":null,"
	      "\"cpuBurstMicroseconds\":0}}");
	assert_true(number("items.0.usage.cpuMillicores.latest.value") == 300);
}

static void test_pods_of_one_side(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/pods"), 200);
	/* Measured only. */
	check("items.0", "{\"namespace\":\"\",\"name\":\"kubepods/burstable/podzzzz\","
			 "\"uid\":\"zzzz\",\"node\":\"alpha\",\"qosClass\":\"Burstable\","
			 "\"workload\":{\"kind\":\"Pod\",\"name\":\"kubepods/burstable/podzzzz\"},"
			 "\"unknownToApi\":true,\"kernelLimits\":{\"cpuMillicores\":null,"
			 "\"memoryBytes\":8053063680,\"memoryHighBytes\":null,\"swapBytes\":null,"
			 "\"pids\":null,\"cpuBurstMicroseconds\":0}}");
	/* Not measured, and without a node. */
	check("items.5", "{\"namespace\":\"shop\",\"name\":\"wait\",\"uid\":\"gggg\","
			 "\"labels\":{\"app\":\"wait\"},\"phase\":\"Pending\","
			 "\"workload\":{\"kind\":\"Pod\",\"name\":\"wait\"},"
			 "\"requests\":{\"cpuMillicores\":3000},"
			 "\"limits\":{\"cpuMillicores\":null,\"memoryBytes\":null},"
			 "\"unlimitedContainers\":{\"cpu\":1,\"memory\":1}}");
	assert_non_null(strstr(f.response.body.data,
			       "\"unlimitedContainers\":{\"cpu\":1,\"memory\":1},\"usage\":{}}"));
}

/* What only rounds is no mismatch, nor is no limit below the node's own. */
static void test_limits_that_differ(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/pods?namespace=db"), 200);
	check("items.0.limitMismatch", "{\"cpuMillicores\":{\"declared\":1000,\"kernel\":2000}}");
	assert_int_equal(api_fixture_get(&f, "/v1/pods"), 200);
	for (int i = 0; i < 8; i++) {
		char path[64];

		snprintf(path, sizeof(path), "items.%d.limitMismatch", i);
		if (i != 3)
			assert_null(api_fixture_at(f.json, path));
	}
}

/* Each pod once and in order, by pages of every size, with and without a selector. */
static void test_paging(void **state)
{
	static const struct {
		const char *selector, *names;
	} cases[] = {
		{"", "kubepods/burstable/podzzzz done tiny pg-0 dns wait web-1 web-2 "},
		{"app", "pg-0 wait web-1 web-2 "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int limit = 1; limit <= 9; limit++) {
			char all[256] = "", target[256];
			char *token = mem_strdup("");

			while (token) {
				const cJSON *next;

				assert_true(strlen(all) < 128); /* else pages repeat */
				snprintf(target, sizeof(target),
					 "/v1/pods?labelSelector=%s&limit=%d&continue=%s",
					 cases[i].selector, limit, token);
				assert_int_equal(api_fixture_get(&f, target), 200);
				/* There is no empty last page. */
				assert_true(api_fixture_names(&f)[0] != '\0');
				snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s ",
					 api_fixture_names(&f));
				free(token);
				next = api_fixture_at(f.json, "continue");
				token = next ? mem_strdup(next->valuestring) : NULL;
			}
			assert_string_equal(all, cases[i].names);
		}
}

/* A token names a pod, and pages go on after that name although it is gone by then. */
static void test_pages_survive_changes(void **state)
{
	char *target;

	(void)state;
	view_slot_publish(f.ctx.views, cluster_fixture_large(3, 4));
	assert_int_equal(api_fixture_get(&f, "/v1/pods?limit=7"), 200);
	assert_string_equal(api_fixture_names(&f), "pod-000000 pod-000002 pod-000004 pod-000006 "
						   "pod-000008 pod-000010 pod-000001");
	target = mem_printf("/v1/pods?limit=7&continue=%s",
			    cJSON_GetStringValue(api_fixture_at(f.json, "continue")));
	view_slot_publish(f.ctx.views, cluster_fixture_large(1, 1));
	assert_int_equal(api_fixture_get(&f, target), 200);
	assert_string_equal(api_fixture_names(&f), "");
	view_slot_publish(f.ctx.views, cluster_fixture_large(2, 3));
	assert_int_equal(api_fixture_get(&f, target), 200);
	assert_string_equal(api_fixture_names(&f), "pod-000003 pod-000005");
	free(target);
}

static void test_refusals(void **state)
{
	static const char *const targets[] = {
		"/v1/pods?labelSelector=a=b=c",
		"/v1/nodes?labelSelector=in+(",
		"/v1/pods?labelSelector=,",
		"/v1/nodes?labelSelector=a+b",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		assert_int_equal(api_fixture_get(&f, targets[i]), 400);
		assert_string_equal(http_fixture_error_field(&f), "labelSelector");
	}
	/* A token of one list of nodes is one of any list, but not half of it. */
	assert_int_equal(api_fixture_get(&f, "/v1/pods?continue=YQpi"), 400);
	assert_string_equal(http_fixture_error_field(&f), "continue");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A node with a pod in each state of a resize, one of which has two CPUs alone. */
static struct view *view_of_resizes(const char *const *status, size_t count)
{
	static const struct kernel_limits limits = {.cpu_milli = 2000, .cpu_exclusive_milli = 2000};
	struct pod_stats pod =
		join_fixture_pod("p0", "p0", VIEW_FIXTURE_NOW_NS, 900, 10, 64.0 * MIB);
	struct model *m = model_new();
	struct join *j = join_new();
	struct node_stats *stats;
	struct view *v;

	model_put(m, model_fixture_node("n", 5, 5));
	for (size_t i = 0; i < count; i++) {
		char *json = mem_printf("{\"metadata\":{\"namespace\":\"d\",\"name\":\"p%zu\","
					"\"uid\":\"p%zu\"},\"spec\":{\"nodeName\":\"n\","
					"\"containers\":[{\"name\":\"main\"}]},"
					"\"status\":{\"phase\":\"Running\"%s}}",
					i, i, status[i]);

		model_put(m, model_fixture_object(OBJECT_POD, json));
		free(json);
	}
	pod.limits = &limits;
	pod.usage.latest = (struct latest_usage){
		.cpu_milli = {500, 0, true},
		.mem_bytes = {256 * MIB, 0, true},
		.working_set_bytes = {64 * MIB, 0, true},
		.mem_protected_bytes = {128 * MIB, 0, true},
	};
	stats = join_fixture_stats("n", VIEW_FIXTURE_NOW_NS, &pod, 1);
	v = join_view(j, &stats, 1, model_cluster(m), VIEW_FIXTURE_NOW_NS);
	node_stats_drop(stats);
	join_free(j);
	model_free(m);
	return v;
}

#define CONDITION(type, reason)                                                                    \
	",\"conditions\":[{\"type\":\"" type "\",\"status\":\"True\",\"reason\":\"" reason "\"}]"

static void test_resizes_and_held_resources(void **state)
{
	static const char *const status[] = {"", CONDITION("PodResizePending", "Deferred"),
					     CONDITION("PodResizePending", "Infeasible"),
					     CONDITION("PodResizeInProgress", ""),
					     ",\"resize\":\"Infeasible\""};
	static const char *const want[] = {NULL, "Deferred", "Infeasible", "InProgress",
					   "Infeasible"};

	(void)state;
	view_slot_publish(f.ctx.views, view_of_resizes(status, 5));
	assert_int_equal(api_fixture_get(&f, "/v1/pods"), 200);
	for (int i = 0; i < 5; i++) {
		char path[32];
		const cJSON *resize;

		snprintf(path, sizeof(path), "items.%d.resize", i);
		resize = api_fixture_at(f.json, path);
		if (!want[i])
			assert_null(resize);
		else
			assert_string_equal(resize->valuestring, want[i]);
	}
	assert_true(number("items.0.kernelLimits.exclusiveCpuMillicores") == 2000);
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/n"), 200);
	assert_true(number("exclusiveCpuMillicores") == 2000);
	assert_true(number("heldIdle.cpuMillicores") == 1500);
	assert_true(number("heldIdle.memoryBytes") == 64 * MIB);
	assert_int_equal(api_fixture_get(&f, "/metrics"), 200);
	assert_non_null(
		strstr(f.response.body.data, "evenkeel_node_cpu_exclusive_cores{node=\"n\"} 2\n"));
	assert_non_null(strstr(f.response.body.data,
			       "evenkeel_node_memory_held_idle_bytes{node=\"n\"} 67108864\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_node_of_both),
		TEST(test_node_without_an_agent),
		TEST(test_kernel_unknown),
		TEST(test_node_unknown_to_the_api),
		TEST(test_what_no_limit_counts_as),
		TEST(test_ratios_agree),
		TEST(test_containers_have_their_names),
		TEST(test_total),
		TEST(test_names),
		TEST(test_nodes_by_label),
		TEST(test_pods_in_order),
		TEST(test_pod_of_both),
		TEST(test_pods_of_one_side),
		TEST(test_limits_that_differ),
		TEST(test_resizes_and_held_resources),
		TEST(test_paging),
		TEST(test_pages_survive_changes),
		TEST(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
