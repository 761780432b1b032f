/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans as stories: a small cluster, some time, and what the planner says of it. Nodes have 4 CPUs
 * and 8 GiB; pods are of ReplicaSets "web" and "db", in namespace default, and want 128 MiB.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/drain_world.h"
#include "tests/join_fixture.h"
#include "tests/view_fixture.h"

#define NOW    VIEW_FIXTURE_NOW_NS
#define MINUTE (60 * NS_PER_SEC)
#define GIB    (1LL << 30)

static struct drain_world w;

static int setup(void **unused)
{
	(void)unused;
	drain_world_init(&w);
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	drain_world_fini(&w);
	return 0;
}

/* --- the cluster */

/* Stats that use so much; call in the order of names. */
static void measure(const char *node, int64_t age_ns, double cpu_milli, struct pod_stats *pods,
		    size_t count)
{
	struct node_stats from = view_fixture_node(node, NOW - age_ns, 3600, cpu_milli, 100);

	for (int i = 0; i < WINDOWS; i++) {
		from.usage.windows[i].working_set_bytes.max = (double)GIB;
		from.usage.windows[i].counts.pressure[CONTENTION_CPU] = 0;
	}
	from.pods = pods;
	from.pod_count = count;
	assert_true(w.stats_count < DRAIN_WORLD_STATS);
	w.stats[w.stats_count++] = node_stats_new(&from);
}

/* --- what is said */

static void assert_reason_code(const char *name, const char *code)
{
	const struct drain_plan_node *n = drain_world_get(&w, name);
	size_t i = 0;

	while (i < n->reason_count && strcmp(drain_reason_name(n->reasons[i].code), code) != 0)
		i++;
	assert_true(i < n->reason_count);
}

/* --- stories */

static void a_node_goes_when_it_was_unneeded_long_enough(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 4);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_pod(&w, "web-2", "web", "b", 800);
	drain_world_pod(&w, "web-3", "web", "b", 800);
	drain_world_pod(&w, "web-4", "web", "b", 800);
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "unneeded");
	assert_true(drain_world_get(&w, "a")->since_ns == NOW &&
		    drain_world_get(&w, "a")->due_ns == NOW + 10 * MINUTE);
	drain_world_reason(&w, "a", 0, "NotUnneededLongEnough",
			   "it has been unneeded for 0 s, and must be for more than 600 s");
	drain_world_reason(&w, "b", 0, "NotUnderutilized",
			   "pods request 60.0% of its allocatable cpu, more than 50.0%");
	drain_world_step(&w, NOW + 10 * MINUTE);
	drain_world_verdict(&w, "a", "unneeded");
	drain_world_step(&w, NOW + 10 * MINUTE + 1);
	drain_world_verdict(&w, "a", "drain");
	assert_string_equal(w.plan->narration,
			    "Real use is not asked for: it is off, or no node is measured.\n"
			    "Of 2 nodes 1 could go, 1 of them now; needed: 1, in deletion: 0, not "
			    "examined: 0.\n"
			    "1 stays: NotUnderutilized.\n"
			    "a goes, and of it default/web-1 to b.\n"
			    "b takes 1 pod.\n"
			    "There is room also if the scheduler chooses other nodes.\n");
}

