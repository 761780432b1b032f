/* SPDX-License-Identifier: Apache-2.0 */
/* Slack from step to step: who asks for it, where placeholders go, and why they move. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/slack_fixture.h"
#include "tests/view_fixture.h"

#define SECOND 1000000000LL

static struct slack_fixture f;

/* Two empty nodes of 4000m and 16 GiB, one of which is half full. */
static int setup(void **state)
{
	(void)state;
	slack_fixture_init(&f);
	slack_fixture_node(&f, "n1", "a", "4", "16Gi", "");
	slack_fixture_node(&f, "n2", "b", "4", "16Gi", "");
	slack_fixture_pod(&f, "p1", "n2", "2", "8Gi", "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	slack_fixture_fini(&f);
	return 0;
}

static void expect_issue(const char *who, const char *text)
{
	for (size_t i = 0; i < f.result.issue_count; i++)
		if (strcmp(f.result.issues[i].who, who) == 0 &&
		    strstr(f.result.issues[i].text, text))
			return;
	fail_msg("no issue of %s: %s\n%s", who, text, f.result.narration.data);
}

static bool has_class(const char *key)
{
	for (size_t i = 0; i < f.result.class_count; i++)
		if (strcmp(f.result.classes[i].key, key) == 0)
			return true;
	return false;
}

static void expect_counts(const char *key, uint32_t target, uint32_t wanted, uint32_t placed)
{
	const struct slack_class *c = slack_fixture_class(&f, key);

	if (c->target != target || c->wanted != wanted || c->placed != placed)
		fail_msg("%s: %u, %u, %u\n%s", key, c->target, c->wanted, c->placed,
			 f.result.narration.data);
}

static void units_make_up_for_the_rate(void **state)
{
	(void)state;
	f.options.rate_ppm = 500000; /* of 2000m and 8 GiB */
	slack_fixture_step(&f);
	assert_int_equal(f.result.extra.cpu_milli, 1000);
	assert_int_equal(f.result.unit.cpu_milli, 800);
	expect_counts("unit", 2, 2, 2);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: unit unit;");
	f.options.base = SLACK_BASE_ALLOCATABLE;
	slack_fixture_step(&f);
	assert_int_equal(f.result.extra.cpu_milli, 4000);
	expect_counts("unit", 5, 5, 5);
	assert_string_equal(slack_fixture_where(&f), "n1: unit unit unit; n2: unit unit;");
}

/* A unit is 800m and 3.2 GiB, and half of 2000m and 8 GiB is to be kept. */
static void what_workloads_keep_counts_towards_the_rate(void **state)
{
	(void)state;
	f.options.rate_ppm = 500000;
	slack_fixture_workload(&f, "web", "1", 0, "300m", "1Gi", "");
	slack_fixture_step(&f);
	expect_counts("unit", 1, 1, 1);
	/* What finds no node at all keeps nothing. */
	slack_fixture_workload(&f, "web", "1", 0, "9", "1Gi", "");
	slack_fixture_step(&f);
	expect_counts("unit", 2, 2, 2);
}

/* 800m would find no place in 600m on each node; the largest pod that is to come would. */
static void a_unit_is_no_larger_than_any_pod(void **state)
{
	(void)state;
	place_fixture_remove(&f.world, OBJECT_POD, "shop", "p1");
	for (int i = 0; i < 68; i++) {
		char name[16];

		snprintf(name, sizeof(name), "small%02d", i);
		slack_fixture_pod(&f, name, i % 2 ? "n1" : "n2", "100m", i ? "10Mi" : "20Mi", "");
	}
	f.options.rate_ppm = 100000;
	slack_fixture_step(&f);
	assert_int_equal(f.result.extra.cpu_milli, 680);
	assert_int_equal(f.result.unit.cpu_milli, 100);
	assert_int_equal(f.result.unit.mem_bytes, 20 << 20);
	expect_counts("unit", 7, 7, 7);
	/* Nor with a workload that asks for more than any pod has. */
	slack_fixture_workload(&f, "web", "shared", 0, "3", "4Gi", "");
	slack_fixture_step(&f);
	assert_int_equal(f.result.unit.cpu_milli, 100);
}

/* As slack_yaml_write() describes it. */
static void put_balloon(const char *name, const char *namespace, const char *node, const char *of,
			int priority, const char *cpu, const char *more)
{
	char *json = mem_printf("{'metadata':{'name':'%s','namespace':'%s','labels':{"
				"'evenkeel.io/slack-class':'evenkeel-slack-%s'}%s},'spec':{"
				"'nodeName':'%s','priority':%d,'containers':[{'name':'c',"
				"'resources':{'requests':{'cpu':'%s','memory':'4Gi'}}}]}}",
				name, namespace, of, more, node, priority, cpu);

	place_fixture_put(&f.world, OBJECT_POD, json);
	free(json);
}

static void expect_balloons(const char *key, uint32_t balloons, uint32_t placed)
{
	assert_int_equal(slack_fixture_class(&f, key)->balloons, balloons);
	assert_int_equal(slack_fixture_class(&f, key)->placed, placed);
}

/* Whoever comes preempts them: they hide no slot, and make the target no larger. */
static void balloons_are_no_demand(void **state)
{
	int64_t slots;

	(void)state;
	f.options.rate_ppm = 500000;
	slack_fixture_step(&f);
	slots = slack_fixture_class(&f, "unit")->slots;
	put_balloon("b1", "evenkeel", "n1", "other", -10, "2", "");
	slack_fixture_step(&f);
	assert_int_equal(f.result.requested.cpu_milli, 2000);
	expect_counts("unit", 2, 2, 2);
	expect_balloons("unit", 0, 2);
	assert_int_equal(slack_fixture_class(&f, "unit")->slots, slots);
}

static void balloons_hold_the_room_of_their_class(void **state)
{
	(void)state;
	f.options.rate_ppm = 500000;
	slack_fixture_step(&f);
	expect_counts("unit", 2, 2, 2);
	put_balloon("b1", "evenkeel", "n2", "unit", -10, "800m", "");
	slack_fixture_step(&f);
	expect_counts("unit", 2, 2, 2);
	expect_balloons("unit", 1, 2);
	assert_int_equal(f.result.placed_count, 1);
	put_balloon("b2", "evenkeel", "n2", "unit", -10, "800m", "");
	put_balloon("b3", "evenkeel", "n2", "unit", -10, "800m", "");
	slack_fixture_step(&f);
	expect_balloons("unit", 3, 2);
	assert_int_equal(f.result.placed_count, 0);
	assert_non_null(strstr(f.result.narration.data, "2 of 2 placed, 3 balloons hold room"));
}

/*
 * Of another namespace or priority, too small, pending, going, or on a node where nothing may
 * start.
 */
static void what_holds_no_room_is_no_balloon_of_the_class(void **state)
{
	(void)state;
	f.options.rate_ppm = 500000;
	slack_fixture_node(&f, "n3", "a", "4", "16Gi", "'unschedulable':true");
	put_balloon("b1", "shop", "n2", "unit", -10, "100m", "");
	put_balloon("b2", "evenkeel", "n2", "unit", -10, "100m", "");
	put_balloon("b3", "evenkeel", "", "unit", -10, "1", "");
	put_balloon("b4", "evenkeel", "n2", "unit", -10, "1",
		    ",'deletionTimestamp':'2026-01-01T00:00:00Z'");
	put_balloon("b5", "evenkeel", "n3", "unit", -10, "1", "");
	slack_fixture_step(&f);
	expect_counts("unit", 2, 2, 2);
	expect_balloons("unit", 0, 2);
	assert_int_equal(f.result.requested.cpu_milli, 2000);
	put_balloon("b6", "evenkeel", "n2", "unit", 0, "1", "");
	slack_fixture_step(&f);
	expect_balloons("unit", 0, 2);
	assert_int_equal(f.result.requested.cpu_milli, 3000);
}

/* Slots are about real pods, which preempt the balloon. */
static void balloons_hide_no_slot_of_those_who_mind_others(void **state)
{
	static const char apart[] =
		"'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':["
		"{'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{"
		"'app':'web'}}}]}},";

	(void)state;
	slack_fixture_node(&f, "n1", "a", "4", "16Gi", "'unschedulable':true");
	slack_fixture_workload(&f, "web", "1", 0, "2", "1Gi", apart);
	put_balloon("b1", "shop", "n2", "replicaset-web", -10, "2", "");
	slack_fixture_step(&f);
	expect_balloons("shop/ReplicaSet/web", 1, 1);
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->slots, 1);
}

