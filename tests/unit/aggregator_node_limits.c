/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "aggregator/policy/node_limits.h"

#define GIB (1LL << 30)

static struct score_args args;
static struct container_spec container;
static struct pod_spec pod;
static struct score_query query;
static struct node_limits limits;
static struct score_node node;
static char text[NODE_REFUSAL_TEXT];

/*
 * 4 CPUs of 5 and 8 GiB of 10 allocatable; of 100 moments one used more than 2.2 CPUs and 5 GiB. A
 * pod of 300m and 1 GiB.
 */
static int setup(void **state)
{
	(void)state;
	score_args_default(&args, SCORE_CORRECTED);
	container = (struct container_spec){.requests = {{{true, true}}, {{300, GIB}}},
					    .limits = {{{true, true}}, {{1000, 2 * GIB}}}};
	pod = (struct pod_spec){.container_count = 1, .containers = &container};
	query = (struct score_query){.args = &args, .pod = &pod};
	limits = (struct node_limits){.z = 2};
	node = (struct score_node){
		.name = "n",
		.cpu_capacity_milli = 5000,
		.mem_capacity_bytes = 10 * GIB,
		.cpu_allocatable_milli = 4000,
		.mem_allocatable_bytes = 8 * GIB,
		.measured = true,
		.cpu = {true, 40, 2}, /* sigma 100m */
		.mem = {true, 40, 5}, /* sigma 0.5 GiB */
		.p99 = {44, 50},
		.widening = 1,
		.load = {.requests_known = true, .limits_known = true},
	};
	node.load.of[SCORE_CPU].limits = 6000;
	node.load.of[SCORE_MEMORY].limits = 8 * GIB;
	return 0;
}

static enum node_refusal check(void)
{
	text[0] = '\0';
	return node_limits_check(&limits, &query, &node, text);
}

static void without_limits_everything_passes(void **state)
{
	(void)state;
	assert_false(node_limits_any(&limits));
	node.cpu.mean = node.mem.mean = 100;
	assert_int_equal(check(), NODE_PASSES);
	limits.ratio[SCORE_MEMORY] = 1;
	assert_true(node_limits_any(&limits));
	assert_false(node_limits_cap_use(&limits));
}

/* 2200 + 300 = 2500 of 4000: a cap of 0.625 is just kept. */
static void use_on_the_cap_passes_and_above_it_does_not(void **state)
{
	(void)state;
	limits.use_cap[SCORE_CPU] = 0.625;
	assert_int_equal(check(), NODE_PASSES);
	limits.use_cap[SCORE_CPU] = 0.62;
	assert_int_equal(check(), NODE_OVER_USE_CAP_CPU);
	assert_string_equal(text,
			    "CPU in use 2.20+0.30 cores (by requests) is over 0.62 of 4.00: "
			    "there is room once less than 2.18 cores is in use, or with a higher "
			    "--extender-use-cap-cpu");
	limits.use_cap[SCORE_CPU] = 0.1;
	assert_int_equal(check(), NODE_OVER_USE_CAP_CPU);
	assert_non_null(strstr(text, "of 4.00: there is room once less than 0.10 cores"));
}

/* 5 + 1 = 6 GiB of 8. */
static void memory_counts_as_requested(void **state)
{
	(void)state;
	limits.use_cap[SCORE_MEMORY] = 0.75;
	assert_int_equal(check(), NODE_PASSES);
	limits.use_cap[SCORE_MEMORY] = 0.74;
	assert_int_equal(check(), NODE_OVER_USE_CAP_MEMORY);
	assert_string_equal(text,
			    "memory in use 5.00+1.00 GiB is over 0.74 of 8.00: there is room once "
			    "less than 4.92 GiB is in use, or with a higher "
			    "--extender-use-cap-memory");
	node.unseen[SCORE_MEMORY] = 6 * GIB;
	limits.use_cap[SCORE_MEMORY] = 0.85;
	assert_int_equal(check(), NODE_OVER_USE_CAP_MEMORY);
	assert_non_null(strstr(text, "of 8.00: the pod needs a larger node, or"));
}

static void pods_on_their_way_and_owners_count(void **state)
{
	static const struct score_assumed assumed = {.pods = 2,
						     .request_cpu_milli = 400,
						     .cpu_milli = 600,
						     .cpu_high_milli = 1000,
						     .namespace = "shop",
						     .name = "p"};

	(void)state;
	limits.use_cap[SCORE_CPU] = 0.775; /* 3100 */
	score_node_assume(&node, &assumed);
	assert_int_equal(check(), NODE_PASSES);
	query.owner = (struct score_owner){true, 301, 900, GIB};
	assert_int_equal(check(), NODE_OVER_USE_CAP_CPU);
	query.owner.cpu_milli = 20;
	assert_int_equal(check(), NODE_PASSES);
}

static void what_is_not_measured_is_not_capped(void **state)
{
	(void)state;
	limits.use_cap[SCORE_CPU] = limits.use_cap[SCORE_MEMORY] = 0.01;
	assert_true(node_limits_use_known(&limits, &node));
	node.cpu.known = false;
	assert_false(node_limits_use_known(&limits, &node));
	assert_int_equal(check(), NODE_OVER_USE_CAP_MEMORY);
	node.measured = false;
	assert_int_equal(check(), NODE_PASSES);
	node.measured = true;
	node.mem_allocatable_bytes = node.cpu_allocatable_milli = 0;
	assert_int_equal(check(), NODE_PASSES);
	limits.use_cap[SCORE_CPU] = limits.use_cap[SCORE_MEMORY] = 0;
	assert_true(node_limits_use_known(&limits, &node));
}

