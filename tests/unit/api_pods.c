/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/view_fixture.h"

static struct api_fixture f;

/* items[i] as compact text; the caller frees it. */
static char *item_text(int i)
{
	char *text = cJSON_PrintUnformatted(cJSON_GetArrayItem(api_fixture_at(f.json, "items"), i));

	assert_non_null(text);
	return text;
}

#define ALL "kubepods/besteffort/pod-delta kubepods/podaaaa system.slice system.slice/ssh.service"

static void test_filter_and_sort(void **state)
{
	static const struct {
		const char *target;
		const char *names;
	} cases[] = {
		{"/v1/pods", ALL},
		{"/v1/pods?namespace=", ALL},
		{"/v1/pods?namespace=default", ""},
		{"/v1/pods?node=delta", "kubepods/besteffort/pod-delta"},
		{"/v1/pods?node=nobody", ""},
		{"/v1/pods?sort=cpu", "kubepods/podaaaa system.slice system.slice/ssh.service "
				      "kubepods/besteffort/pod-delta"},
		{"/v1/pods?sort=memory&limit=2", "kubepods/podaaaa system.slice"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_get(&f, cases[i].target), 200);
		assert_string_equal(api_fixture_names(&f), cases[i].names);
	}
}

static void test_least_known(void **state)
{
	static const char want[] =
		"{\"namespace\":\"\",\"name\":\"kubepods/besteffort/pod-delta\",\"node\":\"delta\","
		"\"qosClass\":\"BestEffort\",\"workload\":{\"kind\":\"Pod\","
		"\"name\":\"kubepods/besteffort/pod-delta\"},\"usage\":{\"cpuMillicores\":{"
		"\"latest\":{\"value\":50,\"end\":\"2026-01-31T11:59:59Z\"},\"windows\":{}}},"
		"\"contention\":{\"cpu\":null,\"memory\":null,\"cpuStalledRatio\":null,"
		"\"memoryStalledRatio\":null,\"throttledRatio\":null,"
		"\"throttledSeconds\":null,\"oomKills\":null,\"cause\":null},"
		"\"containers\":[]}";
	char *text;

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/pods?node=delta"), 200);
	text = item_text(0);
	assert_string_equal(text, want);
	free(text);
}

/* On request; a day of them, oldest first. */
static void test_peaks(void **state)
{
	static const char *const hidden[] = {"/v1/pods", "/v1/pods?peaks=", "/v1/pods?peaks=false"};
	struct node_stats stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS, 900, 1000, 10);
	struct pod_hours hours = {0};
	struct node_peaks *peaks = NULL;
	struct pod_stats pods[2] = {{.name = "a"}, {.name = "b"}};
	const int64_t hour = VIEW_FIXTURE_NOW_NS / (3600 * NS_PER_SEC);
	char *text;

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct pod_bucket_use use = {
			.start_ns = (hour - 4 + 2 * k) * 3600 * NS_PER_SEC,
			.cpu_milli = 1.5F + (float)k,
			.cpu_known = true,
			.working_set_bytes = 100,
			.working_set_known = k > 0,
		};

		pod_hours_add(&hours, &peaks, &use);
	}
	pods[1].peaks = pod_hours_peaks(&hours, peaks);
	stats.peaks = peaks;
	stats.pods = pods;
	stats.pod_count = 2;
	view_slot_publish(f.ctx.views, view_fixture_of(&stats, 1));
	node_peaks_drop(peaks); /* the node stats hold them */
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		assert_int_equal(api_fixture_get(&f, hidden[i]), 200);
		assert_null(api_fixture_at(f.json, "items.1.hourlyPeaks"));
	}
	assert_int_equal(api_fixture_get(&f, "/v1/pods?peaks=true&sort=name"), 200);
	assert_null(api_fixture_at(f.json, "items.0.hourlyPeaks"));
	text = cJSON_PrintUnformatted(api_fixture_at(f.json, "items.1.hourlyPeaks"));
	assert_string_equal(text,
			    "{\"end\":\"2026-01-31T13:00:00Z\",\"cpuMillicores\":["
			    "null,null,null,null,null,null,null,null,null,null,null,null,null,null,"
			    "null,null,null,null,null,1.5,null,2.5,null,3.5],\"workingSetBytes\":["
			    "null,null,null,null,null,null,null,null,null,null,null,null,null,null,"
			    "null,null,null,null,null,null,null,100,null,100]}");
	free(text);
	assert_int_equal(api_fixture_get(&f, "/v1/pods?peaks=yes"), 400);
	assert_string_equal(http_fixture_error_field(&f), "peaks");
}