/* --- who asks */

static void a_workload_is_mirrored_with_what_it_asks_of_nodes(void **state)
{
	(void)state;
	slack_fixture_node(&f, "n3", "c", "8", "16Gi",
			   "'taints':[{'key':'gpu','effect':"
			   "'NoSchedule'}]");
	slack_fixture_workload(&f, "web", "2", 0, "1", "1Gi",
			       "'nodeSelector':{'zone':'c'},'tolerations':[{'key':'gpu','operator':"
			       "'Exists'}],");
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/web", 2, 2, 2);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2:; n3: web web;");
	assert_string_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->signature,
			    "{\"nodeSelector\":{\"zone\":\"c\"},\"tolerations\":[{\"key\":\"gpu\","
			    "\"operator\":\"Exists\"}]}");
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->slots, 8);
	assert_string_equal(
		slack_fixture_class(&f, "shop/ReplicaSet/web")->record->template->owner.name,
		"evenkeel-slack");
}

static void a_share_is_of_the_replicas_rounded_up(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "ten", "10%", 11, "10m", "1Mi", "");
	slack_fixture_workload(&f, "half", "12.5%", 8, "10m", "1Mi", "");
	slack_fixture_workload(&f, "more", "150%", 3, "10m", "1Mi", "");
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/ten", 2, 2, 2);
	expect_counts("shop/ReplicaSet/half", 1, 1, 1);
	expect_counts("shop/ReplicaSet/more", 5, 5, 5);
}

