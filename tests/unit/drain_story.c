/* SPDX-License-Identifier: Apache-2.0 */
/* What drains do beside a cluster that lives: pods that wait, nodes that are done, owners on one node. */
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
#include "tests/drain_world.h"
#include "tests/join_fixture.h"
#include "tests/verify_fixture.h"
#include "tests/view_fixture.h"

#define NOW    VIEW_FIXTURE_NOW_NS
#define MINUTE (60 * NS_PER_SEC)

static struct drain_world w;

static int setup(void **unused)
{
	(void)unused;
	drain_world_init(&w);
	w.config.assume_unneeded_ns = 30 * MINUTE;
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	drain_world_fini(&w);
	return 0;
}

#define OWNED_BY                                                                                   \
	"'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'%s','uid':"        \
	"'rs-%s','controller':true}]"

/* Since a second after NOW. */
static void put_unschedulable(const char *name, const char *owner)
{
	char *json = mem_printf(
		"{'metadata':{'name':'%s','namespace':'default','uid':'uid-%s',"
		"'creationTimestamp':'2026-01-31T12:00:01Z'," OWNED_BY
		"},'spec':{'containers':[{'name':'c','resources':{'requests':{'cpu':'100m'}}}]},"
		"'status':{'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
		"'reason':'Unschedulable','lastTransitionTime':'2026-01-31T12:00:01Z'}]}}",
		name, name, owner, owner);

	place_fixture_put(&w.cluster, OBJECT_POD, json);
	free(json);
}

/* Wherever the simulation would place it. */
static void an_evicted_pod_without_a_node_stops_all(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node_with(&w, "c", "", "", "'unschedulable':true");
	drain_world_owner(&w, "web", 2);
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "web-1", "web", "a", 1500);
	drain_world_pod(&w, "web-2", "web", "c", 1500);
	put_unschedulable("db-1", "db");
	drain_world_step(&w, NOW);
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-2");
	put_unschedulable("web-3", "web");
	drain_world_step(&w, NOW + 10 * NS_PER_SEC);
	assert_int_equal(w.plan->reserved.waiting, 0);
	drain_world_step(&w, NOW + 11 * NS_PER_SEC);
	assert_int_equal(w.plan->reserved.waiting, 1);
	assert_int_equal(w.plan->wave.node_count, 0);
	drain_world_verdict(&w, "b", "notExamined");
	drain_world_reason(
		&w, "b", 0, "DeletionsUnplaced",
		"pod default/web-3, which replaces an evicted one, has been unschedulable for "
		"10 s");
	/* For as long as it waits. */
	for (int i = 1; i <= 5; i++)
		drain_world_step(&w, NOW + 2 * i * MINUTE);
	assert_int_equal(w.plan->reserved.waiting, 1);
	drain_world_pod(&w, "web-3", "web", "b", 100);
	drain_world_step(&w, NOW + 11 * MINUTE);
	assert_int_equal(w.plan->reserved.waiting, 0);
	assert_string_equal(w.plan->reserved.error.text, "");
	assert_true(w.plan->wave.node_count > 0);
}

/* The clock is set back by an hour after the eviction. */
static void an_eviction_ends_when_the_clock_is_set_back(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node_with(&w, "c", "", "", "'unschedulable':true");
	drain_world_owner(&w, "web", 1);
	drain_world_pod(&w, "web-1", "web", "c", 100);
	drain_world_step(&w, NOW + 60 * MINUTE);
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-1");
	drain_world_step(&w, NOW + 60 * MINUTE);
	drain_world_step(&w, NOW);
	assert_int_equal(w.plan->evictions, 1);
	drain_world_step(&w, NOW + 3 * MINUTE);
	assert_int_equal(w.plan->evictions, 0);
}

/* As a new process has it. */
static void restart(int64_t now_ns)
{
	struct drain_state *read = drain_state_new();
	struct error why = {""};
	struct buf text = BUF_INIT;

	drain_state_write(w.state, now_ns, &text);
	assert_int_equal(drain_state_read(read, text.data, text.len, 10 * MINUTE, now_ns, &why), 0);
	drain_state_free(w.state);
	w.state = read;
	buf_fini(&text);
}

