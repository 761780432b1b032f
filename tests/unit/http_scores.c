/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/http_fixture.h"

#define TLP  "\"TargetLoadPacking\""
#define LVRB "\"LoadVariationRiskBalancing\""

static struct http_fixture f;

static int post(const char *body)
{
	return http_fixture_send(&f, "POST", "/v1/scores", body);
}

static const cJSON *at(const char *path)
{
	const cJSON *item = http_fixture_at(f.json, path);

	if (!item)
		fail_msg("nothing at %s in %s", path, f.response.body.data);
	return item;
}

static const char *text(const char *path)
{
	const char *value = cJSON_GetStringValue(at(path));

	assert_non_null(value);
	return value;
}

static int number(const char *path)
{
	assert_true(cJSON_IsNumber(at(path)));
	return at(path)->valueint;
}

/* alpha: 1200 +- 300 of 3800 millicores, 2 GiB +- 64 MiB of 7: 60 * 31.58 / 40 + 40 and 100 - 31.58 - 7.89 */
static void test_all_nodes(void **state)
{
	static const char *const names[] = {"alpha", "bravo", "delta", "gone", "mute"};
	static const char *const rungs[] = {"window 15m", "late 60s", "since start", "expired",
					    "none"};
	char path[64];

	(void)state;
	assert_int_equal(post("{}"), 200);
	assert_string_equal(f.response.content_type, "application/json");
	assert_string_equal(text("apiVersion"), "evenkeel.io/v1");
	assert_string_equal(text("kind"), "ScoreList");
	assert_string_equal(text("time"), "2026-01-31T12:00:00Z");
	assert_int_equal(cJSON_GetArraySize(at("items")), 5);
	for (int i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "items.%d.node", i);
		assert_string_equal(text(path), names[i]);
		snprintf(path, sizeof(path), "items.%d.plugins.1.rung", i);
		assert_string_equal(text(path), rungs[i]);
		snprintf(path, sizeof(path), "items.%d.score", i);
		assert_int_equal(number(path) > 0, i < 3);
	}
	assert_string_equal(text("items.0.plugins.0.name"), "TargetLoadPacking");
	assert_string_equal(text("items.0.plugins.0.variant"), "corrected");
	assert_int_equal(number("items.0.plugins.0.score"), 87);
	assert_int_equal(number("items.0.plugins.1.score"), 61);
	assert_int_equal(number("items.0.score"), 74);
	assert_null(http_fixture_at(f.json, "items.0.plugins.0.terms"));
	assert_string_equal(
		text("items.0.reason"),
		"TargetLoadPacking 87: CPU would be at 31.6 %, within the target of 40.0 % "
		"(1200m measured + 0m expected of 3800m); LoadVariationRiskBalancing 61: "
		"CPU decides: mean with the pod 31.6 %, variation 7.9 %, risk 39.5 %");
	assert_string_equal(text("items.0.plugins.1.reason"),
			    "CPU decides: mean with the pod 31.6 %, variation 7.9 %, risk 39.5 %");
	/* One reason where all plugins say the same. */
	assert_string_equal(text("items.3.plugins.1.reason"), text("items.3.reason"));
	assert_string_equal(text("items.3.reason"),
			    "no measurement of CPU and memory (expired), last heard 400 s "
			    "ago: the least score, since nothing unknown may win");
}

static void test_pod_and_arguments(void **state)
{
	(void)state;
	assert_int_equal(post("{\"pod\":{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{"
			      "\"cpu\":\"350m\"}}}]}},"
			      "\"nodes\":[\"alpha\",\"alpha\"],\"plugins\":[" TLP
			      "],\"explain\":true,"
			      "\"args\":{" TLP
			      ":{\"targetUtilization\":50,\"defaultRequestsMultiplier\":\"2\"}}}"),
			 200);
	assert_int_equal(cJSON_GetArraySize(at("items")), 1);
	/* (1200 + 700) / 3800 = 50 % */
	assert_int_equal(number("items.0.score"), 100);
	assert_string_equal(text("items.0.plugins.0.terms.0.name"), "age");
	assert_string_equal(text("items.0.plugins.0.terms.0.unit"), "seconds");
	assert_int_equal(number("items.0.plugins.0.terms.0.value"), 2);
	assert_string_equal(text("items.0.plugins.0.terms.1.name"), "cpuMean");
	assert_string_equal(text("items.0.plugins.0.terms.1.unit"), "percent");
	assert_int_equal(number("items.0.plugins.0.terms.1.value"), 30);
	assert_string_equal(text("items.0.plugins.0.terms.4.name"), "podCpu");
	assert_int_equal(number("items.0.plugins.0.terms.4.value"), 700);
	assert_string_equal(text("items.0.reason"),
			    "CPU would be at 50.0 %, within the target of 50.0 % (1200m "
			    "measured + 700m expected of 3800m)");
}

