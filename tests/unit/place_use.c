/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cap of real use, on nodes of 4 CPUs and 8 GiB: a is measured with pods, b with none, c was
 * never heard, d not for long. Nodes use 1 CPU +- 0.1 in all, so that beside nothing else a pod has
 * 0.85 * 4 - 1 - 2.33 * 0.1 = 2.167 CPUs.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/join_fixture.h"
#include "tests/model_fixture.h"
#include "tests/place_fixture.h"
#include "tests/view_fixture.h"

#define NOW VIEW_FIXTURE_NOW_NS
#define GIB (1LL << 30)

static struct place_fixture f;
static struct node_stats *node_stats[3]; /* of a, b, d */

static int setup(void **state)
{
	(void)state;
	place_fixture_init(&f);
	place_fixture_node(&f, "a", "", "");
	place_fixture_node(&f, "b", "", "");
	place_fixture_node(&f, "c", "", "");
	place_fixture_node(&f, "d", "", "");
	memset(node_stats, 0, sizeof(node_stats));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	place_fixture_fini(&f);
	for (int i = 0; i < 3; i++)
		node_stats_drop(node_stats[i]);
	return 0;
}

/* Its largest working set 2 GiB, and so long lost to neighbours. */
static struct node_stats *stats_of(const char *name, int64_t age_seconds, struct pod_stats *pods,
				   size_t count, double contention)
{
	struct node_stats from =
		view_fixture_node(name, NOW - age_seconds * NS_PER_SEC, 3600, 1000, 100);

	for (int w = 0; w < WINDOWS; w++) {
		from.usage.windows[w].working_set_bytes = from.usage.windows[w].mem_bytes;
		from.usage.windows[w].working_set_bytes.max = (double)(2 * GIB);
		from.usage.windows[w].counts.pressure[CONTENTION_CPU] = contention;
		from.usage.windows[w].counts.pressure[CONTENTION_MEMORY] = NAN;
	}
	from.pods = pods;
	from.pod_count = count;
	return node_stats_new(&from);
}

static struct place *build(struct pod_stats *pods, size_t count, double contention)
{
	struct node_stats *heard[] = {node_stats[0] = stats_of("a", 1, pods, count, 0),
				      node_stats[1] = stats_of("b", 1, NULL, 0, contention),
				      node_stats[2] = stats_of("d", 301, NULL, 0, 0)};
	struct view *v = place_fixture_view(&f, heard, 3);
	struct place_options o;

	place_options_default(&o);
	o.now_ns = NOW;
	f.place = place_new(v, &o);
	view_drop(v);
	assert_true(place_cap_applies(f.place));
	return f.place;
}

static void put_pending(const char *name, const char *cpu, const char *memory)
{
	model_put(f.model, model_fixture_pod(&(struct model_fixture_pod){
				   .name = name, .cpu = cpu, .memory = memory}));
}

/* since_ns 0: nobody knows. */
static void put_on_a(const char *name, const char *cpu, int64_t since_ns)
{
	model_put(f.model,
		  model_fixture_pod(&(struct model_fixture_pod){
			  .name = name, .node = "a", .cpu = cpu, .scheduled_ns = since_ns}));
}

static struct pod_stats measured(const char *pod, double cpu_milli)
{
	static char uid[4][32];
	static int next;
	char *own = uid[next++ % 4];

	snprintf(own, sizeof(uid[0]), "uid-%s", pod);
	return join_fixture_pod(own + 4, own, NOW - NS_PER_SEC, 900, cpu_milli, (double)GIB);
}

static void means_and_deviation_stay_below_the_cap(void **state)
{
	struct place *p;

	(void)state;
	put_pending("small", "2166m", "1Gi");
	put_pending("large", "2168m", "1Gi");
	/* 0.9 * 8 GiB - 2 GiB are 5324.8 MiB. */
	put_pending("lean", "1m", "5324Mi");
	put_pending("fat", "1m", "5325Mi");
	p = build(NULL, 0, 0);
	assert_string_equal(place_fixture_ask(p, "small", "b"), "fits");
	assert_string_equal(place_fixture_ask(p, "large", "b"), "RealUseCap");
	assert_string_equal(place_fixture_ask(p, "lean", "b"), "fits");
	assert_string_equal(place_fixture_ask(p, "fat", "b"), "RealUseCap");
}