/* Without an API by the cgroup; without a name: tasks in no pod. */
static void test_cause(void **state)
{
	static const char *const want[] = {
		"{\"namespace\":\"\",\"name\":\"b\",\"share\":0.75}",
		"{\"share\":0.5}",
		"null",
	};
	struct node_stats stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS, 900, 1000, 10);
	const struct pod_stats pods[3] = {
		{.name = "a", .cause = {0.75F, 1}},
		{.name = "b", .cause = {0.5F, CAUSE_SYSTEM}},
		{.name = "c"},
	};

	(void)state;
	stats.pods = pods;
	stats.pod_count = 3;
	view_slot_publish(f.ctx.views, view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/v1/pods?sort=name"), 200);
	for (int i = 0; i < 3; i++) {
		char path[64], *text;

		snprintf(path, sizeof(path), "items.%d.contention.cause", i);
		text = cJSON_PrintUnformatted(api_fixture_at(f.json, path));
		assert_string_equal(text, want[i]);
		free(text);
	}
}

static void test_most_known(void **state)
{
	const cJSON *pod, *window;
	char *text;

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/pods?node=alpha"), 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(f.json, "kind")), "PodList");
	pod = api_fixture_at(f.json, "items.0");
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(pod, "uid")), "aaaa");
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(pod, "qosClass")), "Guaranteed");
	window = api_fixture_at(pod, "usage.cpuMillicores.windows.15m");
	assert_true(cJSON_GetNumberValue(api_fixture_at(window, "mean")) == 700);
	assert_true(cJSON_GetNumberValue(api_fixture_at(window, "stddev")) == 70);
	assert_null(api_fixture_at(window, "p95"));

	text = cJSON_PrintUnformatted(api_fixture_at(pod, "kernelLimits"));
	assert_string_equal(text, "{\"cpuMillicores\":1500,\"memoryBytes\":null,"
				  "\"memoryHighBytes\":536870912,\"swapBytes\":0,"
				  "\"pids\":null,\"cpuBurstMicroseconds\":0}");
	free(text);
	text = cJSON_PrintUnformatted(api_fixture_at(pod, "usage.swapBytes"));
	assert_string_equal(text,
			    "{\"latest\":{\"value\":16777216,\"end\":\"2026-01-31T11:59:58Z\"}}");
	free(text);
	text = cJSON_PrintUnformatted(api_fixture_at(pod, "usage.pids"));
	assert_string_equal(text, "{\"latest\":{\"value\":12,\"end\":\"2026-01-31T11:59:58Z\"}}");
	free(text);
	text = cJSON_PrintUnformatted(api_fixture_at(pod, "contention"));
	assert_string_equal(text, "{\"cpu\":0.125,\"memory\":null,\"cpuStalledRatio\":0.03125,"
				  "\"memoryStalledRatio\":0.0625,\"throttledRatio\":0.03125,"
				  "\"throttledSeconds\":1.5,\"oomKills\":1,\"cause\":null}");
	free(text);
	text = cJSON_PrintUnformatted(api_fixture_at(pod, "containers"));
	assert_string_equal(
		text, "[{\"name\":\"app\",\"id\":\"0123456789abcdef\",\"runtime\":\"containerd\","
		      "\"kernelLimits\":{\"cpuMillicores\":1000,\"memoryBytes\":1073741824,"
		      "\"memoryHighBytes\":null,\"swapBytes\":67108864,\"pids\":50,"
		      "\"cpuBurstMicroseconds\":2500},"
		      "\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":600.125,"
		      "\"end\":\"2026-01-31T11:59:58Z\"}},\"memoryBytes\":{\"latest\":{"
		      "\"value\":536870912,\"end\":\"2026-01-31T11:59:58Z\"}},"
		      "\"swapBytes\":{\"latest\":{\"value\":8388608,"
		      "\"end\":\"2026-01-31T11:59:58Z\"}},\"pids\":{\"latest\":{\"value\":7,"
		      "\"end\":\"2026-01-31T11:59:58Z\"}}},"
		      "\"contention\":{\"cpu\":0.75,\"memory\":null,\"cpuStalledRatio\":null,"
		      "\"memoryStalledRatio\":0.5},"
		      "\"throttledSeconds\":0.25},"
		      "{\"name\":\"proxy\",\"kernelLimits\":{\"cpuMillicores\":null,"
		      "\"memoryBytes\":null},\"usage\":{}}]");
	free(text);
}

