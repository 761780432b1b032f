/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/model.h"
#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

static struct api_fixture f;

static const char *continuation(void)
{
	return cJSON_GetStringValue(api_fixture_at(f.json, "continue"));
}

/*
 * "key":{..} of alpha, whose windows' numbers are given as they are written; means and deviations
 * differ by window.
 */
static void add_usage(struct buf *out, const char *key, const char *latest,
		      const char *const mean[3], const char *const stddev[3],
		      const char *percentiles_to_max)
{
	static const struct {
		const char *name, *start;
		int samples;
	} windows[] = {
		{"5m", "2026-01-31T11:54:58Z", 3000},
		{"10m", "2026-01-31T11:49:58Z", 6000},
		{"15m", "2026-01-31T11:44:58Z", 9000},
	};

	buf_printf(out, "\"%s\":{\"latest\":{\"value\":%s,\"end\":\"2026-01-31T11:59:58Z\"},", key,
		   latest);
	buf_add_str(out, "\"windows\":{");
	for (int i = 0; i < 3; i++)
		buf_printf(out,
			   "%s\"%s\":{\"start\":\"%s\",\"end\":\"2026-01-31T11:59:58Z\","
			   "\"samples\":%d,\"mean\":%s,\"stddev\":%s,%s}",
			   i ? "," : "", windows[i].name, windows[i].start, windows[i].samples,
			   mean[i], stddev[i], percentiles_to_max);
	buf_add_str(out, "}}");
}

static void test_lifecycle(void **state)
{
	struct model *m = model_new();
	struct join *j = join_new();
	struct api_fixture own;

	(void)state;
	model_put(m, model_fixture_object(
			     OBJECT_NODE,
			     "{\"metadata\":{\"name\":\"alpha\"},\"status\":{\"conditions\":["
			     "{\"type\":\"MaintenancePlanned\",\"status\":\"True\"},"
			     "{\"type\":\"Drained\",\"status\":\"False\"},"
			     "{\"type\":\"DrainInProgress\",\"status\":\"True\"}]}}"));
	model_put(m, model_fixture_object(OBJECT_NODE, "{\"metadata\":{\"name\":\"bravo\"}}"));
	model_fixture_sync(m, OBJECT_NODE);
	model_fixture_sync(m, OBJECT_POD);
	api_fixture_open(&own, join_view(j, NULL, 0, model_cluster(m), VIEW_FIXTURE_NOW_NS));
	assert_int_equal(api_fixture_get(&own, "/v1/nodes"), 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(own.json, "items.0.lifecycle.0")),
			    "DrainInProgress");
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(own.json, "items.0.lifecycle.1")),
			    "MaintenancePlanned");
	assert_null(api_fixture_at(own.json, "items.0.lifecycle.2"));
	assert_null(api_fixture_at(own.json, "items.1.lifecycle"));
	api_fixture_close(&own);
	join_free(j);
	model_free(m);
}

