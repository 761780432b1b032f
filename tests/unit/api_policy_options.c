/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the extender, of quotas and of slack: what they set, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/policy_options.h"
#include "shared/clock.h"

static void test_blends(void **state)
{
	static const struct {
		const char *text;
		double peaks, limit; /* < 0: refused */
		const char *error;
	} cases[] = {
		{"", 0, 0, NULL},
		{"Peaks=2,LimitAware", 2, 1, NULL},
		{"Peaks=1000000", 1000000, 0, NULL},
		{"Peaks=1000001", -1, 0,
		 "the weight \"1000001\" of Peaks is no number above 0 and at most 1000000"},
		{"Peaks=0", -1, 0,
		 "the weight \"0\" of Peaks is no number above 0 and at most 1000000"},
		{"Peaks=2x", -1, 0,
		 "the weight \"2x\" of Peaks is no number above 0 and at most 1000000"},
		{"Peaks=", -1, 0,
		 "the weight \"\" of Peaks is no number above 0 and at most 1000000"},
		{"LimitAware=0.5,LimitAware", -1, 0, "LimitAware is named twice"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct extender_options o = {.weights[PLUGIN_PEAKS] = 7};
		struct error error = {""};
		int rc = extender_options_parse_blend(&o, cases[i].text, &error);

		assert_int_equal(rc != 0, cases[i].peaks < 0);
		assert_string_equal(error.text, cases[i].error ? cases[i].error : "");
		assert_true(o.weights[PLUGIN_PEAKS] == (rc ? 7 : cases[i].peaks));
		assert_true(o.weights[PLUGIN_LIMIT_AWARE] == cases[i].limit);
	}
}

/* Options are for the corrected variant. */
static void test_arguments(void **state)
{
	const struct extender_options o = {.default_pod_cpu_milli = 250,
					   .unlimited_is_allocatable = true,
					   .oom_cost = 0.25};
	struct score_args usual, args;

	(void)state;
	score_args_default(&usual, SCORE_CORRECTED);
	extender_options_args(&o, SCORE_CORRECTED, &args);
	assert_int_equal(args.default_requests_cpu_milli, 250);
	assert_true(args.oom_cost == 0.25);
	assert_true(args.unlimited[SCORE_CPU] != usual.unlimited[SCORE_CPU]);
	extender_options_args(NULL, SCORE_CORRECTED, &args);
	assert_int_equal(args.default_requests_cpu_milli, usual.default_requests_cpu_milli);
	assert_true(args.unlimited[SCORE_CPU] == usual.unlimited[SCORE_CPU]);
	extender_options_args(&o, SCORE_UPSTREAM, &args);
	assert_int_not_equal(args.default_requests_cpu_milli, 250);
}

static void test_default_quotas(void **state)
{
	static const struct {
		const char *min, *max;
		bool cover_all, given;
		int64_t min_cpu, max_cpu; /* < 0: not there */
		const char *error; /* NULL: none */
	} cases[] = {
		{NULL, NULL, false, false, -1, -1, NULL},
		{NULL, NULL, true, true, -1, -1, NULL},
		{"cpu=2,memory=4Gi", NULL, false, true, 2000, -1, NULL},
		{NULL, "nvidia.com/gpu=1,cpu=0", false, true, -1, 0, NULL},
		{"cpu", NULL, false, false, 0, 0,
		 "--quota-default-min: \"cpu\" is not of the form RESOURCE=QUANTITY"},
		{"=2", NULL, false, false, 0, 0,
		 "--quota-default-min: \"=2\" is not of the form RESOURCE=QUANTITY"},
		{NULL, "memory=1,cpu=2,memory=1", false, false, 0, 0,
		 "--quota-default-max: memory is given twice"},
		{NULL, "memory=-1", false, false, 0, 0,
		 "--quota-default-max: memory must not be negative"},
	};
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct quota_options o;
		int64_t amount;
		int rc;

		quota_options_default(&o);
		error.text[0] = '\0';
		rc = quota_options_set_default(&o, cases[i].min, cases[i].max, cases[i].cover_all,
					       &error);
		assert_int_equal(rc != 0, cases[i].error != NULL);
		assert_string_equal(error.text, cases[i].error ? cases[i].error : "");
		assert_true(o.has_default == cases[i].given);
		if (!rc) {
			amount = -1;
			resources_find(&o.default_min, "cpu", &amount);
			assert_int_equal(amount, cases[i].min_cpu);
			amount = -1;
			resources_find(&o.default_max, "cpu", &amount);
			assert_int_equal(amount, cases[i].max_cpu);
		}
		quota_options_fini(&o);
	}
}

