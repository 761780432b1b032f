/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "tests/api_fixture.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

#define MAP "data.NodeMetricsMap"

static struct api_fixture f;

static void republish(struct view *v)
{
	view_slot_publish(f.ctx.views, v);
}

static double number_at(const char *path)
{
	const cJSON *found = api_fixture_at(f.json, path);

	assert_true(cJSON_IsNumber(found));
	return found->valuedouble;
}

static const char *string_at(const char *path)
{
	const char *text = cJSON_GetStringValue(api_fixture_at(f.json, path));

	return text ? text : "(none)";
}

/* The bytes of a whole answer, as clients get them. */
static void test_bytes(void **state)
{
	static const char *const want =
		"{\"timestamp\":1769860800,\"window\":{\"duration\":\"15m\","
		"\"start\":1769859898,\"end\":1769860798},\"source\":\"Evenkeel\",\"data\":{"
		"\"NodeMetricsMap\":{\"alpha\":{\"metrics\":["
		"{\"name\":\"host.cpu.utilisation\",\"type\":\"CPU\",\"operator\":\"AVG\","
		"\"rollup\":\"15m\",\"value\":30},"
		"{\"name\":\"host.cpu.utilisation\",\"type\":\"CPU\",\"operator\":\"STD\","
		"\"rollup\":\"15m\",\"value\":7.5},"
		"{\"name\":\"host.memory.utilisation\",\"type\":\"Memory\",\"operator\":\"AVG\","
		"\"rollup\":\"15m\",\"value\":25},"
		"{\"name\":\"host.memory.utilisation\",\"type\":\"Memory\",\"operator\":\"STD\","
		"\"rollup\":\"15m\",\"value\":0.78125}],"
		"\"tags\":{},\"metadata\":{\"dataCenter\":\"\"}";
	char expected[2048];

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/watcher?host=alpha"), 200);
	assert_string_equal(f.response.content_type, "application/json");
	snprintf(expected, sizeof(expected),
		 "%s,\"state\":\"fresh\",\"window\":\"15m\",\"windowSeconds\":900,\"ageSeconds\":2,"
		 "\"samples\":9000}}}}",
		 want);
	assert_string_equal(f.response.body.data, expected);

	f.ctx.watcher_upstream = true;
	assert_int_equal(api_fixture_get(&f, "/watcher?host=alpha"), 200);
	snprintf(expected, sizeof(expected), "%s}}}}", want);
	assert_string_equal(f.response.body.data, expected);
}

static void test_all_nodes(void **state)
{
	static const char *const targets[] = {"/watcher", "/watcher?host=", "/watcher/",
					      "/watcher?other=1", "//watcher"};

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		assert_int_equal(api_fixture_get(&f, targets[i]), 200);
		/* Sorted; without the expired node and the one never heard. */
		assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, MAP)), 3);
		assert_string_equal(api_fixture_at(f.json, MAP)->child->string, "alpha");
		assert_string_equal(api_fixture_at(f.json, MAP)->child->next->string, "bravo");
		assert_string_equal(api_fixture_at(f.json, MAP)->child->prev->string, "delta");
	}
	/* From the earliest sample of any node to the newest. */
	assert_true(number_at("window.start") == 1769860800 - 902);
	assert_true(number_at("window.end") == 1769860800 - 1);
	assert_string_equal(string_at("window.duration"), "15m");
}

