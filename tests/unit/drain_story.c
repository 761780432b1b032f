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

#include "aggregator/policy/drain/drain.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/place_fixture.h"
#include "tests/view_fixture.h"

#define NOW    VIEW_FIXTURE_NOW_NS
#define MINUTE (60 * NS_PER_SEC)

static struct place_fixture f;
static struct drain_state *state;
static struct drain_config config;
static struct drain_plan *plan;
static struct drain_placeholder slack; /* pod NULL: there is none */

static int setup(void **unused)
{
	(void)unused;
	place_fixture_init(&f);
	state = drain_state_new();
	drain_config_default(&config);
	config.assume_unneeded_ns = 30 * MINUTE;
	plan = NULL;
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	drain_plan_free(plan);
	drain_state_free(state);
	place_fixture_fini(&f);
	return 0;
}

/* 4 CPU; spec: members of it. */
static void put_node(const char *name, const char *spec)
{
	char *json = mem_printf(
		"{'metadata':{'name':'%s','labels':{'kubernetes.io/hostname':'%s'}},'spec':{%s},"
		"'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':'110'},'conditions':[{"
		"'type':'Ready','status':'True'}]}}",
		name, name, spec);

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

#define OWNED_BY                                                                                   \
	"'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'%s','uid':"        \
	"'rs-%s','controller':true}]"

/* spec: members of it, with a comma in front. */
static void put_pod_with(const char *name, const char *owner, const char *node, int cpu_milli,
			 const char *spec)
{
	char *json = mem_printf(
		"{'metadata':{'namespace':'default','name':'%s','uid':'uid-%s','labels':{'app':'%s'"
		"}," OWNED_BY "},'spec':{'nodeName':'%s','containers':[{'name':'c','resources':{"
		"'requests':{'cpu':'%dm','memory':'128Mi'}}}]%s},'status':{'phase':'Running',"
		"'conditions':[{'type':'Ready','status':'True'}]}}",
		name, name, owner, owner, owner, node, cpu_milli, spec);

	place_fixture_put(&f, OBJECT_POD, json);
	free(json);
}

static void put_pod(const char *name, const char *owner, const char *node, int cpu_milli)
{
	put_pod_with(name, owner, node, cpu_milli, "");
}

static void step(int64_t now_ns)
{
	struct view *v = place_fixture_view(&f, NULL, 0);
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
						.slack = &slack,
						.slack_count = slack.pod ? 1 : 0},
			  &config);
	view_drop(v);
}

static const struct drain_plan_node *node(const char *name)
{
	const struct drain_plan_node *n = drain_plan_find(plan, name);

	assert_non_null(n);
	return n;
}

static void assert_verdict(const char *name, const char *verdict)
{
	assert_string_equal(drain_verdict_name(node(name)->verdict), verdict);
}

static void assert_reason(const char *name, const char *code, const char *text)
{
	assert_true(node(name)->reason_count > 0);
	assert_string_equal(drain_reason_name(node(name)->reasons[0].code), code);
	assert_string_equal(node(name)->reasons[0].text, text);
}

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

	place_fixture_put(&f, OBJECT_POD, json);
	free(json);
}

/* Wherever the simulation would place it. */
static void an_evicted_pod_without_a_node_stops_all(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_node("c", "'unschedulable':true");
	put_owner("web", 2);
	put_owner("db", 1);
	put_pod("web-1", "web", "a", 1500);
	put_pod("web-2", "web", "c", 1500);
	put_unschedulable("db-1", "db");
	step(NOW);
	place_fixture_remove(&f, OBJECT_POD, "default", "web-2");
	put_unschedulable("web-3", "web");
	step(NOW + 10 * NS_PER_SEC);
	assert_int_equal(plan->reserved.waiting, 0);
	step(NOW + 11 * NS_PER_SEC);
	assert_int_equal(plan->reserved.waiting, 1);
	assert_int_equal(plan->wave.node_count, 0);
	assert_verdict("b", "notExamined");
	assert_reason(
		"b", "DeletionsUnplaced",
		"pod default/web-3, which replaces an evicted one, has been unschedulable for "
		"10 s");
	/* For as long as it waits. */
	for (int i = 1; i <= 5; i++)
		step(NOW + 2 * i * MINUTE);
	assert_int_equal(plan->reserved.waiting, 1);
	put_pod("web-3", "web", "b", 100);
	step(NOW + 11 * MINUTE);
	assert_int_equal(plan->reserved.waiting, 0);
	assert_string_equal(plan->reserved.error.text, "");
	assert_true(plan->wave.node_count > 0);
}