static void an_evicted_pod_stops_all_after_a_restart_as_well(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node_with(&w, "c", "", "", "'unschedulable':true");
	drain_world_owner(&w, "web", 2);
	drain_world_pod(&w, "web-1", "web", "a", 1500);
	drain_world_pod(&w, "web-2", "web", "c", 1500);
	drain_world_step(&w, NOW);
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-2");
	put_unschedulable("web-3", "web");
	drain_world_step(&w, NOW + 10 * NS_PER_SEC);
	restart(NOW + 10 * NS_PER_SEC);
	drain_world_step(&w, NOW + 11 * NS_PER_SEC);
	assert_int_equal(w.plan->reserved.waiting, 1);
}

#define DISRUPTED                                                                                  \
	"{'type':'DisruptionTarget','status':'True','reason':'PreemptionByScheduler',"             \
	"'lastTransitionTime':'2026-01-31T12:00:00Z'}"

/* A quota took its pod back, on a node that stays. */
static void a_preempted_pod_without_a_node_stops_nothing(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "db-1", "db", "a", 2400);
	place_fixture_put(
		&w.cluster, OBJECT_POD,
		"{'metadata':{'namespace':'default','name':'web-1','uid':'uid-web-1',"
		"'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':"
		"'web','uid':'rs-web','controller':true}]},'spec':{'nodeName':'c',"
		"'containers':[{'name':'c'}]},'status':{'phase':'Running','conditions':[" DISRUPTED
		"]}}");
	drain_world_step(&w, NOW);
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-1");
	put_unschedulable("web-2", "web");
	drain_world_step(&w, NOW + 11 * NS_PER_SEC);
	assert_int_equal(w.plan->evictions, 1);
	assert_int_equal(w.plan->reserved.waiting, 0);
	assert_true(w.plan->wave.node_count > 0);
}

static void put_balloon(const char *name, const char *spec, const char *status)
{
	char *json = mem_printf(
		"{'metadata':{'namespace':'evenkeel','name':'%s','uid':'uid-%s',"
		"'creationTimestamp':'2026-01-31T12:00:01Z','labels':{'evenkeel.io/slack-class':"
		"'evenkeel-slack-unit'},'ownerReferences':[{'apiVersion':'apps/v1','kind':"
		"'ReplicaSet','name':'unit','uid':'rs-unit','controller':true}]},'spec':{%s"
		"'priority':-10,'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]},"
		"'status':{%s}}",
		name, name, spec, status);

	place_fixture_put(&w.cluster, OBJECT_POD, json);
	free(json);
}

static void a_balloon_without_a_node_stops_nothing(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node_with(&w, "c", "", "", "'unschedulable':true");
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "db-1", "db", "a", 2400);
	put_balloon("balloon-1", "'nodeName':'c',", "'phase':'Running'");
	drain_world_step(&w, NOW);
	place_fixture_remove(&w.cluster, OBJECT_POD, "evenkeel", "balloon-1");
	put_balloon("balloon-2", "",
		    "'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
		    "'reason':'Unschedulable','lastTransitionTime':'2026-01-31T12:00:01Z'}]");
	drain_world_step(&w, NOW + 11 * NS_PER_SEC);
	assert_int_equal(w.plan->evictions, 1);
	assert_int_equal(w.plan->reserved.waiting, 0);
}

