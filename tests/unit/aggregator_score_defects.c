/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known to be wrong upstream, each as one input with both scores: the table of variants in
 * packaging/docs/scheduler.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/policy/recent_pods.h"
#include "aggregator/policy/score/score.h"
#include "aggregator/policy/score/score_load.h"
#include "aggregator/policy/score/plugin.h"
#include "tests/score_fixture.h"

#define GIB   (1LL << 30)
#define TLP   PLUGIN_TARGET_LOAD_PACKING
#define LVRB  PLUGIN_LOAD_VARIATION_RISK_BALANCING
#define LROC  PLUGIN_LOW_RISK_OVER_COMMITMENT
#define PEAKS PLUGIN_PEAKS
#define ALLOC PLUGIN_ALLOCATABLE
#define LIMIT PLUGIN_LIMIT_AWARE

enum { NODES = 3 };

/* One input; the score of nodes[0] is what is compared. */
struct scene {
	enum score_variant variant;
	struct score_args args;
	struct container_spec container;
	struct pod_spec pod;
	struct score_node nodes[NODES];
	size_t count;
};

static const struct power_model model = {"a", 471.74, -91.5, -0.07186};

static struct score_node node_of(int64_t allocatable_milli, double cpu_percent)
{
	return (struct score_node){
		.name = "a",
		.cpu_capacity_milli = 10000,
		.mem_capacity_bytes = 10 * GIB,
		.cpu_allocatable_milli = allocatable_milli,
		.mem_allocatable_bytes = 10 * GIB,
		.measured = true,
		.cpu = {true, cpu_percent, 0},
		.mem = {true, 0, 0},
		.fallback = FALLBACK_WINDOW_15M,
		.window = "15m",
		.contention = NAN,
		.load = {.requests_known = true, .limits_known = true},
		.power = &model,
	};
}

static void add_pod(struct score_node *n, int64_t request_milli, int64_t limit_milli)
{
	struct container_spec c = {.requests = {.has_cpu = true, .cpu_milli = request_milli},
				   .limits = {.has_cpu = limit_milli > 0,
					      .has_mem = true,
					      .cpu_milli = limit_milli,
					      .mem_bytes = 1}};
	struct pod_spec pod = {.container_count = 1, .containers = &c};

	score_fixture_add_pod(&n->load, &pod);
}

/* --- TargetLoadPacking ------------------------------------------------------------------------ */

static void limits_first(struct scene *s)
{
	s->nodes[0] = node_of(10000, 20);
	s->container.requests = (struct resource_list){.has_cpu = true, .cpu_milli = 400};
	s->container.limits = (struct resource_list){.has_cpu = true, .cpu_milli = 4000};
}

static void no_capacity(struct scene *s)
{
	s->nodes[0] = node_of(0, 20);
	s->nodes[0].cpu_capacity_milli = 0;
}

static void capacity_for_allocatable(struct scene *s)
{
	s->nodes[0] = node_of(8000, 40);
	s->pod.container_count = 0;
}

/*
 * Ten pods of 200 millicores run, and are measured; the scheduler has just started and lists them.
 */
static void restart_counts_twice(struct scene *s)
{
	struct score_args *args = &s->args;
	struct container_spec c = {.requests = {.has_cpu = true, .cpu_milli = 200}};
	struct pod_spec pod = {.container_count = 1, .containers = &c};
	int64_t listed_s = 1000, window_end_s = 990;

	s->nodes[0] = node_of(10000, 30);
	s->pod.container_count = 0;
	if (s->variant == SCORE_UPSTREAM && recent_pod_counts(listed_s, window_end_s))
		s->nodes[0].pending_cpu_milli = 10 * target_load_packing_predict(&pod, args);
}

/*
 * Two pods of 1000 millicores came long ago; nothing came since: upstream's cache keeps them until
 * something does.
 */
static void expired_pods_stay(struct scene *s)
{
	bool counts = s->variant == SCORE_UPSTREAM || recent_pod_counts(200, 1000);

	s->nodes[0] = node_of(10000, 40);
	s->pod.container_count = 0;
	s->nodes[0].pending_cpu_milli = counts ? 2 * 1500 : 0;
}

