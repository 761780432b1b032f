/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a node and of a pod, from a usage state that was told an interval of 5 s for more
 * than the 15 minutes that are kept. Each bucket must be what a pass over its intervals says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/usage.h"
#include "aggregator/state/window_sums.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/moments.h"
#include "shared/timefmt.h"
#include "tests/api_fixture.h"
#include "tests/usage_fixture.h"
#include "tests/view_fixture.h"

enum { SECONDS = 5, INTERVALS = 220, NODE_ITEMS = 61, POD_ITEMS = 31, COUNTED_ITEMS = 11 };

#define POD	"kubepods/burstable/pod00000000-1f2e-4d3c-8b4a-5960718293a4"
#define END_NS	VIEW_FIXTURE_NOW_NS
#define OF_NODE "/v1/nodes/alpha/history"
#define OF_POD	"/v1/pods/-/" POD "/history"

static struct scene {
	struct bucket_source source; /* first */
	struct api_fixture api;
	struct usage_state *usage;
	struct interval *told[INTERVALS + 1];
	size_t count;
} s;

static int read_buckets(struct bucket_source *source, const char *node, const struct pod_stats *pod,
			struct window_buckets *out)
{
	return usage_read_buckets(((struct scene *)source)->usage, node, pod, out);
}

static void tell(int64_t end_ns)
{
	static const uint8_t run[FRAME_RUN_LEN] = {1};
	const struct usage_fixture f = {
		.sequence = s.count + 1,
		.end_ns = end_ns,
		.seconds = SECONDS,
		.pods = 2,
		.containers = 1,
		.identities = true,
		.seed = (uint32_t)s.count + 1,
	};
	struct usage_answer answer;

	s.told[s.count] = usage_fixture_new(&f);
	usage_apply(s.usage, "alpha", run, NULL, s.told[s.count++], end_ns, &answer);
	assert_int_equal(answer.verdict, USAGE_APPLIED);
}

static void publish(void)
{
	struct node_stats *const *borrowed;
	struct node_stats **held;
	size_t count;

	usage_build_stats(s.usage, SIZE_MAX);
	borrowed = usage_gather_stats(s.usage, END_NS, &count);
	held = mem_alloc(count * sizeof(struct node_stats *));
	for (size_t i = 0; i < count; i++)
		held[i] = node_stats_hold(borrowed[i]);
	view_slot_publish(s.api.ctx.views, view_fixture_of_stats(1, END_NS, held, count));
}

static int open_scene(void **state)
{
	const struct usage_limits limits = {.nodes_max = 2, .pods_per_node_max = 8};

	(void)state;
	s = (struct scene){.source.read = read_buckets, .usage = usage_new(&limits)};
	api_fixture_open(&s.api, NULL);
	s.api.ctx.buckets = &s.source;
	for (int i = 1; i <= INTERVALS; i++)
		tell(END_NS - (INTERVALS - i) * SECONDS * NS_PER_SEC);
	publish();
	return 0;
}

static int close_scene(void **state)
{
	(void)state;
	api_fixture_close(&s.api);
	usage_free(s.usage);
	for (size_t i = 0; i < s.count; i++)
		interval_free(s.told[i]);
	return 0;
}

static double number(const cJSON *item, const char *path)
{
	const cJSON *value = api_fixture_at(item, path);

	assert_true(cJSON_IsNumber(value));
	return value->valuedouble;
}

static void expect_time(const cJSON *item, const char *name, int64_t want_ns)
{
	int64_t ns;

	assert_int_equal(timefmt_parse(cJSON_GetStringValue(api_fixture_at(item, name)), &ns, NULL),
			 0);
	assert_int_equal(ns, want_ns);
}

/* Beside what packing to float32 costs. */
static void expect_near(const cJSON *item, const char *path, double want, double within)
{
	double got = number(item, path);

	if (!(fabs(got - want) <= within + 1e-6 * fabs(want)))
		fail_msg("%s is %.9g, not %.9g", path, got, want);
}

/* The sums of intervals of one bucket. */
struct sums {
	int64_t start_ns, end_ns;
	struct moments cpu;
	double memory_mean, memory_max;
	int intervals;
};

static const struct usage *usage_of(const struct interval *i, bool pod)
{
	return pod ? &i->entries[0].usage : &i->node.usage;
}