static void what_cannot_be_read_is_named_and_costs_nothing_else(void **state)
{
	static const char *const bad[] = {"-1",	 "1.5",	    "two",
					  "",	 "10%%",    "%",
					  "1e3", "101000%", "99999999999999999999",
					  " 2"};

	(void)state;
	slack_fixture_workload(&f, "good", "1", 0, "10m", "1Mi", "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		slack_fixture_workload(&f, "bad", bad[i], 0, "10m", "1Mi", "");
		slack_fixture_step(&f);
		expect_issue("shop/ReplicaSet/bad", "is no count");
		assert_false(has_class("shop/ReplicaSet/bad"));
		expect_counts("shop/ReplicaSet/good", 1, 1, 1);
	}
}

#define OWNED(kind, name)                                                                          \
	",'ownerReferences':[{'kind':'" kind "','name':'" name "','uid':'uid-" name                \
	"','controller':true}]"
#define ASKS(slack) ",'annotations':{'evenkeel.io/slack':'" slack "'}"

static void where_template_and_controller_differ_the_larger_counts(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "web", "1", 1, "1", "1Gi", "");
	slack_fixture_pod(&f, "web-x", "n1", "100m", "1Gi", OWNED("ReplicaSet", "web") ASKS("3"));
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/web", 3, 3, 3);
	expect_issue("shop/ReplicaSet/web",
		     "the controller says \"1\", the pod's template \"3\"; the larger counts");
	/* What runs tells what comes next. */
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->shape.cpu_milli, 100);
}

static void put_revision(const char *name, int revision, const char *slack, int replicas)
{
	char *json = mem_printf(
		"{'metadata':{'name':'%s','namespace':'shop','uid':'uid-%s','annotations':{"
		"'deployment.kubernetes.io/revision':'%d'%s},'ownerReferences':[{'kind':"
		"'Deployment','name':'web','uid':'uid-web','controller':true}]},'spec':{"
		"'replicas':%d,'template':{'spec':{'containers':[{'name':'c','resources':{"
		"'requests':{'cpu':'%d00m'}}}]}}}}",
		name, name, revision, slack, replicas, revision);

	place_fixture_put(&f.world, OBJECT_REPLICA_SET, json);
	free(json);
}

#define SLACK_OF(n) ",'evenkeel.io/slack':'" n "'"

static void the_newest_revision_of_a_deployment_speaks(void **state)
{
	(void)state;
	put_revision("web-a", 9, SLACK_OF("1"), 3);
	put_revision("web-b", 10, SLACK_OF("50%"), 1);
	slack_fixture_step(&f);
	/* Half of four. */
	expect_counts("shop/Deployment/web", 2, 2, 2);
	assert_int_equal(slack_fixture_class(&f, "shop/Deployment/web")->shape.cpu_milli, 1000);
	put_revision("web-c", 11, "", 0);
	slack_fixture_step(&f);
	assert_false(has_class("shop/Deployment/web"));
	assert_int_equal(f.result.move_count, 2);
	assert_int_equal(f.result.moves[0].cause, SLACK_CLASS_LEFT);
}