static void test_one_node(void **state)
{
	static const char *const cpu_mean[] = {"1000", "1100", "1200"};
	static const char *const cpu_stddev[] = {"100", "200", "300"};
	static const char *const mem_mean[] = {"2147483648", "2147483648", "2147483648"};
	static const char *const mem_stddev[] = {"67108864", "67108864", "67108864"};
	static const char *const set_mean[] = {"1073741824", "1073741824", "1073741824"};
	static const char *const set_stddev[] = {"33554432", "33554432", "33554432"};
	struct buf want = BUF_INIT;

	(void)state;
	buf_add_str(&want,
		    "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Node\","
		    "\"time\":\"2026-01-31T12:00:00Z\",\"name\":\"alpha\",\"source\":{"
		    "\"state\":\"fresh\",\"ageSeconds\":2,\"tier\":\"T1\",\"rateHz\":10,"
		    "\"runId\":\"00112233445566778899aabbccddeeff\",\"missedTicks\":3,"
		    "\"overflowCgroups\":0,\"agentCpuMillicores\":4.5,\"passMicroseconds\":85.25},"
		    "\"capacity\":{\"cpuMillicores\":4000,\"memoryBytes\":8589934592},"
		    "\"allocatable\":{\"cpuMillicores\":3800,\"memoryBytes\":7516192768},"
		    "\"machine\":{\"cpuMillicores\":{\"user\":700,\"system\":200.25,"
		    "\"iowait\":120.5,\"steal\":40},\"memoryAvailableBytes\":6442450944},"
		    "\"usage\":{");
	add_usage(&want, "cpuMillicores", "1100", cpu_mean, cpu_stddev,
		  "\"p50\":1000,\"p95\":1200,\"p99\":1300,\"min\":800,\"max\":1400");
	buf_add_char(&want, ',');
	add_usage(&want, "memoryBytes", "2147483648", mem_mean, mem_stddev,
		  "\"p50\":2147483648,\"p95\":2281701376,\"p99\":2348810240,"
		  "\"min\":2013265920,\"max\":2415919104");
	buf_add_char(&want, ',');
	add_usage(&want, "workingSetBytes", "1073741824", set_mean, set_stddev,
		  "\"p50\":1073741824,\"p95\":1140850688,\"p99\":1174405120,"
		  "\"min\":1006632960,\"max\":1207959552");
	buf_add_str(&want,
		    ",\"swapBytes\":{\"latest\":{\"value\":134217728,"
		    "\"end\":\"2026-01-31T11:59:58Z\"}},"
		    "\"pids\":{\"latest\":{\"value\":321,\"end\":\"2026-01-31T11:59:58Z\"}}},"
		    "\"contention\":{\"cpu\":0.125,\"memory\":null,\"cpuStalledRatio\":0.03125,"
		    "\"memoryStalledRatio\":null,\"throttledRatio\":null,"
		    "\"throttledSeconds\":null,\"oomKills\":1}}\n");
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/alpha"), 200);
	assert_string_equal(f.response.content_type, "application/json");
	assert_string_equal(f.response.body.data, want.data);
	buf_fini(&want);
}

static void test_node_never_heard(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/mute"), 200);
	assert_string_equal(f.response.body.data,
			    "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Node\","
			    "\"time\":\"2026-01-31T12:00:00Z\",\"name\":\"mute\","
			    "\"source\":{\"state\":\"none\"},\"usage\":{},"
			    "\"contention\":{\"cpu\":null,\"memory\":null,"
			    "\"cpuStalledRatio\":null,\"memoryStalledRatio\":null,"
			    "\"throttledRatio\":null,\"throttledSeconds\":null,"
			    "\"oomKills\":null}}\n");
}

/* What was put aside, how far the clock is off, and the age of what is known. */
static void test_bad_values_and_clocks(void **state)
{
	struct node_stats stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS, 900, 1000, 10);
	const cJSON *source;

	(void)state;
	stats.aside_ns = 45 * NS_PER_SEC;
	stats.usage.latest.cpu_milli.age_seconds = 45;
	stats.clock_known = true;
	stats.clock_ahead_ns = 30 * NS_PER_SEC;
	stats.quarantine = (struct node_quarantine){
		.count = 3,
		.last_ns = VIEW_FIXTURE_NOW_NS - NS_PER_SEC,
		.reason = QUARANTINE_aboveCapacity,
		.message = "the node used \"too much\"",
	};
	view_slot_publish(f.ctx.views, view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/n"), 200);
	source = api_fixture_at(f.json, "source");
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(source, "state")), "late");
	assert_true(cJSON_GetNumberValue(api_fixture_at(source, "ageSeconds")) == 45);
	assert_true(cJSON_GetNumberValue(api_fixture_at(source, "clockSkewSeconds")) == 30);
	assert_true(cJSON_IsFalse(api_fixture_at(source, "clockSkewed")));
	source = api_fixture_at(source, "quarantine");
	assert_true(cJSON_GetNumberValue(api_fixture_at(source, "count")) == 3);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(source, "lastReason")),
			    "aboveCapacity");
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(source, "lastMessage")),
			    "the node used \"too much\"");
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(source, "lastTime")),
			    "2026-01-31T11:59:59Z");
	assert_string_equal(cJSON_GetStringValue(
				    api_fixture_at(f.json, "usage.cpuMillicores.latest.end")),
			    "2026-01-31T11:59:15Z");
	assert_string_equal(cJSON_GetStringValue(
				    api_fixture_at(f.json, "usage.memoryBytes.latest.end")),
			    "2026-01-31T12:00:00Z");

	stats.clock_ahead_ns = -30 * NS_PER_SEC - 1;
	view_slot_publish(f.ctx.views, view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/v1/nodes/n"), 200);
	assert_true(cJSON_IsTrue(api_fixture_at(f.json, "source.clockSkewed")));
}