/* Its pod came a minute after the node was found unneeded, from one that was drained. */
static void a_pod_that_moved_starts_the_time_of_its_node_anew(void **unused)
{
	(void)unused;
	w.config.assume_unneeded_ns = 0;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node_with(&w, "c", "", "", "'unschedulable':true");
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "db-1", "db", "a", 2400);
	drain_world_pod(&w, "web-1", "web", "c", 100);
	drain_world_step(&w, NOW);
	assert_int_equal(drain_world_get(&w, "b")->since_ns, NOW);
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-1");
	place_fixture_put(
		&w.cluster, OBJECT_POD,
		"{'metadata':{'namespace':'default','name':'web-2','uid':'uid-web-2',"
		"'creationTimestamp':'2026-01-31T12:01:00Z','ownerReferences':[{"
		"'apiVersion':'apps/v1','kind':'ReplicaSet','name':'web','uid':'rs-web',"
		"'controller':true}]},'spec':{'nodeName':'b','containers':[{'name':'c'}]},"
		"'status':{'phase':'Running'}}");
	drain_world_step(&w, NOW + 2 * MINUTE);
	assert_int_equal(drain_world_get(&w, "b")->since_ns, NOW + MINUTE);
	/* For good, and not only while the eviction is recent. */
	drain_world_step(&w, NOW + 11 * MINUTE);
	drain_world_reason(&w, "b", 0, "NotUnneededLongEnough",
			   "it has been unneeded for 600 s, and must be for more than 600 s");
	drain_world_step(&w, NOW + 12 * MINUTE);
	drain_world_verdict(&w, "b", "drain");
}

static uint32_t step_of(const char *node_name, const char *pod)
{
	const struct drain_plan_node *n = drain_world_get(&w, node_name);

	for (size_t i = 0; i < n->move_count; i++)
		if (strcmp(n->moves[i].pod->object.name, pod) == 0)
			return n->moves[i].step;
	fail_msg("%s is not of %s", pod, node_name);
	return 0;
}

/*
 * Of four one may be away: three on a node leave one after the other, and the rest last. A fifth one
 * that is not ready costs nothing.
 */
static void replicas_on_one_node_leave_in_steps(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "web", 4);
	drain_world_owner(&w, "db", 2);
	drain_world_pod_with(&w, "web-0", "web", "a", 100, false, "");
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_pod(&w, "web-2", "web", "a", 100);
	drain_world_pod(&w, "web-3", "web", "a", 100);
	drain_world_pod(&w, "db-1", "db", "a", 100);
	drain_world_pod(&w, "web-4", "web", "c", 100);
	drain_world_pod(&w, "db-2", "db", "c", 2400);
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	assert_int_equal(step_of("a", "web-1") + step_of("a", "web-2") + step_of("a", "web-3"), 6);
	assert_int_equal(step_of("a", "web-0"), 3);
	assert_int_equal(step_of("a", "db-1"), 3);
	assert_int_equal(w.plan->wave.cost_count, 2);
	assert_string_equal(w.plan->wave.costs[1].name, "web");
	assert_int_equal(w.plan->wave.costs[1].allowed, 1);
	assert_true(w.plan->wave.costs[1].one_after_the_other);
	assert_false(w.plan->wave.costs[0].one_after_the_other);
}

/* The checker of plans finds nothing wrong with the wave. */
static void assert_verified(void)
{
	cJSON *plan = verify_fixture_plan(w.plan),
	      *snapshot = verify_fixture_snapshot(w.plan->view);
	struct verify_report report;
	struct verify_plan p;

	verify_fixture_judge(plan, snapshot, &p, &report);
	for (size_t i = 0; i < report.count; i++)
		fail_msg("%s: %s", verify_invariant_name(report.of[i].invariant),
			 report.of[i].text.text);
	verify_report_fini(&report);
	verify_plan_fini(&p);
	cJSON_Delete(snapshot);
	cJSON_Delete(plan);
}

/* Of each owner one of four may be away, and of both of them two: each step takes one of each. */
static void owners_that_share_a_budget_leave_in_the_same_steps(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "api", 4);
	drain_world_owner(&w, "web", 4);
	drain_world_owner(&w, "db", 1);
	place_fixture_put(&w.cluster, OBJECT_POD_DISRUPTION_BUDGET,
			  "{'metadata':{'namespace':'default','name':'both'},'spec':{'selector':{"
			  "'matchExpressions':[{'key':'app','operator':'In','values':['api','web']}"
			  "]}},'status':{'disruptionsAllowed':2}}");
	for (int i = 1; i <= 4; i++) {
		char api[16], web[16];

		snprintf(api, sizeof(api), "api-%d", i);
		snprintf(web, sizeof(web), "web-%d", i);
		drain_world_pod(&w, api, "api", i < 3 ? "a" : "c", 100);
		drain_world_pod(&w, web, "web", i < 3 ? "a" : "c", 100);
	}
	drain_world_pod(&w, "db-1", "db", "c", 2400);
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	assert_int_equal(step_of("a", "api-1") + step_of("a", "api-2"), 3);
	assert_int_equal(step_of("a", "web-1") + step_of("a", "web-2"), 3);
	assert_verified();
}

