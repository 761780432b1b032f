/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/state/join.h"
#include "shared/clock.h"
#include "tests/api_fixture.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

#define TLP   "\"TargetLoadPacking\""
#define LVRB  "\"LoadVariationRiskBalancing\""
#define LROC  "\"LowRiskOverCommitment\""
#define PEAKS "\"Peaks\""
#define ALLOC "\"NodeResourcesAllocatable\""
#define LIMIT "\"LimitAware\""
/* What the fixture's contention of 12.5 % and its OOM kill cost: 0.9722 * 0.98 = 0.953. */
#define STRAINED "; times 0.95 for tasks waiting for each other 12.5 % of the time and 1 OOM kill"

static struct api_fixture f;

static int post(const char *body)
{
	return api_fixture_send(&f, "POST", "/v1/scores", body);
}

static const cJSON *at(const char *path)
{
	const cJSON *item = api_fixture_at(f.json, path);

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

/*
 * alpha: 1200 +- 300 of 3800 millicores, 2 GiB +- 64 MiB of 7: 100 - 31.58 - 7.89 / 10, strained.
 * bravo has no limits, delta's one pod counts as the whole node, since its limits could not be
 * read.
 */
static void test_all_nodes(void **state)
{
	static const char *const names[] = {"alpha", "bravo", "delta", "gone", "mute"};
	static const char *const fallbacks[] = {"window 15m", "late 60s", "since start", "expired",
						"none"};
	static const int scores[] = {65, 44, 67, 0, 0}, limits[] = {70, 95, 1, 0, 0};
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
		snprintf(path, sizeof(path), "items.%d.plugins.0.rung", i);
		assert_string_equal(text(path), fallbacks[i]);
		snprintf(path, sizeof(path), "items.%d.plugins.1.score", i);
		assert_int_equal(number(path), limits[i]);
		snprintf(path, sizeof(path), "items.%d.score", i);
		assert_int_equal(number(path), scores[i]);
	}
	assert_int_equal(cJSON_GetArraySize(at("items.0.plugins")), 2);
	assert_string_equal(text("items.0.plugins.0.name"), "LoadVariationRiskBalancing");
	assert_string_equal(text("items.0.plugins.0.variant"), "corrected");
	assert_string_equal(text("items.0.plugins.1.name"), "LimitAware");
	assert_int_equal(number("items.0.plugins.0.score"), 65);
	assert_null(api_fixture_at(f.json, "items.0.plugins.0.terms"));
	assert_null(api_fixture_at(f.json, "items.0.plugins.0.reason"));
	assert_null(api_fixture_at(f.json, "items.0.plugins.0.estimated"));
	/* The plugin that takes most away; no name where nothing was judged. */
	assert_string_equal(text("items.1.reason"),
			    "LoadVariationRiskBalancing 43: CPU decides: mean with the pod 52.6 %, "
			    "variation 2.1 %, risk 54.7 %" STRAINED);
	assert_string_equal(
		text("items.3.reason"),
		"no measurement of CPU and memory (expired), last heard 400 s ago: the least "
		"score, since nothing unknown may win");
	assert_string_equal(
		text("items.4.reason"),
		"no measurement of CPU and memory (none): the least score, since nothing "
		"unknown may win");
}

/* Names choose what is shown; what it is compared with are all nodes. */
static void names_do_not_change_scores(void **state)
{
	int limits[2], scores[2];

	(void)state;
	assert_int_equal(post("{}"), 200);
	for (int i = 0; i < 2; i++) {
		char path[64];

		snprintf(path, sizeof(path), "items.%d.score", i);
		scores[i] = number(path);
		snprintf(path, sizeof(path), "items.%d.plugins.1.score", i);
		limits[i] = number(path);
	}
	assert_int_equal(post("{\"nodes\":[\"bravo\",\"alpha\"]}"), 200);
	assert_int_equal(cJSON_GetArraySize(at("items")), 2);
	assert_int_equal(number("items.0.score"), scores[0]);
	assert_int_equal(number("items.0.plugins.1.score"), limits[0]);
	assert_int_equal(post("{\"nodes\":[\"bravo\"]}"), 200);
	assert_int_equal(number("items.0.score"), scores[1]);
	assert_string_equal(text("items.0.plugins.1.name"), "LimitAware");
	assert_int_equal(number("items.0.plugins.1.score"), limits[1]);
}

