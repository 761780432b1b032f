/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts outside the conformance cases: the corrected variants, fallback levels, names, arguments,
 * narration.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/recent_pods.h"
#include "aggregator/policy/score/score.h"
#include "aggregator/policy/textbuf.h"
#include "aggregator/policy/score/plugin.h"
#include "tests/score_fixture.h"
#include "tests/view_fixture.h"

#define GIB  (1LL << 30)
#define TLP  PLUGIN_TARGET_LOAD_PACKING
#define LVRB PLUGIN_LOAD_VARIATION_RISK_BALANCING
#define LROC PLUGIN_LOW_RISK_OVER_COMMITMENT
#define SEC  1000000000LL
#define NOW  VIEW_FIXTURE_NOW_NS

static const struct score_node node_10_cpus = {
	.name = "n",
	.cpu_capacity_milli = 10000,
	.mem_capacity_bytes = 10 * GIB,
	.cpu_allocatable_milli = 8000,
	.mem_allocatable_bytes = 8 * GIB,
	.cpu = {true, 20, 4},
	.mem = {true, 40, 8},
	.measured = true,
	.fallback = FALLBACK_WINDOW_15M,
	.window = "15m",
	.contention = NAN,
};

/* The node alone. */
static struct score_result score_with(enum score_plugin_id plugin, enum score_variant variant,
				      const struct score_args *args, const struct pod_spec *pod,
				      const struct score_node *node)
{
	const struct score_query q = {.variant = variant, .args = args, .pod = pod};
	struct score_scale scale;
	struct score_result r;

	score_fixture_scale(&q, plugin, node, 1, &scale);
	score_fixture_judge(&q, plugin, &scale, node, &r);
	return r;
}

static struct score_result score(enum score_plugin_id plugin, enum score_variant variant,
				 const struct pod_spec *pod, const struct score_node *node)
{
	struct score_args args;

	score_args_default(&args, variant);
	return score_with(plugin, variant, &args, pod, node);
}

static double term(const struct score_result *r, const char *name)
{
	for (size_t i = 0; i < r->term_count; i++)
		if (strcmp(r->terms[i].name, name) == 0)
			return r->terms[i].value;
	fail_msg("no term %s", name);
	return 0;
}

static void test_target_corrected(void **state)
{
	struct container_spec c = {.requests = {{{true, true}}, {{600, GIB}}},
				   .limits = {{{true, true}}, {{4000, GIB}}}};
	struct pod_spec pod = {.container_count = 1, .containers = &c};
	struct score_node node = node_10_cpus;
	struct score_result r;

	(void)state;
	/* (2000 + 600) / 8000 = 32.5 %: (100 - 40) * 32.5 / 40 + 40 = 88.75 */
	r = score(TLP, SCORE_CORRECTED, &pod, &node);
	assert_int_equal(r.score, 89);
	assert_true(term(&r, "cpuUsed") == 2000 && term(&r, "podCpu") == 600);
	assert_true(term(&r, "cpuAllocatable") == 8000 && term(&r, "cpuExpected") == 32.5);
	assert_true(term(&r, "unrounded") == 88.75);
	assert_string_equal(r.reason,
			    "CPU would be at 32.5 %, within the target of 40.0 % (2000m measured + "
			    "600m expected of 8000m)");
	/* Just placed pods count: 5000 / 8000 = 62.5 %: 40 * 37.5 / 60 = 25 */
	node.pending_cpu_milli = 2400;
	r = score(TLP, SCORE_CORRECTED, &pod, &node);
	assert_int_equal(r.score, 25);
	assert_non_null(strstr(r.reason, "62.5 %, above the target"));
	node.pending_cpu_milli = 5401;
	r = score(TLP, SCORE_CORRECTED, &pod, &node);
	assert_int_equal(r.score, 0);
	assert_non_null(strstr(r.reason, "more than there is"));
	/* upstream takes the limit and the capacity: 60 % -> 40 * 40 / 60 */
	node.pending_cpu_milli = 0;
	assert_int_equal(score(TLP, SCORE_UPSTREAM, &pod, &node).score, 27);
}

/* No pod is so large that it becomes small. */
static void test_target_absurd_request(void **state)
{
	static const int64_t requests[] = {INT64_MAX / 3 * 2 + 2, INT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		struct container_spec c = {.requests = {.has_cpu = true, .cpu_milli = requests[i]}};
		struct pod_spec pod = {.container_count = 1, .containers = &c};
		struct score_result r = score(TLP, SCORE_CORRECTED, &pod, &node_10_cpus);

		assert_int_equal(r.score, 0);
		assert_true(term(&r, "podCpu") > 6e18);
		assert_non_null(strstr(r.reason, "more than there is"));
	}
}

