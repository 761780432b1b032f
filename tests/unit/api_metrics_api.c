/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/api_group.h"
#include "aggregator/model/model.h"
#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "tests/api_fixture.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

#define METRICS "/apis/metrics.k8s.io/v1beta1"
#define ID_A	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B	"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define SANDBOX "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define ID_INIT "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"

#define text_of(path) api_fixture_text(&f, path)

static struct api_fixture f;

static void test_quantities(void **state)
{
	static const struct {
		int64_t amount;
		const char *cpu, *bytes;
	} cases[] = {
		{0, "0", "0"},
		{1, "1u", "1"},
		{250000, "250m", "250000"},
		{1000000, "1", "1000000"},
		{1500250, "1500250u", "1500250"},
		{3 * 1024, "3072u", "3Ki"},
		{5LL << 30, "5368709120u", "5Gi"},
		{2000000000, "2000", "1953125Ki"},
	};
	char text[METRICS_QUANTITY_LEN];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		metrics_cpu_quantity(cases[i].amount, text);
		assert_string_equal(text, cases[i].cpu);
		metrics_bytes_quantity(cases[i].amount, text);
		assert_string_equal(text, cases[i].bytes);
	}
}

static void test_field_selectors(void **state)
{
	static const struct {
		const char *selector;
		bool match, bad;
	} cases[] = {
		{"", true, false},
		{"metadata.name=a", true, false},
		{"metadata.name==a", true, false},
		{"metadata.name!=a", false, false},
		{"metadata.name=b", false, false},
		{"metadata.name=", false, false},
		{"metadata.name=a,metadata.namespace=n", true, false},
		{"metadata.namespace!=n,metadata.name=a", false, false},
		{"metadata.name=a,", true, false},
		{"metadata.name", false, true},
		{"metadata.name===a", false, true},
		{"metadata.name!a", false, true},
		{"metadata.name=!a", false, true},
		{"spec.nodeName=a", false, true},
		{",", false, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool bad = false;

		if (metrics_fields_match(cases[i].selector, "a", "n", &bad) != cases[i].match ||
		    bad != cases[i].bad)
			fail_msg("\"%s\"", cases[i].selector);
	}
}

/* --- answers ---------------------------------------------------------------------------------- */

static struct container_stats container(const char *id, float milli, float bytes)
{
	struct container_stats c = {.name = id, .id = id};

	c.latest.cpu_milli = (struct latest){.value = milli, .known = true};
	c.latest.working_set_bytes = (struct latest){.value = bytes, .known = bytes > 0};
	return c;
}

static void put_pod(struct model *m, const char *name, const char *uid, const char *phase)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"shop\",\"uid\":\"%s\",\"labels\":{"
		 "\"app\":\"%s\"}},\"spec\":{\"nodeName\":\"alpha\",\"containers\":[{\"name\":"
		 "\"main\"},"
		 "{\"name\":\"side\"}]},\"status\":{\"phase\":\"%s\",\"containerStatuses\":[{"
		 "\"name\":"
		 "\"main\",\"containerID\":\"containerd://" ID_A "\"},{\"name\":\"side\","
		 "\"containerID\":\"containerd://" ID_B "\"}]}}",
		 name, uid, name, phase);
	model_put(m, model_fixture_object(OBJECT_POD, text));
}

/* Its init container has ended; its sidecar runs. */
static void put_sidecar_pod(struct model *m, const char *name, const char *uid)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"mesh\",\"uid\":\"%s\"},\"spec\":{"
		 "\"nodeName\":\"alpha\",\"initContainers\":[{\"name\":\"setup\"},{\"name\":"
		 "\"side\",\"restartPolicy\":\"Always\"}],\"containers\":[{\"name\":\"main\"}]},"
		 "\"status\":{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"main\","
		 "\"containerID\":\"containerd://" ID_A "\"}],\"initContainerStatuses\":[{"
		 "\"name\":\"setup\",\"containerID\":\"containerd://" ID_INIT "\",\"state\":{"
		 "\"terminated\":{\"exitCode\":0}}},{\"name\":\"side\",\"containerID\":"
		 "\"containerd://" ID_B "\",\"state\":{\"running\":{}}}]}}",
		 name, uid);
	model_put(m, model_fixture_object(OBJECT_POD, text));
}

/*
 * Of alpha: web and mesh/whole are measured, half lacks the memory of a container, part and
 * mesh/lone a whole container, ended does not run.
 */