/* A bare pod goes with its node, and takes no room elsewhere. */
static void a_pod_without_a_controller_is_deleted(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "full");
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "db-1", "db", "full", 2400);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	place_fixture_put(
		&w.cluster, OBJECT_POD,
		"{'metadata':{'namespace':'default','name':'bare','uid':'uid-bare','annotations':{"
		"'cluster-autoscaler.kubernetes.io/safe-to-evict':'true'}},'spec':{'nodeName':'b',"
		"'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]},'status':{"
		"'phase':'Running'}}");
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	drain_world_verdict(&w, "b", "drain");
	assert_int_equal(drain_world_get(&w, "b")->move_count, 1);
	assert_int_equal(w.plan->wave.pods, 1);
	assert_int_equal(w.plan->wave.destination_count, 1);
	assert_int_equal(w.plan->wave.destinations[0].pods, 1);
	assert_non_null(strstr(w.plan->narration, "b goes, and of it default/bare is deleted.\n"));
}

/* Two of two may go beside it, and a third that says it is draining is done. */
static void a_drained_node_is_done_and_uses_up_nothing(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node_with(&w, "c", "", "", "'unschedulable':true");
	drain_world_node(&w, "full");
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "db-1", "db", "full", 2400);
	place_fixture_put(&w.cluster, OBJECT_NODE,
			  "{'metadata':{'name':'d','annotations':{'evenkeel.io/draining':'true'}},"
			  "'spec':{'unschedulable':true},'status':{'allocatable':{'cpu':'4',"
			  "'memory':'8Gi','pods':'110'},'conditions':[{'type':'Ready','status':"
			  "'True'}]}}");
	w.config.rules.max_parallelism = 2;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "c", "drained");
	drain_world_verdict(&w, "d", "drained");
	drain_world_reason(&w, "c", 0, "Cordoned",
			   "the node is cordoned, and nothing is left on it");
	assert_int_equal(w.plan->wave.node_count, 2);
	assert_int_equal(w.plan->throttle.used, 2);
	drain_world_owner(&w, "web", 2);
	drain_world_pod(&w, "web-1", "web", "c", 100);
	drain_world_pod(&w, "web-2", "web", "d", 100);
	drain_world_step(&w, NOW + 1);
	drain_world_verdict(&w, "d", "inDeletion");
	assert_string_not_equal(drain_verdict_name(drain_world_get(&w, "c")->verdict), "drained");
}

/* The pod that took the room ends: no five minutes must pass. */
static void what_was_found_is_forgotten_with_its_cause(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 2);
	drain_world_pod(&w, "web-1", "web", "a", 1500);
	drain_world_pod(&w, "db-1", "db", "b", 1500);
	drain_world_pod(&w, "db-2", "db", "b", 1500);
	drain_world_step(&w, NOW);
	drain_world_reason(&w, "a", 0, "NoPlaceToMovePods",
			   "pod default/web-1 fits on no other node: 1 NodeResourcesFit");
	drain_world_step(&w, NOW + NS_PER_SEC);
	assert_non_null(strstr(drain_world_get(&w, "a")->reasons[0].text, "found a while ago: "));
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "db-2");
	drain_world_step(&w, NOW + 2 * NS_PER_SEC);
	drain_world_verdict(&w, "a", "drain");
}

static void assert_found(void)
{
	assert_string_equal(drain_reason_name(drain_world_get(&w, "a")->reasons[0].code),
			    "NoPlaceToMovePods");
}