static void test_window_of_each_node(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_string_equal(string_at(MAP ".alpha.window"), "15m");
	assert_string_equal(string_at(MAP ".bravo.window"), "5m");
	assert_string_equal(string_at(MAP ".bravo.metrics.0.rollup"), "5m");
	assert_true(number_at(MAP ".bravo.windowSeconds") == 300);
	assert_true(number_at(MAP ".bravo.ageSeconds") == 60);
	assert_string_equal(string_at(MAP ".delta.window"), "sinceStart");
	assert_true(number_at(MAP ".delta.windowSeconds") == 90);
	assert_true(number_at(MAP ".delta.samples") == 900);
	assert_true(number_at(MAP ".delta.metrics.0.value") == 12.5);

	/*
	 * One node's answer tells its own window; where none is covered that is the shortest, with
	 * its true start.
	 */
	assert_int_equal(api_fixture_get(&f, "/watcher?host=delta"), 200);
	assert_string_equal(string_at("window.duration"), "5m");
	assert_true(number_at("window.start") == 1769860800 - 91);
	assert_true(number_at("window.end") == 1769860800 - 1);
	assert_int_equal(api_fixture_get(&f, "/watcher?host=bravo"), 200);
	assert_string_equal(string_at("window.duration"), "5m");
}

/* A node at the edge of each window's length: two buckets may be missing. */
static void test_cover(void **state)
{
	static const struct {
		double history_seconds;
		const char *window;
	} cases[] = {
		{900, "15m"}, {870, "15m"}, {869, "10m"},	 {570, "10m"},
		{569, "5m"},  {270, "5m"},  {269, "sinceStart"}, {1, "sinceStart"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct node_stats stats =
			view_fixture_node("n", VIEW_FIXTURE_NOW_NS, cases[i].history_seconds, 1000,
					  10);

		republish(view_fixture_of(&stats, 1));
		assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
		assert_string_equal(string_at(MAP ".n.window"), cases[i].window);
	}
}

/* End is rounded up and start down: no sample lies outside. */
static void test_span_is_rounded_outwards(void **state)
{
	const struct node_stats stats =
		view_fixture_node("n", VIEW_FIXTURE_NOW_NS - 1, 899.5, 1000, 10);

	(void)state;
	republish(view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_true(number_at("window.end") == 1769860800);
	assert_true(number_at("window.start") == 1769860800 - 900);
}

static void test_late_node_is_less_certain(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/watcher/bravo"), 200);
	assert_true(number_at(MAP ".bravo.metrics.0.value") == 50);
	assert_true(number_at(MAP ".bravo.metrics.1.value") == 20); /* 10 (1 + 60 / 60) */
	f.ctx.watcher_upstream = true;
	assert_int_equal(api_fixture_get(&f, "/watcher?host=bravo"), 200);
	assert_true(number_at(MAP ".bravo.metrics.1.value") == 10);
}

static void test_smoothed_stddev(void **state)
{
	(void)state;
	f.ctx.watcher_smoothed = 4;
	assert_int_equal(api_fixture_get(&f, "/watcher?host=alpha"), 200);
	assert_true(number_at(MAP ".alpha.metrics.0.value") == 30);
	assert_true(number_at(MAP ".alpha.metrics.1.value") == 3.75);
	assert_true(number_at(MAP ".alpha.metrics.3.value") == 0.390625);
}

static void test_unknown_hosts(void **state)
{
	static const char *const targets[] = {"/watcher?host=nobody", "/watcher?host=gone",
					      "/watcher?host=mute"};

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		f.ctx.watcher_upstream = false;
		assert_int_equal(api_fixture_get(&f, targets[i]), 404);
		assert_string_equal(api_fixture_error(&f), "notFound");
		assert_string_equal(http_fixture_error_field(&f), "host");
		f.ctx.watcher_upstream = true;
		assert_int_equal(api_fixture_get(&f, targets[i]), 404);
		assert_string_equal(f.response.content_type, "application/json");
		assert_int_equal(f.response.body.len, 0);
	}
}

static void test_path_below(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/watcher/delta"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, MAP)), 1);
	assert_int_equal(api_fixture_get(&f, "/watcher/nobody"), 404);
	assert_string_equal(api_fixture_error(&f), "notFound");
	f.ctx.watcher_upstream = true;
	assert_int_equal(api_fixture_get(&f, "/watcher/delta"), 404);
	assert_string_equal(f.response.content_type, "text/plain; charset=utf-8");
	assert_string_equal(f.response.body.data, "404 page not found\n");
}

static void test_any_method(void **state)
{
	static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"};

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		assert_int_equal(api_fixture_send(&f, methods[i], "/watcher", "body"), 200);
		assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, MAP)), 3);
		assert_int_equal(api_fixture_send(&f, methods[i], "/watcher/health", ""), 200);
	}
}