static void test_states(void **state)
{
	static const struct {
		const char *path;
		const char *state;
		double age;
	} cases[] = {
		{"items.0", "fresh", 2},
		{"items.1", "late", 60},
		{"items.2", "fresh", 1},
		{"items.3", "expired", 400},
	};

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/nodes"), 200);
	assert_string_equal(api_fixture_names(&f), "alpha bravo delta gone mute");
	assert_null(continuation());
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const cJSON *source =
			api_fixture_at(api_fixture_at(f.json, cases[i].path), "source");

		assert_string_equal(cJSON_GetStringValue(api_fixture_at(source, "state")),
				    cases[i].state);
		assert_true(cJSON_GetNumberValue(api_fixture_at(source, "ageSeconds")) ==
			    cases[i].age);
	}
}

static void test_list_envelope(void **state)
{
	static const char want[] = "{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"NodeList\","
				   "\"time\":\"2026-01-31T12:00:00Z\",\"items\":[";

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/nodes"), 200);
	assert_memory_equal(f.response.body.data, want, strlen(want));
	assert_string_equal(f.response.body.data + f.response.body.len - 4, "}}}\n");
	assert_int_equal(api_fixture_get(&f, "/v1/nodes?node=nobody"), 200);
	assert_string_equal(api_fixture_names(&f), "");
	assert_true(cJSON_IsArray(api_fixture_at(f.json, "items")));
	assert_non_null(strstr(f.response.body.data, "\"items\":[],\"total\":{\"nodes\":0,"));
}

/*
 * Over all that match, whatever the page; use and the capacity beside it are of the nodes heard
 * within 5 minutes.
 */
static void test_total(void **state)
{
	static const char want[] =
		"\"total\":{\"nodes\":5,"
		"\"source\":{\"fresh\":2,\"late\":1,\"expired\":1,\"none\":1},"
		"\"capacity\":{\"cpuMillicores\":16000,\"memoryBytes\":34359738368},"
		"\"allocatable\":{\"cpuMillicores\":15200,\"memoryBytes\":30064771072},"
		"\"measured\":{\"nodes\":3,"
		"\"capacity\":{\"cpuMillicores\":12000,\"memoryBytes\":25769803776},"
		"\"allocatable\":{\"cpuMillicores\":11400,\"memoryBytes\":22548578304}},"
		"\"usage\":{\"cpuMillicores\":{\"latest\":{\"value\":4010},\"windows\":{"
		"\"5m\":{\"mean\":3500},\"10m\":{\"mean\":3600},\"15m\":{\"mean\":3700}}},"
		"\"memoryBytes\":{\"latest\":{\"value\":6442450944},\"windows\":{"
		"\"5m\":{\"mean\":6442450944},\"10m\":{\"mean\":6442450944},"
		"\"15m\":{\"mean\":6442450944}}},"
		"\"workingSetBytes\":{\"latest\":{\"value\":3221225472},\"windows\":{"
		"\"5m\":{\"mean\":3221225472},\"10m\":{\"mean\":3221225472},"
		"\"15m\":{\"mean\":3221225472}}}}}";

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/nodes?limit=1"), 200);
	if (!strstr(f.response.body.data, want))
		fail_msg("%s", strstr(f.response.body.data, "\"total\""));
	assert_int_equal(api_fixture_get(&f, "/v1/nodes?node=gone"), 200);
	assert_non_null(strstr(f.response.body.data, "\"measured\":{\"nodes\":0,"));
	assert_non_null(strstr(f.response.body.data, "\"usage\":{}}}"));
}

static void forget_latest(struct latest_usage *l)
{
	l->cpu_milli.known = l->mem_bytes.known = l->working_set_bytes.known = false;
}