/* The same with a pod that is resized in place. */
static void what_was_found_is_forgotten_when_a_pod_shrinks(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "web-1", "web", "a", 1500);
	drain_world_pod(&w, "db-1", "db", "b", 3000);
	drain_world_step(&w, NOW);
	assert_found();
	drain_world_pod(&w, "db-1", "db", "b", 2400);
	drain_world_step(&w, NOW + NS_PER_SEC);
	drain_world_verdict(&w, "a", "drain");
}

static void what_was_found_is_forgotten_with_a_pending_pod(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 2);
	drain_world_pod(&w, "web-1", "web", "a", 1500);
	drain_world_pod(&w, "db-1", "db", "b", 2100);
	drain_world_pod(&w, "db-2", "db", "", 1500);
	drain_world_step(&w, NOW);
	assert_found();
	drain_world_step(&w, NOW + NS_PER_SEC);
	assert_found();
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "db-2");
	drain_world_step(&w, NOW + 2 * NS_PER_SEC);
	drain_world_verdict(&w, "a", "drain");
}

static void what_was_found_is_forgotten_with_a_placeholder(void **unused)
{
	struct kube_pod *pod = place_fixture_record("slack-1", "", "", "");

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "web-1", "web", "a", 1550);
	drain_world_pod(&w, "db-1", "db", "b", 2400);
	w.input.slack = &(struct drain_placeholder){pod, "b", "unit"};
	w.input.slack_count = 1;
	drain_world_step(&w, NOW);
	w.input.slack_count = 0;
	object_drop(&pod->object);
	assert_found();
	drain_world_step(&w, NOW + NS_PER_SEC);
	drain_world_verdict(&w, "a", "drain");
}

/* Its replacement runs: it ends where it is. */
static void a_pod_that_ends_and_is_replaced_moves_nowhere(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "db-1", "db", "b", 2400);
	drain_world_pod(&w, "web-2", "web", "b", 1200);
	place_fixture_put(&w.cluster, OBJECT_POD,
			  "{'metadata':{'namespace':'default','name':'web-1','deletionTimestamp':"
			  "'2026-01-31T12:00:20Z','deletionGracePeriodSeconds':30,"
			  "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':"
			  "'web','uid':'rs-web','controller':true}]},'spec':{'nodeName':'a',"
			  "'containers':[{'name':'c','resources':{'requests':{'cpu':'1200m'}}}]},"
			  "'status':{'phase':'Running'}}");
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	assert_int_equal(w.plan->wave.pods, 0);
	/* Of two that are wanted the other is still to come. */
	drain_world_owner(&w, "web", 2);
	drain_world_step(&w, NOW + 1);
	assert_string_not_equal(drain_verdict_name(drain_world_get(&w, "a")->verdict), "drain");
}

static void room_that_slack_takes_is_named(void **unused)
{
	struct kube_pod *pod = place_fixture_record("slack-1", "", "", "");

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "web-1", "web", "a", 1550);
	drain_world_pod(&w, "db-1", "db", "b", 2400);
	w.input.slack = &(struct drain_placeholder){pod, "b", "unit"};
	w.input.slack_count = 1;
	drain_world_step(&w, NOW);
	w.input.slack_count = 0;
	object_drop(&pod->object);
	drain_world_reason(
		&w, "a", 0, "NoPlaceToMovePods",
		"pod default/web-1 fits on no other node: 1 NodeResourcesFit; b would have "
		"room, but for extra capacity");
	assert_string_equal(drain_world_get(&w, "a")->reasons[0].unblock,
			    "lower the extra capacity, or add a node");
}