static struct sums sum_bucket(int64_t index, int64_t bucket_ns, bool pod)
{
	struct sums sums = {0};

	for (size_t i = 0; i < s.count; i++) {
		const struct interval *told = s.told[i];
		const struct usage *u = usage_of(told, pod);
		struct moments cpu;

		if (told->end_ns / bucket_ns != index)
			continue;
		sums.start_ns = sums.intervals ? sums.start_ns : told->start_ns;
		sums.end_ns = told->end_ns;
		cpu = moments_unpack(&u->cpu_milli);
		moments_merge(&sums.cpu, &cpu);
		sums.memory_mean += (double)u->mem_bytes.mean;
		sums.memory_max = fmax(sums.memory_max, (double)u->mem_bytes.max);
		sums.intervals++;
	}
	assert_true(sums.intervals);
	sums.memory_mean /= sums.intervals;
	return sums;
}

static void expect_bucket(const cJSON *item, const struct sums *sums)
{
	expect_time(item, "start", sums->start_ns);
	expect_time(item, "end", sums->end_ns);
	expect_near(item, "seconds", SECONDS * sums->intervals, 1e-6);
	expect_near(item, "cpuMillicores.samples", (double)sums->cpu.samples, 0);
	expect_near(item, "cpuMillicores.mean", sums->cpu.mean, 1e-3);
	expect_near(item, "cpuMillicores.stddev", sqrt(sums->cpu.m2 / sums->cpu.weight), 1e-3);
	expect_near(item, "cpuMillicores.min", sums->cpu.min, 1e-3);
	expect_near(item, "cpuMillicores.max", sums->cpu.max, 1e-3);
	expect_near(item, "memoryBytes.mean", sums->memory_mean, 1);
	expect_near(item, "memoryBytes.max", sums->memory_max, 1);
	assert_non_null(api_fixture_at(item, "workingSetBytes.mean"));
}

static void expect_contention(const cJSON *item, double within)
{
	expect_near(item, "contention.throttledRatio", 0.1, 1e-6);
	expect_near(item, "contention.cpu", 0.02, within);
	expect_near(item, "contention.cpuStalledRatio", 0.01, within);
	assert_true(cJSON_IsNull(api_fixture_at(item, "contention.memory")));
	expect_near(item, "contention.oomKills", 0, 0);
}

static void expect_items(int count, int seconds)
{
	const cJSON *items = api_fixture_at(s.api.json, "items"), *item;
	int64_t index = END_NS / (seconds * NS_PER_SEC) - count + 1;

	assert_int_equal(cJSON_GetArraySize(items), count);
	expect_near(s.api.json, "bucketSeconds", seconds, 0);
	cJSON_ArrayForEach (item, items) {
		struct sums sums =
			sum_bucket(index++, seconds * NS_PER_SEC, seconds == POD_BUCKET_SECONDS);

		expect_bucket(item, &sums);
	}
}

static void test_node(void **state)
{
	const cJSON *item;

	(void)state;
	assert_int_equal(api_fixture_get(&s.api, OF_NODE), 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(s.api.json, "kind")),
			    "NodeHistory");
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(s.api.json, "node")), "alpha");
	expect_items(NODE_ITEMS, NODE_BUCKET_SECONDS);
	cJSON_ArrayForEach (item, api_fixture_at(s.api.json, "items")) {
		expect_contention(item, 1e-6);
		assert_true(number(item, "memoryBytes.min") <= number(item, "memoryBytes.mean"));
		assert_non_null(api_fixture_at(item, "memoryBytes.stddev"));
	}
}

static void test_pod(void **state)
{
	int at = 0;
	const cJSON *item;

	(void)state;
	assert_int_equal(api_fixture_get(&s.api, "/v1/pods/-/kubepods%2Fburstable%2fpod00000000-"
						 "1f2e-4d3c-8b4a-5960718293a4/history"),
			 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(s.api.json, "name")), POD);
	assert_int_equal(api_fixture_get(&s.api, OF_POD), 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(s.api.json, "kind")), "PodHistory");
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(s.api.json, "name")), POD);
	assert_null(api_fixture_at(s.api.json, "namespace"));
	expect_items(POD_ITEMS, POD_BUCKET_SECONDS);
	cJSON_ArrayForEach (item, api_fixture_at(s.api.json, "items")) {
		assert_null(api_fixture_at(item, "memoryBytes.min"));
		assert_null(api_fixture_at(item, "memoryBytes.stddev"));
		if (at++ < POD_ITEMS - COUNTED_ITEMS)
			assert_null(api_fixture_at(item, "contention"));
		else
			expect_contention(item, 1e-4);
	}
}