static void requests_say_drain_and_use_says_no(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 2);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_pod(&w, "web-2", "web", "b", 3100);
	/* One that ended does not end again with each plan. */
	place_fixture_put(&w.cluster, OBJECT_POD,
			  "{'metadata':{'namespace':'default','name':'ended','uid':'e'},'spec':{"
			  "'nodeName':'b','containers':[]},'status':{'phase':'Succeeded'}}");
	measure("a", NS_PER_SEC, 200, NULL, 0);
	measure("b", NS_PER_SEC, 1200, NULL, 0);
	w.config.assume_unneeded_ns = 11 * MINUTE;
	drain_world_step(&w, NOW);
	/*
	 * 3100 beside 2.33 * 100 are more than 0.85 of 4000, with or without another pod.
	 */
	drain_world_reason(
		&w, "a", 0, "NoPlaceToMovePods",
		"pod default/web-1 fits on no other node: 1 RealUseCap; nearest is b, which "
		"would use 3.63 CPUs where 3.40 may be");
	assert_true(drain_world_get(&w, "a")->reasons[0].counted);
	assert_int_equal(drain_world_get(&w, "a")->reasons[0].refused.of[PLACE_USE_CAP], 1);
	assert_string_equal(w.plan->narration,
			    "Of 2 nodes 0 could go, 0 of them now; needed: 2, in deletion: 0, not "
			    "examined: 0.\n"
			    "1 stays: NotUnderutilized.\n"
			    "1 stays: NoPlaceToMovePods.\n");
	/* Not simulated again for a while, it is told with the same numbers. */
	drain_world_step(&w, NOW + MINUTE);
	drain_world_reason(
		&w, "a", 0, "NoPlaceToMovePods",
		"found a while ago: pod default/web-1 fits on no other node: 1 RealUseCap; "
		"nearest is b, which would use 3.63 CPUs where 3.40 may be");
	assert_true(drain_world_get(&w, "a")->reasons[0].counted);
	assert_int_equal(drain_world_get(&w, "a")->reasons[0].refused.of[PLACE_USE_CAP], 1);
	assert_string_equal(drain_world_get(&w, "a")->reasons[0].numbers[0].name,
			    "predictedCpuMillicores");
	assert_true(fabs(drain_world_get(&w, "a")->reasons[0].numbers[0].value - 3629.5) < 0.1);
	assert_string_equal(drain_world_get(&w, "a")->reasons[0].numbers[1].name,
			    "limitCpuMillicores");
	assert_true(drain_world_get(&w, "a")->reasons[0].numbers[1].value == 3400);
}

static void use_says_drain_and_requests_say_no(void **unused)
{
	struct pod_stats pods[] = {join_fixture_pod("web-1", "uid-web-1", NOW - NS_PER_SEC, 900,
						    100, (double)GIB / 8)};

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 1);
	drain_world_pod(&w, "web-1", "web", "a", 3000);
	measure("a", NS_PER_SEC, 200, pods, 1);
	measure("b", NS_PER_SEC, 200, NULL, 0);
	w.config.assume_unneeded_ns = 11 * MINUTE;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "needed");
	assert_true(drain_world_get(&w, "a")->idle_in_fact);
	drain_world_reason(&w, "a", 0, "NotUnderutilized",
			   "pods request 75.0% of its allocatable cpu, more than 50.0%");
	drain_world_reason(
		&w, "a", 1, "NotUnderutilized",
		"it uses 12.5%: were requests what pods use at the 95th percentile, times "
		"1.15, they would be 2.9%: default/web-1 requests 3000m and uses 100");
	assert_string_equal(w.plan->narration,
			    "Of 2 nodes 1 could go, 1 of them now; needed: 1, in deletion: 0, not "
			    "examined: 0.\n"
			    "1 stays: NotUnderutilized.\n"
			    "1 is needed by requests and idle in fact: a.\n"
			    "b goes; nothing on it has to move.\n");
}

/*
 * On a, web-1 to web-4 are measured, web-4 with a peak of 600m; web-5, which keeps its requests, a
 * pod that ended, and one that the API does not know are not. On b, memory decides.
 */