/* Balloons make way for whatever comes. */
static void balloons_do_not_make_a_node_needed(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "slack", 1);
	place_fixture_put(
		&w.cluster, OBJECT_POD,
		"{'metadata':{'namespace':'evenkeel','name':'balloon','labels':{"
		"'evenkeel.io/slack-class':'evenkeel-slack-unit'}},'spec':{'nodeName':'a',"
		"'priority':-10,'containers':[{'name':'c','resources':{'requests':{'cpu':"
		"'3500m'}}}]},'status':{'phase':'Running'}}");
	drain_world_step(&w, NOW);
	assert_true(drain_world_get(&w, "a")->requested_share < 0.1);
	assert_string_not_equal(drain_reason_name(
					drain_world_get(&w, "a")->reason_count
						? drain_world_get(&w, "a")->reasons[0].code
						: DRAIN_NONE),
				"NotUnderutilized");
}

static void a_node_of_the_control_plane_has_its_own_words(void **unused)
{
	(void)unused;
	place_fixture_put(&w.cluster, OBJECT_NODE,
			  "{'metadata':{'name':'cp','labels':{"
			  "'node-role.kubernetes.io/control-plane':''}},'status':{'allocatable':{"
			  "'cpu':'4','memory':'8Gi','pods':'110'},'conditions':[{'type':'Ready',"
			  "'status':'True'}]}}");
	drain_world_step(&w, NOW);
	drain_world_reason(&w, "cp", 0, "ControlPlaneNode",
			   "it is a node of the control plane: it has the label "
			   "node-role.kubernetes.io/control-plane");
}

/* --- wherever the scheduler puts them */

static void put_two(const char *spec)
{
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_node(&w, "d");
	drain_world_owner(&w, "web", 8);
	drain_world_owner(&w, "db", 2);
	drain_world_pod_with(&w, "web-1", "web", "a", 1000, true, spec);
	drain_world_pod_with(&w, "web-2", "web", "b", 1000, true, spec);
	drain_world_pod(&w, "db-1", "db", "c", 2400);
	drain_world_pod(&w, "db-2", "db", "d", 2400);
	for (int i = 3; i <= 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "web-%d", i);
		drain_world_pod(&w, name, "web", i % 2 ? "c" : "d", 10);
	}
}

static void room_for_all_in_any_order_is_proven(void **unused)
{
	(void)unused;
	put_two("");
	drain_world_step(&w, NOW);
	assert_int_equal(w.plan->wave.node_count, 2);
	assert_true(w.plan->wave.robust);
	assert_true(w.plan->wave.any_order);
}

/* Samples find nothing wrong with it, and prove nothing. */
static void pods_that_mind_others_prove_nothing(void **unused)
{
	static const char *const specs[] = {
		"'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[]}}",
		"'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[]"
		"}}",
		"'topologySpreadConstraints':[{'maxSkew':5,'topologyKey':'kubernetes.io/hostname',"
		"'whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{'app':'web'}}}"
		"]",
		"'initContainers':[{'name':'i','ports':[{'containerPort':1,'hostPort':1}]}]",
	};

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		put_two(specs[i]);
		drain_world_step(&w, NOW);
		assert_int_equal(w.plan->wave.node_count, 2);
		assert_true(w.plan->wave.robust);
		assert_false(w.plan->wave.any_order);
		teardown(unused);
		setup(unused);
	}
}

/* Each of two nodes has room for one: a single other pod closes one of them at most. */
static void room_that_one_pod_may_take_is_counted_once(void **unused)
{
	(void)unused;
	put_two("");
	drain_world_pod(&w, "db-1", "db", "c", 2950);
	drain_world_pod(&w, "db-2", "db", "d", 2950);
	drain_world_step(&w, NOW);
	assert_int_equal(w.plan->wave.node_count, 2);
	assert_true(w.plan->wave.any_order);
	/* A third pod: two may close both by their CPU alone. */
	drain_world_pod(&w, "web-9", "web", "a", 10);
	w.config.rules.owner_share = 1;
	drain_world_step(&w, NOW);
	assert_int_equal(w.plan->wave.node_count, 2);
	assert_true(w.plan->wave.robust);
	assert_false(w.plan->wave.any_order);
}

