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

#include "aggregator/policy/drain/drain.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/join_fixture.h"
#include "tests/place_fixture.h"
#include "tests/view_fixture.h"

#define NOW    VIEW_FIXTURE_NOW_NS
#define MINUTE (60 * NS_PER_SEC)
#define GIB    (1LL << 30)

enum { STATS = 4 };

static struct place_fixture f;
static struct drain_state *state;
static struct drain_config config;
static struct drain_plan *plan;
static struct node_stats *node_stats[STATS];
static size_t stats_count;
static struct drain_placeholder slack[2];
static size_t slack_count;
static bool (*out_of_time)(void *);

static int setup(void **unused)
{
	(void)unused;
	place_fixture_init(&f);
	state = drain_state_new();
	drain_config_default(&config);
	plan = NULL;
	stats_count = slack_count = 0;
	out_of_time = NULL;
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	drain_plan_free(plan);
	drain_state_free(state);
	for (size_t i = 0; i < stats_count; i++)
		node_stats_drop(node_stats[i]);
	place_fixture_fini(&f);
	return 0;
}

/* --- the cluster */

static void put_node(const char *name, const char *metadata, const char *spec)
{
	char *json =
		mem_printf("{'metadata':{'name':'%s','labels':{'kubernetes.io/hostname':'%s'}%s},"
			   "'spec':{%s},'status':{'allocatable':{'cpu':'4','memory':'8Gi',"
			   "'pods':'110'},'conditions':[{'type':'Ready','status':'True'}]}}",
			   name, name, metadata, spec);

	place_fixture_put(&f, OBJECT_NODE, json);
	free(json);
}

static void put_owner(const char *name, int replicas)
{
	char *json = mem_printf("{'metadata':{'namespace':'default','name':'%s','uid':'rs-%s'},"
				"'spec':{'replicas':%d},'status':{'replicas':%d}}",
				name, name, replicas, replicas);

	place_fixture_put(&f, OBJECT_REPLICA_SET, json);
	free(json);
}

static void put_pod(const char *name, const char *owner, const char *node, int cpu_milli)
{
	char *json = mem_printf(
		"{'metadata':{'namespace':'default','name':'%s','uid':'uid-%s','labels':{'app':'%s'"
		"},"
		"'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'%s',"
		"'uid':'rs-%s','controller':true}]},'spec':{'nodeName':'%s','containers':[{"
		"'name':'c','resources':{'requests':{'cpu':'%dm','memory':'128Mi'}}}]},'status':{"
		"'phase':'%s','conditions':[{'type':'Ready','status':'True'}]}}",
		name, name, owner, owner, owner, node, cpu_milli, *node ? "Running" : "Pending");

	place_fixture_put(&f, OBJECT_POD, json);
	free(json);
}

static void put_budget(const char *app, int allowed)
{
	char *json =
		mem_printf("{'metadata':{'namespace':'default','name':'%s'},'spec':{'selector':"
			   "{'matchLabels':{'app':'%s'}}},'status':{'disruptionsAllowed':%d}}",
			   app, app, allowed);

	place_fixture_put(&f, OBJECT_POD_DISRUPTION_BUDGET, json);
	free(json);
}

/* Stats that use so much; call in the order of names. */
static void measure(const char *node, int64_t age_ns, double cpu_milli, struct pod_stats *pods,
		    size_t count)
{
	struct node_stats from = view_fixture_node(node, NOW - age_ns, 3600, cpu_milli, 100);

	for (int w = 0; w < WINDOWS; w++) {
		from.usage.windows[w].working_set_bytes.max = (double)GIB;
		from.usage.windows[w].counts.pressure[CONTENTION_CPU] = 0;
	}
	from.pods = pods;
	from.pod_count = count;
	node_stats[stats_count++] = node_stats_new(&from);
}

static void step(int64_t now_ns)
{
	struct view *v = place_fixture_view(&f, node_stats, stats_count);
	struct place_options o;

	place_options_default(&o);
	o.now_ns = now_ns;
	place_free(f.place);
	f.place = place_new(v, &o);
	drain_plan_free(plan);
	plan = drain_step(state,
			  &(struct drain_input){.place = f.place,
						.view = v,
						.now_ns = now_ns,
						.slack = slack,
						.slack_count = slack_count,
						.out_of_time = out_of_time},
			  &config);
	view_drop(v);
}

/* --- what is said */

static const struct drain_plan_node *node(const char *name)
{
	const struct drain_plan_node *n = drain_plan_find(plan, name);

	assert_non_null(n);
	return n;
}