/* As a new process has it. */
static void restart(int64_t now_ns)
{
	struct drain_state *read = drain_state_new();
	struct error why = {""};
	struct buf text = BUF_INIT;

	drain_state_write(state, now_ns, &text);
	assert_int_equal(drain_state_read(read, text.data, text.len, 10 * MINUTE, now_ns, &why), 0);
	drain_state_free(state);
	state = read;
	buf_fini(&text);
}

static void an_evicted_pod_stops_all_after_a_restart_as_well(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_node("c", "'unschedulable':true");
	put_owner("web", 2);
	put_pod("web-1", "web", "a", 1500);
	put_pod("web-2", "web", "c", 1500);
	step(NOW);
	place_fixture_remove(&f, OBJECT_POD, "default", "web-2");
	put_unschedulable("web-3", "web");
	step(NOW + 10 * NS_PER_SEC);
	restart(NOW + 10 * NS_PER_SEC);
	step(NOW + 11 * NS_PER_SEC);
	assert_int_equal(plan->reserved.waiting, 1);
}

#define DISRUPTED                                                                                  \
	"{'type':'DisruptionTarget','status':'True','reason':'PreemptionByScheduler',"             \
	"'lastTransitionTime':'2026-01-31T12:00:00Z'}"

/* A quota took its pod back, on a node that stays. */
static void a_preempted_pod_without_a_node_stops_nothing(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_node("c", "");
	put_owner("web", 1);
	put_owner("db", 1);
	put_pod("db-1", "db", "a", 2400);
	place_fixture_put(
		&f, OBJECT_POD,
		"{'metadata':{'namespace':'default','name':'web-1','uid':'uid-web-1',"
		"'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':"
		"'web','uid':'rs-web','controller':true}]},'spec':{'nodeName':'c',"
		"'containers':[{'name':'c'}]},'status':{'phase':'Running','conditions':[" DISRUPTED
		"]}}");
	step(NOW);
	place_fixture_remove(&f, OBJECT_POD, "default", "web-1");
	put_unschedulable("web-2", "web");
	step(NOW + 11 * NS_PER_SEC);
	assert_int_equal(plan->evictions, 1);
	assert_int_equal(plan->reserved.waiting, 0);
	assert_true(plan->wave.node_count > 0);
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

	place_fixture_put(&f, OBJECT_POD, json);
	free(json);
}

static void a_balloon_without_a_node_stops_nothing(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_node("c", "'unschedulable':true");
	put_owner("db", 1);
	put_pod("db-1", "db", "a", 2400);
	put_balloon("balloon-1", "'nodeName':'c',", "'phase':'Running'");
	step(NOW);
	place_fixture_remove(&f, OBJECT_POD, "evenkeel", "balloon-1");
	put_balloon("balloon-2", "",
		    "'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
		    "'reason':'Unschedulable','lastTransitionTime':'2026-01-31T12:00:01Z'}]");
	step(NOW + 11 * NS_PER_SEC);
	assert_int_equal(plan->evictions, 1);
	assert_int_equal(plan->reserved.waiting, 0);
}

/* Its pod came a minute after the node was found unneeded, from one that was drained. */
static void a_pod_that_moved_starts_the_time_of_its_node_anew(void **unused)
{
	(void)unused;
	config.assume_unneeded_ns = 0;
	put_node("a", "");
	put_node("b", "");
	put_node("c", "'unschedulable':true");
	put_owner("web", 1);
	put_owner("db", 1);
	put_pod("db-1", "db", "a", 2400);
	put_pod("web-1", "web", "c", 100);
	step(NOW);
	assert_int_equal(node("b")->since_ns, NOW);
	place_fixture_remove(&f, OBJECT_POD, "default", "web-1");
	place_fixture_put(
		&f, OBJECT_POD,
		"{'metadata':{'namespace':'default','name':'web-2','uid':'uid-web-2',"
		"'creationTimestamp':'2026-01-31T12:01:00Z','ownerReferences':[{"
		"'apiVersion':'apps/v1','kind':'ReplicaSet','name':'web','uid':'rs-web',"
		"'controller':true}]},'spec':{'nodeName':'b','containers':[{'name':'c'}]},"
		"'status':{'phase':'Running'}}");
	step(NOW + 2 * MINUTE);
	assert_int_equal(node("b")->since_ns, NOW + MINUTE);
	/* For good, and not only while the eviction is recent. */
	step(NOW + 11 * MINUTE);
	assert_reason("b", "NotUnneededLongEnough",
		      "it has been unneeded for 600 s, and must be for more than 600 s");
	step(NOW + 12 * MINUTE);
	assert_verdict("b", "drain");
}

