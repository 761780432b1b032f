/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The corrected variants of the plugins that compare nodes, FALLBACK_ALLOCATION, contention and sums.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/policy/score/risk.h"
#include "aggregator/policy/score/score.h"
#include "aggregator/policy/score/score_load.h"
#include "tests/score_fixture.h"
#include "tests/usage_fixture.h"
#include "tests/view_fixture.h"

#define GIB   (1LL << 30)
#define TLP   PLUGIN_TARGET_LOAD_PACKING
#define LVRB  PLUGIN_LOAD_VARIATION_RISK_BALANCING
#define LROC  PLUGIN_LOW_RISK_OVER_COMMITMENT
#define PEAKS PLUGIN_PEAKS
#define ALLOC PLUGIN_ALLOCATABLE
#define LIMIT PLUGIN_LIMIT_AWARE

enum { MOST = 64 };

static struct score_args args;
static struct pod_spec pod;
static struct score_query query;
static struct score_result results[MOST];
static const struct power_model model = {"n", 400, -90, -0.07};

static int setup(void **state)
{
	(void)state;
	score_args_default(&args, SCORE_CORRECTED);
	pod = (struct pod_spec){0};
	query = (struct score_query){.args = &args, .pod = &pod};
	return 0;
}

static struct score_node node_of(double cpu_percent, double mem_percent)
{
	return (struct score_node){
		.name = "n",
		.cpu_capacity_milli = 10000,
		.mem_capacity_bytes = 10 * GIB,
		.cpu_allocatable_milli = 10000,
		.mem_allocatable_bytes = 10 * GIB,
		.measured = true,
		.cpu = {true, cpu_percent, 0},
		.mem = {true, mem_percent, 0},
		.fallback = FALLBACK_WINDOW_15M,
		.window = "15m",
		.contention = NAN,
		.load = {.requests_known = true, .limits_known = true},
		.power = &model,
	};
}

static void score_all(enum score_plugin_id plugin, const struct score_node *nodes, size_t count)
{
	struct score_scale scale;

	score_fixture_scale(&query, plugin, nodes, count, &scale);
	for (size_t i = 0; i < count; i++)
		score_fixture_judge(&query, plugin, &scale, &nodes[i], &results[i]);
}

static double term(const struct score_result *r, const char *name)
{
	for (size_t i = 0; i < r->term_count; i++)
		if (strcmp(r->terms[i].name, name) == 0)
			return r->terms[i].value;
	fail_msg("no term %s", name);
	return 0;
}

/* --- LimitAware ------------------------------------------------------------------------------- */