/*
 * A pod that uses 4000 millicores came 100 s ago: the mean of 15 minutes has taken in a ninth of
 * it.
 */
static void gap_after_a_minute(struct scene *s)
{
	double taken_in = 4000.0 * 100 / 900;

	s->nodes[0] = node_of(10000, 30 + taken_in / 100);
	s->pod.container_count = 0;
	if (s->variant != SCORE_UPSTREAM || recent_pod_counts(1000, 1100))
		s->nodes[0].pending_cpu_milli = (int64_t)(4000 - taken_in);
}

/* --- LoadVariationRiskBalancing --------------------------------------------------------------- */

static void full_but_steady(struct scene *s)
{
	s->nodes[0] = node_of(10000, 100);
}

static void percent_of_what(struct scene *s)
{
	s->nodes[0] = node_of(8000, 80);
	s->pod.container_count = 0;
}

static void sensitivity_zero(struct scene *s)
{
	s->nodes[0] = node_of(10000, 20);
	s->nodes[0].cpu.stddev = 40;
	s->pod.container_count = 0;
	/* Refused by the corrected variant; its default then. */
	if (s->variant == SCORE_UPSTREAM)
		s->args.safe_variance_sensitivity = 0;
}

static void recent_pods_ignored(struct scene *s)
{
	s->nodes[0] = node_of(10000, 20);
	s->pod.container_count = 0;
	s->nodes[0].pending_cpu_milli = s->nodes[0].pending_high_cpu_milli = 6000;
}

/* --- LowRiskOverCommitment -------------------------------------------------------------------- */

static void empty_but_loaded(struct scene *s)
{
	s->nodes[0] = node_of(10000, 95);
	s->container.requests.cpu_milli = s->container.limits.cpu_milli = 100;
}

static void steady_load(struct scene *s)
{
	s->nodes[0] = node_of(10000, 20);
	s->nodes[0].cpu.stddev = 1e-8;
	add_pod(&s->nodes[0], 5000, 5000);
}

static void metrics_of_nothing(struct scene *s)
{
	s->nodes[0] = node_of(10000, 0);
	s->nodes[0].cpu.known = s->nodes[0].mem.known = false;
	add_pod(&s->nodes[0], 5000, 5000);
}

static void deviation_blown_up(struct scene *s)
{
	s->nodes[0] = node_of(10000, 30);
	s->nodes[0].cpu.stddev = 5;
	add_pod(&s->nodes[0], 3750, 12000);
	s->container.requests.cpu_milli = s->container.limits.cpu_milli = 100;
}

static void asks_for_nothing(struct scene *s)
{
	s->nodes[0] = node_of(10000, 20);
	add_pod(&s->nodes[0], 5000, 5000);
	memset(&s->container, 0, sizeof(s->container));
	s->pod.container_count = 0;
}

static void unlimited_is_harmless(struct scene *s)
{
	s->nodes[0] = node_of(10000, 20);
	add_pod(&s->nodes[0], 5000, 0);
}

/* --- the plugins that compare nodes ----------------------------------------------------------- */

static void no_model_wins(struct scene *s)
{
	s->nodes[0] = node_of(10000, 20);
	s->nodes[0].power = NULL;
	s->nodes[1] = node_of(10000, 20);
	s->count = 2;
}

static void no_metric_wins(struct scene *s)
{
	no_model_wins(s);
	s->nodes[0].power = &model;
	s->nodes[0].cpu.known = false;
}

static void overloaded_wins(struct scene *s)
{
	no_model_wins(s);
	s->nodes[0].power = &model;
	s->nodes[0].cpu.mean = 99;
}

static void equal_is_nothing(struct scene *s)
{
	s->nodes[0] = s->nodes[1] = node_of(10000, 20);
	s->count = 2;
}

static void no_allocatable(struct scene *s)
{
	s->nodes[0] = node_of(0, 20);
	s->nodes[1] = node_of(10000, 20);
	s->count = 2;
}