static int64_t five_minutes_later(void)
{
	return VIEW_FIXTURE_NOW_NS + 300 * NS_PER_SEC;
}

/* While no node asked about is heard, what was measured last counts for 15 minutes. */
static void old_measurements_count_where_there_are_no_others(void **state)
{
	struct extender_options options;

	(void)state;
	api_fixture_extender(&options);
	options.limits.refuse_unmeasured = true;
	f.ctx.extender = &options;
	assert_int_equal(post("{\"nodes\":[\"gone\",\"mute\"]}"), 200);
	assert_string_equal(text("items.0.plugins.0.rung"), "expired");
	assert_non_null(strstr(text("items.0.refused"), "not measured (expired) while others"));
	f.ctx.now_ns = five_minutes_later;
	assert_int_equal(post("{}"), 200);
	assert_null(api_fixture_at(f.json, "items.0.refused"));
	assert_string_equal(text("items.0.plugins.0.rung"), "late 302s");
	assert_true(number("items.0.score") > 0);
}

static void test_explanation(void **state)
{
	(void)state;
	assert_int_equal(post("{\"explain\":true,\"nodes\":[\"alpha\",\"mute\"],\"plugins\":[" LVRB
			      "," LROC "]}"),
			 200);
	assert_string_equal(
		text("items.0.plugins.0.reason"),
		"CPU decides: mean with the pod 31.6 %, variation 7.9 %, risk 39.5 %" STRAINED);
	assert_string_equal(
		text("items.0.plugins.1.reason"),
		"the requests of its pods are not known, which takes the Kubernetes API: "
		"the least score; at least 1, above nodes that are not measured");
	assert_string_equal(text("items.1.node"), "mute");
	assert_string_equal(text("items.1.plugins.1.reason"), text("items.1.reason"));
	assert_int_equal(cJSON_GetArraySize(at("items.1.plugins.1.terms")), 0);
}

/*
 * alpha is left with 100 - 39.5 % of CPU and 100 - 1 GiB - all of memory, bravo and delta as they
 * are. Its allocatable counts with 2^20 for a millicore, and 1 for a byte.
 */
static void test_raw_scores(void **state)
{
	static const char *const bodies[] = {
		"{\"plugins\":[" LIMIT "],\"args\":{" LIMIT ":{\"resources\":[{\"name\":\"cpu\","
		"\"weight\":3}]}},\"explain\":true}",
		"{\"plugins\":[" LIMIT "],\"args\":{" LIMIT
		":{\"unlimited\":{\"cpu\":\"500m\",\"memory\":\"1Gi\"},"
		"\"normalization\":\"Quantiles\"}},\"explain\":true}",
		"{\"plugins\":[" ALLOC "],\"args\":{" ALLOC
		":{\"mode\":\"Least\"}},\"explain\":true}",
		"{\"plugins\":[" ALLOC "],\"args\":{" ALLOC
		":{\"mode\":\"Most\"}},\"explain\":true}",
	};
	static const double raws[] = {100 * (1 - 1500.0 / 3800),
				      100 * (2 - 1500.0 / 3800 - 2.0 / 7) / 2,
				      -(0x1p20 * (3800 + 7 * 1024)) / (0x1p20 + 1),
				      (0x1p20 * (3800 + 7 * 1024)) / (0x1p20 + 1)};

	(void)state;
	for (size_t i = 0; i < sizeof(raws) / sizeof(raws[0]); i++) {
		const cJSON *term;
		double raw = -1;

		assert_int_equal(post(bodies[i]), 200);
		cJSON_ArrayForEach (term, at("items.0.plugins.0.terms"))
			if (strcmp(cJSON_GetObjectItem(term, "name")->valuestring, "raw") == 0)
				raw = cJSON_GetObjectItem(term, "value")->valuedouble;
		assert_true(raw > raws[i] - 1e-9 && raw < raws[i] + 1e-9);
	}
}