static void a_bare_pod_and_a_foreign_controller_are_workloads_too(void **state)
{
	(void)state;
	slack_fixture_pod(&f, "alone", "n1", "100m", "1Gi", ASKS("1"));
	slack_fixture_pod(&f, "clone-1", "n1", "100m", "1Gi", OWNED("CloneSet", "c") ASKS("50%"));
	slack_fixture_pod(&f, "clone-2", "", "100m", "1Gi", OWNED("CloneSet", "c") ASKS("50%"));
	slack_fixture_pod(&f, "clone-3", "n1", "100m", "1Gi", OWNED("CloneSet", "c") ASKS("50%"));
	slack_fixture_step(&f);
	expect_counts("shop/Pod/alone", 1, 1, 1);
	expect_counts("shop/CloneSet/c", 2, 2, 2);
	assert_int_equal(f.result.issue_count, 0);
}

static void a_workload_of_which_nothing_is_known_is_named(void **state)
{
	(void)state;
	place_fixture_put(
		&f.world, OBJECT_STATEFUL_SET,
		"{'metadata':{'name':'db','namespace':'shop','uid':'uid-db','annotations':"
		"{'evenkeel.io/slack':'2'}},'spec':{'replicas':0}}");
	slack_fixture_step(&f);
	expect_issue("shop/StatefulSet/db", "nothing is known");
	assert_false(has_class("shop/StatefulSet/db"));
	/* Once it was seen it is remembered. */
	slack_fixture_pod(&f, "db-0", "n1", "300m", "1Gi", OWNED("StatefulSet", "db"));
	slack_fixture_step(&f);
	expect_counts("shop/StatefulSet/db", 2, 2, 2);
	place_fixture_remove(&f.world, OBJECT_POD, "shop", "db-0");
	slack_fixture_step(&f);
	expect_counts("shop/StatefulSet/db", 2, 2, 2);
	expect_issue("shop/StatefulSet/db", "is kept");
	assert_int_equal(f.result.move_count, 0);
}

/* The claim is that of one replica, and would bind all others to its volume. */
static void claims_of_one_pod_are_not_mirrored(void **state)
{
	(void)state;
	place_fixture_put(&f.world, OBJECT_POD,
			  "{'metadata':{'name':'db-0','namespace':'shop','labels':{"
			  "'statefulset.kubernetes.io/pod-name':'db-0'}" OWNED("StatefulSet", "db")
				  ASKS("1") "},'spec':{'nodeName':'n1','containers':[{'name':'c',"
					    "'resources':{'requests':{'cpu':'1'}}}],'volumes':[{"
					    "'name':'v','persistentVolumeClaim':{'claimName':"
					    "'data-db-0'}}]}}");
	slack_fixture_step(&f);
	expect_counts("shop/StatefulSet/db", 1, 1, 1);
	assert_int_equal(
		slack_fixture_class(&f, "shop/StatefulSet/db")->record->template->labels.count, 0);
}

static void daemon_sets_need_no_slack(void **state)
{
	(void)state;
	slack_fixture_pod(&f, "d1", "n1", "400m", "1Gi", OWNED("DaemonSet", "d") ASKS("1"));
	slack_fixture_step(&f);
	expect_issue("shop/DaemonSet/d", "bound to their nodes");
}

static void what_fits_no_node_is_named_and_asks_for_none(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "huge", "2", 0, "5", "1Gi", "");
	slack_fixture_workload(&f, "wide", "1", 0, "1", "20Gi", "");
	slack_fixture_workload(&f, "lost", "1", 0, "1", "1Gi", "'nodeSelector':{'zone':'x'},");
	slack_fixture_workload(&f, "much", "9", 0, "1", "1Gi", "");
	slack_fixture_step(&f);
	expect_issue("shop/ReplicaSet/huge", "no node");
	expect_issue("shop/ReplicaSet/wide", "no node");
	expect_issue("shop/ReplicaSet/lost", "no node");
	expect_counts("shop/ReplicaSet/much", 9, 9, 6);
	assert_string_equal(slack_fixture_class(&f, "shop/ReplicaSet/much")->why.text,
			    "2 NodeResourcesFit");
	assert_int_equal(f.result.demand_count, 1);
	assert_string_equal(f.result.demand[0].like, "n1");
	assert_int_equal(f.result.demand[0].count, 1);
}