/* The API knows it. */
static struct view *view_of_a_node_that_is_never_heard(void)
{
	struct model *m = model_new();
	struct join *j = join_new();
	struct view *v;

	model_put(m, model_fixture_node("alpha", 5, 9));
	v = join_view(j, NULL, 0, model_cluster(m), VIEW_FIXTURE_NOW_NS);
	join_free(j);
	model_free(m);
	return v;
}

static void test_nothing_heard(void **state)
{
	(void)state;
	republish(view_fixture_of(NULL, 0));
	assert_int_equal(api_fixture_get(&f, "/watcher"), 404);
	assert_string_equal(api_fixture_error(&f), "notFound");
	assert_int_equal(api_fixture_get(&f, "/watcher?host=alpha"), 404);
	republish(view_of_a_node_that_is_never_heard());
	assert_int_equal(api_fixture_get(&f, "/watcher"), 404);
	f.ctx.watcher_upstream = true;
	assert_int_equal(api_fixture_get(&f, "/watcher"), 500);
	assert_string_equal(f.response.content_type, "application/json");
	assert_int_equal(f.response.body.len, 0);
	assert_int_equal(api_fixture_get(&f, "/watcher?host=alpha"), 500);
}

static void test_all_expired(void **state)
{
	const struct node_stats stats =
		view_fixture_node("n", VIEW_FIXTURE_NOW_NS - 301 * NS_PER_SEC, 900, 1000, 10);

	(void)state;
	republish(view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, MAP)), 0);
	assert_true(number_at("window.end") == 1769860800);
	assert_true(number_at("window.start") == 1769860800 - 900);
	f.ctx.watcher_upstream = true;
	assert_int_equal(api_fixture_get(&f, "/watcher"), 500);
}