static uint32_t step_of(const char *node_name, const char *pod)
{
	const struct drain_plan_node *n = node(node_name);

	for (size_t i = 0; i < n->move_count; i++)
		if (strcmp(n->moves[i].pod->object.name, pod) == 0)
			return n->moves[i].step;
	fail_msg("%s is not of %s", pod, node_name);
	return 0;
}

/* Of four one may be away: three on a node leave one after the other, and the rest last. */
static void replicas_on_one_node_leave_in_steps(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_node("c", "");
	put_owner("web", 4);
	put_owner("db", 2);
	put_pod("web-1", "web", "a", 100);
	put_pod("web-2", "web", "a", 100);
	put_pod("web-3", "web", "a", 100);
	put_pod("db-1", "db", "a", 100);
	put_pod("web-4", "web", "c", 100);
	put_pod("db-2", "db", "c", 2400);
	step(NOW);
	assert_verdict("a", "drain");
	assert_int_equal(step_of("a", "web-1") + step_of("a", "web-2") + step_of("a", "web-3"), 6);
	assert_int_equal(step_of("a", "db-1"), 3);
	assert_int_equal(plan->wave.cost_count, 2);
	assert_string_equal(plan->wave.costs[1].name, "web");
	assert_int_equal(plan->wave.costs[1].allowed, 1);
	assert_true(plan->wave.costs[1].one_after_the_other);
	assert_false(plan->wave.costs[0].one_after_the_other);
}

/* A bare pod goes with its node, and takes no room elsewhere. */
static void a_pod_without_a_controller_is_deleted(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_node("full", "");
	put_owner("web", 1);
	put_owner("db", 1);
	put_pod("db-1", "db", "full", 2400);
	put_pod("web-1", "web", "a", 100);
	place_fixture_put(
		&f, OBJECT_POD,
		"{'metadata':{'namespace':'default','name':'bare','uid':'uid-bare','annotations':{"
		"'cluster-autoscaler.kubernetes.io/safe-to-evict':'true'}},'spec':{'nodeName':'b',"
		"'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]},'status':{"
		"'phase':'Running'}}");
	step(NOW);
	assert_verdict("a", "drain");
	assert_verdict("b", "drain");
	assert_int_equal(node("b")->move_count, 1);
	assert_int_equal(plan->wave.pods, 1);
	assert_int_equal(plan->wave.destination_count, 1);
	assert_int_equal(plan->wave.destinations[0].pods, 1);
	assert_non_null(strstr(plan->narration, "b goes, and of it default/bare is deleted.\n"));
}

/* Two of two may go beside it, and a third that says it is draining is done. */
static void a_drained_node_is_done_and_uses_up_nothing(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_node("c", "'unschedulable':true");
	put_node("full", "");
	put_owner("db", 1);
	put_pod("db-1", "db", "full", 2400);
	place_fixture_put(&f, OBJECT_NODE,
			  "{'metadata':{'name':'d','annotations':{'evenkeel.io/draining':'true'}},"
			  "'spec':{'unschedulable':true},'status':{'allocatable':{'cpu':'4',"
			  "'memory':'8Gi','pods':'110'},'conditions':[{'type':'Ready','status':"
			  "'True'}]}}");
	config.rules.max_parallelism = 2;
	step(NOW);
	assert_verdict("c", "drained");
	assert_verdict("d", "drained");
	assert_reason("c", "Cordoned", "the node is cordoned, and nothing is left on it");
	assert_int_equal(plan->wave.node_count, 2);
	assert_int_equal(plan->throttle.used, 2);
	put_owner("web", 2);
	put_pod("web-1", "web", "c", 100);
	put_pod("web-2", "web", "d", 100);
	step(NOW + 1);
	assert_verdict("d", "inDeletion");
	assert_string_not_equal(drain_verdict_name(node("c")->verdict), "drained");
}