static void bounds_hold(void **state)
{
	(void)state;
	f.options.class_max = 3;
	f.options.placeholders_max = 5;
	slack_fixture_workload(&f, "a", "1000000000", 0, "10m", "1Mi", "");
	slack_fixture_workload(&f, "b", "3", 0, "10m", "1Mi", "");
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/a", 3, 3, 3);
	expect_counts("shop/ReplicaSet/b", 3, 2, 2);
	expect_issue("shop/ReplicaSet/a", "more than the 3");
	expect_issue("shop/ReplicaSet/b", "exceed what is left of the limit of 5");
}

static void those_that_share_are_covered_together(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "cpu", "shared", 0, "3", "1Gi", "");
	slack_fixture_workload(&f, "memory", "shared", 0, "500m", "12Gi", "");
	slack_fixture_workload(&f, "huge", "shared", 0, "9", "1Gi", "");
	slack_fixture_step(&f);
	expect_counts("cover-1", 1, 1, 1);
	assert_int_equal(slack_fixture_class(&f, "cover-1")->shape.cpu_milli, 3000);
	assert_int_equal(slack_fixture_class(&f, "cover-1")->shape.mem_bytes, 12LL << 30);
	expect_issue("shop/ReplicaSet/huge", "no node that counts");
}

/* --- from step to step */

static void a_target_is_lowered_late(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "web", "4", 0, "100m", "1Mi", "");
	slack_fixture_step(&f);
	slack_fixture_workload(&f, "web", "1", 0, "100m", "1Mi", "");
	f.now_ns += SECOND;
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/web", 1, 4, 4);
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->lower_ns,
			 f.now_ns + 600 * SECOND);
	assert_non_null(strstr(f.result.narration.data, "; 1 would do, in 600 s fewer are kept"));
	slack_fixture_workload(&f, "web", "2", 0, "100m", "1Mi", "");
	slack_fixture_step(&f);
	slack_fixture_workload(&f, "web", "1", 0, "100m", "1Mi", "");
	slack_fixture_step(&f);
	f.now_ns += 500 * SECOND;
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/web", 1, 4, 4);
	/* As much as was wanted in between is kept, and has a time of its own. */
	f.now_ns += 100 * SECOND;
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/web", 1, 2, 2);
	f.now_ns += 600 * SECOND;
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/web", 1, 1, 1);
	slack_fixture_workload(&f, "web", "3", 0, "100m", "1Mi", "");
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/web", 3, 3, 3);
}