static void test_limits_spread(void **state)
{
	static const int64_t limits[] = {0, 5000, 20000};
	static const int want[] = {100, 75, 0};
	struct score_node nodes[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		nodes[i] = node_of(20, 20);
		nodes[i].load.of[SCORE_CPU].limits = limits[i];
	}
	score_all(LIMIT, nodes, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(results[i].score, want[i]);
	/* Means over CPU and memory: (100 + 100) / 2, (50 + 100) / 2, (-100 + 100) / 2 */
	assert_true(results[1].raw == 75 && results[2].raw == 0);
	assert_true(term(&results[2], "cpuLimitRatio") == 2);
	assert_true(term(&results[2], "lowest") == 0 && term(&results[2], "highest") == 100);
	assert_string_equal(
		results[1].reason,
		"limits with the pod are 0.50 times the allocatable CPU and 0.00 times "
		"the allocatable memory; 75.0 % free of limits, these nodes from 0.0 to "
		"100.0 %");
}

/* What a container without a limit counts as, on the node and in the pod alike. */
static void test_unlimited(void **state)
{
	struct container_spec c[2] = {{.requests = {.has_cpu = true, .cpu_milli = 3000}},
				      {.limits = {.has_cpu = true, .cpu_milli = 1000}}};
	struct score_node node = node_of(20, 20);

	(void)state;
	args.limit_weights[SCORE_MEMORY] = 0;
	pod = (struct pod_spec){.container_count = 2, .containers = c};
	score_fixture_add_pod(&node.load, &pod);
	score_all(LIMIT, &node, 1); /* 2 * (3000 + 1000) of 10000 */
	assert_true(fabs(results[0].raw - 20) < 1e-9);
	args.unlimited[SCORE_CPU] = -1;
	score_all(LIMIT, &node, 1); /* 2 * (10000 + 1000) of 10000 */
	assert_true(results[0].raw == -120);
	assert_true(term(&results[0], "cpuUnlimited") == 2);
	args.unlimited[SCORE_CPU] = 4000;
	score_all(LIMIT, &node, 1);
	assert_true(fabs(results[0].raw - 0) < 1e-9);
	args.unlimited[SCORE_CPU] = 500; /* no less than it requests */
	score_all(LIMIT, &node, 1);
	assert_true(fabs(results[0].raw - 20) < 1e-9);
	node.load.of[SCORE_CPU].unknown = 1; /* may use all */
	score_all(LIMIT, &node, 1);
	assert_true(fabs(results[0].raw + 80) < 1e-9);
	node.load.of[SCORE_CPU].unknown = 0;
	score_node_assume(&node, &(struct score_assumed){.pods = 1,
							 .request_cpu_milli = 1000,
							 .namespace = "",
							 .name = "p"});
	score_all(LIMIT, &node, 1);
	assert_true(fabs(results[0].raw - 10) < 1e-9);
}

/*
 * One node at six times its allocatable makes all others equal, unless the extremes are left aside.
 */
static void test_quantiles(void **state)
{
	struct score_node nodes[40];

	(void)state;
	args.limit_weights[SCORE_MEMORY] = 0;
	for (int i = 0; i < 40; i++) {
		nodes[i] = node_of(20, 20);
		nodes[i].load.of[SCORE_CPU].limits = i == 39 ? 60000 : 100 * i;
	}
	score_all(LIMIT, nodes, 40);
	assert_int_equal(results[0].score, 100);
	assert_int_equal(results[38].score, 94);
	assert_int_equal(results[39].score, 0);
	args.quantiles = true;
	score_all(LIMIT, nodes, 40);
	/* Nearest rank: the 2nd and the 38th of the raw values, so those of limits 3800 and 200. */
	assert_true(term(&results[0], "lowest") == 62 && term(&results[0], "highest") == 98);
	assert_int_equal(results[0].score, 100);
	assert_int_equal(results[2].score, 100);
	/* 36 points are within the range that is spread at least, 50. */
	assert_int_equal(results[20].score, 64);
	assert_int_equal(results[38].score, 28);
	assert_int_equal(results[39].score, 0);
	/* All alike but one: the others are equal, and it is worse. */
	for (int i = 0; i < 39; i++)
		nodes[i].load.of[SCORE_CPU].limits = 100;
	score_all(LIMIT, nodes, 40);
	assert_int_equal(results[7].score, 100);
	assert_int_equal(results[39].score, 0);
}

/*
 * As Kubernetes counts a pod's limit: the larger of containers and an init container, and overhead;
 * without init containers on demand. On the node and in the pod alike.
 */
static void test_init_containers(void **state)
{
	struct container_spec main = {.limits = {.has_cpu = true, .cpu_milli = 1000}};
	struct container_spec init[2] = {{.limits = {.has_cpu = true, .cpu_milli = 500},
					  .sidecar = true},
					 {.limits = {.has_cpu = true, .cpu_milli = 2000}}};
	struct score_node node = node_of(20, 20);

	(void)state;
	args.limit_weights[SCORE_MEMORY] = 0;
	pod = (struct pod_spec){.container_count = 1,
				.containers = &main,
				.init_count = 2,
				.init = init,
				.overhead = {.has_cpu = true, .cpu_milli = 100}};
	score_fixture_add_pod(&node.load, &pod);
	score_all(LIMIT, &node, 1); /* 2 * (max(1000 + 500, 500 + 2000) + 100) of 10000 */
	assert_true(fabs(results[0].raw - 48) < 1e-9);
	assert_true(fabs(term(&results[0], "cpuLimitRatioBefore") - 0.26) < 1e-9);
	args.init_ignored = true;
	score_all(LIMIT, &node, 1); /* 2 * (1000 + 500 + 100) */
	assert_true(fabs(results[0].raw - 68) < 1e-9);
	assert_true(fabs(term(&results[0], "cpuLimitRatioBefore") - 0.16) < 1e-9);
}

/* What states no limit is told apart, so that the ratio before is the one that `nodes` shows. */
static void test_stated_limits_are_told_apart(void **state)
{
	struct container_spec c = {.requests = {.has_cpu = true, .cpu_milli = 700}};
	struct score_node node = node_of(20, 20);

	(void)state;
	args.limit_weights[SCORE_MEMORY] = 0;
	pod = (struct pod_spec){.container_count = 1, .containers = &c};
	score_fixture_add_pod(&node.load, &pod);
	node.load.of[SCORE_CPU].limits = 3000;
	score_all(LIMIT, &node, 1);
	assert_true(term(&results[0], "cpuLimits") == 3000);
	assert_true(fabs(term(&results[0], "cpuLimitRatioBefore") - 0.3) < 1e-9);
	assert_true(term(&results[0], "cpuUnlimitedLimits") == 1400);
	assert_true(fabs(term(&results[0], "cpuLimitRatio") - 0.44) < 1e-9);
}

static double other_term(const struct score_result *r, const char *resource, const char *name)
{
	for (size_t i = 0; i < r->term_count; i++)
		if (r->terms[i].resource && strcmp(r->terms[i].resource, resource) == 0 &&
		    strcmp(r->terms[i].name, name) == 0)
			return r->terms[i].value;
	fail_msg("no term %s of %s", name, resource);
	return 0;
}

/* Storage of 100 and 4 GPUs; the pod limits 20 of one and 2 of the other. */
static void test_other_resources(void **state)
{
	struct score_other on_a[] = {{100, {.limits = 50, .unlimited = 2, .unlimited_requests = 6}},
				     {4, {.limits = 1}}};
	struct score_other on_b[] = {{100, {.limits = 130}}, {4, {.limits = 2}}};
	struct score_other on_c[] = {{100, {.limits = 0}}, {0, {.limits = 0}}};
	struct score_node nodes[3] = {node_of(20, 20), node_of(20, 20), node_of(20, 20)};
	struct pod_sums sums = {.limits = RESOURCES_NONE};

	(void)state;
	nodes[0].others = on_a;
	nodes[1].others = on_b;
	nodes[2].others = on_c;
	args.limit_weights[SCORE_CPU] = args.limit_weights[SCORE_MEMORY] = 0;
	args.limit_other_count = 2;
	args.limit_others[0].name = "ephemeral-storage";
	args.limit_others[0].weight = 3;
	args.limit_others[1].name = "x/gpu";
	args.limit_others[1].weight = 1;
	resources_set_named(&sums.limits, "ephemeral-storage", 20);
	query.all = &sums;
	/* No GPU is asked for: c is as free of their limits as can be. */
	score_all(LIMIT, nodes, 3);
	assert_true(fabs(results[0].raw - (3 * 24 + 75) / 4.0) < 1e-9);
	assert_true(fabs(results[1].raw - (3 * -50 + 50) / 4.0) < 1e-9);
	assert_true(fabs(results[2].raw - (3 * 80 + 100) / 4.0) < 1e-9);
	assert_true(other_term(&results[1], "ephemeral-storage", "limitRatioBefore") == 1.3);
	assert_true(other_term(&results[1], "ephemeral-storage", "limitRatio") == 1.5);
	assert_true(other_term(&results[0], "ephemeral-storage", "unlimitedLimits") == 6);
	assert_int_equal(results[2].score, 100);
	assert_int_equal(results[1].score, 0);
	/* With one it is no place for the pod. */
	resources_set_named(&sums.limits, "x/gpu", 2);
	args.unlimited_storage = 10;
	score_all(LIMIT, nodes, 3);
	assert_true(fabs(results[0].raw - (3 * 10 + 25) / 4.0) < 1e-9);
	assert_true(results[2].outside && results[2].score == 0);
	args.unlimited_storage = -1; /* two whole nodes */
	score_all(LIMIT, nodes, 1);
	assert_true(fabs(results[0].raw - (3 * -170 + 25) / 4.0) < 1e-9);
	/* Nobody told what its pods limit. */
	nodes[0].others = NULL;
	score_all(LIMIT, nodes, 1);
	assert_true(results[0].outside && results[0].score == 0);
	resources_fini(&sums.limits);
}

/* --- the others ------------------------------------------------------------------------------- */

static void test_allocatable(void **state)
{
	static const int64_t cpus[] = {4000, 8000, 7000};
	static const int least[] = {100, 0, 25}, most[] = {0, 100, 75};
	struct score_node nodes[3];

	(void)state;
	args.allocatable_weights[SCORE_MEMORY] = 0;
	for (int i = 0; i < 3; i++) {
		nodes[i] = node_of(20, 20);
		nodes[i].cpu_allocatable_milli = cpus[i];
	}
	score_all(ALLOC, nodes, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(results[i].score, least[i]);
	assert_true(term(&results[2], "lowest") == -8000 && term(&results[2], "highest") == -4000);
	assert_string_equal(results[2].reason, "25 % of the way from the largest to the smallest "
					       "allocatable of these nodes");
	args.allocatable_mode = ALLOCATABLE_MOST;
	score_all(ALLOC, nodes, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(results[i].score, most[i]);
	args.allocatable_weights[SCORE_CPU] = 0;
	score_all(ALLOC, nodes, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(results[i].score, 100);
}

/* A model whose power rises by the same with every percent, in effect: k1 and k2 small. */
static void test_peaks(void **state)
{
	static const struct power_model models[] = {
		{"a", 0, 1e6, 1e-6}, {"b", 0, 3e6, 1e-6}, {"c", 0, 2e6, 1e-6}, {"d", 0, 1, 1e9}};
	static const int want[] = {100, 0, 50, 0};
	struct container_spec c = {.requests = {.has_cpu = true, .cpu_milli = 1000}};
	struct score_node nodes[4];

	(void)state;
	pod = (struct pod_spec){.container_count = 1, .containers = &c};
	for (int i = 0; i < 4; i++) {
		nodes[i] = node_of(20, 20);
		nodes[i].power = &models[i];
	}
	score_all(PEAKS, nodes, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(results[i].score, want[i]);
	assert_true(fabs(results[0].raw - 10) < 1e-3);
	assert_string_equal(results[3].reason,
			    "the power model gives no number here: the least score");
	/* Pods just placed are part of the load that the pod comes to. */
	nodes[0].pending_cpu_milli = 7000;
	score_all(PEAKS, nodes, 4);
	assert_true(term(&results[0], "cpuNow") == 90);
	assert_int_equal(results[0].score, 100);
	nodes[0].pending_cpu_milli = 7001;
	score_all(PEAKS, nodes, 4);
	assert_int_equal(results[0].score, 0);
	assert_true(term(&results[2], "highest") > term(&results[2], "lowest"));
	assert_int_equal(results[2].score, 100);
	/* Overhead is use, also of a pod that requests nothing; not upstream. */
	pod = (struct pod_spec){.overhead = {.has_cpu = true, .cpu_milli = 300}};
	score_all(PEAKS, nodes, 4);
	assert_true(term(&results[1], "podCpu") == 300);
	query.variant = SCORE_UPSTREAM;
	score_all(PEAKS, nodes, 4);
	assert_true(term(&results[1], "podCpu") == 0);
}

/*
 * What the machine keeps for itself is what its daemons may use: an idle, empty node has no risk.
 */
static void test_reserved_share(void **state)
{
	struct score_node node = node_of(4, 4);

	(void)state;
	node.cpu_allocatable_milli = 9500;
	node.mem_allocatable_bytes = 95 * GIB / 10;
	score_all(LROC, &node, 1);
	assert_int_equal(results[0].score, 100);
	node.cpu.mean = 6;
	score_all(LROC, &node, 1);
	assert_int_equal(results[0].score, 50);
	assert_true(fabs(term(&results[0], "cpuThreshold") - 0.05) < 1e-12);
	/* Pods just placed count on both sides. */
	score_node_assume(&node, &(struct score_assumed){.pods = 1,
							 .request_cpu_milli = 1000,
							 .cpu_milli = 1000,
							 .namespace = "",
							 .name = "p"});
	score_all(LROC, &node, 1);
	assert_int_equal(results[0].score, 50);
	assert_true(fabs(term(&results[0], "cpuMu") - 0.16) < 1e-12);
	assert_true(fabs(term(&results[0], "cpuThreshold") - 0.15) < 1e-12);
}

/* Limits bound the load only where there are some and the load is not beyond them. */
static void test_conditioning(void **state)
{
	static const struct {
		double request, limit, mu, sigma;
		bool by_limits;
	} cases[] = {
		{3000, 5000, 0.3, 0.1, true},
		{3000, 5000, 0.6, 0.1, false}, /* others than these pods load the node */
		{0, 0, 0.04, 0.02, false}, /* no pods */
		{3000, 10000, 0.3, 0.1, false}, /* as much as there is */
		{5001, 5000, 0.3, 0.1, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct commitment c = {
			.allocatable = 10000,
			.machine = 10500,
			.reserved = 500,
			.request = cases[i].request,
			.limit = cases[i].limit,
			.request_minus_pod = cases[i].request,
			.limit_minus_pod = cases[i].limit,
			.measured = true,
			.mu = cases[i].mu,
			.sigma = cases[i].sigma,
		};
		struct commitment_risk risk;
		struct beta fit;
		double want;

		commitment_risk(SCORE_CORRECTED, 0, 1, &c, &risk);
		assert_true(beta_match(c.mu, c.sigma * c.sigma, &fit));
		want = beta_distribution(fit, (c.request_minus_pod + 500) / 10500);
		if (cases[i].by_limits)
			want /= beta_distribution(fit, (c.limit_minus_pod + 500) / 10500);
		if (!(fabs(risk.within - want) < 1e-9))
			fail_msg("case %zu: %.12f, not %.12f", i, risk.within, want);
		assert_true(fabs(risk.total - (1 - risk.within)) < 1e-15);
	}
}

/* Where the arithmetic is spared nothing is lost. */
static void test_probability(void **state)
{
	uint32_t seed = 3;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		double mu = fixture_random(&seed), threshold = fixture_random(&seed);
		double sigma = pow(10, -4 * fixture_random(&seed)) * sqrt(mu * (1 - mu)), got;
		struct beta fit;
		bool fitted;

		got = commitment_probability(SCORE_CORRECTED, mu, sigma * 0.99, threshold, &fitted,
					     &fit);
		assert_true(fitted);
		if (!(fabs(got - beta_distribution(fit, threshold)) < 1e-9))
			fail_msg("%.17g +- %.17g at %.17g: %.12f", mu, sigma, threshold, got);
	}
}

static void test_requests_unknown(void **state)
{
	struct score_node node = node_of(20, 20);

	(void)state;
	node.load.requests_known = false;
	score_all(LROC, &node, 1);
	assert_int_equal(results[0].score, 0);
	assert_string_equal(results[0].reason,
			    "the requests of its pods are not known, which takes the Kubernetes "
			    "API: the least score");
	node.load.requests_known = true;
	node.load.limits_known = false;
	score_all(LROC, &node, 1);
	assert_string_equal(results[0].reason,
			    "the limits of its pods are not known: the least score");
}

static void test_owner_mean(void **state)
{
	struct container_spec c = {.requests = {.has_cpu = true, .cpu_milli = 4000}};
	struct score_node node = node_of(20, 20);

	(void)state;
	pod = (struct pod_spec){.container_count = 1, .containers = &c};
	query.owner = (struct score_owner){true, 1000.4, 0, 0};
	score_all(TLP, &node, 1);
	assert_true(term(&results[0], "podCpu") == 1000);
	assert_int_equal(results[0].score, 85); /* 30 % */
	query.variant = SCORE_UPSTREAM;
	score_all(TLP, &node, 1);
	assert_true(term(&results[0], "podCpu") == 4000); /* times 1 */
}

/* --- rules of all plugins --------------------------------------------------------------------- */

static void test_strain(void **state)
{
	static const struct {
		double contention;
		double kills;
		int score;
		const char *why;
	} cases[] = {
		{NAN, 0, 85, "expected of 10000m)"},
		{0.1, 0, 85, "expected of 10000m)"},
		{0.55, 0, 43, "; times 0.50 for tasks waiting for each other 55.0 % of the time"},
		{1, 0, 0, "; times 0.00 for tasks waiting for each other 100.0 % of the time"},
		{NAN, 1, 83, "; times 0.98 for 1 OOM kill"},
		{NAN, 2.25, 81, "; times 0.96 for 2.25 OOM kills"},
		{NAN, 1000, 77, "; times 0.90 for 1000 OOM kills"},
		{0.28, 2, 65,
		 "; times 0.77 for tasks waiting for each other 28.0 % of the time and 2 OOM "
		 "kills"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct score_node node = node_of(30, 0);
		size_t tail = strlen(cases[i].why);

		node.contention = cases[i].contention;
		node.oom_kills = cases[i].kills;
		score_all(TLP, &node, 1);
		assert_int_equal(results[0].score, cases[i].score);
		assert_true(strlen(results[0].reason) > tail);
		assert_string_equal(results[0].reason + strlen(results[0].reason) - tail,
				    cases[i].why);
		query.variant = SCORE_UPSTREAM;
		score_all(TLP, &node, 1);
		assert_int_equal(results[0].score, 85);
		query.variant = SCORE_CORRECTED;
	}
}

/* A node that lost its measurements. */
static struct score_node unmeasured(int64_t cpu_requests, enum score_fallback fallback)
{
	struct score_node n = node_of(0, 0);

	n.measured = n.cpu.known = n.mem.known = false;
	n.fallback = fallback;
	n.load.of[SCORE_CPU].requests = cpu_requests;
	n.load.of[SCORE_MEMORY].requests = GIB;
	return n;
}

/* Without any measurement nodes are spread by requests; full is full. */
static void test_allocation(void **state)
{
	struct container_spec c = {
		.requests = {.has_cpu = true, .has_mem = true, .cpu_milli = 500, .mem_bytes = GIB}};
	struct score_node nodes[] = {unmeasured(1000, FALLBACK_EXPIRED),
				     unmeasured(9500, FALLBACK_NONE),
				     unmeasured(9501, FALLBACK_EXPIRED),
				     unmeasured(0, FALLBACK_EXPIRED)};
	static const int want[] = {80, 0, 0, 0};
	char fallback[SCORE_FALLBACK_LEN];

	(void)state;
	pod = (struct pod_spec){.container_count = 1, .containers = &c};
	nodes[3].load.requests_known = false;
	score_nodes_estimate(nodes, 4);
	for (int p = TLP; p <= PEAKS; p++) {
		score_all((enum score_plugin_id)p, nodes, 4);
		for (int i = 0; i < 4; i++)
			assert_int_equal(results[i].score, want[i]);
	}
	score_fallback_text(&nodes[0], fallback);
	assert_string_equal(fallback, "allocation");
	score_fallback_text(&nodes[3], fallback);
	assert_string_equal(fallback, "expired");
	/* Memory is the fuller one of the first. */
	assert_string_equal(results[0].reason,
			    "estimated from requests, as the node is not measured (allocation): "
			    "with the pod 15.0 % of CPU and 20.0 % of memory");
	assert_non_null(strstr(results[2].reason, "which does not fit"));
	/* Plugins that do not go by load do what they always do. */
	score_all(LIMIT, nodes, 4);
	assert_int_equal(results[0].score, 100);
	assert_true(results[3].unknown);
}

/* Beside measured nodes: below all of them, and spread by requests there. */
static void test_allocation_beside_measured(void **state)
{
	struct score_node nodes[] = {node_of(10, 10), unmeasured(9000, FALLBACK_NONE),
				     unmeasured(9000, FALLBACK_EXPIRED),
				     unmeasured(3000, FALLBACK_NONE), node_of(70, 10)};

	(void)state;
	score_nodes_estimate(nodes, 5);
	for (int p = 0; p < SCORE_PLUGINS; p++) {
		score_all((enum score_plugin_id)p, nodes, 5);
		for (int i = 1; i < 4; i++)
			assert_true(results[i].score < results[0].score &&
				    results[i].score < results[4].score);
	}
	score_all(TLP, nodes, 5);
	assert_int_equal(results[0].score, 55);
	assert_int_equal(results[4].score, 20);
	assert_int_equal(results[1].score, 1);
	assert_int_equal(results[3].score, 13); /* 70 % of 19 */
	assert_true(term(&results[3], "belowMeasured") == 13);
	assert_non_null(strstr(results[2].reason, "(expired)"));
	assert_non_null(strstr(results[2].reason, "below every node that is measured"));
	/* Upstream estimates nothing. */
	query.variant = SCORE_UPSTREAM;
	score_all(TLP, nodes, 5);
	assert_int_equal(results[1].score, 0);
}

/* A node of random quality; some lack this, some that. */
static struct score_node random_node(uint32_t *seed, bool *lacking)
{
	struct score_node n = node_of(100 * fixture_random(seed), 100 * fixture_random(seed));
	int lack = (int)(12 * fixture_random(seed));

	n.cpu.stddev = 20 * fixture_random(seed);
	n.contention = fixture_random(seed) * 0.3;
	n.load.of[SCORE_CPU].requests = (int64_t)(10000 * fixture_random(seed));
	n.load.of[SCORE_CPU].limits = (int64_t)(30000 * fixture_random(seed));
	if (lack == 0)
		n.cpu.known = false;
	else if (lack == 1)
		n.mem.known = false;
	else if (lack == 2)
		n = unmeasured(0, FALLBACK_EXPIRED);
	else if (lack == 3)
		n.cpu_allocatable_milli = 0;
	else if (lack == 4)
		n = unmeasured((int64_t)(10000 * fixture_random(seed)), FALLBACK_ALLOCATION);
	*lacking = lack < 5;
	return n;
}

/*
 * Whatever the nodes: scores lie in 0..100, and none of which something is missing that the plugin
 * needs beats all that are known.
 */
static void test_unknown_never_wins(void **state)
{
	uint32_t seed = 11;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct score_node nodes[MOST];
		bool lacking[MOST];
		size_t count = 2 + (size_t)(30 * fixture_random(&seed));

		for (size_t i = 0; i < count; i++)
			nodes[i] = random_node(&seed, &lacking[i]);
		nodes[0] = node_of(100 * fixture_random(&seed), 10);
		lacking[0] = false;
		args.quantiles = round % 2;
		for (int p = 0; p < SCORE_PLUGINS; p++) {
			/* FALLBACK_ALLOCATION has all that these plugins read. */
			bool static_data = p == ALLOC || p == LIMIT;
			bool needs_cpu = p == TLP || p == PEAKS || p == LROC;
			int64_t known = -1, unknown = -1;

			score_all((enum score_plugin_id)p, nodes, count);
			for (size_t i = 0; i < count; i++) {
				bool lacks =
					lacking[i] &&
					!(static_data &&
					  nodes[i].fallback == FALLBACK_ALLOCATION) &&
					!(nodes[i].measured && nodes[i].cpu_allocatable_milli &&
					  (nodes[i].cpu.known || !needs_cpu) &&
					  (nodes[i].mem.known || p != LROC));
				int64_t *best = lacks ? &unknown : &known;

				assert_in_range(results[i].score, 0, 100);
				*best = results[i].score > *best ? results[i].score : *best;
			}
			if (unknown > known || (unknown == known && unknown > 0))
				fail_msg("%s, round %d: %d beside %d",
					 score_plugin_name((enum score_plugin_id)p), round,
					 (int)unknown, (int)known);
		}
	}
}

/* --- sums ------------------------------------------------------------------------------------- */

static void test_sums(void **state)
{
	struct container_spec containers[] = {
		{.requests = {.has_cpu = true, .cpu_milli = 100},
		 .limits = {.has_cpu = true, .cpu_milli = 300}},
		{.requests = {.has_cpu = true, .cpu_milli = 50}},
		{.limits = {.has_cpu = true, .cpu_milli = 0}},
	};
	struct container_spec init[] = {
		{.requests = {.has_cpu = true, .cpu_milli = 900},
		 .limits = {.has_cpu = true, .cpu_milli = 900}},
		{.requests = {.has_cpu = true, .cpu_milli = 20},
		 .limits = {.has_cpu = true, .cpu_milli = 40},
		 .sidecar = true},
	};
	struct score_load load = {.of = {{0}}};
	const struct pod_load *cpu = &load.of[SCORE_CPU];

	(void)state;
	pod = (struct pod_spec){.container_count = 3,
				.containers = containers,
				.init_count = 2,
				.init = init,
				.overhead = {.has_cpu = true, .cpu_milli = 7}};
	score_fixture_add_pod(&load, &pod);
	score_fixture_add_pod(&load, &pod);
	/*
	 * Once: max(150 + 20, 900) + 7 requested; max(300 + 40, 900) + 7 limited, 300 + 40 + 7
	 * while it runs, and two containers that are not.
	 */
	assert_int_equal(cpu->requests, 2 * 907);
	assert_int_equal(cpu->limits, 2 * 907);
	assert_int_equal(cpu->limits_running, 2 * 347);
	assert_int_equal(cpu->unlimited, 4);
	assert_int_equal(cpu->unlimited_requests, 2 * 50);
	assert_int_equal(cpu->requests_trimaran, 2 * 907);
	assert_int_equal(cpu->limits_trimaran, 2 * 907);
	assert_int_equal(cpu->limits_containers, 2 * 300);
	assert_int_equal(load.of[SCORE_MEMORY].unlimited, 8);
	/* Trimaran's limit of a pod is at least its request. */
	assert_int_equal(score_sums_with_pod(cpu, &pod, SCORE_CPU, 2000).limit, 3 * 907);
	assert_int_equal(score_sums_with_pod(cpu, &pod, SCORE_CPU, 2000).request, 2000);
	pod = (struct pod_spec){.container_count = 2, .containers = containers};
	containers[1].requests.cpu_milli = 400;
	assert_int_equal(score_sums_with_pod(cpu, &pod, SCORE_CPU, 2000).limit, 2 * 907 + 500);
	score_fixture_add_pod(&load, &pod);
	assert_int_equal(cpu->limits_trimaran, 2 * 907 + 500);
	pod.overhead = (struct resource_list){.has_cpu = true, .cpu_milli = 7};
	/* A limit of the whole pod replaces those of its containers. */
	pod.has_pod_resources = true;
	pod.pod_limits = (struct resource_list){.has_cpu = true, .cpu_milli = 500};
	assert_int_equal(score_pod_bound(&(struct score_query){.pod = &pod}, SCORE_CPU).limit, 507);
	assert_int_equal(score_pod_bound(&(struct score_query){.pod = &pod}, SCORE_CPU).unlimited,
			 0);
	assert_int_equal(score_unlimited(2, 0, INT64_MAX), INT64_MAX);
	assert_int_equal(score_unlimited(2, 50, 10), 50);
}

/* The kernel's limits are what stats know; requests it does not. */
static void test_sums_of_stats(void **state)
{
	struct container_stats container = {
		.name = "c",
		.limits = &(const struct kernel_limits){.cpu_milli = 250, .mem_bytes = -1}};
	struct pod_stats pod_stats = {.name = "p",
				      .limits = &KERNEL_LIMITS_UNKNOWN,
				      .container_count = 1,
				      .containers = &container};
	struct node_stats stats = view_fixture_node("n", VIEW_FIXTURE_NOW_NS, 900, 100, 1), *copy;
	const struct view standalone = {.version = 1};
	struct view_node around;
	struct score_node node;

	(void)state;
	stats.pods = &pod_stats;
	stats.pod_count = 1;
	copy = node_stats_new(&stats);
	around = view_fixture_around(copy);
	score_node_from_view(&standalone, &around, VIEW_FIXTURE_NOW_NS, &query, &node);
	assert_true(node.load.limits_known && !node.load.requests_known);
	assert_int_equal(node.load.of[SCORE_CPU].limits, 250);
	assert_int_equal(node.load.of[SCORE_CPU].unlimited, 0);
	assert_int_equal(node.load.of[SCORE_MEMORY].unlimited, 1);
	assert_true(node.contention == 0.125);
	assert_int_equal(node.oom_kills, 1);
	node_stats_drop(copy);
}

static void test_power_models(void **state)
{
	static const struct power_model models[] = {
		{"a", 1, 0, 0}, {"c", 2, 0, 0}, {"d", 3, 0, 0}, {"f", 4, 0, 0}};
	static const char *const names[] = {"b", "c", "d", "e", "g"};
	struct score_node nodes[5];

	(void)state;
	for (int i = 0; i < 5; i++)
		nodes[i] = (struct score_node){.name = names[i]};
	args.power_models = models;
	args.power_model_count = 4;
	score_nodes_power(nodes, 5, &args);
	assert_ptr_equal(nodes[1].power, &models[1]);
	assert_ptr_equal(nodes[2].power, &models[2]);
	assert_null(nodes[0].power);
	assert_null(nodes[3].power);
	assert_null(nodes[4].power);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_limits_spread),      TEST(test_unlimited),
		TEST(test_init_containers),    TEST(test_stated_limits_are_told_apart),
		TEST(test_other_resources),    TEST(test_quantiles),
		TEST(test_allocatable),	       TEST(test_peaks),
		TEST(test_reserved_share),     TEST(test_conditioning),
		TEST(test_probability),	       TEST(test_requests_unknown),
		TEST(test_owner_mean),	       TEST(test_strain),
		TEST(test_allocation),	       TEST(test_allocation_beside_measured),
		TEST(test_unknown_never_wins), TEST(test_sums),
		TEST(test_sums_of_stats),      TEST(test_power_models),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