/* Time without intervals is a gap: no bucket, and none with zeros. */
static void test_gap(void **state)
{
	const cJSON *items;

	(void)state;
	tell(END_NS + 5 * 60 * NS_PER_SEC);
	assert_int_equal(api_fixture_get(&s.api, OF_NODE), 200);
	items = api_fixture_at(s.api.json, "items");
	assert_int_equal(cJSON_GetArraySize(items), 42);
	expect_time(cJSON_GetArrayItem(items, 41), "end", END_NS + 5 * 60 * NS_PER_SEC);
	expect_time(cJSON_GetArrayItem(items, 40), "end", END_NS);
	assert_int_equal(api_fixture_get(&s.api, OF_POD), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(s.api.json, "items")), 22);
}

static void test_etag(void **state)
{
	static const char *const targets[] = {OF_NODE, OF_POD};
	uint64_t before[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(api_fixture_get(&s.api, targets[i]), 200);
		before[i] = s.api.response.etag;
		assert_true(before[i]);
		assert_int_equal(api_fixture_get(&s.api, targets[i]), 200);
		assert_int_equal(s.api.response.etag, before[i]);
	}
	tell(END_NS + SECONDS * NS_PER_SEC);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(api_fixture_get(&s.api, targets[i]), 200);
		assert_true(s.api.response.etag && s.api.response.etag != before[i]);
	}
}

static int time_out(struct bucket_source *source, const char *node, const struct pod_stats *pod,
		    struct window_buckets *out)
{
	(void)source, (void)node, (void)pod, (void)out;
	return -ETIMEDOUT;
}

static int find_nothing(struct bucket_source *source, const char *node, const struct pod_stats *pod,
			struct window_buckets *out)
{
	(void)source, (void)node, (void)pod, (void)out;
	return -ENOENT;
}

static void test_refusals(void **state)
{
	static const struct {
		const char *target;
		int status;
	} cases[] = {
		{"/v1/nodes/bravo/history", 404},   {"/v1/nodes//history", 404},
		{"/v1/nodes/alpha/history/", 404},  {"/v1/pods/shop/" POD "/history", 404},
		{"/v1/pods/-/pod/history", 404},    {"/v1/pods/-//history", 404},
		{"/v1/pods//" POD "/history", 404}, {"/v1/pods/history", 404},
		{OF_POD "?node=bravo", 404},	    {OF_POD "?node=alpha", 200},
		{OF_POD "?window=5m", 400},	    {OF_NODE "?limit=5", 400},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (api_fixture_get(&s.api, cases[i].target) != cases[i].status)
			fail_msg("%s: %d", cases[i].target, s.api.response.status);
	assert_int_equal(api_fixture_get(&s.api, "/v1/nodes/bravo/history"), 404);
	assert_non_null(
		strstr(s.api.response.body.data, "\"nothing is measured of node \\\"bravo\\\"\""));
	/* A pod that went after the view was made. */
	s.source.read = find_nothing;
	assert_int_equal(api_fixture_get(&s.api, OF_POD), 404);
	assert_non_null(strstr(s.api.response.body.data, "\"nothing is measured of pod \\\""));
	s.source.read = time_out;
	assert_int_equal(api_fixture_get(&s.api, OF_NODE), 503);
	assert_string_equal(api_fixture_error(&s.api), "busy");
	s.api.ctx.buckets = NULL;
	assert_int_equal(api_fixture_get(&s.api, OF_POD), 503);
	assert_string_equal(api_fixture_error(&s.api), "noData");
	assert_int_equal(api_fixture_get(&s.api, OF_NODE), 503);
	assert_string_equal(api_fixture_error(&s.api), "noData");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_node), TEST(test_pod),      TEST(test_gap),
		TEST(test_etag), TEST(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