static void test_target_prediction(void **state)
{
	struct container_spec two[2] = {{.requests = {.has_cpu = true, .cpu_milli = 0}},
					{.requests = {.has_cpu = true, .cpu_milli = 333},
					 .limits = {.has_cpu = true, .cpu_milli = 700}}};
	struct container_spec init[2] = {{.requests = {.has_cpu = true, .cpu_milli = 9000}},
					 {.requests = {.has_cpu = true, .cpu_milli = 20},
					  .sidecar = true}};
	struct pod_spec pod = {
		.container_count = 2, .containers = two, .init_count = 2, .init = init};
	struct score_args args;

	(void)state;
	score_args_default(&args, SCORE_CORRECTED);
	pod.overhead = (struct resource_list){.has_cpu = true, .cpu_milli = 7};
	assert_int_equal(target_load_packing_predict(&pod, &args), 0 + 700 + 7);
	two[1].limits.has_cpu = false;
	args.default_requests_multiplier = 1.5; /* 499.5 away from zero */
	assert_int_equal(target_load_packing_predict(&pod, &args), 0 + 500 + 7);
	two[0].limits.has_cpu = two[0].requests.has_cpu = false;
	assert_int_equal(target_load_packing_predict(&pod, &args), 100 + 500 + 7);
}

static void test_risk_variants(void **state)
{
	struct container_spec c = {.requests = {{{true, true}}, {{800, GIB}}}};
	struct pod_spec pod = {.container_count = 1, .containers = &c};
	struct score_node node = node_10_cpus;
	struct score_result r;

	(void)state;
	/*
	 * CPU (2000 + 800) / 8000 = 0.35, 400 / 8000 = 0.05; memory (4 + 1) / 8 = 0.625, 0.8 / 8 =
	 * 0.1
	 */
	r = score(LVRB, SCORE_CORRECTED, &pod, &node);
	assert_int_equal(r.score, 28); /* 27.5 on paper */
	assert_true(term(&r, "memoryMu") == 0.625 && fabs(term(&r, "memorySigma") - 0.1) < 1e-12);
	assert_true(fabs(term(&r, "cpuScore") - 60) < 1e-9);
	assert_string_equal(
		r.reason,
		"memory decides: mean with the pod 62.5 %, variation 10.0 %, risk 72.5 %");
	assert_int_equal(score(LVRB, SCORE_KEP, &pod, &node).score, 28);
	/*
	 * percentages of capacity taken for those of the allocatable, halved: (0.4 + 0.125 + 0.08)
	 * / 2
	 */
	assert_int_equal(score(LVRB, SCORE_UPSTREAM, &pod, &node).score, 70);
	node.pending_mem_bytes = GIB;
	assert_int_equal(score(LVRB, SCORE_CORRECTED, &pod, &node).score, 15);
	assert_int_equal(score(LVRB, SCORE_KEP, &pod, &node).score, 15);
	assert_int_equal(score(LVRB, SCORE_UPSTREAM, &pod, &node).score, 70);
	/* A full but steady node: the shipped plugin gives it half of all points. */
	node = node_10_cpus;
	node.cpu = (struct score_metric){true, 100, 0};
	assert_int_equal(score(LVRB, SCORE_CORRECTED, &pod, &node).score, 0);
	assert_int_equal(score(LVRB, SCORE_UPSTREAM, &pod, &node).score, 50);
}

static void test_risk_arguments(void **state)
{
	struct pod_spec pod = {0};
	struct score_node node = node_10_cpus;
	struct score_args args;
	struct score_result r;

	(void)state;
	node.cpu_allocatable_milli = 10000;
	node.mem_allocatable_bytes = 10 * GIB;
	node.mem = (struct score_metric){true, 0, 0};
	score_args_default(&args, SCORE_CORRECTED);
	args.safe_variance_sensitivity = 2; /* 0.2 + 2 * sqrt(0.04) */
	args.safe_variance_margin = 2;
	r = score_with(LVRB, SCORE_CORRECTED, &args, &pod, &node);
	assert_int_equal(r.score, 40);
	r = score_with(LVRB, SCORE_KEP, &args, &pod, &node); /* 0.2 + 2 * 0.04 */
	assert_int_equal(r.score, 72);
	assert_non_null(strstr(r.reason, "CPU decides"));
}