static void test_peaks(void **state)
{
	(void)state;
	assert_int_equal(post("{\"plugins\":[" PEAKS
			      "],\"pod\":{\"spec\":{\"containers\":[{\"resources\":{"
			      "\"requests\":{\"cpu\":\"400m\"}}}]}},\"args\":{" PEAKS
			      ":{\"nodePowerModel\":{\"delta\":{\"k0\":400,\"k1\":-90,\"k2\":-0.07}"
			      ",\"alpha\":{"
			      "\"K0\":471,\"K1\":-91.5,\"K2\":-0.0718},\"nobody\":{\"k1\":1}}}}}"),
			 200);
	/*
	 * alpha is at 30 %, delta at 12.5 %: on such a machine the next percent costs less the more
	 * is used.
	 */
	assert_int_equal(number("items.0.score"), 95);
	assert_int_equal(number("items.1.score"), 1);
	assert_string_equal(
		text("items.1.reason"),
		"there is no power model of this node: the least score; at least 1, above nodes "
		"that are not measured");
	assert_int_equal(number("items.2.score"), 1);
	assert_non_null(strstr(text("items.2.reason"), "would raise power by"));
}

/*
 * A scheduler's own arguments may be asked about as they are, but not believed to have an effect.
 */
static void test_connection_arguments(void **state)
{
	static const char args[] =
		"\"args\":{" TLP
		":{\"watcherAddress\":\"http://w:2020\",\"metricProvider\":{\"type\":"
		"\"Prometheus\",\"address\":\"http://"
		"p\",\"token\":\"t\",\"insecureSkipVerify\":true}}}";
	char body[512];

	(void)state;
	snprintf(body, sizeof(body), "{\"variant\":\"upstream\",%s}", args);
	assert_int_equal(post(body), 200);
	snprintf(body, sizeof(body), "{%s}", args);
	assert_int_equal(post(body), 400);
	assert_string_equal(http_fixture_error_field(&f), "args.TargetLoadPacking.watcherAddress");
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
	/* (1200 + 700) / 3800 = 50 %, strained */
	assert_int_equal(number("items.0.score"), 95);
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
			    "measured + 700m expected of 3800m)" STRAINED);
}