/* Upstream falls back from 15m to 10m for all nodes at once, and never to 5m. */
static void test_upstream_windows(void **state)
{
	struct node_stats stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS, 900, 1000, 10);

	(void)state;
	f.ctx.watcher_upstream = true;
	stats.usage.windows[WINDOW_15M].cpu_milli.known = false;
	stats.usage.windows[WINDOW_10M].cpu_milli.mean = 400;
	republish(view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_string_equal(string_at("window.duration"), "10m");
	assert_true(number_at("window.start") == 1769860800 - 600);
	assert_true(number_at(MAP ".n.metrics.0.value") == 10);

	stats.usage.windows[WINDOW_10M].cpu_milli.known = false;
	republish(view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher"), 500);
	f.ctx.watcher_upstream = false;
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_string_equal(string_at(MAP ".n.window"), "5m");
}

/* 400m in the last 5 minutes, 800m in 10 and 1200m in 15. */
static struct node_stats rising_stats(double history_seconds)
{
	struct node_stats stats =
		view_fixture_node("n", VIEW_FIXTURE_NOW_NS, history_seconds, 1000, 10);

	for (int w = WINDOW_5M; w < WINDOWS; w++)
		stats.usage.windows[w].cpu_milli.mean = 400 * (w + 1);
	return stats;
}

static void check_window(const char *target, const char *duration, double value)
{
	if (api_fixture_get(&f, target) != 200)
		fail_msg("%s: %d", target, f.response.status);
	if (strcmp(string_at("window.duration"), duration) != 0)
		fail_msg("%s: %s, not %s", target, string_at("window.duration"), duration);
	assert_string_equal(string_at(MAP ".n.metrics.0.rollup"), duration);
	assert_true(number_at(MAP ".n.metrics.0.value") == value);
}

static void test_asked_window(void **state)
{
	struct node_stats stats = rising_stats(900);

	(void)state;
	f.ctx.watcher_cache = watcher_cache_new();
	for (int upstream = 0; upstream < 2; upstream++) {
		f.ctx.watcher_upstream = upstream;
		republish(view_fixture_of(&stats, 1));
		check_window("/watcher", "15m", 30);
		check_window("/watcher?window=5m", "5m", 10);
		check_window("/watcher?window=10m", "10m", 20);
		check_window("/watcher?window=15m&host=n", "15m", 30);
		check_window("/watcher?host=n&window=10m", "10m", 20);
		check_window("/watcher", "15m", 30);
	}
	watcher_cache_free(f.ctx.watcher_cache);
	f.ctx.watcher_cache = NULL;
	/* Without the one that is asked for: the next shorter. */
	stats.usage.windows[WINDOW_10M].cpu_milli.known = false;
	republish(view_fixture_of(&stats, 1));
	check_window("/watcher?window=10m", "5m", 10);
	stats.usage.windows[WINDOW_5M].cpu_milli.known = false;
	republish(view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher?window=5m"), 500);
	f.ctx.watcher_upstream = false;
	stats = rising_stats(360);
	republish(view_fixture_of(&stats, 1));
	check_window("/watcher/n?window=10m", "5m", 10);
	stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS - 301 * NS_PER_SEC, 900, 1000, 10);
	republish(view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher?window=5m"), 200);
	assert_true(number_at("window.start") == 1769860800 - 300);
}

static void test_no_such_window(void **state)
{
	static const char *const targets[] = {"/watcher?window=", "/watcher?window=1m",
					      "/watcher?window=15M",
					      "/watcher?window=300&host=alpha",
					      "/watcher/alpha?window=5m%20"};

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		assert_int_equal(api_fixture_get(&f, targets[i]), 400);
		assert_string_equal(api_fixture_error(&f), "badRequest");
		assert_string_equal(http_fixture_error_field(&f), "window");
	}
	f.ctx.watcher_upstream = true;
	assert_int_equal(api_fixture_get(&f, "/watcher?window=1h"), 400);
}

#define TOPOLOGY     "topology.kubernetes.io/"
#define OLD_TOPOLOGY "failure-domain.beta.kubernetes.io/"

/* Takes over the model with the API's node of that name, which is heard. */
static void publish_labelled(const char *labels)
{
	struct node_stats stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS, 900, 1000, 10),
			  *node_stats;
	struct model *m = model_new();
	struct join *j = join_new();
	char json[512];

	snprintf(json, sizeof(json),
		 "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"labels\":{%s}},\"status\":{}}",
		 labels);
	model_put(m, model_fixture_object(OBJECT_NODE, json));
	model_fixture_sync(m, OBJECT_NODE);
	node_stats = node_stats_new(&stats);
	republish(join_view(j, &node_stats, 1, model_cluster(m), VIEW_FIXTURE_NOW_NS));
	join_free(j);
	model_free(m);
	node_stats_drop(node_stats);
}

static void test_data_center(void **state)
{
	static const struct {
		const char *labels, *want;
	} cases[] = {
		{"\"" TOPOLOGY "zone\":\"eu-1a\",\"" TOPOLOGY "region\":\"eu-1\"", "eu-1a"},
		{"\"" TOPOLOGY "region\":\"eu-1\"", "eu-1"},
		{"\"" OLD_TOPOLOGY "zone\":\"old-a\",\"" TOPOLOGY "region\":\"eu-1\"", "old-a"},
		{"\"" OLD_TOPOLOGY "region\":\"old\"", "old"},
		{"\"zone\":\"a\"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		publish_labelled(cases[i].labels);
		f.ctx.watcher_upstream = false;
		assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
		assert_string_equal(string_at(MAP ".n.metadata.dataCenter"), cases[i].want);
		f.ctx.watcher_upstream = true;
		assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
		assert_string_equal(string_at(MAP ".n.metadata.dataCenter"), "");
	}
}

static void test_denominator(void **state)
{
	struct node_stats stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS, 900, 1000, 10);

	(void)state;
	stats.cpu_allocatable_milli = 2000;
	stats.mem_allocatable_bytes = stats.mem_capacity_bytes / 4;
	f.ctx.watcher_allocatable = true;
	republish(view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_true(number_at(MAP ".n.metrics.0.value") == 50);
	assert_true(number_at(MAP ".n.metrics.1.value") == 0.5);
	assert_true(number_at(MAP ".n.metrics.2.value") == 100);
	assert_true(number_at(MAP ".n.metrics.3.value") == 3.125);
	stats.mem_allocatable_bytes = 0; /* then there is nothing to be of */
	republish(view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, MAP)), 0);
}