/* Neither plugin lets a node win by what is not known about it. */
static void test_unknown(void **state)
{
	static const struct score_metric none = {false, 0, 0};
	struct pod_spec pod = {0};
	struct score_node node = node_10_cpus;
	struct score_result r;

	(void)state;
	node.cpu = none;
	r = score(TLP, SCORE_CORRECTED, &pod, &node);
	assert_int_equal(r.score, 0);
	assert_int_equal(r.term_count, 0);
	assert_string_equal(r.reason, "no measurement of CPU (window 15m): the least score, since "
				      "nothing unknown may win");
	/* By memory alone: 1 - 4 / 8 - 0.8 / 8 */
	r = score(LVRB, SCORE_CORRECTED, &pod, &node);
	assert_int_equal(r.score, 40);
	assert_int_equal(score(LVRB, SCORE_UPSTREAM, &pod, &node).score, 76);
	node = node_10_cpus;
	node.mem = none;
	assert_int_equal(score(TLP, SCORE_CORRECTED, &pod, &node).score,
			 score(TLP, SCORE_CORRECTED, &pod, &node_10_cpus).score);
	assert_int_equal(score(TLP, SCORE_UPSTREAM, &pod, &node).score, 70);
	/* By CPU alone: 1 - 2000 / 8000 - 400 / 8000 */
	assert_int_equal(score(LVRB, SCORE_KEP, &pod, &node).score, 70);
	node.cpu = none;
	node.fallback = FALLBACK_EXPIRED;
	node.age_seconds = 400;
	for (int v = SCORE_CORRECTED; v <= SCORE_KEP; v++) {
		r = score(LVRB, (enum score_variant)v, &pod, &node);
		assert_int_equal(r.score, 0);
		assert_non_null(strstr(r.reason, "(expired), last heard 400 s ago"));
	}
	node = node_10_cpus;
	node.cpu_allocatable_milli = 0;
	assert_int_equal(score(TLP, SCORE_CORRECTED, &pod, &node).score, 0);
	assert_int_equal(score(LVRB, SCORE_CORRECTED, &pod, &node).score, 0);
}

/* The inputs of those stats, without an API. */
static void read_stats(struct node_stats *stats, enum score_variant variant,
		       struct score_node *node)
{
	const struct view standalone = {.version = 1};
	struct view_node n = view_fixture_around(stats);
	struct score_args args;
	const struct score_query q = {.variant = variant, .args = &args};

	score_args_default(&args, variant);
	score_node_from_view(&standalone, &n, NOW, &q, node);
}

/* One fallback level: how long the node has been measured, how old the newest measurement is. */
static void test_fallback_levels(void **state)
{
	static const struct {
		double history, age;
		const char *fallback, *window;
		double widening; /* 0: nothing known */
	} cases[] = {
		{3600, 2, "window 15m", "15m", 1},
		{880, 2, "window 15m", "15m", 1},
		{840, 2, "window 10m", "10m", 1},
		{600, 2, "window 10m", "10m", 1},
		{400, 2, "window 5m", "5m", 1},
		{100, 2, "since start", "", 1},
		{3600, -5, "window 15m", "15m", 1}, /* a clock that is ahead */
		{3600, 29, "window 15m", "15m", 1},
		{3600, 30, "late 30s", "15m", 1.5},
		{400, 90, "late 90s", "5m", 2.5},
		{100, 300, "late 300s", "", 6},
		{3600, 301, "late 301s", "15m", 1 + 301 / 60.0},
		{3600, 900, "late 900s", "15m", 16},
		{3600, 901, "expired", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct node_stats stats =
			view_fixture_node("n", NOW - (int64_t)(cases[i].age * SEC),
					  cases[i].history, 1000, 100);
		struct score_node node;
		char text[SCORE_FALLBACK_LEN];

		read_stats(&stats, SCORE_CORRECTED, &node);
		score_fallback_text(&node, text);
		if (strcmp(text, cases[i].fallback) != 0 ||
		    strcmp(node.window, cases[i].window) != 0)
			fail_msg("case %zu: fallback %s, window %s", i, text, node.window);
		assert_int_equal(node.cpu.known, cases[i].widening > 0);
		assert_int_equal(node.mem.known, cases[i].widening > 0);
		if (!node.cpu.known)
			continue;
		assert_true(node.cpu.mean == 25 &&
			    fabs(node.cpu.stddev - 2.5 * cases[i].widening) < 1e-12);
		assert_true(node.age_seconds == (cases[i].age > 0 ? cases[i].age : 0));
	}
}

static void test_upstream_takes_late_numbers_as_measured(void **state)
{
	static const struct {
		enum score_variant variant;
		double stddev;
	} cases[] = {{SCORE_CORRECTED, 6.25}, {SCORE_UPSTREAM, 2.5}, {SCORE_KEP, 6.25}};
	struct node_stats stats = view_fixture_node("n", NOW - 90 * SEC, 3600, 1000, 100);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct score_node node;

		read_stats(&stats, cases[i].variant, &node);
		assert_int_equal(node.fallback, FALLBACK_LATE);
		assert_true(node.cpu.mean == 25);
		assert_true(fabs(node.cpu.stddev - cases[i].stddev) < 1e-12);
	}
}