static void surplus_goes_where_nodes_are_emptiest(void **state)
{
	(void)state;
	f.options.unneeded_ns = 0;
	slack_fixture_workload(&f, "web", "5", 0, "500m", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: web; n2: web web web web;");
	slack_fixture_workload(&f, "web", "3", 0, "500m", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: web web web;");
}

static void the_largest_makes_way_for_real_pods(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "big", "1", 0, "1", "1Gi", "");
	slack_fixture_workload(&f, "small", "2", 0, "200m", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: big small small;");
	slack_fixture_pod(&f, "late", "n2", "700m", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: big; n2: small small;");
	assert_int_equal(f.result.moves[0].cause, SLACK_PUSHED_OUT);
	assert_int_equal(f.result.moves[0].filter, PLACE_FIT);
	assert_int_equal(f.result.move_count, 2);
}

static void nodes_that_leave_take_nothing_along(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "web", "2", 0, "500m", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: web web;");
	slack_fixture_node(&f, "n2", "b", "4", "16Gi", "'unschedulable':true");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: web web; n2:;");
	assert_int_equal(f.result.moves[0].cause, SLACK_NODE_LEFT);
	place_fixture_remove(&f.world, OBJECT_NODE, "", "n1");
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/web", 2, 2, 0);
	assert_string_equal(f.result.moves[0].from, "n1");
	assert_null(f.result.moves[0].to);
}

/* The marks of others who are about to delete it, and ours. */
static void nodes_in_deletion_do_not_count(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "web", "2", 0, "500m", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: web web;");
	slack_fixture_node(&f, "n2", "b", "4", "16Gi",
			   "'taints':[{'key':'ToBeDeletedByClusterAutoscaler','value':'1',"
			   "'effect':'NoSchedule'}]");
	slack_fixture_step(&f);
	assert_int_equal(f.result.nodes, 1);
	assert_int_equal(f.result.allocatable.cpu_milli, 4000);
	assert_string_equal(slack_fixture_where(&f), "n1: web web; n2:;");
	assert_int_equal(f.result.moves[0].cause, SLACK_NODE_LEFT);
}

static void records_outlive_a_restart(void **state)
{
	struct slack_state *other = slack_state_new();
	struct slack_record *records;
	size_t count;

	(void)state;
	slack_fixture_workload(&f, "web", "3", 0, "500m", "1Gi", "");
	slack_fixture_step(&f);
	/* Would not be where they are if they were placed now. */
	slack_fixture_pod(&f, "p2", "n1", "2500m", "1Gi", "");
	slack_fixture_workload(&f, "web", "1", 0, "500m", "1Gi", "");
	f.now_ns += 60 * SECOND;
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: web web web;");
	records = slack_state_records(f.state, &count);
	slack_state_restore(other, records, count);
	free(records);
	slack_state_free(f.state);
	f.state = other;
	f.now_ns += 599 * SECOND;
	slack_fixture_step(&f);
	assert_int_equal(f.result.move_count, 0);
	expect_counts("shop/ReplicaSet/web", 1, 3, 3);
	f.now_ns += SECOND;
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/web", 1, 1, 1);
}

static void records_that_cannot_be_do_no_harm(void **state)
{
	static const struct slack_record records[] = {
		{"shop/ReplicaSet/web", "n1", 4000000000U, 0, 0, {0, 0}, 0},
		{"shop/ReplicaSet/web", "", 4000000000U, INT64_MAX, 7, {0, 0}, 0},
		{"shop/ReplicaSet/late", "", 4000000000U, -5, 7, {0, 0}, 0},
		{"shop/ReplicaSet/gone", "n1", 3, 0, 0, {0, 0}, 0},
		{"unit", "", 1, 0, 0, {0, 1}, INT64_MAX},
		{"unit", "nowhere", 2, 0, 0, {0, 0}, 0},
		{"", "", 1, INT64_MAX, 1, {0, 0}, 0},
	};
	int pushed = 0;

	(void)state;
	f.options.placeholders_max = 50;
	slack_state_restore(f.state, records, sizeof(records) / sizeof(records[0]));
	slack_fixture_workload(&f, "web", "1", 0, "500m", "1Gi", "");
	slack_fixture_step(&f);
	assert_in_range(slack_fixture_class(&f, "shop/ReplicaSet/web")->wanted, 1, 50);
	/* Of as many as there may be, n1 has room for eight. */
	for (size_t i = 0; i < f.result.move_count; i++)
		pushed += f.result.moves[i].cause == SLACK_PUSHED_OUT;
	assert_int_equal(pushed, 50 - 8);
	f.now_ns += 600 * SECOND;
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/web", 1, 1, 1);
}

static void arrivals_make_a_promise_after_a_day(void **state)
{
	int64_t start = f.now_ns;
	char name[32], head[96];

	(void)state;
	f.options.from_arrivals = true;
	f.options.node_start_ns = 3600 * SECOND;
	f.options.rate_ppm = 100000;
	slack_fixture_step(&f);
	assert_false(f.result.by_arrivals);
	assert_non_null(
		strstr(f.result.narration.data,
		       "10 % of what is requested, until arrivals were watched for 24 times as "
		       "long as a node needs to start, and not 0\n"));
	/* A pod of 300m in each hour of the 31st; they end at once, and still came. */
	for (int hour = 0; hour < 26; hour++) {
		f.now_ns = start + (hour * 3600 + 30) * SECOND;
		snprintf(name, sizeof(name), "job-%d", hour);
		snprintf(head, sizeof(head), ",'creationTimestamp':'2026-%s:00:10Z'",
			 (const char *[]){"01-31T12", "01-31T13", "01-31T14", "01-31T15",
					  "01-31T16", "01-31T17", "01-31T18", "01-31T19",
					  "01-31T20", "01-31T21", "01-31T22", "01-31T23",
					  "02-01T00", "02-01T01", "02-01T02", "02-01T03",
					  "02-01T04", "02-01T05", "02-01T06", "02-01T07",
					  "02-01T08", "02-01T09", "02-01T10", "02-01T11",
					  "02-01T12", "02-01T13"}[hour]);
		slack_fixture_pod(&f, name, "n1", "300m", "1Gi", head);
		slack_fixture_step(&f);
		place_fixture_remove(&f.world, OBJECT_POD, "shop", name);
	}
	assert_true(f.result.by_arrivals);
	assert_int_equal(f.result.arrival_spans, 25);
	assert_int_equal(f.result.extra.cpu_milli, 300);
}

/* --- what it is worth */

/* No pod of it runs: what those did that were measured last counts, not the core it requests. */
static void slots_by_use_know_what_a_workload_used_before(void **state)
{
	char *remembered =
		mem_printf("{\"workloads\":[{\"key\":\"shop/ReplicaSet/web\",\"cpuMillicores\":500,"
			   "\"cpuP95Millicores\":600,\"workingSetBytes\":5,\"seen\":%lld}]}",
			   (long long)(VIEW_FIXTURE_NOW_NS / SECOND));
	struct node_stats n1 = view_fixture_node("n1", VIEW_FIXTURE_NOW_NS, 1000, 1900, 0);
	struct node_stats *node_stats[] = {node_stats_new(&n1)};
	struct error why = {""};

	(void)state;
	slack_fixture_workload(&f, "web", "1", 0, "1", "1Mi", "");
	f.node_stats = node_stats;
	f.stats_count = 1;
	slack_fixture_step(&f);
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->slots_by_use, 1);
	assert_int_equal(join_recall(f.world.join, remembered, strlen(remembered), &why), 0);
	slack_fixture_step(&f);
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->slots_by_use, 3);
	node_stats_drop(node_stats[0]);
	f.stats_count = 0;
	free(remembered);
}

static void slots_by_use_know_what_is_really_there(void **state)
{
	/* Half of what n1 can give is used, and nearly all of n2. */
	struct node_stats n1 = view_fixture_node("n1", VIEW_FIXTURE_NOW_NS, 1000, 1400, 0);
	struct node_stats n2 = view_fixture_node("n2", VIEW_FIXTURE_NOW_NS, 1000, 3900, 0);
	struct node_stats *node_stats[] = {node_stats_new(&n1), node_stats_new(&n2)};

	(void)state;
	slack_fixture_workload(&f, "web", "1", 0, "1", "1Mi", "");
	slack_fixture_step(&f);
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->slots_by_use, -1);
	f.node_stats = node_stats;
	f.stats_count = 2;
	slack_fixture_step(&f);
	/* 4 and 2 by requests; 3400m - 1400m leave room for 2 by use. */
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->slots, 6);
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->slots_by_use, 2);
	/* Silent for too long: nothing is known of it. */
	f.now_ns += 400 * SECOND;
	slack_fixture_step(&f);
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/web")->slots_by_use, 0);
	node_stats_drop(node_stats[0]);
	node_stats_drop(node_stats[1]);
	f.stats_count = 0;
}

