/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds a node is told wholly: every pod, with the numbers, the annotation, the label or the
 * taint that does it, and what would really change it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/policy/drain/drain.h"
#include "shared/mem.h"
#include "tests/place_fixture.h"
#include "tests/view_fixture.h"

static struct place_fixture f;
static struct drain_state *state;
static struct drain_plan *plan;

static int setup(void **unused)
{
	(void)unused;
	place_fixture_init(&f);
	place_fixture_put(&f, OBJECT_REPLICA_SET,
			  "{'metadata':{'namespace':'default','name':'web','uid':'rs'},'spec':{"
			  "'replicas':2},'status':{'replicas':2}}");
	state = drain_state_new();
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	drain_plan_free(plan);
	plan = NULL;
	drain_state_free(state);
	place_fixture_fini(&f);
	return 0;
}

static void put_node(const char *name, const char *cpu, const char *labels, const char *spec)
{
	char *json = mem_printf("{'metadata':{'name':'%s','labels':{%s}},'spec':{%s},'status':{"
				"'allocatable':{'cpu':'%s','memory':'8Gi','pods':'110'},"
				"'conditions':[{'type':'Ready','status':'True'}]}}",
				name, labels, spec, cpu);

	place_fixture_put(&f, OBJECT_NODE, json);
	free(json);
}

#define OWNED                                                                                      \
	",'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'web','uid':'rs'," \
	"'controller':true}]"

static void put_pod(const char *name, const char *node, const char *cpu, const char *metadata,
		    const char *spec)
{
	char *json = mem_printf(
		"{'metadata':{'namespace':'default','name':'%s','labels':{'app':'web'}%s},'spec':{"
		"'nodeName':'%s','containers':[{'name':'c','resources':{'requests':{'cpu':'%s'}}}]"
		"%s},'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}}",
		name, metadata, node, cpu, spec);

	place_fixture_put(&f, OBJECT_POD, json);
	free(json);
}

static const struct drain_plan_node *ask(const char *name)
{
	struct view *v = place_fixture_view(&f, NULL, 0);
	struct drain_config config;
	struct place_options o;
	const struct drain_plan_node *n;

	drain_config_default(&config);
	place_options_default(&o);
	o.now_ns = VIEW_FIXTURE_NOW_NS;
	place_free(f.place);
	f.place = place_new(v, &o);
	drain_plan_free(plan);
	plan = drain_step(
		state,
		&(struct drain_input){.place = f.place, .view = v, .now_ns = VIEW_FIXTURE_NOW_NS},
		&config);
	view_drop(v);
	n = drain_plan_find(plan, name);
	assert_non_null(n);
	return n;
}

static void assert_why(const struct drain_plan_node *n, size_t i, const char *code,
		       const char *text, const char *unblock)
{
	assert_true(i < n->reason_count);
	assert_string_equal(drain_reason_name(n->reasons[i].code), code);
	assert_string_equal(n->reasons[i].text, text);
	if (unblock)
		assert_string_equal(n->reasons[i].unblock, unblock);
}

static void every_pod_that_stays_is_told(void **unused)
{
	const struct drain_plan_node *n;

	(void)unused;
	put_node("a", "4", "", "");
	put_node("b", "4", "", "");
	put_pod("one", "a", "100m", "", "");
	put_pod("three", "a", "100m",
		OWNED ",'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'}",
		"");
	put_pod("two", "a", "100m", OWNED, ",'volumes':[{'name':'tmp','emptyDir':{}}]");
	n = ask("a");
	assert_int_equal(n->reason_count, 4);
	assert_why(n, 0, "BlockedByPod",
		   "pod default/one must stay, and so must 2 others of the node", NULL);
	assert_why(n, 1, "NotReplicated", "no controller would make it anew",
		   "delete the pod by hand, or annotate it "
		   "cluster-autoscaler.kubernetes.io/safe-to-evict=true");
	assert_why(n, 2, "NotSafeToEvictAnnotation",
		   "it is annotated cluster-autoscaler.kubernetes.io/safe-to-evict=false",
		   "remove that annotation from the pod");
	assert_string_equal(n->reasons[2].pod->object.name, "three");
	assert_why(n, 3, "LocalStorageRequested", "its volume tmp (emptyDir) is lost with the node",
		   "name the volumes in the pod's annotation "
		   "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes");
}