static void assert_reason(const char *name, size_t number, const char *code, const char *text)
{
	const struct drain_plan_node *n = node(name);

	assert_true(number < n->reason_count);
	assert_string_equal(drain_reason_name(n->reasons[number].code), code);
	assert_string_equal(n->reasons[number].text, text);
}

static void assert_reason_code(const char *name, const char *code)
{
	const struct drain_plan_node *n = node(name);
	size_t i = 0;

	while (i < n->reason_count && strcmp(drain_reason_name(n->reasons[i].code), code) != 0)
		i++;
	assert_true(i < n->reason_count);
}

static void assert_verdict(const char *name, const char *verdict)
{
	assert_string_equal(drain_verdict_name(node(name)->verdict), verdict);
}

/* --- stories */

static void a_node_goes_when_it_was_unneeded_long_enough(void **unused)
{
	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	put_owner("web", 4);
	put_pod("web-1", "web", "a", 100);
	put_pod("web-2", "web", "b", 800);
	put_pod("web-3", "web", "b", 800);
	put_pod("web-4", "web", "b", 800);
	step(NOW);
	assert_verdict("a", "unneeded");
	assert_true(node("a")->since_ns == NOW && node("a")->due_ns == NOW + 10 * MINUTE);
	assert_reason("a", 0, "NotUnneededLongEnough",
		      "it has been unneeded for 0 s, and must be for more than 600 s");
	assert_reason("b", 0, "NotUnderutilized",
		      "pods request 60.0% of its allocatable cpu, more than 50.0%");
	step(NOW + 10 * MINUTE);
	assert_verdict("a", "unneeded");
	step(NOW + 10 * MINUTE + 1);
	assert_verdict("a", "drain");
	assert_string_equal(plan->narration,
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
	put_node("a", "", "");
	put_node("b", "", "");
	put_owner("web", 2);
	put_pod("web-1", "web", "a", 100);
	put_pod("web-2", "web", "b", 3100);
	measure("a", NS_PER_SEC, 200, NULL, 0);
	measure("b", NS_PER_SEC, 1200, NULL, 0);
	config.assume_unneeded_ns = 11 * MINUTE;
	step(NOW);
	/*
	 * 3100 beside 2.33 * 100 are more than 0.85 of 4000, with or without another pod.
	 */
	assert_reason("a", 0, "NoPlaceToMovePods",
		      "pod default/web-1 fits on no other node: 1 RealUseCap; nearest is b, which "
		      "would use 3.63 CPUs where 3.40 may be");
	assert_true(node("a")->reasons[0].counted);
	assert_int_equal(node("a")->reasons[0].refused.of[PLACE_USE_CAP], 1);
	assert_string_equal(plan->narration,
			    "Of 2 nodes 0 could go, 0 of them now; needed: 2, in deletion: 0, not "
			    "examined: 0.\n"
			    "1 stays: NotUnderutilized.\n"
			    "1 stays: NoPlaceToMovePods.\n");
	/* Not simulated again for a while, it is told with the same numbers. */
	step(NOW + MINUTE);
	assert_reason("a", 0, "NoPlaceToMovePods",
		      "found a while ago: pod default/web-1 fits on no other node: 1 RealUseCap; "
		      "nearest is b, which would use 3.63 CPUs where 3.40 may be");
	assert_true(node("a")->reasons[0].counted);
	assert_int_equal(node("a")->reasons[0].refused.of[PLACE_USE_CAP], 1);
	assert_string_equal(node("a")->reasons[0].numbers[0].name, "predictedCpuMillicores");
	assert_true(fabs(node("a")->reasons[0].numbers[0].value - 3629.5) < 0.1);
}

static void use_says_drain_and_requests_say_no(void **unused)
{
	struct pod_stats pods[] = {join_fixture_pod("web-1", "uid-web-1", NOW - NS_PER_SEC, 900,
						    100, (double)GIB / 8)};

	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	put_owner("web", 1);
	put_pod("web-1", "web", "a", 3000);
	measure("a", NS_PER_SEC, 200, pods, 1);
	measure("b", NS_PER_SEC, 200, NULL, 0);
	config.assume_unneeded_ns = 11 * MINUTE;
	step(NOW);
	assert_verdict("a", "needed");
	assert_true(node("a")->idle_in_fact);
	assert_reason("a", 0, "NotUnderutilized",
		      "pods request 75.0% of its allocatable cpu, more than 50.0%");
	assert_reason("a", 1, "NotUnderutilized",
		      "it uses 12.5%: were requests what pods use at the 95th percentile, times "
		      "1.15, they would be 2.9%: default/web-1 requests 3000m and uses 100");
	assert_string_equal(plan->narration,
			    "Of 2 nodes 1 could go, 1 of them now; needed: 1, in deletion: 0, not "
			    "examined: 0.\n"
			    "1 stays: NotUnderutilized.\n"
			    "1 is needed by requests and idle in fact: a.\n"
			    "b goes; nothing on it has to move.\n");
}

static void a_destination_is_told_what_it_will_use(void **unused)
{
	struct pod_stats pods[] = {
		join_fixture_pod("web-1", "uid-web-1", NOW - NS_PER_SEC, 900, 500, (double)GIB)};

	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	put_owner("web", 1);
	put_pod("web-1", "web", "a", 100);
	put_pod("db-1", "db", "b", 2100);
	put_owner("db", 1);
	measure("a", NS_PER_SEC, 600, pods, 1);
	measure("b", NS_PER_SEC, 100, NULL, 0);
	config.assume_unneeded_ns = 11 * MINUTE;
	step(NOW);
	assert_verdict("a", "drain");
	/* 2.1 + 2.33 * 0.1, and 0.5 more; 1 GiB, of which db-1 asks for 128 MiB, and 1 GiB more. */
	assert_non_null(
		strstr(plan->narration,
		       "b takes 1 pod: 2.33 CPUs become 2.83 of 3.40, 1.00 GiB become 2.00 of "
		       "7.20.\n"));
}

static void a_silent_node_is_never_idle(void **unused)
{
	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	put_node("c", "", "");
	put_owner("web", 1);
	put_pod("web-1", "web", "a", 100);
	measure("a", 301 * NS_PER_SEC, 100, NULL, 0);
	measure("c", NS_PER_SEC, 100, NULL, 0);
	step(NOW);
	assert_reason("a", 0, "NotMeasured", "its agent is silent: it is not known to be idle");
	/* Without pods it uses nothing. */
	assert_verdict("b", "unneeded");
}

/* b could move on to c, and its guest with it: a pod would move twice. */
static void a_destination_is_not_drained(void **unused)
{
	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	put_node("c", "", "");
	put_owner("web", 20);
	put_pod("web-1", "web", "a", 100);
	put_pod("web-2", "web", "b", 200);
	put_pod("web-3", "web", "b", 200);
	put_pod("web-4", "web", "c", 100);
	put_pod("web-5", "web", "c", 100);
	put_pod("web-6", "web", "c", 100);
	step(NOW);
	assert_verdict("a", "unneeded");
	assert_verdict("b", "notExamined"); /* nothing is drained, so nothing is kept */
	assert_string_equal(node("a")->moves[0].to, "b");
	assert_reason("b", 0, "DestinationInWave", "1 pod of nodes that could go would come here");
}

static void a_budget_lets_one_wave_go_after_the_other(void **unused)
{
	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	put_node("c", "", "");
	put_owner("web", 20);
	put_owner("db", 4);
	put_pod("web-1", "web", "a", 100);
	put_pod("web-2", "web", "b", 100);
	put_pod("db-1", "db", "c", 2400);
	for (int i = 3; i <= 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "web-%d", i);
		put_pod(name, "web", "c", 10);
	}
	put_budget("web", 1);
	config.assume_unneeded_ns = 11 * MINUTE;
	step(NOW);
	assert_verdict("a", "drain");
	assert_verdict("b", "unneeded");
	assert_true(node("b")->since_ns == NOW - 11 * MINUTE);
	assert_reason(
		"b", 0, "NotEnoughPdb",
		"pod default/web-2 waits for PodDisruptionBudget web: 0 more may leave beside "
		"this wave");
	assert_non_null(strstr(plan->narration,
			       "PodDisruptionBudget default/web: 1 leaves, 1 may at once, and 0 "
			       "more then.\n"));
}