static struct view *make_view(struct model *m, struct join *j)
{
	const int64_t end_ns = VIEW_FIXTURE_NOW_NS - 2 * NS_PER_SEC;
	struct container_stats web[] = {container(ID_A, 100.0004F, 4096), container(ID_B, 50.5F, 1),
					container(SANDBOX, 9, 9)};
	struct container_stats half[] = {container(ID_A, 1, 1), container(ID_B, 1, 0)};
	struct container_stats part[] = {container(ID_A, 1, 1), container(SANDBOX, 1, 1)};
	struct container_stats lone[] = {container(ID_A, 1, 1), container(ID_INIT, 1, 1)};
	struct container_stats whole[] = {container(ID_A, 1, 1), container(ID_B, 1, 1),
					  container(ID_INIT, 1, 1)};
	struct pod_stats pods[] = {join_fixture_pod("ended", "u1", end_ns, 60, 1, 1),
				   join_fixture_pod("half", "u2", end_ns, 60, 1, 1),
				   join_fixture_pod("lone", "u5", end_ns, 60, 1, 1),
				   join_fixture_pod("part", "u4", end_ns, 60, 1, 1),
				   join_fixture_pod("web", "u3", end_ns, 60, 500, 1e6),
				   join_fixture_pod("whole", "u6", end_ns, 60, 1, 1)};
	struct node_stats alpha = view_fixture_node("alpha", end_ns, 3600, 1000, 100);
	struct node_stats late = view_fixture_node("late", end_ns - 60 * NS_PER_SEC, 3600, 1, 1);
	struct node_stats *stats[2];
	struct view *view;

	pods[0].containers = pods[1].containers = half;
	pods[2].containers = lone;
	pods[3].containers = part;
	pods[4].containers = web;
	pods[5].containers = whole;
	pods[0].container_count = 1;
	pods[1].container_count = 2;
	pods[2].container_count = pods[3].container_count = 2;
	pods[4].container_count = pods[5].container_count = 3;
	alpha.start_ns = end_ns - 5 * NS_PER_SEC;
	late.start_ns = late.end_ns - 5 * NS_PER_SEC;
	alpha.pods = pods;
	alpha.pod_count = sizeof(pods) / sizeof(pods[0]);
	late.pod_count = 0;
	stats[0] = node_stats_new(&alpha);
	stats[1] = node_stats_new(&late);
	model_put(m, model_fixture_object(OBJECT_NODE,
					  "{\"metadata\":{\"name\":\"alpha\",\"labels\":{\"zone\":"
					  "\"z\"}}}"));
	put_pod(m, "ended", "u1", "Succeeded");
	put_pod(m, "half", "u2", "Running");
	put_pod(m, "web", "u3", "Running");
	put_pod(m, "part", "u4", "Running");
	put_sidecar_pod(m, "lone", "u5");
	put_sidecar_pod(m, "whole", "u6");
	model_fixture_sync(m, OBJECT_NODE);
	model_fixture_sync(m, OBJECT_POD);
	view = join_view(j, stats, 2, model_cluster(m), VIEW_FIXTURE_NOW_NS);
	node_stats_drop(stats[0]);
	node_stats_drop(stats[1]);
	return view;
}

static size_t items(const char *target)
{
	if (api_fixture_get(&f, target) != 200)
		fail_msg("%s", target);
	return (size_t)cJSON_GetArraySize(api_fixture_at(f.json, "items"));
}

static void test_nodes(void **state)
{
	(void)state;
	assert_int_equal(items(METRICS "/nodes"), 1);
	assert_string_equal(text_of("kind"), "NodeMetricsList");
	assert_string_equal(text_of("items.0.metadata.name"), "alpha");
	assert_string_equal(text_of("items.0.metadata.labels.zone"), "z");
	assert_string_equal(text_of("items.0.timestamp"), "2026-01-31T11:59:58Z");
	assert_string_equal(text_of("items.0.window"), "5.000s");
	assert_string_not_equal(text_of("items.0.usage.cpu"), "");
	assert_int_equal(items(METRICS "/nodes?labelSelector=zone=y"), 0);
	assert_int_equal(api_fixture_get(&f, METRICS "/nodes/alpha"), 200);
	assert_string_equal(text_of("kind"), "NodeMetrics");
	assert_string_equal(text_of("apiVersion"), "metrics.k8s.io/v1beta1");
	assert_int_equal(api_fixture_get(&f, "/apis/metrics.k8s.io/v1/nodes/alpha"), 200);
	assert_string_equal(text_of("apiVersion"), "metrics.k8s.io/v1");
	assert_int_equal(items("/apis/metrics.k8s.io/v1/nodes"), 1);
	assert_string_equal(text_of("apiVersion"), "metrics.k8s.io/v1");
	assert_int_equal(api_fixture_get(&f, "/apis/metrics.k8s.io/v2/nodes"), 404);
	/* Known and not heard for 30 s; unknown. */
	assert_int_equal(api_fixture_get(&f, METRICS "/nodes/late"), 404);
	assert_int_equal(api_fixture_get(&f, METRICS "/nodes/nobody"), 404);
	assert_string_equal(text_of("reason"), "NotFound");
	assert_int_equal(api_fixture_get(&f, METRICS "/nodes?watch=true"), 405);
	assert_int_equal(api_fixture_get(&f, METRICS "/nodes?watch=1"), 405);
	assert_int_equal(items(METRICS "/nodes?watch=false"), 1);
	assert_int_equal(items(METRICS "/nodes?fieldSelector=metadata.name!=alpha"), 0);
	assert_int_equal(api_fixture_get(&f, METRICS "/nodes?fieldSelector=metadata.namespace=a"),
			 400);
}