static void nodes_to_add_are_the_smallest_that_do(void **state)
{
	(void)state;
	slack_fixture_node(&f, "n0", "a", "16", "64Gi", "");
	slack_fixture_pod(&f, "p0", "n0", "16", "1Gi", "");
	slack_fixture_pod(&f, "p2", "n1", "4", "1Gi", "");
	slack_fixture_pod(&f, "p3", "n2", "2", "1Gi", "");
	slack_fixture_workload(&f, "small", "5", 0, "1", "1Gi", "");
	slack_fixture_workload(&f, "big", "1", 0, "6", "1Gi", "");
	slack_fixture_step(&f);
	expect_counts("shop/ReplicaSet/small", 5, 5, 0);
	/* Big goes first, and leaves room for all the small ones on its node. */
	assert_int_equal(f.result.demand_count, 1);
	assert_string_equal(f.result.demand[0].like, "n0");
	assert_int_equal(f.result.demand[0].count, 1);
	slack_fixture_workload(&f, "big", "0", 0, "6", "1Gi", "");
	f.now_ns += SECOND;
	slack_fixture_step(&f);
	f.now_ns += 600 * SECOND;
	slack_fixture_step(&f);
	assert_int_equal(f.result.demand_count, 1);
	assert_string_equal(f.result.demand[0].like, "n1");
	assert_int_equal(f.result.demand[0].count, 2);
}