/* Late data adds what its age makes uncertain; without a distribution sigma stands in for it. */
static void what_is_uncertain_is_added(void **state)
{
	(void)state;
	node.cpu.stddev = 6;
	node.widening = 3; /* sigma was 2 %: 4 % more, twice */
	limits.use_cap[SCORE_CPU] = 0.725; /* 2200 + 400 + 300 */
	assert_int_equal(check(), NODE_PASSES);
	limits.use_cap[SCORE_CPU] = 0.72;
	assert_int_equal(check(), NODE_OVER_USE_CAP_CPU);
	node.p99[SCORE_CPU] = NAN; /* 2000 + 600 + 300 */
	assert_int_equal(check(), NODE_OVER_USE_CAP_CPU);
	limits.use_cap[SCORE_CPU] = 0.725;
	assert_int_equal(check(), NODE_PASSES);
	node.cpu.stddev = 1000; /* no more than 5 CPUs are in use */
	limits.use_cap[SCORE_CPU] = 1.325;
	assert_int_equal(check(), NODE_PASSES);
}

static void what_pods_request_stands_in_for_use(void **state)
{
	(void)state;
	node.measured = node.cpu.known = node.mem.known = false;
	node.estimated = true;
	node.load.of[SCORE_CPU].requests = 2000;
	limits.use_cap[SCORE_CPU] = 0.575;
	assert_int_equal(check(), NODE_PASSES);
	limits.use_cap[SCORE_CPU] = 0.57;
	assert_int_equal(check(), NODE_OVER_USE_CAP_CPU);
	assert_non_null(strstr(text, "CPU requests 2.00+0.30 cores (by requests) is over 0.57"));
	assert_true(node_limits_use_known(&limits, &node));
}

static void unmeasured_nodes_are_refused_beside_measured_ones(void **state)
{
	(void)state;
	limits.refuse_unmeasured = true;
	assert_true(node_limits_any(&limits));
	assert_int_equal(check(), NODE_PASSES);
	node.measured = false;
	assert_int_equal(check(), NODE_UNMEASURED);
	assert_non_null(strstr(text, "not measured (none) while others are"));
	node.fallback = FALLBACK_ALLOCATION; /* none is measured */
	assert_int_equal(check(), NODE_PASSES);
}

/* 6 + 1 CPUs of 4; 8 + 2 GiB of 8. */
static void limits_are_summed_as_declared(void **state)
{
	(void)state;
	limits.ratio[SCORE_CPU] = 1.75;
	limits.ratio[SCORE_MEMORY] = 1.25;
	assert_int_equal(check(), NODE_PASSES);
	limits.ratio[SCORE_MEMORY] = 1.24;
	assert_int_equal(check(), NODE_OVER_LIMIT_RATIO_MEMORY);
	limits.ratio[SCORE_CPU] = 1.74;
	assert_int_equal(check(), NODE_OVER_LIMIT_RATIO_CPU);
	assert_string_equal(
		text, "CPU limits 6.00+1.00 cores are over 1.74 times 4.00: lower the pod's limit, "
		      "where a missing one counts as --unlimited says, or set a higher "
		      "--extender-limit-ratio-cpu");
	limits.ratio[SCORE_CPU] = 2.25;
	limits.ratio[SCORE_MEMORY] = 0;
	limits.ratio[SCORE_CPU] = 1.575;
	container.limits.has_cpu = false; /* counts as its 300m */
	assert_int_equal(check(), NODE_PASSES);
	node.load.of[SCORE_CPU].unlimited = 1; /* and that as 100m */
	assert_int_equal(check(), NODE_OVER_LIMIT_RATIO_CPU);
	node.load.of[SCORE_CPU].unlimited = 0;
	args.unlimited[SCORE_CPU] = -1; /* counts as 4 */
	limits.ratio[SCORE_CPU] = 2.25;
	assert_int_equal(check(), NODE_OVER_LIMIT_RATIO_CPU);
	limits.ratio[SCORE_CPU] = 2.5;
	assert_int_equal(check(), NODE_PASSES);
	node.load.of[SCORE_CPU].unlimited = 1;
	assert_int_equal(check(), NODE_OVER_LIMIT_RATIO_CPU);
	node.load.limits_known = false;
	assert_int_equal(check(), NODE_PASSES);
}

static void absurd_numbers_refuse_in_one_sentence(void **state)
{
	(void)state;
	limits.use_cap[SCORE_CPU] = limits.ratio[SCORE_MEMORY] = 0.5;
	node.unseen[SCORE_CPU] = INT64_MAX;
	assert_int_equal(check(), NODE_OVER_USE_CAP_CPU);
	assert_true(strlen(text) < sizeof(text) - 1);
	limits.use_cap[SCORE_CPU] = 0;
	node.load.of[SCORE_MEMORY].limits = INT64_MAX;
	assert_int_equal(check(), NODE_OVER_LIMIT_RATIO_MEMORY);
	assert_true(strlen(text) < sizeof(text) - 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(without_limits_everything_passes),
		T(use_on_the_cap_passes_and_above_it_does_not),
		T(memory_counts_as_requested),
		T(pods_on_their_way_and_owners_count),
		T(what_is_not_measured_is_not_capped),
		T(what_is_uncertain_is_added),
		T(what_pods_request_stands_in_for_use),
		T(unmeasured_nodes_are_refused_beside_measured_ones),
		T(limits_are_summed_as_declared),
		T(absurd_numbers_refuse_in_one_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