static void pods_with_the_most_to_give_are_told(void **unused)
{
	static const int used[] = {400, 100, 300, 250};
	struct pod_peaks peaks = {.newest = 0};
	struct pod_stats pods[5], one = join_fixture_pod("db-1", "uid-db-1", NOW - NS_PER_SEC, 900,
							 100, (double)GIB / 4);

	(void)unused;
	for (int h = 0; h < PEAK_HOURS; h++)
		peaks.cpu_milli[h] = h == 5 ? 600 : NAN, peaks.working_set_bytes[h] = NAN;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 5);
	pods[0] = join_fixture_pod("gone", "uid-gone", NOW - NS_PER_SEC, 900, 1, 1);
	for (int i = 0; i < 5; i++) {
		static const char *const names[][2] = {{"web-1", "uid-web-1"},
						       {"web-2", "uid-web-2"},
						       {"web-3", "uid-web-3"},
						       {"web-4", "uid-web-4"},
						       {"web-5", "uid-web-5"}};

		drain_world_pod(&w, names[i][0], "web", "a", i < 4 ? 800 : 310);
		if (i < 4)
			pods[i + 1] = join_fixture_pod(names[i][0], names[i][1], NOW - NS_PER_SEC,
						       900, used[i], (double)GIB / 16);
	}
	pods[4].peaks = &peaks;
	place_fixture_put(&w.cluster, OBJECT_POD,
			  "{'metadata':{'namespace':'default','name':'ended','uid':'e'},'spec':{"
			  "'nodeName':'a','containers':[{'name':'c','resources':{'requests':{'cpu':"
			  "'4'}}}]},'status':{'phase':'Succeeded'}}");
	place_fixture_put(
		&w.cluster, OBJECT_POD,
		"{'metadata':{'namespace':'default','name':'db-1','uid':'uid-db-1'},"
		"'spec':{'nodeName':'b','containers':[{'name':'c','resources':{'requests':"
		"{'cpu':'100m','memory':'5Gi'}}}]},'status':{'phase':'Running'}}");
	measure("a", NS_PER_SEC, 1500, pods, 5);
	measure("b", NS_PER_SEC, 200, &one, 1);
	drain_world_step(&w, NOW);
	drain_world_reason(
		&w, "a", 1, "NotUnderutilized",
		"it uses 37.5%: were requests what pods use at the 95th percentile, times 1.15, "
		"they would be 48.0%: default/web-2 requests 800m and uses 100, default/web-3 "
		"requests 800m and uses 300, default/web-1 requests 800m and uses 400");
	drain_world_reason(
		&w, "b", 1, "NotUnderutilized",
		"it uses 12.5%: were requests what pods use at the 95th percentile, times 1.15, "
		"they would be 3.6%: default/db-1 requests 5120Mi and uses 256");
}

/* Without a burst a is first, since its pod uses less. */
static void a_node_with_a_bursting_pod_is_tried_last(void **unused)
{
	static const struct {
		float mean, deviation, latest; /* latest -1: not measured */
		const char *first;
	} rows[] = {
		{100, 0, 250, "b"}, {100, 60, 250, "a"}, {100, 0, 200, "a"},
		{400, 0, 590, "a"}, {100, 0, -1, "a"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pod_stats one = join_fixture_pod("web-1", "uid-web-1", NOW - NS_PER_SEC, 900,
							rows[i].mean, 1);
		struct pod_stats other =
			join_fixture_pod("web-2", "uid-web-2", NOW - NS_PER_SEC, 900, 450, 1);

		for (int win = 0; win < WINDOWS; win++)
			one.usage.cpu_milli[win].stddev = rows[i].deviation;
		one.usage.latest.cpu_milli =
			(struct latest){.value = rows[i].latest, .known = rows[i].latest >= 0};
		teardown(unused);
		setup(unused);
		drain_world_node(&w, "a");
		drain_world_node(&w, "b");
		drain_world_owner(&w, "web", 2);
		drain_world_pod(&w, "web-1", "web", "a", 100);
		drain_world_pod(&w, "web-2", "web", "b", 100);
		measure("a", NS_PER_SEC, 500, &one, 1);
		measure("b", NS_PER_SEC, 500, &other, 1);
		drain_world_step(&w, NOW);
		assert_int_equal(drain_world_get(&w, rows[i].first)->move_count, 1);
		drain_world_verdict(&w, *rows[i].first == 'a' ? "b" : "a", "notExamined");
	}
}

static void a_destination_is_told_what_it_will_use(void **unused)
{
	struct pod_stats pods[] = {
		join_fixture_pod("web-1", "uid-web-1", NOW - NS_PER_SEC, 900, 500, (double)GIB)};

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 1);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_pod(&w, "db-1", "db", "b", 2100);
	drain_world_owner(&w, "db", 1);
	measure("a", NS_PER_SEC, 600, pods, 1);
	measure("b", NS_PER_SEC, 100, NULL, 0);
	w.config.assume_unneeded_ns = 11 * MINUTE;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	/* 2.1 + 2.33 * 0.1, and 0.5 more; 1 GiB, of which db-1 asks for 128 MiB, and 1 GiB more. */
	assert_non_null(
		strstr(w.plan->narration,
		       "b takes 1 pod: 2.33 CPUs become 2.83 of 3.40, 1.00 GiB become 2.00 of "
		       "7.20.\n"));
}