static void test_refused_lists(void **state)
{
	char many[257 * sizeof("a/000=1,")] = "";
	const char *const lists[] = {"cpu=x", "memory=x", many};
	struct quota_options o;
	struct error error;

	(void)state;
	for (int i = 0; i < 257; i++)
		snprintf(many + strlen(many), sizeof("a/000=1,"), "%sa/%03d=1", i ? "," : "", i);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		quota_options_default(&o);
		assert_int_not_equal(quota_options_set_default(&o, lists[i], NULL, true, &error),
				     0);
		assert_false(o.has_default);
	}
	assert_string_equal(error.text, "--quota-default-min: names more than 256 resources");
	*strrchr(many, ',') = '\0';
	assert_int_equal(quota_options_set_default(&o, many, NULL, true, &error), 0);
	quota_options_fini(&o);
}

/* What is not given is as usual. */
static void test_slack(void **state)
{
	static char requested[] = "requested", allocatable[] = "allocatable", rate[] = "20%",
		    wrong[] = "used";
	const struct slack_option_values all = {
		rate, allocatable, 7, 60 * NS_PER_SEC, 90 * NS_PER_SEC, true, 0.5, 0.25};
	struct slack_options usual, o;
	struct error error = {""};

	(void)state;
	slack_options_default(&usual);
	assert_int_equal(slack_options_read(&(struct slack_option_values){0}, &o, &error), 0);
	assert_true(o.rate_ppm == usual.rate_ppm && o.base == usual.base &&
		    o.granularity == usual.granularity && o.unneeded_ns == usual.unneeded_ns &&
		    o.node_start_ns == usual.node_start_ns && !o.from_arrivals &&
		    o.cpu_share == usual.cpu_share && o.mem_share == usual.mem_share);
	assert_int_equal(slack_options_read(&all, &o, &error), 0);
	assert_int_equal(o.rate_ppm, 200000);
	assert_int_equal(o.base, SLACK_BASE_ALLOCATABLE);
	assert_int_equal(o.granularity, 7);
	assert_int_equal(o.unneeded_ns, 60 * NS_PER_SEC);
	assert_int_equal(o.node_start_ns, 90 * NS_PER_SEC);
	assert_true(o.from_arrivals && o.cpu_share == 0.5 && o.mem_share == 0.25);
	assert_int_equal(slack_options_read(&(struct slack_option_values){.base = requested}, &o,
					    &error),
			 0);
	assert_int_equal(o.base, SLACK_BASE_REQUESTED);
	assert_int_not_equal(
		slack_options_read(&(struct slack_option_values){.base = wrong}, &o, &error), 0);
	assert_string_equal(error.text,
			    "--extra-capacity-base: \"used\" is neither requested nor allocatable");
	assert_int_not_equal(
		slack_options_read(&(struct slack_option_values){.rate = wrong}, &o, &error), 0);
	assert_memory_equal(error.text, "--extra-capacity-min-rate", 25);
}

/* The daemon may have been started with the same environment. */
static void test_slack_options_that_are_given(void **state)
{
	const struct slack_option_values none = {0}, shares = {.cpu_share = 0.5, .mem_share = 0.5},
					 times = {.unneeded_ns = 1, .node_start_ns = 1};

	(void)state;
	assert_null(slack_options_given(&none));
	assert_string_equal(slack_options_given(&shares), "--slack-use-cap-cpu");
	assert_string_equal(slack_options_given(&times), "--slack-unneeded-time");
	assert_int_equal(setenv("EVENKEEL_SLACK_USE_CAP_CPU", "0.5", 1), 0);
	assert_string_equal(slack_options_given(&shares), "--slack-use-cap-memory");
	assert_int_equal(setenv("EVENKEEL_SLACK_USE_CAP_MEMORY", "0.5", 1), 0);
	assert_null(slack_options_given(&shares));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blends),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_default_quotas),
		cmocka_unit_test(test_refused_lists),
		cmocka_unit_test(test_slack),
		cmocka_unit_test(test_slack_options_that_are_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