static void silent_and_contended_nodes_take_nothing(void **state)
{
	struct place *p;

	(void)state;
	put_pending("small", "1m", "1Mi");
	put_pending("large", "3", "1Gi");
	p = build(NULL, 0, 0.2);
	assert_string_equal(place_fixture_ask(p, "small", "a"), "fits");
	assert_string_equal(place_fixture_ask(p, "small", "b"), "NodeSilent");
	assert_string_equal(place_fixture_ask(p, "large", "b"), "RealUseCap");
	assert_string_equal(place_fixture_ask(p, "small", "c"), "NodeSilent");
	assert_string_equal(place_fixture_ask(p, "small", "d"), "NodeSilent");
}

static void where_nobody_measures_nothing_is_capped(void **state)
{
	struct place *p;

	(void)state;
	put_pending("large", "3500m", "1Gi");
	p = place_fixture_build(&f);
	assert_false(place_cap_applies(p));
	assert_string_equal(place_fixture_ask(p, "large", "c"), "fits");
}

/* A pod takes with it what it uses, and the node keeps the rest. */
static void what_is_measured_moves_with_the_pod(void **state)
{
	struct pod_stats pods[] = {measured("busy", 900)};
	struct place *p;
	place_pod busy;
	place_mark m;

	(void)state;
	place_fixture_pod(&f, "busy", "a", "", "");
	put_pending("less", "1266m", "1Mi");
	put_pending("more", "1268m", "1Mi");
	put_pending("most", "3066m", "1Mi");
	p = build(pods, 1, 0);
	busy = place_find_pod(p, "default", "busy");
	/* On b it would be 1000 + 900 of 3400, which leaves 1267 to others. */
	assert_string_equal(place_fixture_ask(p, "more", "b"), "fits");
	m = place_fork(p);
	place_take(p, busy);
	place_put(p, busy, place_find_node(p, "b"));
	assert_string_equal(place_fixture_ask(p, "less", "b"), "fits");
	assert_string_equal(place_fixture_ask(p, "more", "b"), "RealUseCap");
	/* 100 of 1000 are left on a. */
	assert_string_equal(place_fixture_ask(p, "most", "a"), "fits");
	place_revert(p, m);
	assert_string_equal(place_fixture_ask(p, "more", "b"), "fits");
	assert_string_equal(place_fixture_ask(p, "most", "a"), "RealUseCap");
}

/* Of 900 that the rest of a uses, and 2000 that are exclusive: 3400 - 2900 - 233. */
static void exclusive_cpus_are_no_room(void **state)
{
	static const struct kernel_limits limits = {.cpu_milli = 2000, .cpu_exclusive_milli = 2000};
	struct pod_peaks low = {.newest = NOW / NS_PER_SEC / PEAK_HOUR_SECONDS};
	struct pod_stats pods[] = {measured("pinned", 100)};
	struct place *p;

	(void)state;
	for (int h = 0; h < PEAK_HOURS; h++)
		low.cpu_milli[h] = low.working_set_bytes[h] = 0;
	pods[0].limits = &limits;
	pods[0].peaks = &low;
	place_fixture_pod(&f, "pinned", "a", "", "");
	put_pending("less", "266m", "1Mi");
	put_pending("more", "268m", "1Mi");
	p = build(pods, 1, 0);
	assert_string_equal(place_fixture_ask(p, "less", "a"), "fits");
	assert_string_equal(place_fixture_ask(p, "more", "a"), "RealUseCap");
}