static void a_share_of_an_owner_may_be_away(void **unused)
{
	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	put_owner("web", 2);
	put_pod("web-1", "web", "a", 100);
	put_node("c", "", "");
	put_pod("web-2", "web", "c", 100);
	put_pod("db-1", "db", "b", 2400);
	put_owner("db", 1);
	config.assume_unneeded_ns = 11 * MINUTE;
	step(NOW);
	assert_verdict("a", "drain");
	assert_verdict("c", "unneeded");
	assert_reason("c", 0, "OwnerShareReached",
		      "ReplicaSet web wants 2 replicas, of which 1 may be away: 0 are not ready, "
		      "and 1 would move already");
}

static void what_is_on_its_way_comes_first(void **unused)
{
	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	put_node("gone", "", "'taints':[{'key':'karpenter.sh/disrupted','effect':'NoSchedule'}]");
	put_owner("web", 2);
	put_pod("web-1", "web", "a", 1900);
	put_pod("web-2", "web", "gone", 3000);
	config.assume_unneeded_ns = 11 * MINUTE;
	step(NOW);
	assert_verdict("gone", "inDeletion");
	/* web-2 needs b, and so web-1 stays. */
	assert_reason("a", 0, "NoPlaceToMovePods",
		      "pod default/web-1 fits on no other node: 1 NodeGone, 1 NodeResourcesFit");
	put_pod("web-1", "web", "a", 1900);
	put_pod("web-3", "web", "b", 1900);
	put_owner("web", 3);
	step(NOW + 6 * MINUTE);
	assert_reason("a", 0, "DeletionsUnplaced",
		      "1 pod of nodes in deletion, or evicted, fits nowhere");
	assert_verdict("a", "notExamined");
	assert_non_null(
		strstr(plan->narration, "1 pod of nodes in deletion, or evicted, fits nowhere.\n"));
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
	cJSON *json = written(state);
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
	put_node("a", "", "");
	put_node("b", "", "");
	put_node("c", "", "'unschedulable':true");
	put_owner("web", 2);
	put_pod("web-1", "web", "a", 1500);
	put_pod("web-2", "web", "c", 1500);
	step(NOW);
	assert_int_equal(count_of("evictions"), 0);
	place_fixture_remove(&f, OBJECT_POD, "default", "web-2");
	step(NOW + NS_PER_SEC);
	assert_int_equal(count_of("evictions"), 1);
	assert_int_equal(plan->reserved.of_evictions, 1);
	assert_int_equal(plan->reserved.placed, 1);
	/* Its successor is there: no room is reserved any more. */
	put_pod("web-3", "web", "b", 1500);
	step(NOW + 2 * NS_PER_SEC);
	assert_int_equal(plan->reserved.of_evictions, 0);
	step(NOW + 4 * MINUTE);
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
	put_node("a", "", "");
	put_node("b", "", "");
	step(NOW);
	assert_verdict("b", "unneeded");
	out_of_time = at_once;
	config.rules.simulation_min_nodes = 1;
	step(NOW + MINUTE);
	assert_verdict("a", "unneeded");
	assert_verdict("b", "notExamined");
	assert_false(plan->complete);
	assert_true(node("b")->since_ns == NOW);
	config.rules.variant = DRAIN_UPSTREAM;
	step(NOW + 2 * MINUTE);
	assert_true(node("b")->since_ns == 0);
}