static void a_silent_node_is_never_idle(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "web", 1);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	measure("a", 301 * NS_PER_SEC, 100, NULL, 0);
	measure("c", NS_PER_SEC, 100, NULL, 0);
	drain_world_step(&w, NOW);
	drain_world_reason(&w, "a", 0, "NotMeasured",
			   "its agent is silent: it is not known to be idle");
	/* Without pods it uses nothing. */
	drain_world_verdict(&w, "b", "unneeded");
}

/* b could move on to c, and its guest with it: a pod would move twice. */
static void a_destination_is_not_drained(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "web", 20);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_pod(&w, "web-2", "web", "b", 200);
	drain_world_pod(&w, "web-3", "web", "b", 200);
	drain_world_pod(&w, "web-4", "web", "c", 100);
	drain_world_pod(&w, "web-5", "web", "c", 100);
	drain_world_pod(&w, "web-6", "web", "c", 100);
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "unneeded");
	drain_world_verdict(&w, "b", "notExamined"); /* nothing is drained, so nothing is kept */
	assert_string_equal(drain_world_get(&w, "a")->moves[0].to, "b");
	drain_world_reason(&w, "b", 0, "DestinationInWave",
			   "1 pod of nodes that could go would come here");
}

static void a_budget_lets_one_wave_go_after_the_other(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "web", 20);
	drain_world_owner(&w, "db", 4);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_pod(&w, "web-2", "web", "b", 100);
	drain_world_pod(&w, "db-1", "db", "c", 2400);
	for (int i = 3; i <= 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "web-%d", i);
		drain_world_pod(&w, name, "web", "c", 10);
	}
	drain_world_budget(&w, "web", 1);
	w.config.assume_unneeded_ns = 11 * MINUTE;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	drain_world_verdict(&w, "b", "unneeded");
	assert_true(drain_world_get(&w, "b")->since_ns == NOW - 11 * MINUTE);
	drain_world_reason(
		&w, "b", 0, "NotEnoughPdb",
		"pod default/web-2: beside this wave, PodDisruptionBudget default/web allows 0 "
		"more disruptions: 0 pods are healthy, and 0 must be");
	assert_non_null(strstr(w.plan->narration,
			       "PodDisruptionBudget default/web: 1 leaves, 1 may at once, and 0 "
			       "more then.\n"));
}

static void a_share_of_an_owner_may_be_away(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 2);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_node(&w, "c");
	drain_world_pod(&w, "web-2", "web", "c", 100);
	drain_world_pod(&w, "db-1", "db", "b", 2400);
	drain_world_owner(&w, "db", 1);
	w.config.assume_unneeded_ns = 11 * MINUTE;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	drain_world_verdict(&w, "c", "unneeded");
	drain_world_reason(
		&w, "c", 0, "OwnerShareReached",
		"ReplicaSet web wants 2 replicas, of which 1 may be away: 0 are not ready, "
		"and 1 would move already");
}