/* The pod that took the room ends: no five minutes must pass. */
static void what_was_found_is_forgotten_with_its_cause(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_owner("web", 1);
	put_owner("db", 2);
	put_pod("web-1", "web", "a", 1500);
	put_pod("db-1", "db", "b", 1500);
	put_pod("db-2", "db", "b", 1500);
	step(NOW);
	assert_reason("a", "NoPlaceToMovePods",
		      "pod default/web-1 fits on no other node: 1 NodeResourcesFit");
	step(NOW + NS_PER_SEC);
	assert_non_null(strstr(node("a")->reasons[0].text, "found a while ago: "));
	place_fixture_remove(&f, OBJECT_POD, "default", "db-2");
	step(NOW + 2 * NS_PER_SEC);
	assert_verdict("a", "drain");
}

static void assert_found(void)
{
	assert_string_equal(drain_reason_name(node("a")->reasons[0].code), "NoPlaceToMovePods");
}

/* The same with a pod that is resized in place. */
static void what_was_found_is_forgotten_when_a_pod_shrinks(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_owner("web", 1);
	put_owner("db", 1);
	put_pod("web-1", "web", "a", 1500);
	put_pod("db-1", "db", "b", 3000);
	step(NOW);
	assert_found();
	put_pod("db-1", "db", "b", 2400);
	step(NOW + NS_PER_SEC);
	assert_verdict("a", "drain");
}

static void what_was_found_is_forgotten_with_a_pending_pod(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_owner("web", 1);
	put_owner("db", 2);
	put_pod("web-1", "web", "a", 1500);
	put_pod("db-1", "db", "b", 2100);
	put_pod("db-2", "db", "", 1500);
	step(NOW);
	assert_found();
	step(NOW + NS_PER_SEC);
	assert_found();
	place_fixture_remove(&f, OBJECT_POD, "default", "db-2");
	step(NOW + 2 * NS_PER_SEC);
	assert_verdict("a", "drain");
}

static void what_was_found_is_forgotten_with_a_placeholder(void **unused)
{
	struct kube_pod *pod = place_fixture_record("slack-1", "", "", "");

	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_owner("web", 1);
	put_owner("db", 1);
	put_pod("web-1", "web", "a", 1550);
	put_pod("db-1", "db", "b", 2400);
	slack = (struct drain_placeholder){pod, "b", "unit"};
	step(NOW);
	slack.pod = NULL;
	object_drop(&pod->object);
	assert_found();
	step(NOW + NS_PER_SEC);
	assert_verdict("a", "drain");
}

/* Its replacement runs: it ends where it is. */
static void a_pod_that_ends_and_is_replaced_moves_nowhere(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_owner("web", 1);
	put_owner("db", 1);
	put_pod("db-1", "db", "b", 2400);
	put_pod("web-2", "web", "b", 1200);
	place_fixture_put(&f, OBJECT_POD,
			  "{'metadata':{'namespace':'default','name':'web-1','deletionTimestamp':"
			  "'2026-01-31T12:00:20Z','deletionGracePeriodSeconds':30,"
			  "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':"
			  "'web','uid':'rs-web','controller':true}]},'spec':{'nodeName':'a',"
			  "'containers':[{'name':'c','resources':{'requests':{'cpu':'1200m'}}}]},"
			  "'status':{'phase':'Running'}}");
	step(NOW);
	assert_verdict("a", "drain");
	assert_int_equal(plan->wave.pods, 0);
	/* Of two that are wanted the other is still to come. */
	put_owner("web", 2);
	step(NOW + 1);
	assert_string_not_equal(drain_verdict_name(node("a")->verdict), "drain");
}