static void more_could_go_than_may(void **unused)
{
	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	put_node("c", "", "");
	config.assume_unneeded_ns = 11 * MINUTE;
	config.rules.max_parallelism = 1;
	step(NOW);
	assert_true(plan->throttle.throttled);
	assert_int_equal(plan->throttle.held, 2);
	assert_reason("b", 0, "ScaleDownThrottled",
		      "1 of 1 nodes are on their way, 0 of 10 of them drained");
	assert_non_null(
		strstr(plan->narration,
		       "ScaleDownThrottled: 1 of 1 nodes, 0 of 10 drains; 2 more could go.\n"));
	/* Drains are at their limit, and an empty node could go: that is not throttled. */
	config.rules.max_parallelism = 10;
	config.rules.max_drain_parallelism = 1;
	put_pod("web-0", "web", "a", 500);
	put_pod("db-0", "db", "b", 500);
	put_pod("db-1", "db", "c", 3000);
	put_owner("web", 1);
	put_owner("db", 2);
	step(NOW);
	assert_int_equal(plan->throttle.held, 1);
	assert_false(plan->throttle.throttled);
	assert_reason("b", 0, "ParallelismLimitReached",
		      "1 of 10 nodes are on their way, 1 of 1 of them drained");
}

/* Both variants tell why a node stays; upstream does not look again for a while. */
static void upstream_remembers_what_kept_a_node(void **unused)
{
	static const enum drain_variant variants[] = {DRAIN_CORRECTED, DRAIN_UPSTREAM};

	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	put_node("c", "", "");
	put_owner("web", 2);
	put_budget("web", 0);
	put_pod("web-1", "web", "a", 100);
	put_pod("web-2", "web", "c", 3000);
	place_fixture_put(&f, OBJECT_POD,
			  "{'metadata':{'namespace':'default','name':'naked','uid':'naked'},"
			  "'spec':{'nodeName':'b','containers':[]},'status':{'phase':'Running'}}");
	for (size_t i = 0; i < 2; i++) {
		bool again = variants[i] == DRAIN_UPSTREAM;

		config.rules.variant = variants[i];
		drain_state_free(state);
		state = drain_state_new();
		step(NOW);
		assert_reason_code("a", "NotEnoughPdb");
		assert_reason_code("b", "NotReplicated");
		/* Its budget allows it now, and nothing was freed. */
		put_budget("web", 1);
		step(NOW + MINUTE);
		if (again)
			assert_reason_code("a", "RecentlyUnremovable");
		else
			assert_verdict("a", "unneeded");
		put_budget("web", 0);
	}
}