/* The pod uses 6 GiB, 1 of them its working set, and 4 are protected: 7.2 - 1 - 4 GiB are left. */
static void protected_memory_is_no_room(void **state)
{
	struct pod_stats pods[] = {measured("spared", 100)};
	struct place *p;

	(void)state;
	pods[0].usage.latest.mem_bytes = (struct latest){(float)(6 * GIB), 0, true};
	pods[0].usage.latest.mem_protected_bytes = (struct latest){(float)(4 * GIB), 0, true};
	place_fixture_pod(&f, "spared", "a", "", "");
	put_pending("lean", "1m", "2252Mi");
	put_pending("fat", "1m", "2253Mi");
	p = build(pods, 1, 0);
	assert_string_equal(place_fixture_ask(p, "lean", "a"), "fits");
	assert_string_equal(place_fixture_ask(p, "fat", "a"), "RealUseCap");
}

static void peaks_of_an_hour_stay_below_the_cap(void **state)
{
	struct pod_peaks high, low;
	struct pod_stats pods[] = {measured("high", 100), measured("low", 100)};
	struct place *p;
	struct error error;

	(void)state;
	for (int h = 0; h < PEAK_HOURS; h++) {
		high.cpu_milli[h] = low.cpu_milli[h] = NAN;
		high.working_set_bytes[h] = low.working_set_bytes[h] = NAN;
	}
	high.newest = low.newest = NOW / NS_PER_SEC / PEAK_HOUR_SECONDS;
	high.cpu_milli[5] = 2401;
	low.cpu_milli[5] = 2400;
	pods[0].peaks = &high;
	pods[1].peaks = &low;
	place_fixture_pod(&f, "high", "a", "", "");
	place_fixture_pod(&f, "low", "a", "", "");
	p = build(pods, 2, 0);
	assert_string_equal(place_fixture_ask(p, "high", "b"), "RealUseCap");
	assert_string_equal(place_fixture_ask(p, "low", "b"), "fits");
	place_explain(p, place_find_pod(p, "default", "high"), place_find_node(p, "b"), &error);
	assert_string_equal(error.text, "RealUseCap: PredictedUse cpu 3.40/3.40 cores by peaks "
					"between 05:00 and 06:00 UTC");
	place_free(p);
	f.place = NULL;
}

/* Two of an owner: one is measured, and so the other counts as much. */
static void a_pod_without_measure_counts_as_its_owner_s_others(void **state)
{
	struct pod_stats pods[] = {measured("one", 2500)};
	struct model_fixture_pod pod = {.name = "one",
					.uid = "uid-one",
					.node = "a",
					.cpu = "100m",
					.owner_kind = "ReplicaSet",
					.owner_uid = "uid-set"};
	struct place *p;

	(void)state;
	model_put(f.model, model_fixture_pod(&pod));
	pod.name = "two";
	pod.uid = NULL;
	pod.node = NULL;
	model_put(f.model, model_fixture_pod(&pod));
	pod.name = "stranger";
	pod.owner_name = "other";
	pod.owner_uid = "uid-other";
	model_put(f.model, model_fixture_pod(&pod));
	p = build(pods, 1, 0);
	assert_string_equal(place_fixture_ask(p, "two", "b"), "RealUseCap");
	assert_string_equal(place_fixture_ask(p, "stranger", "b"), "fits");
}

static double predicted(struct place *p, const char *node)
{
	struct place_prediction use;

	assert_true(place_predict(p, place_find_node(p, node), PLACE_NONE, &use));
	return use.cpu_milli;
}

