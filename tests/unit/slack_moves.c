/* SPDX-License-Identifier: Apache-2.0 */
/* Who is placed first, who makes way, and whom a move takes along. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/slack_fixture.h"

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

#define APART(key)                                                                                 \
	"'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"       \
	"'topologyKey':'" key "','labelSelector':{'matchLabels':{'app':'apart'}}}]}},"

/* By nodes that admit it, by domains where it is apart, by whether it minds others, and by size. */
static void who_has_the_fewest_choices_is_first(void **state)
{
	static const struct {
		const char *of_first, *of_other; /* what the first asks for, and a larger one */
	} cases[] = {
		{"'nodeSelector':{'zone':'b'},", "'nodeSelector':{'zone':'a'},"},
		{APART("zone"), "'nodeSelector':{'zone':'a'},"},
		{APART("kubernetes.io/hostname"), ""},
	};

	(void)state;
	slack_fixture_node(&f, "n3", "a", "4", "16Gi", "");
	slack_fixture_node(&f, "n4", "a", "4", "16Gi", "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		slack_state_free(f.state);
		f.state = slack_state_new();
		slack_fixture_workload(&f, "apart", "1", 0, "100m", "1Gi", cases[i].of_first);
		slack_fixture_workload(&f, "a", "1", 0, "1", "1Gi", cases[i].of_other);
		slack_fixture_step(&f);
		assert_int_equal(f.result.move_count, 2);
		assert_string_equal(f.result.moves[0].class, "shop/ReplicaSet/apart");
	}
	slack_state_free(f.state);
	f.state = slack_state_new();
	slack_fixture_workload(&f, "apart", "1", 0, "100m", "1Gi", "");
	slack_fixture_workload(&f, "a", "1", 0, "1", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(f.result.moves[0].class, "shop/ReplicaSet/a");
}

#define BESIDE(app)                                                                                \
	"'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"           \
	"'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'app':'" app       \
	"'}}}]}},"

/*
 * a is for where b is, and b for where c is: they leave and come one after the other, in one step.
 */
static void who_cannot_stay_alone_goes_along(void **state)
{
	(void)state;
	slack_fixture_workload(&f, "a", "1", 0, "100m", "1Mi", BESIDE("b"));
	slack_fixture_workload(&f, "b", "1", 0, "100m", "1Mi", BESIDE("c"));
	slack_fixture_workload(&f, "c", "1", 0, "1", "1Mi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: a b c;");
	slack_fixture_pod(&f, "late", "n2", "1500m", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: a b c; n2:;");
	assert_int_equal(f.result.move_count, 6);
	assert_string_equal(f.result.moves[0].class, "shop/ReplicaSet/c");
	assert_int_equal(f.result.moves[0].filter, PLACE_FIT);
	assert_string_equal(f.result.moves[1].class, "shop/ReplicaSet/b");
	assert_int_equal(f.result.moves[1].filter, PLACE_AFFINITY);
	assert_string_equal(f.result.moves[2].class, "shop/ReplicaSet/a");
	assert_int_equal(f.result.moves[2].cause, SLACK_PUSHED_OUT);
}

/* At most one more of x and y in a zone than in the other. */
#define SPREAD                                                                                     \
	"'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':"      \
	"'DoNotSchedule','labelSelector':{'matchExpressions':[{'key':'app','operator':'In',"       \
	"'values':['x','y']}]}}],"

static void put_x_and_y(void)
{
	slack_fixture_node(&f, "n3", "a", "4", "16Gi", "");
	slack_fixture_pod(&f, "fills-1", "n1", "3", "1Gi", "");
	slack_fixture_pod(&f, "fills-3", "n3", "2900m", "1Gi", "");
	slack_fixture_pod(&f, "real-y", "n2", "100m", "1Gi", ",'labels':{'app':'y'}");
	slack_fixture_workload(&f, "x", "1", 0, "200m", "1Gi", SPREAD);
	slack_fixture_workload(&f, "y", "1", 0, "1", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: x; n2:; n3: y;");
}

/* Without the real one x and y are too many in their zone, and y leaves for a reason of its own. */
static void nobody_goes_for_the_sake_of_one_who_leaves(void **state)
{
	(void)state;
	put_x_and_y();
	place_fixture_remove(&f.world, OBJECT_POD, "shop", "real-y");
	slack_fixture_pod(&f, "late", "n3", "500m", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: x; n2: y; n3:;");
	assert_int_equal(f.result.move_count, 2);
}

static void whose_spread_real_pods_break_moves(void **state)
{
	(void)state;
	put_x_and_y();
	place_fixture_remove(&f.world, OBJECT_POD, "shop", "real-y");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: x; n3: y;");
	assert_int_equal(f.result.moves[0].cause, SLACK_PUSHED_OUT);
	assert_int_equal(f.result.moves[0].filter, PLACE_SPREAD);
	assert_int_equal(f.result.move_count, 2);
}

/* In the zone of x there is room for y, and where x could not stay there is none for it. */
static void nobody_comes_where_others_could_not_stay(void **state)
{
	(void)state;
	put_x_and_y();
	slack_fixture_pod(&f, "fills-2", "n2", "1900m", "1Gi", "");
	slack_fixture_workload(&f, "y", "4", 0, "100m", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: x; n2:; n3: y;");
	assert_int_equal(f.result.move_count, 0);
	assert_string_equal(slack_fixture_class(&f, "shop/ReplicaSet/y")->why.text,
			    "1 NodeResourcesFit, 2 where constraints of other placeholders would "
			    "be violated");
	/* Nor does anybody make way so. */
	slack_fixture_workload(&f, "plain", "1", 0, "50m", "1Gi", "");
	slack_fixture_step(&f);
	assert_int_equal(f.result.move_count, 1);
}

/* Where nodes are emptiest x would be missed: then the other zone had one, and this one three. */
static void who_is_missed_is_not_given_up(void **state)
{
	(void)state;
	f.options.unneeded_ns = 0;
	slack_fixture_node(&f, "n3", "a", "4", "16Gi", "");
	slack_fixture_pod(&f, "fills-1", "n1", "3", "1Gi", "");
	slack_fixture_pod(&f, "fills-3", "n3", "3", "1Gi", "");
	slack_fixture_workload(&f, "x", "3", 0, "200m", "1Gi", SPREAD);
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: x x; n2: x; n3:;");
	slack_fixture_workload(&f, "x", "2", 0, "200m", "1Gi", SPREAD);
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: x; n2: x; n3:;");
	assert_int_equal(f.result.move_count, 1);
}

/* Nobody else could go: who misses it goes along, and finds another place. */
static void who_misses_one_that_is_given_up_goes_along(void **state)
{
	(void)state;
	f.options.unneeded_ns = 0;
	slack_fixture_workload(&f, "a", "1", 0, "100m", "1Mi", BESIDE("c"));
	slack_fixture_workload(&f, "c", "1", 0, "1", "1Mi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: a c;");
	slack_fixture_workload(&f, "c", "0", 0, "1", "1Mi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2:;");
	assert_int_equal(f.result.moves[0].cause, SLACK_SURPLUS);
	assert_int_equal(f.result.moves[1].cause, SLACK_PUSHED_OUT);
	assert_int_equal(f.result.moves[1].filter, PLACE_AFFINITY);
}

/*
 * The small one comes last in the order and is taken first, which is not enough; with the large one
 * gone there is room for both.
 */
static void who_need_not_make_way_stays(void **state)
{
	(void)state;
	slack_fixture_node(&f, "n3", "b", "4", "16Gi", "");
	slack_fixture_pod(&f, "p3", "n3", "4", "1Gi", "");
	slack_fixture_pod(&f, "p4", "n1", "2800m", "1Gi", "");
	slack_fixture_workload(&f, "large", "1", 0, "1", "1Gi", "");
	slack_fixture_workload(&f, "small", "1", 0, "200m", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: large small; n2:; n3:;");
	/* Where it would go, were it looking for a place. */
	slack_fixture_pod(&f, "p3", "n3", "3750m", "1Gi", "");
	slack_fixture_workload(&f, "bound", "1", 0, "600m", "1Gi", "'nodeSelector':{'zone':'a'},");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: bound small; n2: large; n3:;");
	assert_int_equal(f.result.move_count, 2);
	assert_string_equal(f.result.moves[1].by, "shop/ReplicaSet/bound");
}

/* y could only go to the zone of x, which is to have no more than one over the other. */
static void nobody_makes_way_to_where_others_could_not_stay(void **state)
{
	(void)state;
	slack_fixture_pod(&f, "fills-1", "n1", "3", "1Gi", "");
	slack_fixture_workload(
		&f, "x", "1", 0, "200m", "1Gi",
		"'nodeSelector':{'zone':'b'},'topologySpreadConstraints':[{'maxSkew':1,"
		"'topologyKey':'zone','whenUnsatisfiable':'DoNotSchedule','nodeAffinityPolicy':"
		"'Ignore','labelSelector':{'matchExpressions':[{'key':'app','operator':'In',"
		"'values':['x','y']}]}}],");
	slack_fixture_workload(&f, "y", "1", 0, "1", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: y; n2: x;");
	slack_fixture_workload(&f, "bound", "1", 0, "600m", "1Gi", "'nodeSelector':{'zone':'a'},");
	slack_fixture_step(&f);
	assert_int_equal(f.result.move_count, 0);
	assert_int_equal(slack_fixture_class(&f, "shop/ReplicaSet/bound")->unplaced, 1);
}

/*
 * The claim waits for its first pod, and is bound by the placeholder alone: who leaves takes it
 * along.
 */
static void a_claim_that_waits_goes_along(void **state)
{
	(void)state;
	place_fixture_put(&f.world, OBJECT_STORAGE_CLASS,
			  "{'metadata':{'name':'wait'},'provisioner':'p','volumeBindingMode':"
			  "'WaitForFirstConsumer'}");
	place_fixture_put(&f.world, OBJECT_PERSISTENT_VOLUME_CLAIM,
			  "{'metadata':{'name':'data','namespace':'shop'},'spec':{"
			  "'storageClassName':'wait'}}");
	slack_fixture_workload(&f, "web", "1", 0, "1", "1Gi",
			       "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':"
			       "'data'}}],");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1:; n2: web;");
	slack_fixture_pod(&f, "late", "n2", "2", "1Gi", "");
	slack_fixture_step(&f);
	assert_string_equal(slack_fixture_where(&f), "n1: web; n2:;");
}

#define test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(who_has_the_fewest_choices_is_first),
		test(who_cannot_stay_alone_goes_along),
		test(nobody_goes_for_the_sake_of_one_who_leaves),
		test(whose_spread_real_pods_break_moves),
		test(nobody_comes_where_others_could_not_stay),
		test(who_is_missed_is_not_given_up),
		test(who_misses_one_that_is_given_up_goes_along),
		test(who_need_not_make_way_stays),
		test(nobody_makes_way_to_where_others_could_not_stay),
		test(a_claim_that_waits_goes_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