static void a_schedule_closes_the_door(void **unused)
{
	const struct drain_window window = {.nodes = "0", .duration_sec = -1};

	(void)unused;
	put_node("a", "", "");
	config.assume_unneeded_ns = 11 * MINUTE;
	config.windows = &window;
	config.window_count = 1;
	step(NOW);
	assert_int_equal(plan->wave.node_count, 0);
	assert_reason("a", 0, "DisruptionBudgetReached",
		      "budget 1 (nodes: 0) allows 0 nodes away at once, and 0 are");
}

static void extra_capacity_holds_a_node(void **unused)
{
	struct kube_pod *pod = place_fixture_record("slack-1", "", "", "");

	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "'unschedulable':true");
	slack[0] = (struct drain_placeholder){pod, "a", "web"};
	slack_count = 1;
	config.assume_unneeded_ns = 11 * MINUTE;
	step(NOW);
	assert_reason("a", 0, "SlackWouldDrop",
		      "1 placeholder of class web would fit nowhere: 100 millicores and 128 MiB of "
		      "extra capacity would be missing");
	put_node("b", "", "");
	put_pod("db-1", "db", "b", 2400);
	put_owner("db", 1);
	step(NOW + 6 * MINUTE);
	/* It moves, and costs no drain. */
	assert_verdict("a", "drain");
	assert_int_equal(plan->wave.empty_count, 1);
	assert_int_equal(plan->throttle.drains_used, 0);
	object_drop(&pod->object);
}

/* --- the state */

static void an_old_state_says_nothing(void **unused)
{
	struct drain_state *other = drain_state_new();
	struct buf text = BUF_INIT;

	(void)unused;
	put_node("a", "", "");
	step(NOW);
	drain_state_write(state, NOW, &text);
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
	put_node("a", "", "");
	put_node("b", "", "");
	put_owner("web", 2);
	put_pod("web-1", "web", "a", 100);
	put_pod("web-2", "web", "b", 2100);
	step(NOW);
	assert_int_equal(plan->record_count, 1);
	step(NOW + MINUTE); /* it says the same */
	assert_int_equal(plan->record_count, 0);
	step(NOW + 11 * MINUTE);
	assert_int_equal(plan->record_count, 2);
	step(NOW + 12 * MINUTE);
	assert_int_equal(plan->record_count, 0);
	put_node("a", ",'annotations':{'karpenter.sh/do-not-disrupt':'true'}", "");
	step(NOW + 13 * MINUTE);
	of = drain_state_history(state, &count);
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
	put_pod("web-1", "web", "a", 3000);
	put_node("a", "", "");
	step(NOW + 14 * MINUTE);
	assert_int_equal(plan->record_count, 1);
	assert_record(&plan->records[0], NOW + 14 * MINUTE, "needed", "a", "NotUnderutilized",
		      "pods request 75.0% of its allocatable cpu, more than 50.0%");
	assert_false(plan->records[0].verdict);
	place_fixture_remove(&f, OBJECT_POD, "default", "web-1");
	place_fixture_remove(&f, OBJECT_NODE, "", "a");
	step(NOW + 15 * MINUTE);
	assert_int_equal(plan->record_count, 2);
	assert_record(&plan->records[0], NOW + 15 * MINUTE, "evicted", "a", "NoReason",
		      "pod default/web-1 left it");
	assert_record(&plan->records[1], NOW + 15 * MINUTE, "gone", "a", "NoReason",
		      "the node is gone");
}

/* Who reads what was saved says nothing that was said before. */
static void history_goes_on_after_a_restart(void **unused)
{
	struct buf text = BUF_INIT;
	struct error error = {""};
	size_t count;

	(void)unused;
	put_node("a", "", "");
	put_node("b", "", "");
	config.assume_unneeded_ns = 11 * MINUTE;
	step(NOW);
	assert_true(plan->record_count > 0);
	drain_state_write(state, NOW, &text);
	drain_state_free(state);
	state = drain_state_new();
	assert_int_equal(
		drain_state_read(state, text.data, text.len, 10 * MINUTE, NOW + MINUTE, &error), 0);
	step(NOW + MINUTE);
	assert_int_equal(plan->record_count, 0);
	drain_state_history(state, &count);
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
		STORY(history_goes_on_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