static void what_is_on_its_way_comes_first(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node_with(&w, "gone", "", "",
			      "'taints':[{'key':'karpenter.sh/disrupted','effect':'NoSchedule'}]");
	drain_world_owner(&w, "web", 2);
	drain_world_pod(&w, "web-1", "web", "a", 1900);
	drain_world_pod(&w, "web-2", "web", "gone", 3000);
	w.config.assume_unneeded_ns = 11 * MINUTE;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "gone", "inDeletion");
	/* web-2 needs b, and so web-1 stays. */
	drain_world_reason(
		&w, "a", 0, "NoPlaceToMovePods",
		"pod default/web-1 fits on no other node: 1 NodeGone, 1 NodeResourcesFit");
	drain_world_pod(&w, "web-1", "web", "a", 1900);
	drain_world_pod(&w, "web-3", "web", "b", 1900);
	drain_world_owner(&w, "web", 3);
	drain_world_step(&w, NOW + 6 * MINUTE);
	drain_world_reason(&w, "a", 0, "DeletionsUnplaced",
			   "1 pod of nodes in deletion, or evicted, fits nowhere");
	drain_world_verdict(&w, "a", "notExamined");
	assert_non_null(strstr(w.plan->narration,
			       "1 pod of nodes in deletion, or evicted, fits nowhere.\n"));
}

static cJSON *written(const struct drain_state *s)
{
	struct buf text = BUF_INIT;
	cJSON *json;

	drain_state_write(s, NOW, &text);
	json = cJSON_ParseWithLength(text.data, text.len);
	assert_non_null(json);
	buf_fini(&text);
	return json;
}

/* Of "evictions" or "hints" */
static int count_of(const char *list)
{
	cJSON *json = written(w.state);
	int count = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, list));

	cJSON_Delete(json);
	return count;
}

/* 0: the node is not unneeded. */
static int64_t since_ns(const struct drain_state *s, const char *node)
{
	cJSON *json = written(s);
	const cJSON *timer;
	int64_t since = 0;

	cJSON_ArrayForEach (timer, cJSON_GetObjectItemCaseSensitive(json, "timers")) {
		const char *time =
			cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(timer, "since"));

		if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(timer, "node")),
			   node) == 0)
			assert_int_equal(timefmt_parse(time, &since, NULL), 0);
	}
	cJSON_Delete(json);
	return since;
}

static void an_evicted_pod_keeps_its_room_until_it_is_back(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node_with(&w, "c", "", "", "'unschedulable':true");
	drain_world_owner(&w, "web", 2);
	drain_world_pod(&w, "web-1", "web", "a", 1500);
	drain_world_pod(&w, "web-2", "web", "c", 1500);
	drain_world_step(&w, NOW);
	assert_int_equal(count_of("evictions"), 0);
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-2");
	drain_world_step(&w, NOW + NS_PER_SEC);
	assert_int_equal(count_of("evictions"), 1);
	assert_int_equal(w.plan->reserved.of_evictions, 1);
	assert_int_equal(w.plan->reserved.placed, 1);
	/* Its successor is there: no room is reserved any more. */
	drain_world_pod(&w, "web-3", "web", "b", 1500);
	drain_world_step(&w, NOW + 2 * NS_PER_SEC);
	assert_int_equal(w.plan->reserved.of_evictions, 0);
	drain_world_step(&w, NOW + 4 * MINUTE);
	assert_int_equal(count_of("evictions"), 0);
}

static bool at_once(void *unused)
{
	(void)unused;
	return true;
}

static void a_node_that_was_not_reached_keeps_its_timer(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "b", "unneeded");
	w.input.out_of_time = at_once;
	w.config.rules.simulation_min_nodes = 1;
	drain_world_step(&w, NOW + MINUTE);
	drain_world_verdict(&w, "a", "unneeded");
	drain_world_verdict(&w, "b", "notExamined");
	assert_false(w.plan->complete);
	assert_true(drain_world_get(&w, "b")->since_ns == NOW);
	w.config.rules.variant = DRAIN_UPSTREAM;
	drain_world_step(&w, NOW + 2 * MINUTE);
	assert_true(drain_world_get(&w, "b")->since_ns == 0);
}