static void test_pods(void **state)
{
	(void)state;
	assert_int_equal(items(METRICS "/namespaces/mesh/pods"), 1);
	assert_string_equal(text_of("items.0.metadata.name"), "whole");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items.0.containers")), 2);
	assert_string_equal(text_of("items.0.containers.1.name"), "side");
	assert_int_equal(api_fixture_get(&f, METRICS "/namespaces/shop/pods/part"), 404);
	assert_int_equal(items(METRICS "/pods"), 2);
	assert_int_equal(items(METRICS "/namespaces/shop/pods"), 1);
	assert_string_equal(text_of("items.0.metadata.name"), "web");
	assert_string_equal(text_of("items.0.metadata.namespace"), "shop");
	/* Its containers, without the sandbox; the pod's own sum is not there. */
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items.0.containers")), 2);
	assert_string_equal(text_of("items.0.containers.0.name"), "main");
	assert_string_equal(text_of("items.0.containers.0.usage.cpu"), "100m");
	assert_string_equal(text_of("items.0.containers.0.usage.memory"), "4Ki");
	assert_string_equal(text_of("items.0.containers.1.usage.cpu"), "50500u");
	assert_int_equal(items(METRICS "/namespaces/shop/pods?labelSelector=app=web"), 1);
	assert_int_equal(items(METRICS "/namespaces/other/pods"), 0);
	assert_int_equal(api_fixture_get(&f, METRICS "/namespaces/shop/pods/web"), 200);
	assert_string_equal(text_of("kind"), "PodMetrics");
	assert_int_equal(api_fixture_get(&f, METRICS "/namespaces/shop/pods/half"), 404);
	assert_int_equal(api_fixture_get(&f, METRICS "/namespaces/shop/pods/ended"), 404);
	assert_int_equal(api_fixture_get(&f, METRICS "/pods?fieldSelector=spec.nodeName=a"), 400);
	assert_non_null(strstr(text_of("message"), "only metadata.name and metadata.namespace"));
	assert_int_equal(api_fixture_get(&f, METRICS "/namespaces/shop/nodes/alpha"), 404);
	assert_int_equal(api_fixture_get(&f, METRICS "/namespaces/shop"), 404);
}

/* As kubectl get has it. */
static void test_tables(void **state)
{
	static const struct {
		const char *target;
		int rows;
		const char *first;
	} cases[] = {
		{METRICS "/nodes", 1, "alpha"},
		{METRICS "/nodes/alpha", 1, "alpha"},
		{METRICS "/pods", 2, "whole"},
		{METRICS "/namespaces/shop/pods/web", 1, "web"},
		{METRICS "/namespaces/other/pods", 0, ""},
	};

	(void)state;
	f.accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_get(&f, cases[i].target), 200);
		assert_string_equal(text_of("kind"), "Table");
		assert_string_equal(text_of("columnDefinitions.3.name"), "Window");
		assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "rows")), cases[i].rows);
		assert_string_equal(text_of("rows.0.cells.0"), cases[i].first);
		assert_string_equal(text_of("rows.0.object.metadata.name"), cases[i].first);
	}
	assert_int_equal(api_fixture_get(&f, METRICS "/namespaces/shop/pods/web"), 200);
	assert_string_equal(text_of("rows.0.cells.1"), "150500u");
	assert_string_equal(text_of("rows.0.cells.2"), "4097");
	assert_string_equal(text_of("rows.0.cells.3"), "5.000s");
	assert_string_equal(text_of("rows.0.object.metadata.namespace"), "shop");
	assert_int_equal(api_fixture_get(&f, METRICS "/namespaces/shop/pods/half"), 404);
	f.accept = NULL;
}

static int open_answers(void **state)
{
	struct model *m = model_new();
	struct join *j = join_new();

	(void)state;
	api_fixture_open(&f, make_view(m, j));
	join_free(j);
	model_free(m);
	return 0;
}

static int close_answers(void **state)
{
	(void)state;
	api_fixture_close(&f);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantities), cmocka_unit_test(test_field_selectors),
		cmocka_unit_test(test_nodes),	   cmocka_unit_test(test_pods),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, open_answers, close_answers);
}