/* Of those that keep apart there is one on each. */
static void nodes_to_add_keep_apart_who_minds(void **state)
{
	(void)state;
	slack_fixture_pod(&f, "full-1", "n1", "4", "1Gi", "");
	slack_fixture_pod(&f, "full-2", "n2", "2", "1Gi", "");
	slack_fixture_workload(
		&f, "apart", "3", 0, "500m", "1Gi",
		"'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
		"'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'app':"
		"'apart'}}}]}},");
	slack_fixture_workload(&f, "plain", "3", 0, "500m", "1Gi", "");
	slack_fixture_step(&f);
	assert_int_equal(f.result.demand_count, 1);
	assert_int_equal(f.result.demand[0].count, 3);
}

/* As many units as a node was cut into fit on one more. */
static void nodes_to_add_for_units_are_not_overstated(void **state)
{
	(void)state;
	slack_fixture_pod(&f, "full-1", "n1", "4", "16Gi", "");
	slack_fixture_pod(&f, "full-2", "n2", "2", "8Gi", "");
	f.options.rate_ppm = 500000; /* of 8000m and 32 GiB */
	slack_fixture_step(&f);
	expect_counts("unit", 5, 5, 0);
	assert_int_equal(f.result.demand_count, 1);
	assert_int_equal(f.result.demand[0].count, 1);
}

static void drains_find_placeholders_by_node_and_by_pod(void **state)
{
	const struct slack_class *c;
	size_t count;

	(void)state;
	slack_fixture_workload(&f, "web", "2", 0, "500m", "1Gi", "");
	slack_fixture_step(&f);
	assert_null(slack_on_node(&f.result, 0, &count));
	assert_int_equal(count, 0);
	assert_non_null(slack_on_node(&f.result, 1, &count));
	assert_int_equal(count, 2);
	c = slack_class_of(&f.result, f.result.placed[0].pod);
	assert_ptr_equal(c, slack_fixture_class(&f, "shop/ReplicaSet/web"));
	assert_null(slack_class_of(&f.result, place_find_pod(f.place, "shop", "p1")));
	assert_int_equal(place_where(f.place, f.result.placed[0].pod), 1);
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(units_make_up_for_the_rate),
		test(what_workloads_keep_counts_towards_the_rate),
		test(a_unit_is_no_larger_than_any_pod),
		test(balloons_are_no_demand),
		test(balloons_hold_the_room_of_their_class),
		test(what_holds_no_room_is_no_balloon_of_the_class),
		test(balloons_hide_no_slot_of_those_who_mind_others),
		test(a_workload_is_mirrored_with_what_it_asks_of_nodes),
		test(a_share_is_of_the_replicas_rounded_up),
		test(what_cannot_be_read_is_named_and_costs_nothing_else),
		test(where_template_and_controller_differ_the_larger_counts),
		test(the_newest_revision_of_a_deployment_speaks),
		test(a_bare_pod_and_a_foreign_controller_are_workloads_too),
		test(a_workload_of_which_nothing_is_known_is_named),
		test(claims_of_one_pod_are_not_mirrored),
		test(daemon_sets_need_no_slack),
		test(what_fits_no_node_is_named_and_asks_for_none),
		test(bounds_hold),
		test(those_that_share_are_covered_together),
		test(a_target_is_lowered_late),
		test(surplus_goes_where_nodes_are_emptiest),
		test(the_largest_makes_way_for_real_pods),
		test(nodes_that_leave_take_nothing_along),
		test(nodes_in_deletion_do_not_count),
		test(records_outlive_a_restart),
		test(records_that_cannot_be_do_no_harm),
		test(arrivals_make_a_promise_after_a_day),
		test(slots_by_use_know_what_is_really_there),
		test(slots_by_use_know_what_a_workload_used_before),
		test(nodes_to_add_are_the_smallest_that_do),
		test(nodes_to_add_keep_apart_who_minds),
		test(nodes_to_add_for_units_are_not_overstated),
		test(drains_find_placeholders_by_node_and_by_pod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