static void more_could_go_than_may(void **unused)
{
	static const struct drain_number limits[] = {
		{"used", 1}, {"limit", 10}, {"drainsUsed", 1}, {"drainsLimit", 1}};

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	w.config.assume_unneeded_ns = 11 * MINUTE;
	w.config.rules.max_parallelism = 1;
	drain_world_step(&w, NOW);
	assert_true(w.plan->throttle.throttled);
	assert_int_equal(w.plan->throttle.held, 2);
	drain_world_reason(
		&w, "b", 0, "ScaleDownThrottled",
		"1 of at most 1 nodes are being removed, 0 of at most 10 with pods to move");
	assert_non_null(
		strstr(w.plan->narration,
		       "ScaleDownThrottled: 1 of 1 nodes, 0 of 10 drains; 2 more could go.\n"));
	/* Drains are at their limit, and an empty node could go: that is not throttled. */
	w.config.rules.max_parallelism = 10;
	w.config.rules.max_drain_parallelism = 1;
	drain_world_pod(&w, "web-0", "web", "a", 500);
	drain_world_pod(&w, "db-0", "db", "b", 500);
	drain_world_pod(&w, "db-1", "db", "c", 3000);
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 2);
	drain_world_step(&w, NOW);
	assert_int_equal(w.plan->throttle.held, 1);
	assert_false(w.plan->throttle.throttled);
	drain_world_reason(
		&w, "b", 0, "ParallelismLimitReached",
		"1 of at most 10 nodes are being removed, 1 of at most 1 with pods to move");
	for (size_t i = 0; i < 4; i++) {
		const struct drain_number *number =
			&drain_world_get(&w, "b")->reasons[0].numbers[i];

		assert_string_equal(number->name, limits[i].name);
		assert_true(number->value == limits[i].value);
	}
}

/* Both variants tell why a node stays; upstream does not look again for a while. */
static void upstream_remembers_what_kept_a_node(void **unused)
{
	static const enum drain_variant variants[] = {DRAIN_CORRECTED, DRAIN_UPSTREAM};

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "web", 2);
	drain_world_budget(&w, "web", 0);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_pod(&w, "web-2", "web", "c", 3000);
	place_fixture_put(&w.cluster, OBJECT_POD,
			  "{'metadata':{'namespace':'default','name':'naked','uid':'naked'},"
			  "'spec':{'nodeName':'b','containers':[]},'status':{'phase':'Running'}}");
	for (size_t i = 0; i < 2; i++) {
		bool again = variants[i] == DRAIN_UPSTREAM;

		w.config.rules.variant = variants[i];
		drain_state_free(w.state);
		w.state = drain_state_new();
		drain_world_step(&w, NOW);
		assert_reason_code("a", "NotEnoughPdb");
		assert_reason_code("b", "NotReplicated");
		/* Its budget allows it now, and nothing was freed. */
		drain_world_budget(&w, "web", 1);
		drain_world_step(&w, NOW + MINUTE);
		if (again)
			assert_reason_code("a", "RecentlyUnremovable");
		else
			drain_world_verdict(&w, "a", "unneeded");
		drain_world_budget(&w, "web", 0);
	}
}

static void a_schedule_closes_the_door(void **unused)
{
	const struct drain_window window = {.nodes = "0", .duration_sec = -1};

	(void)unused;
	drain_world_node(&w, "a");
	w.config.assume_unneeded_ns = 11 * MINUTE;
	w.config.windows = &window;
	w.config.window_count = 1;
	drain_world_step(&w, NOW);
	assert_int_equal(w.plan->wave.node_count, 0);
	drain_world_reason(&w, "a", 0, "DisruptionBudgetReached",
			   "budget 1 (nodes: 0) allows 0 nodes away at once, and 0 are");
}

static void extra_capacity_holds_a_node(void **unused)
{
	struct kube_pod *pod = place_fixture_record("slack-1", "", "", "");

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node_with(&w, "b", "", "", "'unschedulable':true");
	w.input.slack = &(struct drain_placeholder){pod, "a", "web"};
	w.input.slack_count = 1;
	w.config.assume_unneeded_ns = 11 * MINUTE;
	drain_world_step(&w, NOW);
	drain_world_reason(
		&w, "a", 0, "SlackWouldDrop",
		"1 placeholder of class web would fit nowhere: 100 millicores and 128 MiB of "
		"extra capacity would be missing");
	drain_world_node(&w, "b");
	drain_world_pod(&w, "db-1", "db", "b", 2400);
	drain_world_owner(&w, "db", 1);
	drain_world_step(&w, NOW + 6 * MINUTE);
	/* It moves, and costs no drain. */
	drain_world_verdict(&w, "a", "drain");
	assert_int_equal(w.plan->wave.empty_count, 1);
	assert_int_equal(w.plan->throttle.drains_used, 0);
	object_drop(&pod->object);
}