/* What no node tells is left out, and capacity is of the nodes whose use is known. */
static void test_total_of_the_known(void **state)
{
	struct node_stats node_stats[] = {
		view_fixture_node("a", VIEW_FIXTURE_NOW_NS, 900, 1000, 100),
		view_fixture_node("b", VIEW_FIXTURE_NOW_NS, 900, 1000, 100)};

	(void)state;
	for (int i = 0; i < 2; i++) {
		forget_latest(&node_stats[i].usage.latest);
		for (int w = 0; w < WINDOWS; w++) {
			node_stats[i].usage.windows[w].cpu_milli.known = w == WINDOWS - 1;
			node_stats[i].usage.windows[w].mem_bytes.known = false;
		}
	}
	view_slot_publish(f.ctx.views, view_fixture_of(node_stats, 2));
	assert_int_equal(api_fixture_get(&f, "/v1/nodes"), 200);
	assert_int_equal(api_fixture_at(f.json, "total.measured.nodes")->valueint, 2);
	assert_null(api_fixture_at(f.json, "total.measured.capacity")->child);
	assert_null(api_fixture_at(f.json, "total.usage.cpuMillicores.latest"));
	assert_null(api_fixture_at(f.json, "total.usage.cpuMillicores.windows.5m"));
	assert_null(api_fixture_at(f.json, "total.usage.memoryBytes"));
	assert_float_equal(
		api_fixture_at(f.json, "total.usage.cpuMillicores.windows.15m.mean")->valuedouble,
		2000, 1e-6);

	node_stats[1].usage.latest.cpu_milli = (struct latest){.known = true, .value = 0};
	view_slot_publish(f.ctx.views, view_fixture_of(node_stats, 2));
	assert_int_equal(api_fixture_get(&f, "/v1/nodes"), 200);
	/* A use of 0 is known. */
	assert_true(api_fixture_at(f.json, "total.usage.cpuMillicores.latest.value")->valuedouble ==
		    0);
	assert_int_equal(api_fixture_at(f.json, "total.measured.capacity.cpuMillicores")->valueint,
			 4000);
	assert_null(api_fixture_at(f.json, "total.measured.capacity.memoryBytes"));
}

static void test_filter_and_sort(void **state)
{
	static const struct {
		const char *target;
		const char *names;
	} cases[] = {
		{"/v1/nodes/", "alpha bravo delta gone mute"},
		{"/v1/nodes?node=bravo", "bravo"},
		{"/v1/nodes?node=", "alpha bravo delta gone mute"},
		{"/v1/nodes?labelSelector=&limit=&sort=&continue=", "alpha bravo delta gone mute"},
		{"/v1/nodes?sort=name&limit=2", "alpha bravo"},
		{"/v1/nodes?sort=cpu", "gone bravo alpha delta mute"},
		{"/v1/nodes?sort=cpu&limit=1", "gone"},
		/* All the same: by name; unknown last. */
		{"/v1/nodes?sort=memory", "alpha bravo delta gone mute"},
		{"/v1/nodes?limit=5000", "alpha bravo delta gone mute"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_get(&f, cases[i].target), 200);
		assert_string_equal(api_fixture_names(&f), cases[i].names);
	}
	assert_int_equal(api_fixture_get(&f, "/v1/nodes?sort=cpu&limit=1"), 200);
	assert_null(continuation());
}

/* Pages of every size give each node once and in order. */
static void test_paging(void **state)
{
	(void)state;
	for (int limit = 1; limit <= 6; limit++) {
		char all[128] = "", target[256];
		char *token = mem_strdup("");

		do {
			size_t len = strlen(all);

			assert_true(len < 100); /* else pages repeat */
			snprintf(target, sizeof(target), "/v1/nodes?limit=%d&continue=%s", limit,
				 token);
			assert_int_equal(api_fixture_get(&f, target), 200);
			snprintf(all + len, sizeof(all) - len, "%s%s", len ? " " : "",
				 api_fixture_names(&f));
			free(token);
			token = continuation() ? mem_strdup(continuation()) : NULL;
		} while (token);
		assert_string_equal(all, "alpha bravo delta gone mute");
	}
}