/* The one node of web-1 has room for it or for web-2, which fits elsewhere, too. */
static void the_only_node_of_a_pod_may_be_filled(void **unused)
{
	(void)unused;
	put_two("");
	drain_world_pod_with(&w, "web-1", "web", "a", 1000, true,
			     "'nodeSelector':{'kubernetes.io/hostname':'c'}");
	drain_world_pod(&w, "db-2", "db", "d", 2300);
	drain_world_step(&w, NOW);
	assert_int_equal(w.plan->wave.node_count, 2);
	assert_true(w.plan->wave.robust);
	assert_false(w.plan->wave.any_order);
}

/* Node e, which is empty, uses too much for any pod; the others use little. */
static void measure_five(void)
{
	static const char *const names[] = {"a", "b", "c", "d", "e"};
	struct pod_stats db[] = {
		join_fixture_pod("db-1", "uid-db-1", NOW - NS_PER_SEC, 900, 100, 128e6),
		join_fixture_pod("db-2", "uid-db-2", NOW - NS_PER_SEC, 900, 100, 128e6)};

	drain_world_node_with(&w, "e", "",
			      "'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'", "");
	for (size_t i = 0; i < 5; i++) {
		struct node_stats from =
			view_fixture_node(names[i], NOW - NS_PER_SEC, 3600, i == 4 ? 3500 : 200, 0);

		for (int win = 0; win < WINDOWS; win++) {
			from.usage.windows[win].working_set_bytes.max = 1e9;
			from.usage.windows[win].counts.pressure[CONTENTION_CPU] = 0;
		}
		if (i == 2 || i == 3) {
			from.pods = &db[i - 2];
			from.pod_count = 1;
		}
		w.stats[w.stats_count++] = node_stats_new(&from);
	}
}

/*
 * Two of three pods have 1010m to close c and d to the third, a pod of 1000m. A node that is above
 * the cap of use is closed by evenkeel alone.
 */
static void nodes_that_the_others_fill_are_counted(void **unused)
{
	static const struct {
		int db_milli;
		bool measured; /* and node e, which all of them would overload */
		bool any_order;
	} rows[] = {{2465, false, true}, {2466, false, false}, {2466, true, true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_two("");
		drain_world_pod(&w, "web-9", "web", "a", 10);
		drain_world_pod(&w, "db-1", "db", "c", 2466);
		drain_world_pod(&w, "db-2", "db", "d", rows[i].db_milli);
		if (rows[i].measured)
			measure_five();
		w.config.rules.owner_share = 1;
		drain_world_step(&w, NOW);
		assert_int_equal(w.plan->wave.pods, 3);
		assert_int_equal(w.plan->wave.any_order, rows[i].any_order);
		teardown(unused);
		setup(unused);
	}
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		STORY(an_evicted_pod_without_a_node_stops_all),
		STORY(an_evicted_pod_stops_all_after_a_restart_as_well),
		STORY(an_eviction_ends_when_the_clock_is_set_back),
		STORY(a_preempted_pod_without_a_node_stops_nothing),
		STORY(a_balloon_without_a_node_stops_nothing),
		STORY(a_pod_that_moved_starts_the_time_of_its_node_anew),
		STORY(replicas_on_one_node_leave_in_steps),
		STORY(owners_that_share_a_budget_leave_in_the_same_steps),
		STORY(a_pod_without_a_controller_is_deleted),
		STORY(a_drained_node_is_done_and_uses_up_nothing),
		STORY(what_was_found_is_forgotten_with_its_cause),
		STORY(what_was_found_is_forgotten_when_a_pod_shrinks),
		STORY(what_was_found_is_forgotten_with_a_pending_pod),
		STORY(what_was_found_is_forgotten_with_a_placeholder),
		STORY(a_pod_that_ends_and_is_replaced_moves_nowhere),
		STORY(room_that_slack_takes_is_named),
		STORY(balloons_do_not_make_a_node_needed),
		STORY(a_node_of_the_control_plane_has_its_own_words),
		STORY(room_for_all_in_any_order_is_proven),
		STORY(pods_that_mind_others_prove_nothing),
		STORY(room_that_one_pod_may_take_is_counted_once),
		STORY(the_only_node_of_a_pod_may_be_filled),
		STORY(nodes_that_the_others_fill_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