/* --- the state */

static void an_old_state_says_nothing(void **unused)
{
	struct drain_state *other = drain_state_new();
	struct buf text = BUF_INIT;

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_step(&w, NOW);
	drain_state_write(w.state, NOW, &text);
	assert_int_equal(drain_state_read(other, text.data, text.len, MINUTE, NOW + MINUTE, NULL),
			 0);
	assert_true(since_ns(other, "a") == NOW);
	assert_int_equal(
		drain_state_read(other, text.data, text.len, MINUTE, NOW + MINUTE + 1, NULL), 0);
	assert_true(since_ns(other, "a") == 0);
	buf_fini(&text);
	drain_state_free(other);
}

static void assert_record(const struct drain_record *r, int64_t time_ns, const char *event,
			  const char *node_name, const char *reason, const char *text)
{
	assert_true(r->time_ns == time_ns);
	assert_string_equal(drain_event_name(r->event), event);
	assert_string_equal(r->node, node_name);
	assert_string_equal(drain_reason_name(r->reason), reason);
	assert_string_equal(r->text, text);
}

static void history_tells_what_was_decided(void **unused)
{
	const struct drain_record *of;
	size_t count;

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 2);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_pod(&w, "web-2", "web", "b", 2100);
	drain_world_step(&w, NOW);
	assert_int_equal(w.plan->record_count, 1);
	drain_world_step(&w, NOW + MINUTE); /* it says the same */
	assert_int_equal(w.plan->record_count, 0);
	drain_world_step(&w, NOW + 11 * MINUTE);
	assert_int_equal(w.plan->record_count, 2);
	drain_world_step(&w, NOW + 12 * MINUTE);
	assert_int_equal(w.plan->record_count, 0);
	drain_world_node_with(&w, "a", "", "'karpenter.sh/do-not-disrupt':'true'", "");
	drain_world_step(&w, NOW + 13 * MINUTE);
	of = drain_state_history(w.state, &count);
	assert_int_equal(count, 5);
	assert_record(&of[0], NOW, "unneeded", "a", "NotUnneededLongEnough",
		      "it has been unneeded for 0 s, and must be for more than 600 s");
	assert_record(&of[1], NOW + 11 * MINUTE, "drain", "a", "NoReason", "1 pod moves");
	assert_record(&of[2], NOW + 11 * MINUTE, "wave", "", "NoReason",
		      "1 node goes: a; 1 pod moves to 1 node");
	assert_record(&of[3], NOW + 13 * MINUTE, "needed", "a", "ScaleDownDisabledAnnotation",
		      "it is annotated karpenter.sh/do-not-disrupt=true");
	assert_record(&of[4], NOW + 13 * MINUTE, "wave", "", "NoReason", "no node goes");
	assert_true(of[0].verdict && of[1].verdict && of[3].verdict);
	assert_false(of[2].verdict || of[4].verdict);
	/* The reason alone changes, and then the node is gone with its pod. */
	drain_world_pod(&w, "web-1", "web", "a", 3000);
	drain_world_node(&w, "a");
	drain_world_step(&w, NOW + 14 * MINUTE);
	assert_int_equal(w.plan->record_count, 1);
	assert_record(&w.plan->records[0], NOW + 14 * MINUTE, "needed", "a", "NotUnderutilized",
		      "pods request 75.0% of its allocatable cpu, more than 50.0%");
	assert_false(w.plan->records[0].verdict);
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-1");
	place_fixture_remove(&w.cluster, OBJECT_NODE, "", "a");
	drain_world_step(&w, NOW + 15 * MINUTE);
	assert_int_equal(w.plan->record_count, 2);
	assert_record(&w.plan->records[0], NOW + 15 * MINUTE, "evicted", "a", "NoReason",
		      "pod default/web-1 left it");
	assert_record(&w.plan->records[1], NOW + 15 * MINUTE, "gone", "a", "NoReason",
		      "the node is gone");
}