/* By requests, and at least those; one that asks for nothing has the average. */
static void pods_that_nobody_measures_share_the_rest(void **state)
{
	struct pod_stats pods[] = {measured("known", 400)};
	struct model_fixture_pod pod = {.name = "known", .uid = "uid-known", .node = "a"};
	double before;
	struct place *p;

	(void)state;
	model_put(f.model, model_fixture_pod(&pod));
	put_on_a("small", "100m", 0);
	put_on_a("large", "300m", 0);
	put_on_a("effort", NULL, 0);
	put_on_a("fresh", "1500m", NOW - NS_PER_SEC); /* nobody has seen yet what it uses */
	p = build(pods, 1, 0);
	assert_true(place_use_is_shared(p));
	/* 400 and 1500 for those of their own; the other 600 are 100, 300 and 200 */
	before = predicted(p, "a");
	assert_true(fabs(before - 2500 - 2.33 * 100) < 1);
	place_take(p, place_find_pod(p, "default", "small"));
	place_take(p, place_find_pod(p, "default", "effort"));
	assert_true(fabs(predicted(p, "a") - 2200 - 2.33 * 100 * sqrt(0.5)) < 1);
	place_take(p, place_find_pod(p, "default", "fresh"));
	assert_true(fabs(predicted(p, "a") - 700 - 2.33 * 100 * sqrt(0.5)) < 1);
	place_take(p, place_find_pod(p, "default", "large"));
	place_take(p, place_find_pod(p, "default", "known"));
	assert_true(predicted(p, "a") < 1);
}

/*
 * A mean of 15 minutes shows only a part of what younger pods use: two equal ones, and 1 CPU in
 * all. What they use beyond their requests is never more than the node has.
 */
static void young_pods_share_by_what_the_window_shows(void **state)
{
	static const struct {
		int64_t one, two; /* seconds before the window's end */
		bool shared;
		double all, without; /* millicores; once the first is gone */
	} cases[] = {
		{3600, 3600, true, 1000, 500},
		{840, 840, true, 1000 * 15.0 / 14, 500 * 15.0 / 14},
		{600, 600, true, 1500, 750},
		{600, 3600, true, 1200, 600},
		{180, 180, true, 4000, 2000},
		{59, 3600, true, 1100, 1000}, /* too young to be seen */
		{59, 59, false, 1200, 1100},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t end_ns = NOW - NS_PER_SEC;
		double sigma = cases[i].shared ? 2.33 * 100 * sqrt(0.5) : 2.33 * 100;
		struct place *p;
		double all, without;

		if (i > 0) {
			teardown(state);
			setup(state);
		}
		put_on_a("one", "100m", end_ns - cases[i].one * NS_PER_SEC);
		put_on_a("two", "100m", end_ns - cases[i].two * NS_PER_SEC);
		p = build(NULL, 0, 0);
		assert_int_equal(place_use_is_shared(p), cases[i].shared);
		all = predicted(p, "a");
		place_take(p, place_find_pod(p, "default", "one"));
		without = predicted(p, "a");
		if (cases[i].one < 60)
			sigma = 2.33 * 100;
		if (fabs(all - cases[i].all - 2.33 * 100) > 1 ||
		    fabs(without - cases[i].without - sigma) > 1)
			fail_msg("case %zu: %f, then %f", i, all, without);
	}
}

/* Its owner's mean is 50 millicores; that of this pod nobody saw. */
static void a_pod_without_measure_counts_at_least_its_requests(void **state)
{
	struct pod_stats pods[] = {measured("one", 50)};
	struct model_fixture_pod pod = {.name = "one",
					.uid = "uid-one",
					.node = "a",
					.cpu = "3",
					.owner_kind = "ReplicaSet",
					.owner_uid = "uid-set"};
	struct place *p;

	(void)state;
	model_put(f.model, model_fixture_pod(&pod));
	pod.name = "two";
	pod.uid = "uid-two";
	pod.node = "b";
	model_put(f.model, model_fixture_pod(&pod));
	p = build(pods, 1, 0);
	assert_true(fabs(predicted(p, "b") - 3000 - 2.33 * 100) < 1);
}