static void test_refusals(void **state)
{
	static const struct {
		const char *target;
		int status;
		const char *code, *field;
	} cases[] = {
		{"/v1/nodes/nobody", 404, "notFound", ""},
		{"/v1/nodes/alpha/pods", 404, "notFound", ""},
		{"/v1/nodes?limit=0", 400, "badRequest", "limit"},
		{"/v1/nodes?limit=-1", 400, "badRequest", "limit"},
		{"/v1/nodes?limit=5001", 400, "badRequest", "limit"},
		{"/v1/nodes?limit=5x", 400, "badRequest", "limit"},
		{"/v1/nodes?limit=99999999999999999999", 400, "badRequest", "limit"},
		{"/v1/nodes?limit=+5", 400, "badRequest", "limit"},
		{"/v1/nodes?sort=age", 400, "badRequest", "sort"},
		{"/v1/nodes?sort=cpu&continue=YQpi", 400, "badRequest", "continue"},
		{"/v1/nodes?continue=!", 400, "badRequest", "continue"},
		{"/v1/nodes?continue=YQ", 400, "badRequest", "continue"},
		{"/v1/nodes?continue=YQAKYg", 400, "badRequest", "continue"},
		{"/v1/nodes?continue=YQpiAGM", 400, "badRequest", "continue"},
		{"/v1/nodes?labelSelector=a=b", 400, "badRequest", "labelSelector"},
		{"/v1/nodes?namespace=x", 400, "badRequest", "namespace"},
		{"/v1/nodes?Limit=5", 400, "badRequest", "Limit"},
		{"/v1/nodes/alpha?limit=5", 400, "badRequest", "limit"},
		{"/v1/nodes?unlimited=all", 400, "badRequest", "unlimited"},
		{"/v1/nodes/alpha?unlimited=all", 400, "badRequest", "unlimited"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_fixture_get(&f, cases[i].target), cases[i].status);
		assert_string_equal(api_fixture_error(&f), cases[i].code);
		assert_string_equal(http_fixture_error_field(&f), cases[i].field);
		assert_string_equal(f.response.content_type, "application/json");
	}
}

/*
 * More nodes than a heap of one level, offered in an order that is neither ascending nor descending
 * by use.
 */
static void test_large_selection(void **state)
{
	enum { NODES = 500 };
	static struct node_stats node_stats[NODES];
	static char text[NODES][16];
	const cJSON *item;
	double last = 1e9;
	int count = 0;

	(void)state;
	for (int i = 0; i < NODES; i++) {
		snprintf(text[i], sizeof(text[i]), "node-%03d", i * 7 % NODES);
		node_stats[i] =
			view_fixture_node(text[i], VIEW_FIXTURE_NOW_NS, 900, i * 37 % NODES, 0);
	}
	view_slot_publish(f.ctx.views, view_fixture_of(node_stats, NODES));
	assert_int_equal(api_fixture_get(&f, "/v1/nodes?sort=cpu&limit=100"), 200);
	cJSON_ArrayForEach (item, api_fixture_at(f.json, "items")) {
		double use = cJSON_GetNumberValue(
			api_fixture_at(item, "usage.cpuMillicores.latest.value"));

		assert_true(use == NODES - 1 - count++);
		assert_true(use < last);
		last = use;
	}
	assert_int_equal(count, 100);
	assert_int_equal(api_fixture_get(&f, "/v1/nodes?limit=100"), 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(f.json, "items.99.name")),
			    "node-099");
}

static int64_t later_now(void)
{
	return VIEW_FIXTURE_NOW_NS + 5 * NS_PER_SEC;
}

static int64_t much_later_now(void)
{
	return VIEW_FIXTURE_NOW_NS + 40 * NS_PER_SEC;
}

/*
 * The same for the same state, another after a publication, after a restart (which counts versions
 * anew) and when a node's state changes by time alone.
 */
static void test_etag(void **state)
{
	struct view *restarted = view_fixture_new();
	uint64_t first, second;

	(void)state;
	api_fixture_get(&f, "/v1/nodes");
	first = f.response.etag;
	assert_true(first != 0);
	api_fixture_get(&f, "/v1/nodes/alpha");
	assert_true(f.response.etag == first);
	f.ctx.now_ns = later_now;
	api_fixture_get(&f, "/v1/nodes");
	assert_true(f.response.etag == first);
	f.ctx.now_ns = much_later_now;
	api_fixture_get(&f, "/v1/nodes");
	second = f.response.etag;
	assert_true(second != first);
	restarted->time_ns += NS_PER_SEC;
	view_slot_publish(f.ctx.views, restarted);
	api_fixture_get(&f, "/v1/nodes");
	assert_true(f.response.etag != first && f.response.etag != second);
}

#define TEST(name) API_FIXTURE_TEST(name, &f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lifecycle),
		TEST(test_one_node),
		TEST(test_node_never_heard),
		TEST(test_states),
		TEST(test_list_envelope),
		TEST(test_total),
		TEST(test_total_of_the_known),
		TEST(test_filter_and_sort),
		TEST(test_paging),
		TEST(test_refusals),
		TEST(test_large_selection),
		TEST(test_etag),
		TEST(test_bad_values_and_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