static void test_machines_own_workloads(void **state)
{
	const cJSON *slice, *unit;
	char *text;

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/pods?node=alpha"), 200);
	slice = api_fixture_at(f.json, "items.1");
	unit = api_fixture_at(f.json, "items.2");
	assert_null(api_fixture_at(slice, "uid"));
	assert_null(api_fixture_at(slice, "qosClass"));
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(slice, "workload.kind")), "Slice");
	text = cJSON_PrintUnformatted(api_fixture_at(slice, "kernelLimits"));
	assert_string_equal(text, "{\"cpuMillicores\":null,\"memoryBytes\":null,\"pids\":4096}");
	free(text);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(unit, "workload.kind")), "Unit");
	assert_null(api_fixture_at(unit, "kernelLimits"));
}

/* The same cgroup on several nodes is several items; pages continue between them. */
static void test_paging_over_equal_names(void **state)
{
	const struct pod_stats pods[] = {
		{.name = "a.service", .kind = ENTITY_UNIT},
		{.name = "b.service", .kind = ENTITY_UNIT},
	};
	struct node_stats node_stats[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		node_stats[i] = view_fixture_node((const char *[]){"n1", "n2", "n3"}[i],
						  VIEW_FIXTURE_NOW_NS, 900, 1000, 10);
		node_stats[i].pods = pods;
		node_stats[i].pod_count = 2;
	}
	view_slot_publish(f.ctx.views, view_fixture_of(node_stats, 3));
	for (int limit = 1; limit <= 7; limit++) {
		char all[256] = "", target[256];
		char *token = mem_strdup("");

		while (token) {
			const cJSON *item, *next;

			assert_true(strlen(all) < 100); /* else pages repeat */
			snprintf(target, sizeof(target), "/v1/pods?limit=%d&continue=%s", limit,
				 token);
			assert_int_equal(api_fixture_get(&f, target), 200);
			cJSON_ArrayForEach (item, api_fixture_at(f.json, "items"))
				snprintf(all + strlen(all), sizeof(all) - strlen(all), "%.1s%s ",
					 cJSON_GetStringValue(api_fixture_at(item, "name")),
					 cJSON_GetStringValue(api_fixture_at(item, "node")));
			free(token);
			next = api_fixture_at(f.json, "continue");
			token = next ? mem_strdup(next->valuestring) : NULL;
		}
		assert_string_equal(all, "an1 an2 an3 bn1 bn2 bn3 ");
	}
}

static void test_refusals(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/pods?labelSelector=app"), 400);
	assert_string_equal(http_fixture_error_field(&f), "labelSelector");
	assert_int_equal(api_fixture_get(&f, "/v1/pods?pod=x"), 400);
	assert_string_equal(http_fixture_error_field(&f), "pod");
	assert_int_equal(api_fixture_get(&f, "/v1/pods/x"), 404);
	assert_int_equal(api_fixture_send(&f, "DELETE", "/v1/pods", ""), 405);
}

#define TEST(name) API_FIXTURE_TEST(name, &f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_filter_and_sort),
		TEST(test_least_known),
		TEST(test_most_known),
		TEST(test_peaks),
		TEST(test_cause),
		TEST(test_machines_own_workloads),
		TEST(test_paging_over_equal_names),
		TEST(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