static void room_that_slack_takes_is_named(void **unused)
{
	struct kube_pod *pod = place_fixture_record("slack-1", "", "", "");

	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_owner("web", 1);
	put_owner("db", 1);
	put_pod("web-1", "web", "a", 1550);
	put_pod("db-1", "db", "b", 2400);
	slack = (struct drain_placeholder){pod, "b", "unit"};
	step(NOW);
	slack.pod = NULL;
	object_drop(&pod->object);
	assert_reason("a", "NoPlaceToMovePods",
		      "pod default/web-1 fits on no other node: 1 NodeResourcesFit; b would have "
		      "room, but for extra capacity");
	assert_string_equal(node("a")->reasons[0].unblock,
			    "lower the extra capacity, or add a node");
}

/* Balloons make way for whatever comes. */
static void balloons_do_not_make_a_node_needed(void **unused)
{
	(void)unused;
	put_node("a", "");
	put_node("b", "");
	put_node("c", "");
	put_owner("slack", 1);
	place_fixture_put(
		&f, OBJECT_POD,
		"{'metadata':{'namespace':'evenkeel','name':'balloon','labels':{"
		"'evenkeel.io/slack-class':'evenkeel-slack-unit'}},'spec':{'nodeName':'a',"
		"'priority':-10,'containers':[{'name':'c','resources':{'requests':{'cpu':"
		"'3500m'}}}]},'status':{'phase':'Running'}}");
	step(NOW);
	assert_true(node("a")->requested_share < 0.1);
	assert_string_not_equal(drain_reason_name(node("a")->reason_count
							  ? node("a")->reasons[0].code
							  : DRAIN_NONE),
				"NotUnderutilized");
}

static void a_node_of_the_control_plane_has_its_own_words(void **unused)
{
	(void)unused;
	place_fixture_put(&f, OBJECT_NODE,
			  "{'metadata':{'name':'cp','labels':{"
			  "'node-role.kubernetes.io/control-plane':''}},'status':{'allocatable':{"
			  "'cpu':'4','memory':'8Gi','pods':'110'},'conditions':[{'type':'Ready',"
			  "'status':'True'}]}}");
	step(NOW);
	assert_reason("cp", "ControlPlaneNode",
		      "it is a node of the control plane: it has the label "
		      "node-role.kubernetes.io/control-plane");
}

/* --- wherever the scheduler puts them */

static void put_two(const char *spec)
{
	put_node("a", "");
	put_node("b", "");
	put_node("c", "");
	put_node("d", "");
	put_owner("web", 8);
	put_owner("db", 2);
	put_pod_with("web-1", "web", "a", 1000, spec);
	put_pod_with("web-2", "web", "b", 1000, spec);
	put_pod("db-1", "db", "c", 2400);
	put_pod("db-2", "db", "d", 2400);
	for (int i = 3; i <= 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "web-%d", i);
		put_pod(name, "web", i % 2 ? "c" : "d", 10);
	}
}

static void room_for_all_in_any_order_is_proven(void **unused)
{
	(void)unused;
	put_two("");
	step(NOW);
	assert_int_equal(plan->wave.node_count, 2);
	assert_true(plan->wave.robust);
	assert_true(plan->wave.any_order);
}

/* Samples find nothing wrong with it, and prove nothing. */
static void pods_that_mind_others_prove_nothing(void **unused)
{
	(void)unused;
	put_two(",'topologySpreadConstraints':[{'maxSkew':5,'topologyKey':'kubernetes.io/hostname',"
		"'whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{'app':'web'}}}"
		"]");
	step(NOW);
	assert_int_equal(plan->wave.node_count, 2);
	assert_true(plan->wave.robust);
	assert_false(plan->wave.any_order);
}

/* Each of two nodes has room for one: a single other pod closes one of them at most. */
static void room_that_one_pod_may_take_is_counted_once(void **unused)
{
	(void)unused;
	put_two("");
	put_pod("db-1", "db", "c", 2950);
	put_pod("db-2", "db", "d", 2950);
	step(NOW);
	assert_int_equal(plan->wave.node_count, 2);
	assert_true(plan->wave.any_order);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		STORY(an_evicted_pod_without_a_node_stops_all),
		STORY(an_evicted_pod_stops_all_after_a_restart_as_well),
		STORY(a_preempted_pod_without_a_node_stops_nothing),
		STORY(a_balloon_without_a_node_stops_nothing),
		STORY(a_pod_that_moved_starts_the_time_of_its_node_anew),
		STORY(replicas_on_one_node_leave_in_steps),
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