/* As many pods as a node may ever hold, that use the most that counts. */
static void use_of_any_number_of_pods_adds_up(void **state)
{
	enum { PODS = 9300 };
	struct place *p;
	char name[16];

	(void)state;
	for (int i = 0; i < PODS; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		model_put(f.model, model_fixture_pod(&(struct model_fixture_pod){
					   .name = name,
					   .node = "a",
					   .cpu = "9e15",
					   .memory = "8Ei",
					   .scheduled_ns = NOW - NS_PER_SEC}));
	}
	p = build(NULL, 0, 0);
	assert_true(predicted(p, "a") > PODS * 35e9);
	place_take(p, place_find_pod(p, "default", "p0"));
	assert_true(predicted(p, "a") > (PODS - 2) * 35e9);
}

/* What is measured later is told of them, and no longer shared. */
static void shares_follow_the_measurements(void **state)
{
	struct pod_stats pods[] = {measured("one", 900), measured("two", 100)};
	struct place *p;
	struct view *v;

	(void)state;
	place_fixture_pod(&f, "one", "a", "", "");
	place_fixture_pod(&f, "two", "a", "", "");
	p = build(NULL, 0, 0);
	place_take(p, place_find_pod(p, "default", "one"));
	assert_true(fabs(predicted(p, "a") - 500 - 2.33 * 100 * sqrt(0.5)) < 1);
	node_stats_drop(node_stats[0]);
	node_stats[0] = stats_of("a", 1, pods, 2, 0);
	v = place_fixture_view(&f, node_stats, 3);
	place_update(p, v, NOW);
	assert_false(place_use_is_shared(p));
	place_take(p, place_find_pod(p, "default", "one"));
	assert_true(fabs(predicted(p, "a") - 100 - 2.33 * 100) < 1);
	view_drop(v);
}

/* The same view, later: what was fresh is not, and nothing else changed. */
static void silence_is_a_matter_of_time(void **state)
{
	struct place *p;
	struct view *v;

	(void)state;
	put_pending("small", "1m", "1Mi");
	p = build(NULL, 0, 0);
	v = place_fixture_view(&f, node_stats, 3);
	place_update(p, v, NOW);
	assert_string_equal(place_fixture_ask(p, "small", "a"), "fits");
	place_update(p, v, NOW + 400 * NS_PER_SEC);
	assert_string_equal(place_fixture_ask(p, "small", "a"), "NodeSilent");
	view_drop(v);
}

/* The pod itself did not change; what is known of its owner's others did. */
static void news_of_an_owner_reach_its_pods(void **state)
{
	struct pod_stats pods[] = {measured("one", 2500)};
	struct model_fixture_pod pod = {
		.name = "two", .cpu = "100m", .owner_kind = "ReplicaSet", .owner_uid = "uid-set"};
	struct place *p;
	struct view *v;

	(void)state;
	model_put(f.model, model_fixture_pod(&pod));
	pod.name = "one";
	pod.uid = "uid-one";
	pod.node = "a";
	model_put(f.model, model_fixture_pod(&pod));
	p = build(NULL, 0, 0);
	assert_string_equal(place_fixture_ask(p, "two", "b"), "fits");
	node_stats_drop(node_stats[0]);
	node_stats[0] = stats_of("a", 1, pods, 1, 0);
	v = place_fixture_view(&f, node_stats, 3);
	place_update(p, v, NOW);
	assert_string_equal(place_fixture_ask(p, "two", "b"), "RealUseCap");
	view_drop(v);
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(means_and_deviation_stay_below_the_cap),
		test(silent_and_contended_nodes_take_nothing),
		test(where_nobody_measures_nothing_is_capped),
		test(what_is_measured_moves_with_the_pod),
		test(exclusive_cpus_are_no_room),
		test(protected_memory_is_no_room),
		test(peaks_of_an_hour_stay_below_the_cap),
		test(a_pod_without_measure_counts_as_its_owner_s_others),
		test(pods_that_nobody_measures_share_the_rest),
		test(young_pods_share_by_what_the_window_shows),
		test(a_pod_without_measure_counts_at_least_its_requests),
		test(use_of_any_number_of_pods_adds_up),
		test(shares_follow_the_measurements),
		test(silence_is_a_matter_of_time),
		test(news_of_an_owner_reach_its_pods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