static void test_blends_and_variants(void **state)
{
	static const struct {
		const char *body;
		int score, plugins;
	} cases[] = {
		{"{\"blend\":{" TLP ":3," LVRB ":1}}", 81, 2}, /* (3 * 87 + 61) / 4 = 80.5 */
		{"{\"blend\":{" LVRB ":0.5}}", 61, 1},
		{"{\"plugins\":[" LVRB "," TLP "],\"blend\":{" TLP ":2}}", 78, 2}, /* 78.33 */
		{"{\"variant\":\"upstream\"}", 83, 2}, /* 85, and 100 - (30 + 7.5) / 2 = 81.25 */
		{"{\"variant\":\"upstream\",\"args\":{" TLP ":{\"targetUtilization\":0}}}", 83, 2},
		{"{\"variant\":\"kep\"}", 61, 1},
		{"{\"variant\":\"kep\",\"args\":{" LVRB ":{\"safeVarianceMargin\":2}}}", 53, 1},
		{"{\"plugins\":[" LVRB "],\"args\":{" LVRB ":{\"safeVarianceSensitivity\":0.5}}}",
		 68, 1},
		{"{\"plugins\":[" TLP "],\"args\":{" TLP
		 ":{\"useLimits\":true,\"defaultRequests\":{\"cpu\":1}}}}",
		 87, 1},
		{"{\"variant\":null,\"plugins\":null,\"nodes\":null,\"pod\":null,\"explain\":null}",
		 74, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(post(cases[i].body), 200);
		if (number("items.0.score") != cases[i].score)
			fail_msg("%s: %d", cases[i].body, number("items.0.score"));
		assert_int_equal(cJSON_GetArraySize(at("items.0.plugins")), cases[i].plugins);
	}
}

static void test_default_requests(void **state)
{
	static const char pod[] = "\"nodes\":[\"alpha\"],\"plugins\":[" TLP "],"
				  "\"pod\":{\"spec\":{\"containers\":[{}]}}";
	static const struct {
		const char *rest;
		int score;
	} cases[] = {
		{"", 28}, /* 2200 / 3800: 40 * 42.1 / 60 */
		{",\"args\":{" TLP ":{\"defaultRequests\":{\"cpu\":\"320m\"}}}", 100},
		{",\"args\":{" TLP ":{\"defaultRequests\":{\"memory\":\"1Gi\"}}}", 28},
		{",\"variant\":\"upstream\",\"args\":{" TLP ":{\"defaultRequests\":{}}}", 85},
	};
	char body[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(body, sizeof(body), "{%s%s}", pod, cases[i].rest);
		assert_int_equal(post(body), 200);
		assert_int_equal(number("items.0.score"), cases[i].score);
	}
}

static void test_no_nodes(void **state)
{
	(void)state;
	assert_int_equal(post("{\"nodes\":[]}"), 200);
	assert_int_equal(cJSON_GetArraySize(at("items")), 0);
	http_fixture_close(&f);
	http_fixture_open(&f, NULL);
	assert_int_equal(post("{}"), 200);
	assert_int_equal(cJSON_GetArraySize(at("items")), 0);
	assert_int_equal(post("{\"nodes\":[\"alpha\"]}"), 400);
}

static void test_refused(void **state)
{
	static const struct {
		const char *body, *field;
	} cases[] = {
		{"", ""},
		{"[]", ""},
		{"{", ""},
		{"{} x", ""},
		{"{\"Pod\":{}}", "Pod"},
		{"{\"pod\":3}", "pod"},
		{"{\"pod\":{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1Q\"}"
		 "}}]}}}",
		 "pod.spec.containers[0].resources.requests.cpu"},
		{"{\"nodes\":\"alpha\"}", "nodes"},
		{"{\"nodes\":[\"alpha\",5]}", "nodes[1]"},
		{"{\"nodes\":[\"alpha\",\"nobody\"]}", "nodes[1]"},
		{"{\"explain\":1}", "explain"},
		{"{\"variant\":\"best\"}", "variant"},
		{"{\"variant\":1}", "variant"},
		{"{\"variant\":\"kep\",\"plugins\":[" TLP "]}", "variant"},
		{"{\"variant\":\"kep\",\"blend\":{" TLP ":1}}", "variant"},
		{"{\"plugins\":[]}", "plugins"},
		{"{\"plugins\":" TLP "}", "plugins"},
		{"{\"plugins\":[" TLP ",\"Peek\"]}", "plugins[1]"},
		{"{\"plugins\":[" TLP "," TLP "]}", "plugins[1]"},
		{"{\"blend\":{}}", "blend"},
		{"{\"blend\":{\"Nope\":1}}", "blend.Nope"},
		{"{\"blend\":{" TLP ":0}}", "blend.TargetLoadPacking"},
		{"{\"blend\":{" TLP ":\"1\"}}", "blend.TargetLoadPacking"},
		{"{\"plugins\":[" TLP "],\"blend\":{" LVRB ":1}}",
		 "blend.LoadVariationRiskBalancing"},
		{"{\"args\":[]}", "args"},
		{"{\"args\":{\"Nope\":{}}}", "args.Nope"},
		{"{\"args\":{" TLP ":1}}", "args.TargetLoadPacking"},
		{"{\"args\":{" TLP ":{\"target\":1}}}", "args.TargetLoadPacking.target"},
		{"{\"args\":{" TLP ":{\"safeVarianceMargin\":1}}}",
		 "args.TargetLoadPacking.safeVarianceMargin"},
		{"{\"args\":{" TLP ":{\"targetUtilization\":0}}}",
		 "args.TargetLoadPacking.targetUtilization"},
		{"{\"args\":{" TLP ":{\"targetUtilization\":40.5}}}",
		 "args.TargetLoadPacking.targetUtilization"},
		{"{\"args\":{" TLP ":{\"defaultRequestsMultiplier\":\"1.5x\"}}}",
		 "args.TargetLoadPacking.defaultRequestsMultiplier"},
		{"{\"args\":{" TLP ":{\"defaultRequestsMultiplier\":\"\"}}}",
		 "args.TargetLoadPacking.defaultRequestsMultiplier"},
		{"{\"args\":{" TLP ":{\"defaultRequestsMultiplier\":\"NaN\"}}}",
		 "args.TargetLoadPacking.defaultRequestsMultiplier"},
		{"{\"args\":{" TLP ":{\"defaultRequests\":{\"cpu\":\"-1\"}}}}",
		 "args.TargetLoadPacking.defaultRequests"},
		{"{\"args\":{" TLP ":{\"defaultRequests\":\"1\"}}}",
		 "args.TargetLoadPacking.defaultRequests"},
		{"{\"args\":{" TLP ":{\"useLimits\":1}}}", "args.TargetLoadPacking.useLimits"},
		{"{\"variant\":\"upstream\",\"args\":{" TLP ":{\"useLimits\":true}}}",
		 "args.TargetLoadPacking.useLimits"},
		{"{\"args\":{" LVRB ":{\"safeVarianceMargin\":-1}}}",
		 "args.LoadVariationRiskBalancing.safeVarianceMargin"},
		{"{\"args\":{" LVRB ":{\"safeVarianceSensitivity\":\"2\"}}}",
		 "args.LoadVariationRiskBalancing.safeVarianceSensitivity"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (post(cases[i].body) != 400 ||
		    strcmp(http_fixture_error_field(&f), cases[i].field) != 0)
			fail_msg("%s: %s", cases[i].body, f.response.body.data);
		assert_string_equal(http_fixture_error(&f), "invalid");
		assert_string_equal(f.response.content_type, "application/json");
	}
}

#define TEST(name) HTTP_FIXTURE_TEST(name, &f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_nodes),
		TEST(test_pod_and_arguments),
		TEST(test_blends_and_variants),
		TEST(test_default_requests),
		TEST(test_no_nodes),
		TEST(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