/* upstream, corrected: as in the table of score.c. */
static const struct {
	const char *what;
	void (*build)(struct scene *s);
	enum score_plugin_id plugin;
	int upstream, corrected;
} defects[] = {
	{"limits first", limits_first, TLP, 27, 76},
	{"no capacity", no_capacity, TLP, 40, 0},
	{"capacity for allocatable", capacity_for_allocatable, TLP, 100, 33},
	{"H1 restart", restart_counts_twice, TLP, 27, 85},
	{"H2 expired", expired_pods_stay, TLP, 20, 100},
	{"H5 gap", gap_after_a_minute, TLP, 92, 20},
	{"halved", full_but_steady, LVRB, 50, 0},
	{"percent of what", percent_of_what, LVRB, 60, 0},
	{"LV4 sensitivity 0", sensitivity_zero, LVRB, 90, 40},
	{"recent pods", recent_pods_ignored, LVRB, 90, 20},
	{"LR1 empty but loaded", empty_but_loaded, LROC, 100, 50},
	{"LR2 steady load", steady_load, LROC, 50, 100},
	{"LR3 metrics of nothing", metrics_of_nothing, LROC, 100, 0},
	{"LR4 deviation", deviation_blown_up, LROC, 75, 84},
	{"asks for nothing", asks_for_nothing, LROC, 0, 100},
	{"unlimited", unlimited_is_harmless, LROC, 100, 90},
	{"P1 no model", no_model_wins, PEAKS, 100, 0},
	{"P1 no metric", no_metric_wins, PEAKS, 100, 0},
	{"P1 overloaded", overloaded_wins, PEAKS, 100, 0},
	{"equal nodes", equal_is_nothing, ALLOC, 0, 100},
	{"equal nodes", equal_is_nothing, LIMIT, 0, 100},
	{"no allocatable", no_allocatable, LIMIT, 0, 0},
};

static int score_of(size_t i, enum score_variant variant)
{
	struct scene s = {.variant = variant, .count = 1};
	struct score_query q = {.variant = variant, .args = &s.args, .pod = &s.pod};
	struct score_scale scale;
	struct score_result r;

	score_args_default(&s.args, variant);
	s.container = (struct container_spec){
		.requests = {.has_cpu = true, .cpu_milli = 1000},
		.limits = {.has_cpu = true, .has_mem = true, .cpu_milli = 1000, .mem_bytes = 1},
	};
	s.pod = (struct pod_spec){.container_count = 1, .containers = &s.container};
	defects[i].build(&s);
	score_fixture_scale(&q, defects[i].plugin, s.nodes, s.count, &scale);
	score_fixture_judge(&q, defects[i].plugin, &scale, &s.nodes[0], &r);
	assert_true(r.reason[0] || variant == SCORE_UPSTREAM);
	return (int)r.score;
}

static void test_defects(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		int upstream = score_of(i, SCORE_UPSTREAM),
		    corrected = score_of(i, SCORE_CORRECTED);

		if (upstream == defects[i].upstream && corrected == defects[i].corrected)
			continue;
		print_error("%s %s: upstream %d, corrected %d\n",
			    score_plugin_name(defects[i].plugin), defects[i].what, upstream,
			    corrected);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* A target above 100 gives scores above 100 upstream; here it is refused. */
static void test_target_above_100(void **state)
{
	struct score_node node = node_of(10000, 20);
	struct pod_spec pod = {0};
	struct score_args args;
	struct score_query q = {.variant = SCORE_UPSTREAM, .args = &args, .pod = &pod};
	struct score_scale scale;
	struct score_result r;
	struct error reason;
	const char *field;

	(void)state;
	score_args_default(&args, SCORE_UPSTREAM);
	args.target_utilization = 200;
	assert_int_equal(score_args_check(&args, TLP, SCORE_UPSTREAM, &field, &reason), 0);
	score_fixture_scale(&q, TLP, &node, 1, &scale);
	score_node_by(&q, TLP, &scale, &node, SCORE_BARE, &r);
	assert_int_equal(r.score, 190);
	assert_true(score_args_check(&args, TLP, SCORE_CORRECTED, &field, &reason) < 0);
	assert_string_equal(field, "targetUtilization");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defects),
		cmocka_unit_test(test_target_above_100),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