static void a_budget_is_told_with_its_numbers(void **unused)
{
	(void)unused;
	put_node("a", "4", "", "");
	put_node("b", "4", "", "");
	put_pod("one", "a", "100m", OWNED, "");
	place_fixture_put(&f, OBJECT_POD_DISRUPTION_BUDGET,
			  "{'metadata':{'namespace':'default','name':'web'},'spec':{'selector':{"
			  "'matchLabels':{'app':'web'}}},'status':{'disruptionsAllowed':0,"
			  "'currentHealthy':2,'desiredHealthy':3,'expectedPods':3}}");
	assert_why(ask("a"), 1, "NotEnoughPdb",
		   "PodDisruptionBudget default/web allows 0 more disruptions: 2 pods are healthy, "
		   "and 3 must be",
		   NULL);
}

static void what_does_not_match_is_told_and_no_room_is_asked_for(void **unused)
{
	static const char help[] = "label a node as the pod asks, or change what the pod asks for";

	(void)unused;
	/* c is full as well: room there would not help. */
	put_node("a", "4", "'disk':'ssd'", "");
	put_node("b", "4", "'disk':'hdd'", "");
	put_node("c", "4", "'disk':'hdd'", "");
	put_pod("big", "c", "4", OWNED, "");
	put_pod("one", "a", "100m", OWNED, ",'nodeSelector':{'disk':'ssd'}");
	assert_why(ask("a"), 0, "NoPlaceToMovePods",
		   "pod default/one fits on no other node: 1 could go as well, "
		   "1 NodeResourcesFit; b: "
		   "nodeSelector asks for disk=ssd, and the node has disk=hdd",
		   help);
	/* As remembered. */
	assert_string_equal(ask("a")->reasons[0].unblock, help);
}

static void affinity_and_taints_are_told(void **unused)
{
	(void)unused;
	put_node("a", "4", "'zone':'1'", "");
	put_node("b", "4", "", "");
	put_node("c", "4", "'zone':'1'",
		 "'taints':[{'key':'team','value':'x','effect':'NoSchedule'}]");
	put_pod("one", "a", "100m", OWNED,
		",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
		"'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':'In','values':["
		"'1','2']}]}]}}}");
	assert_why(ask("a"), 0, "NoPlaceToMovePods",
		   "pod default/one fits on no other node: 2 could go as well; c: "
		   "taint team=x:NoSchedule is not tolerated; b: required node affinity asks for "
		   "zone In (1, 2), and the node has no label zone",
		   "label a node as the pod asks, or change what the pod asks for");
}

static void a_pod_larger_than_any_node_needs_a_larger_one(void **unused)
{
	(void)unused;
	put_node("a", "8", "", "");
	put_node("b", "2", "", "");
	put_pod("one", "a", "3", OWNED, "");
	assert_string_equal(ask("a")->reasons[0].unblock,
			    "add a node that is large enough for the pod: none that it may go to "
			    "is, were it empty");
}

static void all_pods_that_fit_nowhere_are_told(void **unused)
{
	const struct drain_plan_node *n;

	(void)unused;
	put_node("a", "4", "", "");
	put_node("b", "4", "", "");
	put_pod("full", "b", "4", OWNED, "");
	put_pod("one", "a", "300m", OWNED, "");
	put_pod("two", "a", "200m", OWNED, "");
	n = ask("a");
	assert_int_equal(n->reason_count, 2);
	assert_string_equal(n->reasons[0].unblock,
			    "free room on other nodes for the pods that fit nowhere");
	assert_why(n, 1, "NoPlaceToMovePods", "pod default/two fits on no other node either", NULL);
	assert_string_equal(n->reasons[1].pod->object.name, "two");
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(every_pod_that_stays_is_told),
		STORY(a_budget_is_told_with_its_numbers),
		STORY(what_does_not_match_is_told_and_no_room_is_asked_for),
		STORY(affinity_and_taints_are_told),
		STORY(a_pod_larger_than_any_node_needs_a_larger_one),
		STORY(all_pods_that_fit_nowhere_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