static void test_stats_without_data(void **state)
{
	struct node_stats stats = view_fixture_node("n", NOW, 3600, 1000, 100);
	struct score_node node;

	(void)state;
	for (int w = 0; w < WINDOWS; w++)
		stats.usage.windows[w].mem_bytes.known = false;
	stats.cpu_capacity_milli = 0;
	read_stats(&stats, SCORE_CORRECTED, &node);
	assert_false(node.cpu.known);
	assert_false(node.mem.known);
	memset(&stats.usage, 0, sizeof(stats.usage));
	read_stats(&stats, SCORE_CORRECTED, &node);
	assert_int_equal(node.fallback, FALLBACK_NONE);
	stats.end_ns = 0;
	read_stats(&stats, SCORE_CORRECTED, &node);
	assert_int_equal(node.fallback, FALLBACK_NONE);
	assert_true(node.age_seconds == 0);
}

static void test_names(void **state)
{
	enum score_plugin_id plugin;
	enum score_variant variant;

	(void)state;
	for (int i = 0; i < SCORE_PLUGINS; i++) {
		assert_int_equal(
			score_plugin_find(score_plugin_name((enum score_plugin_id)i), &plugin), 0);
		assert_int_equal(plugin, i);
		assert_non_null(strstr(score_plugin_names(), score_plugin_name(plugin)));
	}
	for (int i = SCORE_CORRECTED; i <= SCORE_KEP; i++) {
		assert_int_equal(
			score_variant_find(score_variant_name((enum score_variant)i), &variant), 0);
		assert_int_equal(variant, i);
		assert_non_null(strstr(score_variant_names(), score_variant_name(variant)));
	}
	assert_int_equal(score_plugin_find("targetLoadPacking", &plugin), -ENOENT);
	assert_int_equal(score_variant_find("", &variant), -ENOENT);
	assert_true(score_plugin_has(LVRB, SCORE_KEP));
	assert_false(score_plugin_has(TLP, SCORE_KEP));
}

#define TLP_ARGS(target, multiplier, cpu)                                                          \
	{                                                                                          \
		.target_utilization = (target), .default_requests_multiplier = (multiplier),       \
		.default_requests_cpu_milli = (cpu)                                                \
	}
#define LVRB_ARGS(margin, sensitivity)                                                             \
	{                                                                                          \
		.safe_variance_margin = (margin), .safe_variance_sensitivity = (sensitivity)       \
	}
#define LROC_ARGS(window, cpu, memory)                                                             \
	{                                                                                          \
		.smoothing_window_size = (window), .risk_limit_weights = {(cpu), (memory) }        \
	}