/* The first 16. */
static void history_names_the_nodes_of_a_wave(void **unused)
{
	char name[8];

	(void)unused;
	for (int i = 0; i < 17; i++) {
		snprintf(name, sizeof(name), "n%02d", i);
		drain_world_node(&w, name);
	}
	w.config.assume_unneeded_ns = 11 * MINUTE;
	w.config.rules.max_parallelism = 17;
	drain_world_step(&w, NOW);
	assert_record(&w.plan->records[w.plan->record_count - 1], NOW, "wave", "", "NoReason",
		      "17 nodes go: n00, n01, n02, n03, n04, n05, n06, n07, n08, n09, n10, n11, "
		      "n12, n13, n14, n15, and 1 more; 0 pods move to 0 nodes");
	/* Untried in other orders, which matters only where pods move. */
	w.config.robust_orders = 0;
	w.config.rules.max_parallelism = 2;
	drain_world_step(&w, NOW);
	assert_record(&w.plan->records[w.plan->record_count - 1], NOW, "wave", "", "NoReason",
		      "2 nodes go: n00, n01; 0 pods move to 0 nodes");
	w.config.rules.max_parallelism = 17;
	drain_world_owner(&w, "web", 2);
	drain_world_pod(&w, "web-1", "web", "n00", 100);
	drain_world_pod(&w, "web-2", "web", "n16", 3000);
	drain_world_step(&w, NOW);
	assert_non_null(strstr(w.plan->records[w.plan->record_count - 1].text, "16 nodes go: "));
	assert_non_null(strstr(w.plan->records[w.plan->record_count - 1].text,
			       ", n00; 1 pod moves to 1 node; not robust"));
}

/* Who reads what was saved says nothing that was said before. */
static void history_goes_on_after_a_restart(void **unused)
{
	struct buf text = BUF_INIT;
	struct error error = {""};
	size_t count;

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	w.config.assume_unneeded_ns = 11 * MINUTE;
	drain_world_step(&w, NOW);
	assert_true(w.plan->record_count > 0);
	drain_state_write(w.state, NOW, &text);
	drain_state_free(w.state);
	w.state = drain_state_new();
	assert_int_equal(drain_state_read(w.state, text.data, text.len, 10 * MINUTE, NOW + MINUTE,
					  &error),
			 0);
	drain_world_step(&w, NOW + MINUTE);
	assert_int_equal(w.plan->record_count, 0);
	drain_state_history(w.state, &count);
	assert_true(count > 0);
	buf_fini(&text);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_node_goes_when_it_was_unneeded_long_enough),
		STORY(requests_say_drain_and_use_says_no),
		STORY(use_says_drain_and_requests_say_no),
		STORY(pods_with_the_most_to_give_are_told),
		STORY(a_node_with_a_bursting_pod_is_tried_last),
		STORY(a_destination_is_told_what_it_will_use),
		STORY(a_silent_node_is_never_idle),
		STORY(a_destination_is_not_drained),
		STORY(a_budget_lets_one_wave_go_after_the_other),
		STORY(a_share_of_an_owner_may_be_away),
		STORY(what_is_on_its_way_comes_first),
		STORY(an_evicted_pod_keeps_its_room_until_it_is_back),
		STORY(a_node_that_was_not_reached_keeps_its_timer),
		STORY(more_could_go_than_may),
		STORY(upstream_remembers_what_kept_a_node),
		STORY(a_schedule_closes_the_door),
		STORY(extra_capacity_holds_a_node),
		STORY(an_old_state_says_nothing),
		STORY(history_tells_what_was_decided),
		STORY(history_names_the_nodes_of_a_wave),
		STORY(history_goes_on_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