/* A node whose newest values could not be is as old as the last good ones. */
static void test_age_of_what_is_known(void **state)
{
	struct node_stats stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS, 900, 1000, 10);

	(void)state;
	stats.aside_ns = 60 * NS_PER_SEC;
	republish(view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_string_equal(string_at(MAP ".n.state"), "late");
	assert_true(number_at(MAP ".n.ageSeconds") == 60);
	assert_true(number_at(MAP ".n.metrics.1.value") == 0.5);
	stats.aside_ns = 301 * NS_PER_SEC;
	republish(view_fixture_of(&stats, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, MAP)), 0);
}

static int64_t later_ns;

static int64_t later(void)
{
	return VIEW_FIXTURE_NOW_NS + later_ns;
}

/*
 * One body for all until there is another view or a node of it is late or gone; a host's answer is
 * its own.
 */
static void test_made_once_per_view(void **state)
{
	struct shared_body *first, *second;
	uint64_t tag;

	(void)state;
	f.ctx.watcher_cache = watcher_cache_new();
	f.ctx.now_ns = later;
	later_ns = 0;
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, MAP)), 3);
	assert_string_equal(f.response.content_type, "application/json");
	assert_true(f.response.negotiated);
	assert_false(f.response.gzip);
	first = shared_body_hold(f.response.shared);
	tag = f.response.etag;
	assert_true(tag != 0);
	later_ns = 20 * NS_PER_SEC;
	assert_int_equal(api_fixture_get(&f, "/watcher?host="), 200);
	assert_ptr_equal(f.response.shared, first);
	assert_true(f.response.etag == tag);
	assert_int_equal(api_fixture_get(&f, "/watcher?host=alpha"), 200);
	assert_null(f.response.shared);

	later_ns = 29 * NS_PER_SEC; /* delta is late */
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_ptr_not_equal(f.response.shared, first);
	assert_true(f.response.etag != tag);
	assert_string_equal(string_at(MAP ".delta.state"), "late");
	assert_non_null(strstr(first->data, "\"delta\"")); /* who holds it can read on */
	shared_body_drop(first);

	second = shared_body_hold(f.response.shared);
	republish(view_fixture_of(NULL, 0)); /* an answer that is none is not kept */
	assert_int_equal(api_fixture_get(&f, "/watcher"), 404);
	assert_null(f.response.shared);
	assert_string_equal(api_fixture_error(&f), "notFound");
	republish(view_fixture_new());
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_string_equal(f.response.shared->data, second->data);
	shared_body_drop(second);
	f.ctx.watcher_upstream = true;
	later_ns = 0;
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_null(api_fixture_at(f.json, MAP ".alpha.window"));
	watcher_cache_free(f.ctx.watcher_cache);
	watcher_cache_free(NULL);
}

static void inflate_all(const struct shared_body *b, char *out, size_t size)
{
	z_stream z = {.next_in = (Bytef *)b->data,
		      .avail_in = (uInt)b->len,
		      .next_out = (Bytef *)out,
		      .avail_out = (uInt)size};

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	out[z.total_out] = '\0';
	inflateEnd(&z);
}