static void test_args(void **state)
{
	static const struct {
		enum score_plugin_id plugin;
		struct score_args args;
		const char *field; /* NULL: allowed */
	} cases[] = {
		{TLP, TLP_ARGS(40, 1.5, 1000), NULL},
		{TLP, TLP_ARGS(100, 1, 0), NULL},
		{TLP, TLP_ARGS(0, 1.5, 1000), "targetUtilization"},
		{TLP, TLP_ARGS(101, 1.5, 1000), "targetUtilization"},
		{TLP, TLP_ARGS(NAN, 1.5, 1000), "targetUtilization"},
		{TLP, TLP_ARGS(40, 0, 1000), "defaultRequestsMultiplier"},
		{TLP, TLP_ARGS(40, INFINITY, 1000), "defaultRequestsMultiplier"},
		{TLP, TLP_ARGS(40, 1.5, -1), "defaultRequests.cpu"},
		{LVRB, LVRB_ARGS(0, 0.5), NULL},
		{LVRB, LVRB_ARGS(-0.1, 1), "safeVarianceMargin"},
		{LVRB, LVRB_ARGS(1, 0), "safeVarianceSensitivity"},
		{LROC, LROC_ARGS(1, 0, 1), NULL},
		{LROC, LROC_ARGS(1000, 0.5, 0.5), NULL},
		{LROC, LROC_ARGS(0, 0.5, 0.5), "smoothingWindowSize"},
		{LROC, LROC_ARGS(1001, 0.5, 0.5), "smoothingWindowSize"},
		{LROC, LROC_ARGS(5, -0.1, 0.5), "riskLimitWeights.cpu"},
		{LROC, LROC_ARGS(5, 0.5, 1.1), "riskLimitWeights.memory"},
		{LROC, LROC_ARGS(5, NAN, 0.5), "riskLimitWeights.cpu"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct score_args args = cases[i].args;
		const char *field = NULL;
		struct error reason;
		int err =
			score_args_check(&args, cases[i].plugin, SCORE_CORRECTED, &field, &reason);

		assert_int_equal(err, cases[i].field ? -EINVAL : 0);
		if (cases[i].field)
			assert_string_equal(field, cases[i].field);
		assert_int_equal(score_args_check(&args, cases[i].plugin, SCORE_UPSTREAM, &field,
						  &reason),
				 0);
		assert_false(cases[i].plugin == TLP && args.target_utilization <= 0);
		assert_false(cases[i].plugin == LVRB && args.safe_variance_margin < 0);
		assert_false(cases[i].plugin == LROC && args.smoothing_window_size <= 0);
		assert_false(cases[i].plugin == LROC && !(args.risk_limit_weights[0] >= 0));
	}
}

static void test_blend(void **state)
{
	static const struct {
		int64_t scores[3];
		double weights[3];
		size_t count;
		int64_t want;
	} cases[] = {
		{{70, 0, 0}, {0.25, 0, 0}, 1, 70},
		{{70, 75, 0}, {1, 1, 0}, 2, 73},
		{{0, 100, 0}, {3, 1, 0}, 2, 25},
		{{10, 20, 40}, {1, 2, 1}, 3, 23},
		{{100, 100, 100}, {0.1, 0.2, 0.7}, 3, 100},
		{{0, 1, 0}, {1, 1, 0}, 2, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(round_away(score_blend(cases[i].scores, cases[i].weights,
							cases[i].count)),
				 cases[i].want);
}

static void test_recent_pods(void **state)
{
	(void)state;
	assert_true(recent_pod_counts(1001, 1000));
	assert_true(recent_pod_counts(941, 1000));
	assert_false(recent_pod_counts(940, 1000));
	assert_false(recent_pod_counts(INT64_MIN, INT64_MAX));
}

static void test_sentence(void **state)
{
	static const struct {
		double value;
		int decimals;
		const char *text;
	} cases[] = {
		{0, 0, "0"},
		{0, 1, "0.0"},
		{62.25, 1, "62.3"},
		{-0.04, 1, "0.0"},
		{-0.06, 1, "-0.1"},
		{999.96, 1, "1000.0"},
		{5, 3, "5.000"},
		{0.005, 2, "0.01"},
		{NAN, 1, "?"},
		{INFINITY, 1, "?"},
		{1e300, 0, "1000000000000000000"},
		{12345678, 0, "12345678"},
	};
	char text[64], small[8] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		textbuf_add(text, sizeof(text), 0, "%.*f", cases[i].decimals, cases[i].value);
		assert_string_equal(text, cases[i].text);
	}
	textbuf_add(text, sizeof(text), 0, "%" PRId64, INT64_MIN);
	assert_string_equal(text, "-9223372036854775808");
	assert_int_equal(textbuf_add(small, sizeof(small), 0, "%s%" PRId64 "%s", "12345",
				     (int64_t)6789, "more"),
			 7);
	assert_string_equal(small, "1234567");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target_corrected),
		cmocka_unit_test(test_target_absurd_request),
		cmocka_unit_test(test_target_prediction),
		cmocka_unit_test(test_risk_variants),
		cmocka_unit_test(test_risk_arguments),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_fallback_levels),
		cmocka_unit_test(test_upstream_takes_late_numbers_as_measured),
		cmocka_unit_test(test_stats_without_data),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_blend),
		cmocka_unit_test(test_recent_pods),
		cmocka_unit_test(test_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