static void test_blends_and_variants(void **state)
{
	static const struct {
		const char *body;
		int score, plugins;
	} cases[] = {
		{"{\"blend\":{" TLP ":3," LVRB ":1}}", 77, 2}, /* (3 * 83 + 58) / 4 = 76.75 */
		{"{\"blend\":{" LVRB ":0.5}}", 58, 1},
		{"{\"plugins\":[" LVRB "," TLP "],\"blend\":{" TLP ":2}}", 75, 2}, /* 74.67 */
		{"{\"variant\":\"upstream\"}", 55, 3}, /* 85, 100 - (30 + 7.5) / 2 = 81.25, 0 */
		{"{\"variant\":\"upstream\",\"args\":{" TLP ":{\"targetUtilization\":0}}}", 55, 3},
		{"{\"blend\":{" ALLOC ":1," LIMIT ":2," PEAKS ":1}}", 59,
		 3}, /* (95 + 2 * 70 + 0) / 4 */
		{"{\"plugins\":[" PEAKS "],\"args\":{" PEAKS ":{\"nodePowerModel\":{}}}}", 1, 1},
		{"{\"plugins\":[" LIMIT "],\"args\":{" LIMIT
		 ":{\"unlimited\":{\"cpu\":\"500m\"}}}}",
		 70, 1},
		{"{\"plugins\":[" LIMIT "],\"args\":{" LIMIT
		 ":{\"normalization\":\"MinMax\",\"init\":\"count\"}}}",
		 70, 1},
		{"{\"plugins\":[" LIMIT "],\"args\":{" LIMIT ":{\"normalization\":\"Quantiles\"}}}",
		 70, 1},
		{"{\"plugins\":[" TLP "],\"variant\":\"upstream\",\"args\":{" TLP
		 ":{\"metricProvider\":{\"address\":\"a\"}}}}",
		 85, 1},
		{"{\"variant\":\"kep\"}", 61, 1},
		{"{\"variant\":\"kep\",\"args\":{" LVRB ":{\"safeVarianceMargin\":2}}}", 53, 1},
		{"{\"plugins\":[" LVRB "],\"args\":{" LVRB ":{\"safeVarianceSensitivity\":0.5}}}",
		 65, 1}, /* 68 strained */
		{"{\"plugins\":[" TLP "],\"args\":{" TLP
		 ":{\"useLimits\":true,\"defaultRequests\":{\"cpu\":1}}}}",
		 83, 1},
		{"{\"variant\":null,\"plugins\":null,\"nodes\":null,\"pod\":null,\"explain\":null}",
		 65, 2},
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
		{"", 87}, /* 1300 / 3800: 60 * 34.2 / 40 + 40, strained */
		{",\"args\":{" TLP ":{\"defaultRequests\":{\"cpu\":\"320m\"}}}", 95},
		{",\"args\":{" TLP ":{\"defaultRequests\":{\"memory\":\"1Gi\"}}}", 87},
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
	api_fixture_close(&f);
	api_fixture_open(&f, NULL);
	assert_int_equal(post("{}"), 200);
	assert_int_equal(cJSON_GetArraySize(at("items")), 0);
	assert_int_equal(post("{\"nodes\":[\"alpha\"]}"), 400);
}

/*
 * "n" with an agent and a pod of 700 millicores, "silent" without one; of "unknown", whose agent
 * measured nothing, the API says nothing.
 */
static struct view *view_with_api(void)
{
	const struct pod_stats use =
		join_fixture_pod("k/x", "uid-x", VIEW_FIXTURE_NOW_NS, 900, 700, 1 << 20);
	struct node_stats unknown = {.name = "unknown"};
	struct node_stats *stats[] = {join_fixture_stats("n", VIEW_FIXTURE_NOW_NS, &use, 1),
				      node_stats_new(&unknown)};
	struct model *m = model_new();
	struct join *j = join_new();
	struct view *v;

	model_fixture_sync(m, OBJECT_POD);
	model_put(m, model_fixture_node("n", 4, 8));
	model_put(m, model_fixture_node("silent", 4, 8));
	model_put(m, model_fixture_pod(&(struct model_fixture_pod){.name = "x",
								   .node = "n",
								   .uid = "uid-x",
								   .owner_kind = "ReplicaSet",
								   .owner_uid = "uid-rs",
								   .cpu = "1"}));
	model_put(m, model_fixture_pod(&(
			     struct model_fixture_pod){.name = "y", .node = "silent", .cpu = "1"}));
	v = join_view(j, stats, 2, model_cluster(m), VIEW_FIXTURE_NOW_NS);
	node_stats_drop(stats[0]);
	node_stats_drop(stats[1]);
	join_free(j);
	model_free(m);
	return v;
}

#define POD_OF(controller, uid)                                                                    \
	"{\"explain\":true,\"plugins\":[" TLP "," LROC "],\"pod\":{\"metadata\":{"                 \
	"\"ownerReferences\":[{\"uid\":\"uid-of-a-friend\"},{\"controller\":" controller           \
	",\"uid\":\"" uid "\"}]},\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":" \
	"\"100m\"}}}]}}}"

static void test_with_an_api(void **state)
{
	(void)state;
	api_fixture_close(&f);
	api_fixture_open(&f, view_with_api());
	/* Its owner's other pod uses 700; without one its request. */
	assert_int_equal(post(POD_OF("true", "uid-rs")), 200);
	assert_string_equal(text("items.0.plugins.0.terms.1.name"), "ownerCpuMean");
	assert_int_equal(number("items.0.plugins.0.terms.1.value"), 700);
	assert_string_equal(text("items.0.plugins.0.reason"),
			    "CPU would be at 56.7 %, above the target of 40.0 % (1000m measured + "
			    "700m expected of 3000m)" STRAINED);
	assert_int_equal(post(POD_OF("false", "uid-rs")), 200);
	assert_string_equal(text("items.0.plugins.0.terms.1.name"), "cpuMean");
	assert_int_equal(post(POD_OF("true", "uid-of-nobody")), 200);
	assert_string_equal(text("items.0.plugins.0.terms.1.name"), "cpuMean");
	assert_true(number("items.0.plugins.1.score") > 0);
	/* However free it is by requests, it stays below what is measured. */
	assert_string_equal(text("items.1.node"), "silent");
	assert_string_equal(text("items.1.plugins.0.rung"), "none");
	assert_true(cJSON_IsTrue(at("items.1.plugins.0.estimated")));
	assert_true(number("items.1.plugins.0.score") < number("items.0.plugins.0.score"));
	assert_string_equal(text("items.2.node"), "unknown");
	assert_string_equal(text("items.2.plugins.0.rung"), "none");
	assert_null(api_fixture_at(f.json, "items.2.plugins.0.estimated"));
}

static const struct {
	const char *body, *field;
} refusals[] = {
	{"", ""},
	{"[]", ""},
	{"{", ""},
	{"{} x", ""},
	{"{\"Pod\":{}}", "Pod"},
	{"{\"pod\":3}", "pod"},
	{"{\"pod\":{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1Q\"}"
	 "}}]}}}",
	 "pod.spec.containers[0].resources.requests.cpu"},
	{"{\"pod\":{\"metadata\":{\"ownerReferences\":{}},\"spec\":{\"containers\":[]}}}",
	 "pod.metadata.ownerReferences"},
	{"{\"pod\":{\"metadata\":{\"ownerReferences\":[1]},\"spec\":{\"containers\":[]}}}",
	 "pod.metadata.ownerReferences[0]"},
	{"{\"pod\":{\"metadata\":{\"ownerReferences\":[{\"controller\":true}]},\"spec\":{"
	 "\"containers\":[]}}}",
	 "pod.metadata.ownerReferences[0].uid"},
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
	{"{\"plugins\":[" TLP "],\"blend\":{" LVRB ":1}}", "blend.LoadVariationRiskBalancing"},
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
	{"{\"args\":{" LROC ":{\"smoothingWindowSize\":0}}}",
	 "args.LowRiskOverCommitment.smoothingWindowSize"},
	{"{\"args\":{" LROC ":{\"smoothingWindowSize\":1.5}}}",
	 "args.LowRiskOverCommitment.smoothingWindowSize"},
	{"{\"args\":{" LROC ":{\"riskLimitWeights\":{\"gpu\":1}}}}",
	 "args.LowRiskOverCommitment.riskLimitWeights.gpu"},
	{"{\"args\":{" LROC ":{\"riskLimitWeights\":{\"cpu\":1.5}}}}",
	 "args.LowRiskOverCommitment.riskLimitWeights.cpu"},
	{"{\"args\":{" LROC ":{\"riskLimitWeights\":{\"cpu\":\"1\"}}}}",
	 "args.LowRiskOverCommitment.riskLimitWeights.cpu"},
	{"{\"args\":{" LROC ":{\"riskLimitWeights\":1}}}",
	 "args.LowRiskOverCommitment.riskLimitWeights"},
	{"{\"args\":{" PEAKS ":{\"nodePowerModel\":{\"n\":1}}}}", "args.Peaks.nodePowerModel.n"},
	{"{\"args\":{" PEAKS ":{\"nodePowerModel\":{\"n\":{\"k3\":1}}}}}",
	 "args.Peaks.nodePowerModel.n.k3"},
	{"{\"args\":{" PEAKS ":{\"nodePowerModel\":{\"n\":{\"k1\":1e999}}}}}",
	 "args.Peaks.nodePowerModel.n.k1"},
	{"{\"args\":{" PEAKS ":{\"nodePowerModel\":{\"n\":{},\"m\":{},\"n\":{}}}}}",
	 "args.Peaks.nodePowerModel.n"},
	{"{\"args\":{" ALLOC ":{\"mode\":\"least\"}}}", "args.NodeResourcesAllocatable.mode"},
	{"{\"args\":{" ALLOC ":{\"resources\":[]}}}", "args.NodeResourcesAllocatable.resources"},
	{"{\"args\":{" ALLOC ":{\"resources\":[{\"name\":\"cpu\",\"weight\":0}]}}}",
	 "args.NodeResourcesAllocatable.resources[0].weight"},
	{"{\"args\":{" ALLOC ":{\"resources\":[{\"name\":\"cpu\",\"weight\":1},{\"name\":"
	 "\"cpu\",\"weight\":1}]}}}",
	 "args.NodeResourcesAllocatable.resources[1].name"},
	{"{\"args\":{" LIMIT ":{\"resources\":[{\"name\":\"gpu\",\"weight\":1}]}}}",
	 "args.LimitAware.resources[0].name"},
	{"{\"args\":{" LIMIT ":{\"resources\":[{\"name\":\"cpu\",\"weigth\":1}]}}}",
	 "args.LimitAware.resources[0].weigth"},
	{"{\"args\":{" LIMIT ":{\"resources\":[{\"name\":\"cpu\"}]}}}",
	 "args.LimitAware.resources[0].weight"},
	{"{\"args\":{" LIMIT ":{\"resources\":[{\"name\":\"x/gpu\",\"weight\":1},{\"name\":"
	 "\"x/gpu\",\"weight\":1}]}}}",
	 "args.LimitAware.resources[1].name"},
	{"{\"args\":{" LIMIT ":{\"resources\":[{\"name\":\"x/a\",\"weight\":1},{\"name\":"
	 "\"x/b\",\"weight\":1},{\"name\":\"x/c\",\"weight\":1},{\"name\":\"x/"
	 "d\",\"weight\":1},"
	 "{\"name\":\"x/e\",\"weight\":1},{\"name\":\"x/f\",\"weight\":1},{\"name\":\"x/"
	 "g\","
	 "\"weight\":1},{\"name\":\"x/h\",\"weight\":1},{\"name\":\"x/"
	 "i\",\"weight\":1}]}}}",
	 "args.LimitAware.resources[8].name"},
	{"{\"args\":{" LIMIT ":{\"resources\":[{\"name\":\"x/a\",\"weight\":1}]}},\"pod\":{"
	 "\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"x/a\":\"1q\"}}}]}}}",
	 "pod.spec.containers[0].resources.limits.x/a"},
	{"{\"args\":{" ALLOC ":{\"resources\":[{\"name\":\"x/gpu\",\"weight\":1}]}}}",
	 "args.NodeResourcesAllocatable.resources[0].name"},
	{"{\"args\":{" LIMIT ":{\"init\":true}}}", "args.LimitAware.init"},
	{"{\"variant\":\"upstream\",\"args\":{" LIMIT ":{\"init\":\"ignore\"}}}",
	 "args.LimitAware.init"},
	{"{\"args\":{" LIMIT ":{\"unlimited\":{\"cpu\":\"0\"}}}}", "args.LimitAware.unlimited.cpu"},
	{"{\"args\":{" LIMIT ":{\"unlimited\":{\"gpu\":\"1\"}}}}", "args.LimitAware.unlimited.gpu"},
	{"{\"args\":{" LIMIT ":{\"normalization\":\"Robust\"}}}", "args.LimitAware.normalization"},
	{"{\"variant\":\"upstream\",\"args\":{" LIMIT ":{\"normalization\":\"MinMax\"}}}",
	 "args.LimitAware.normalization"},
	{"{\"variant\":\"upstream\",\"args\":{" LIMIT ":{\"unlimited\":{}}}}",
	 "args.LimitAware.unlimited"},
	{"{\"variant\":\"upstream\",\"args\":{" TLP
	 ":{\"metricProvider\":{\"type\":\"Datadog\"}}}}",
	 "args.TargetLoadPacking.metricProvider.type"},
	{"{\"variant\":\"upstream\",\"args\":{" TLP ":{\"metricProvider\":{\"url\":1}}}}",
	 "args.TargetLoadPacking.metricProvider.url"},
	{"{\"pod\":{\"metadata\":{\"uid\":1},\"spec\":{\"containers\":[]}}}", "pod.metadata.uid"},
	{"{\"plugins\":[1]}", "plugins[0]"},
	{"{\"blend\":{" TLP ":1e7}}", "blend.TargetLoadPacking"},
	{"{\"args\":{" TLP ":{\"defaultRequestsMultiplier\":\" 1\"}}}",
	 "args.TargetLoadPacking.defaultRequestsMultiplier"},
	{"{\"args\":{" TLP ":{\"defaultRequestsMultiplier\":true}}}",
	 "args.TargetLoadPacking.defaultRequestsMultiplier"},
	{"{\"args\":{" TLP ":{\"metricProvider\":{}}}}", "args.TargetLoadPacking.metricProvider"},
	{"{\"args\":{" LROC ":{\"smoothingWindowSize\":\"5\"}}}",
	 "args.LowRiskOverCommitment.smoothingWindowSize"},
	{"{\"args\":{" PEAKS ":{\"nodePowerModel\":{\"n\":{\"k1\":\"1\"}}}}}",
	 "args.Peaks.nodePowerModel.n.k1"},
	{"{\"args\":{" PEAKS ":{\"nodePowerModel\":[]}}}", "args.Peaks.nodePowerModel"},
	{"{\"args\":{" ALLOC ":{\"mode\":1}}}", "args.NodeResourcesAllocatable.mode"},
	{"{\"args\":{" ALLOC ":{\"resources\":{\"cpu\":1}}}}",
	 "args.NodeResourcesAllocatable.resources"},
	{"{\"args\":{" ALLOC ":{\"resources\":[\"cpu\"]}}}",
	 "args.NodeResourcesAllocatable.resources[0]"},
	{"{\"args\":{" ALLOC ":{\"resources\":[{\"name\":1,\"weight\":1}]}}}",
	 "args.NodeResourcesAllocatable.resources[0].name"},
	{"{\"args\":{" ALLOC ":{\"resources\":[{\"name\":\"cpu\",\"weight\":1.5}]}}}",
	 "args.NodeResourcesAllocatable.resources[0].weight"},
	{"{\"args\":{" ALLOC ":{\"resources\":[{\"name\":\"cpu\",\"weight\":1e16}]}}}",
	 "args.NodeResourcesAllocatable.resources[0].weight"},
	{"{\"args\":{" LIMIT ":{\"unlimited\":\"all\"}}}", "args.LimitAware.unlimited"},
	{"{\"args\":{" LIMIT ":{\"unlimited\":{\"cpu\":\"x\"}}}}", "args.LimitAware.unlimited.cpu"},
	{"{\"args\":{" LIMIT ":{\"unlimited\":{\"ephemeral-storage\":\"0\"}}}}",
	 "args.LimitAware.unlimited.ephemeral-storage"},
	{"{\"variant\":\"upstream\",\"args\":{" TLP ":{\"watcherAddress\":1}}}",
	 "args.TargetLoadPacking.watcherAddress"},
	{"{\"variant\":\"upstream\",\"args\":{" TLP ":{\"metricProvider\":[]}}}",
	 "args.TargetLoadPacking.metricProvider"},
	{"{\"variant\":\"upstream\",\"args\":{" TLP ":{\"metricProvider\":{\"token\":1}}}}",
	 "args.TargetLoadPacking.metricProvider.token"},
	{"{\"variant\":\"upstream\",\"args\":{" TLP
	 ":{\"metricProvider\":{\"insecureSkipVerify\":1}}}}",
	 "args.TargetLoadPacking.metricProvider.insecureSkipVerify"},
	{"{\"variant\":\"kep\",\"plugins\":[" LIMIT "]}", "variant"},
	{"{\"args\":{" LVRB ":{\"safeVarianceMargin\":-1}}}",
	 "args.LoadVariationRiskBalancing.safeVarianceMargin"},
	{"{\"args\":{" LVRB ":{\"safeVarianceSensitivity\":\"2\"}}}",
	 "args.LoadVariationRiskBalancing.safeVarianceSensitivity"},
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		if (post(refusals[i].body) != 400 ||
		    strcmp(http_fixture_error_field(&f), refusals[i].field) != 0)
			fail_msg("%s: %s", refusals[i].body, f.response.body.data);
		assert_string_equal(api_fixture_error(&f), "badRequest");
		assert_string_equal(f.response.content_type, "application/json");
	}
}

#define TEST(name) API_FIXTURE_TEST(name, &f)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_nodes),
		TEST(names_do_not_change_scores),
		TEST(old_measurements_count_where_there_are_no_others),
		TEST(test_explanation),
		TEST(test_raw_scores),
		TEST(test_peaks),
		TEST(test_connection_arguments),
		TEST(test_pod_and_arguments),
		TEST(test_blends_and_variants),
		TEST(test_default_requests),
		TEST(test_no_nodes),
		TEST(test_with_an_api),
		TEST(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