static void test_compressed(void **state)
{
	static char text[65536];
	struct shared_body *plain;

	(void)state;
	f.ctx.watcher_cache = watcher_cache_new();
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	plain = shared_body_hold(f.response.shared);
	f.accept_encoding = "deflate, gzip;q=0.5";
	for (int i = 0; i < 2; i++) {
		assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
		assert_true(f.response.gzip && f.response.negotiated);
		assert_true(f.response.shared->len < plain->len);
		inflate_all(f.response.shared, text, sizeof(text));
		assert_string_equal(text, plain->data);
	}
	f.accept_encoding = "gzip;q=0";
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_ptr_equal(f.response.shared, plain);
	assert_false(f.response.gzip);
	shared_body_drop(plain);
	f.accept_encoding = NULL;
	watcher_cache_free(f.ctx.watcher_cache);
}

static void test_accepts_gzip(void **state)
{
	static const struct {
		const char *header;
		bool accepts;
	} cases[] = {
		{NULL, false},
		{"", false},
		{"gzip", true},
		{"GZip", true},
		{"identity", false},
		{"deflate,gzip", true},
		{" deflate ,\tgzip ; q=1", true},
		{"gzip;q=0", false},
		{"gzip;q=0.000", false},
		{"gzip;q=0.001", true},
		{"*", true},
		{"*;q=0", false},
		{"xgzip, gzipx", false},
		{"br, gzip;q=0, deflate", false},
		{",,,", false},
		{"brot", false},
		{"x", false},
		{"brot, x, gzip", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (shared_body_accepts_gzip(cases[i].header) != cases[i].accepts)
			fail_msg("\"%s\"", cases[i].header ? cases[i].header : "(none)");
}

/* Half a node would look better than a whole one to some plugins. */
static void test_node_needs_all_four_values(void **state)
{
	struct node_stats node_stats[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		node_stats[i] = view_fixture_node((const char *[]){"a", "b", "c"}[i],
						  VIEW_FIXTURE_NOW_NS, 900, 1000, 10);
	for (int i = 0; i < WINDOWS; i++)
		node_stats[0].usage.windows[i].mem_bytes.known = false;
	node_stats[1].cpu_capacity_milli = 0;
	republish(view_fixture_of(node_stats, 3));
	assert_int_equal(api_fixture_get(&f, "/watcher"), 200);
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, MAP)), 1);
	assert_non_null(api_fixture_at(f.json, MAP ".c"));
}

static void test_health(void **state)
{
	const struct node_stats late =
		view_fixture_node("n", VIEW_FIXTURE_NOW_NS - 31 * NS_PER_SEC, 900, 1000, 10);

	(void)state;
	assert_int_equal(api_fixture_get(&f, "/watcher/health"), 200);
	assert_int_equal(f.response.body.len, 0);
	assert_null(f.response.content_type);
	republish(view_fixture_of(&late, 1));
	assert_int_equal(api_fixture_get(&f, "/watcher/health"), 503);
	assert_int_equal(f.response.body.len, 0);
	republish(view_fixture_of(NULL, 0));
	assert_int_equal(api_fixture_get(&f, "/watcher/health"), 503);
}

#define TEST(name) API_FIXTURE_TEST(name, &f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bytes),
		TEST(test_all_nodes),
		TEST(test_window_of_each_node),
		TEST(test_cover),
		TEST(test_span_is_rounded_outwards),
		TEST(test_late_node_is_less_certain),
		TEST(test_smoothed_stddev),
		TEST(test_unknown_hosts),
		TEST(test_path_below),
		TEST(test_any_method),
		TEST(test_nothing_heard),
		TEST(test_all_expired),
		TEST(test_upstream_windows),
		TEST(test_asked_window),
		TEST(test_no_such_window),
		TEST(test_data_center),
		TEST(test_node_needs_all_four_values),
		TEST(test_denominator),
		TEST(test_age_of_what_is_known),
		TEST(test_made_once_per_view),
		TEST(test_compressed),
		TEST(test_accepts_gzip),
		TEST(test_health),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
