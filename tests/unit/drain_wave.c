/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wave: what it costs budgets, how long it may take to choose, whom it freezes, groups that go
 * as a whole, and nodes that are neither candidates nor destinations. Nodes have 4 CPUs and 8 GiB;
 * pods are of ReplicaSets, in namespace default.
 */
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
#include "tests/view_fixture.h"

#define NOW    VIEW_FIXTURE_NOW_NS
#define MINUTE (60 * NS_PER_SEC)

static struct drain_world w;
static int calls_in_time; /* how often time is not up yet; -1: it never is */

/* --- the cluster */

static bool is_late(void *unused)
{
	(void)unused;
	if (calls_in_time > 0)
		calls_in_time--;
	return calls_in_time == 0;
}

static bool slack_allows_one; /* node of a wave */
static const char *slack_keeps; /* a node that no wave may have */
static bool slack_wants_spare; /* which pods of a wave of two, placed emptiest first, go to */

static bool slack_holds(const struct slack_result *result, struct place *p, const place_pod *pods,
			const place_node *gone, size_t count, struct error *error)
{
	bool taken = slack_wants_spare && count > 1 &&
		     place_first_on(p, place_find_node(p, "spare")) != PLACE_NONE;

	(void)result;
	(void)pods;
	for (size_t i = 0; i < count; i++)
		assert_true(place_is_gone(p, gone[i]));
	error_set(error, "units have no place without %s", place_node_name(p, gone[count - 1]));
	return !taken && (count == 1 || !slack_allows_one) &&
	       (!slack_keeps || strcmp(place_node_name(p, gone[count - 1]), slack_keeps) != 0);
}

static int setup(void **unused)
{
	(void)unused;
	drain_world_init(&w);
	w.config.assume_unneeded_ns = 30 * MINUTE;
	calls_in_time = -1;
	w.input.slack_holds = slack_holds;
	w.input.out_of_time = is_late;
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	drain_world_fini(&w);
	return 0;
}

static size_t count_verdict(enum drain_verdict v)
{
	size_t count = 0;

	for (size_t i = 0; i < w.plan->node_count; i++)
		count += w.plan->nodes[i].verdict == v;
	return count;
}

/* --- budgets */

/* "a" and "b" could go, each with a pod of "web"; "full" holds the others. */
static void put_three(int allowed, bool ready)
{
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "full");
	drain_world_owner(&w, "web", 8);
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "db-1", "db", "full", 2400);
	drain_world_pod_with(&w, "web-1", "web", "a", 100, ready, "");
	drain_world_pod_with(&w, "web-2", "web", "b", 100, ready, "");
	for (int i = 3; i <= 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "web-%d", i);
		drain_world_pod(&w, name, "web", "full", 10);
	}
	drain_world_budget(&w, "web", allowed);
}

static void assert_cost(size_t pods, int64_t allowed, int64_t left, bool one_after_the_other)
{
	const struct drain_cost *c = w.plan->wave.costs;

	assert_true(w.plan->wave.cost_count > 0);
	assert_non_null(c->budget);
	assert_int_equal(c->pods, pods);
	assert_int_equal(c->allowed, allowed);
	assert_int_equal(c->left, left);
	assert_true(c->one_after_the_other == one_after_the_other);
}

static void a_budget_tells_before_and_after(void **unused)
{
	(void)unused;
	put_three(3, true);
	drain_world_step(&w, NOW);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 2);
	assert_cost(2, 3, 1, false);
	assert_non_null(strstr(w.plan->narration, "PodDisruptionBudget default/web: 2 leave, 3 may "
						  "at once, and 1 more then.\n"));
}

/* Candidates have used up the budget before there is a wave, which must tell of it as it was. */
static void upstream_tells_it_as_well(void **unused)
{
	(void)unused;
	drain_config_upstream(&w.config);
	w.config.assume_unneeded_ns = 30 * MINUTE;
	w.config.rules.max_drain_parallelism = 10;
	put_three(2, true);
	drain_world_step(&w, NOW);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 2);
	assert_cost(2, 2, 0, false);
}

/* What is not ready uses nothing of it, however many leave. */
static void pods_that_are_not_ready_cost_nothing(void **unused)
{
	(void)unused;
	put_three(1, false);
	w.config.rules.owner_share = 1;
	drain_world_step(&w, NOW);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 2);
	assert_cost(2, 1, 1, false);
}

/* More are missing than may be: no more may leave, and not less than none. */
static void an_owner_allows_no_less_than_none(void **unused)
{
	const struct drain_cost *c;

	(void)unused;
	put_three(1, false);
	drain_world_pod_with(&w, "web-3", "web", "full", 10, false, "");
	w.config.rules.owner_share = 0.1;
	drain_world_step(&w, NOW);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 2);
	c = &w.plan->wave.costs[1];
	assert_string_equal(c->name, "web");
	assert_int_equal(c->pods, 2);
	assert_true(c->limited);
	assert_int_equal(c->allowed, 0);
	assert_int_equal(c->left, 0);
	assert_false(c->one_after_the_other);
}

static void a_node_may_ask_for_more_than_is_allowed(void **unused)
{
	(void)unused;
	put_three(1, true);
	drain_world_pod(&w, "web-9", "web", "a", 100);
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-2");
	w.config.rules.owner_share = 1;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	assert_cost(2, 1, 0, true);
}

/* Its two pods have to leave one after the other, and another node took of their budget. */
static void a_node_that_waits_for_a_budget_goes_alone(void **unused)
{
	(void)unused;
	put_three(2, true);
	drain_world_pod(&w, "web-9", "web", "b", 100);
	w.config.rules.owner_share = 1;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	drain_world_reason(&w, "b", 0, "NotEnoughPdb",
			   "pod default/web-9: beside this wave, PodDisruptionBudget default/web "
			   "allows 1 more disruption: 0 pods are healthy, and 0 must be");
	drain_world_budget(&w, "web", 3);
	drain_world_step(&w, NOW + MINUTE);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 2);
}

/* --- time */

static void put_many(int count)
{
	drain_world_owner(&w, "web", 4 * count);
	for (int i = 0; i < count; i++) {
		char name[16], pod[16];

		snprintf(name, sizeof(name), "n%02d", i);
		snprintf(pod, sizeof(pod), "web-%d", i);
		drain_world_node(&w, name);
		drain_world_pod(&w, pod, "web", name, 100);
	}
	drain_world_node(&w, "full");
	drain_world_owner(&w, "db", 1);
	drain_world_pod(&w, "db-1", "db", "full", 2100);
	w.config.rules.owner_share = 1;
}

/* Eight could go, and when three of them are in the wave there is no time for more. */
static void a_wave_ends_when_time_is_up(void **unused)
{
	(void)unused;
	put_many(8);
	w.config.rules.simulation_min_nodes = 1;
	drain_world_step(&w, NOW);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 8);
	drain_plan_free(w.plan);
	w.plan = NULL;
	/* Seven times while candidates are asked, and twice for the wave; the third is too late. */
	calls_in_time = 7 + 2 + 1;
	drain_world_step(&w, NOW + MINUTE);
	assert_true(w.plan->complete);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 3);
	assert_int_equal(count_verdict(DRAIN_UNNEEDED), 5);
	drain_world_reason(&w, "n07", 0, "NotExamined",
			   "time was up before it was tried beside the wave");
	assert_true(drain_world_get(&w, "n07")->since_ns == NOW - 30 * MINUTE);
}

/* However little time there is, some are tried, and so the cluster gets smaller. */
static void some_are_tried_in_any_case(void **unused)
{
	(void)unused;
	put_many(8);
	w.config.rules.simulation_min_nodes = 4;
	calls_in_time = 0;
	drain_world_step(&w, NOW);
	assert_false(w.plan->complete);
	assert_int_equal(w.plan->examined, 4);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 4);
}

static void half_an_atomic_group_does_not_go_for_want_of_time(void **unused)
{
	static const struct drain_group_rule groups[] = {{.name = "n", .max = 100, .atomic = true}};
	static const char *const labels[] = {"pool"};

	(void)unused;
	put_many(0);
	drain_world_node(&w, "full");
	for (int i = 0; i < 4; i++) {
		char name[16], pod[16];

		snprintf(name, sizeof(name), "n%02d", i);
		snprintf(pod, sizeof(pod), "web-%d", i);
		drain_world_node_with(&w, name, "'pool':'n'", "", "");
		drain_world_pod(&w, pod, "web", name, 100);
	}
	drain_world_owner(&w, "web", 4);
	w.config.groups = groups;
	w.config.group_count = 1;
	w.config.group_labels = labels;
	w.config.group_label_count = 1;
	w.config.rules.simulation_min_nodes = 1;
	calls_in_time = 3 + 1 + 1;
	drain_world_step(&w, NOW);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 0);
	calls_in_time = -1;
	drain_world_step(&w, NOW + MINUTE);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 4);
}

/* --- whom it freezes */

/* Both could go alone; a's pod goes to b, and so b stays until a is gone. */
static void a_destination_is_not_drained(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 2);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_pod(&w, "web-2", "web", "b", 200);
	w.config.rules.owner_share = 1;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	drain_world_verdict(&w, "b", "kept");
	drain_world_reason(&w, "b", 0, "DestinationInWave",
			   "1 pod of nodes that could go would come here");
	assert_string_equal(drain_world_get(&w, "a")->moves[0].to, "b");
}

/* --- groups that go as a whole */

static const struct drain_group_rule batch[] = {{.name = "batch", .max = 10, .atomic = true}};
static const char *const pools[] = {"pool"};

/* Three nodes of a pool that goes as a whole, and one that holds what they have. */
static void put_pool(void)
{
	w.config.groups = batch;
	w.config.group_count = 1;
	w.config.group_labels = pools;
	w.config.group_label_count = 1;
	w.config.rules.owner_share = 1;
	drain_world_node_with(&w, "b1", "'pool':'batch'", "", "");
	drain_world_node_with(&w, "b2", "'pool':'batch'", "", "");
	drain_world_node_with(&w, "b3", "'pool':'batch'", "", "");
	drain_world_node(&w, "rest");
	drain_world_owner(&w, "web", 4);
	drain_world_pod(&w, "web-1", "web", "b1", 100);
	drain_world_pod(&w, "web-2", "web", "b2", 100);
	drain_world_pod(&w, "web-3", "web", "rest", 2100);
}

static void a_group_goes_as_a_whole(void **unused)
{
	(void)unused;
	put_pool();
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "b1", "drain");
	drain_world_verdict(&w, "b2", "drain");
	drain_world_verdict(&w, "b3", "drain");
	assert_int_equal(w.plan->wave.empty_count, 1);
	assert_string_equal(drain_world_get(&w, "b1")->moves[0].to, "rest");
	assert_string_equal(drain_world_get(&w, "b1")->group, "batch");
}

static void a_drained_node_has_left_its_group(void **unused)
{
	static const struct drain_group_rule rule = {.name = "batch", .min = 1, .max = 10};

	(void)unused;
	put_pool();
	w.config.groups = &rule;
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-1");
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-2");
	drain_world_node_with(&w, "b1", "'pool':'batch'", "", "'unschedulable':true");
	drain_world_node_with(&w, "b2", "'pool':'batch'", "", "'unschedulable':true");
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "b2", "drained");
	drain_world_reason(&w, "b3", 0, "NodeGroupMinSizeReached",
			   "group \"batch\" must keep 1 node, and has 1 left");
}

/* Upstream looks for two nodes: all of the group are asked, and of single nodes the third is not. */
static void atomic_groups_do_not_count_to_the_limit(void **unused)
{
	(void)unused;
	for (int atomic = 0; atomic < 2; atomic++) {
		drain_config_upstream(&w.config);
		w.config.rules.max_parallelism = 1;
		put_pool();
		if (!atomic)
			w.config.group_count = 0;
		drain_world_step(&w, NOW);
		assert_int_equal(w.plan->complete, atomic);
		assert_int_equal(w.plan->unneeded, atomic ? 3 : 2);
		teardown(NULL);
		setup(NULL);
	}
}

static void a_group_stays_for_one_of_its_nodes(void **unused)
{
	(void)unused;
	put_pool();
	drain_world_node_with(&w, "b2", "'pool':'batch'",
			      "'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'", "");
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "b2", "needed");
	drain_world_reason(
		&w, "b2", 0, "ScaleDownDisabledAnnotation",
		"it is annotated cluster-autoscaler.kubernetes.io/scale-down-disabled=true");
	drain_world_verdict(&w, "b1", "unneeded");
	drain_world_reason(&w, "b1", 0, "AtomicScaleDownFailed",
			   "group \"batch\" goes as a whole, and 2 of its 3 nodes could");
	drain_world_verdict(&w, "b3", "unneeded");
	drain_world_reason(&w, "b3", 0, "AtomicScaleDownFailed",
			   "group \"batch\" goes as a whole, and 2 of its 3 nodes could");
	assert_int_equal(w.plan->wave.node_count, 0);
	/* Its timer ran on meanwhile for those that could. */
	drain_world_node_with(&w, "b2", "'pool':'batch'", "", "");
	drain_world_step(&w, NOW + MINUTE);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 3);
	assert_true(drain_world_get(&w, "b1")->since_ns == NOW - 30 * MINUTE);
}

/* One alone would do; all three together exceed the budget. */
static void a_group_stays_for_a_budget_of_one_of_its_nodes(void **unused)
{
	(void)unused;
	put_pool();
	drain_world_budget(&w, "web", 1);
	drain_world_step(&w, NOW);
	assert_int_equal(w.plan->wave.node_count, 0);
	assert_int_equal(count_verdict(DRAIN_UNNEEDED), 3);
	drain_world_reason(&w, "b2", 0, "NotEnoughPdb",
			   "pod default/web-2: beside this wave, PodDisruptionBudget default/web "
			   "allows 0 more disruptions: 0 pods are healthy, and 0 must be");
	drain_world_reason(&w, "b1", 0, "AtomicScaleDownFailed",
			   "group \"batch\" goes as a whole, and node b2 cannot go now");
	drain_world_budget(&w, "web", 2);
	drain_world_step(&w, NOW + MINUTE);
	assert_int_equal(count_verdict(DRAIN_SELECTED), 3);
	/* Without it a single node has what b1 gave back. */
	drain_world_budget(&w, "web", 1);
	drain_world_node(&w, "z");
	drain_world_pod(&w, "web-4", "web", "z", 100);
	w.config.rules.max_drain_parallelism = 2;
	drain_world_step(&w, NOW + 2 * MINUTE);
	drain_world_verdict(&w, "z", "drain");
}

/* --- what is not known, and what never changes */

static void hide_pod(const char *name, const char *node)
{
	struct model_source source = {.state = SOURCE_SYNCED};

	unreadables_put(&source.unreadable, "default", name, node, "spec.x: must not be negative");
	model_set_source(w.cluster.model, OBJECT_POD, &source);
}

/* Neither may it leave unseen, nor is it known what it leaves for others. */
static void nodes_with_unreadable_pods_are_left_alone(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 1);
	drain_world_pod(&w, "web-1", "web", "b", 100);
	hide_pod("odd", "a");
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "needed");
	drain_world_reason(&w, "a", 0, "UnexpectedError",
			   "its pod default/odd cannot be read: spec.x: must not be negative");
	drain_world_verdict(&w, "b", "needed");
	drain_world_reason(&w, "b", 0, "NoPlaceToMovePods",
			   "pod default/web-1 fits on no other node: 1 NodeGone");
	hide_pod("odd", "");
	drain_world_step(&w, NOW + 10 * MINUTE);
	drain_world_verdict(&w, "a", "drain");
}

/* Who would take pods, and could never go himself, hears the latter. */
static void what_holds_a_destination_is_told(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 1);
	drain_world_owner(&w, "db", 1);
	drain_world_budget(&w, "db", 0);
	drain_world_pod(&w, "web-1", "web", "a", 100);
	drain_world_pod(&w, "db-1", "db", "b", 200);
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	drain_world_verdict(&w, "b", "needed");
	drain_world_reason(&w, "b", 0, "BlockedByPod", "pod default/db-1 must stay");
}

/* Each could go alone. */
static void extra_capacity_is_judged_as_it_is_after_the_wave(void **unused)
{
	(void)unused;
	put_three(3, true);
	slack_allows_one = true;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	drain_world_verdict(&w, "b", "unneeded");
	drain_world_reason(&w, "b", 0, "SlackWouldDrop", "units have no place without b");
	assert_int_equal(w.plan->wave.pods, 1);
	slack_allows_one = false;
	drain_world_step(&w, NOW + 1);
	assert_int_equal(w.plan->wave.node_count, 2);
}

/* One of the two may go, by a budget or by the share of its owner: the second if the first cannot. */
static void a_node_that_stays_takes_nothing(void **unused)
{
	static const struct {
		int allowed;
		double owner_share;
	} limits[] = {{1, 1}, {8, 0.125}};

	for (size_t i = 0; i < 2; i++) {
		put_three(limits[i].allowed, true);
		w.config.rules.owner_share = limits[i].owner_share;
		drain_world_step(&w, NOW);
		drain_world_verdict(&w, "a", "drain");
		drain_world_verdict(&w, "b", "unneeded");
		slack_keeps = "a";
		drain_world_step(&w, NOW + 1);
		slack_keeps = NULL;
		drain_world_verdict(&w, "b", "drain");
		teardown(unused);
		setup(unused);
	}
}

/* In the plan both go to the fullest node, where units do not fit anyway. */
static void slack_keeps_its_room_wherever_pods_go(void **unused)
{
	(void)unused;
	put_three(3, true);
	drain_world_node_with(&w, "spare", "",
			      "'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'", "");
	slack_wants_spare = true;
	w.config.robust_orders = 1;
	drain_world_step(&w, NOW);
	slack_wants_spare = false;
	assert_true(w.plan->wave.robust);
	assert_int_equal(w.plan->wave.node_count, 1);
	drain_world_verdict(&w, "b", "unneeded");
	drain_world_reason(
		&w, "b", 0, "NotRobust",
		"with it the wave would depend on where the kube-scheduler puts pods: units "
		"have no place without b");
}

/* --- where the scheduler puts them */

#define SPREAD                                                                                     \
	"'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone',"                          \
	"'whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{'app':'web'}}}]"

/* The scheduler knows no placeholder: with web-1 gone from zone 1, zone 2 may not have two. */
static void extra_capacity_counts_in_no_domain(void **unused)
{
	struct kube_pod *extra = place_fixture_record("extra", "", "'app':'web'", SPREAD);

	(void)unused;
	drain_world_node_with(&w, "a", "'zone':'1'", "", "");
	drain_world_node_with(&w, "b", "'zone':'2'", "", "");
	drain_world_node_with(&w, "c", "'zone':'1'", "", "");
	drain_world_owner(&w, "web", 8);
	drain_world_owner(&w, "db", 8);
	drain_world_pod_with(&w, "web-1", "web", "a", 300, true, SPREAD);
	drain_world_pod_with(&w, "web-2", "web", "b", 300, true, SPREAD);
	drain_world_pod(&w, "db-1", "db", "b", 2500);
	drain_world_pod(&w, "db-2", "db", "c", 3800);
	w.input.slack = &(struct drain_placeholder){extra, "c", "web"};
	w.input.slack_count = 1;
	w.config.rules.owner_share = 1;
	w.config.assume_unneeded_ns = 11 * MINUTE;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "needed");
	/* With room in its own zone it goes there. */
	drain_world_node_with(&w, "d", "'zone':'1'", "", "");
	drain_world_pod(&w, "db-3", "db", "d", 2500);
	drain_world_step(&w, NOW + MINUTE);
	drain_world_verdict(&w, "a", "drain");
	object_drop(&extra->object);
}

/*
 * Fullest first both pods have a place; a scheduler that spreads puts the small one where the big
 * one would have to be.
 */
static void a_wave_that_depends_on_the_scheduler_is_told(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "web", 8);
	drain_world_owner(&w, "db", 8);
	drain_world_pod(&w, "web-1", "web", "a", 300);
	drain_world_pod(&w, "db-1", "db", "a", 1500);
	drain_world_pod(&w, "db-2", "db", "b", 2500);
	drain_world_pod(&w, "db-3", "db", "c", 3600);
	w.config.rules.owner_share = 1;
	w.config.assume_unneeded_ns = 11 * MINUTE;
	w.config.not_robust = true;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	assert_false(w.plan->wave.robust);
	assert_non_null(
		strstr(w.plan->narration,
		       "It depends on where the scheduler puts pods: pod default/db-1 would "
		       "have no place, were others placed elsewhere.\n"));
}

#define DEPENDS                                                                                    \
	"with it the wave would depend on where the kube-scheduler puts pods: pod default/db-1 "   \
	"would have no place, were others placed elsewhere"

static void a_wave_that_depends_on_the_scheduler_does_not_go(void **unused)
{
	a_wave_that_depends_on_the_scheduler_is_told(unused);
	w.config.not_robust = false;
	drain_world_step(&w, NOW + MINUTE);
	drain_world_verdict(&w, "a", "unneeded");
	drain_world_reason(&w, "a", 0, "NotRobust", DEPENDS);
	assert_int_equal(w.plan->wave.node_count, 0);
	w.config.robust_orders = 0;
	drain_world_step(&w, NOW + 2 * MINUTE);
	drain_world_verdict(&w, "a", "drain");
	assert_false(w.plan->wave.robust);
}

/* Of two the one goes that fits anywhere, though no other wave is tried. */
static void a_wave_is_cut_to_what_is_robust(void **unused)
{
	a_wave_that_depends_on_the_scheduler_is_told(unused);
	drain_world_node(&w, "d");
	drain_world_pod(&w, "web-2", "web", "d", 50);
	w.config.not_robust = false;
	w.config.robust_tries = 0;
	drain_world_step(&w, NOW + MINUTE);
	drain_world_verdict(&w, "a", "unneeded");
	drain_world_reason(&w, "a", 0, "NotRobust", DEPENDS);
	drain_world_verdict(&w, "d", "drain");
	assert_true(w.plan->wave.robust);
}

/*
 * The big pod has a place unless all of the small ones come before it, which one order drawn by
 * chance is not.
 */
static void pods_of_one_owner_may_come_last(void **unused)
{
	static const char *const small[] = {"web-1", "web-2", "web-3", "web-4",
					    "web-5", "web-6", "web-7", "web-8"};

	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "web", 8);
	drain_world_owner(&w, "db", 8);
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
		drain_world_pod(&w, small[i], "web", "a", 100);
	drain_world_pod(&w, "db-1", "db", "a", 1500);
	drain_world_pod(&w, "db-2", "db", "b", 1800);
	drain_world_pod(&w, "db-3", "db", "c", 2600);
	w.config.rules.owner_share = 1;
	w.config.rules.utilization = 0.6;
	w.config.robust_orders = 1;
	w.config.not_robust = true;
	w.config.assume_unneeded_ns = 11 * MINUTE;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "drain");
	assert_false(w.plan->wave.robust);
	assert_non_null(strstr(w.plan->narration, "pod default/db-1 would have no place"));
}

/*
 * The small pods would take the emptier node, and the big one has "b" alone. If they take "b", the
 * scheduler preempts a pod there for it, as soon as its priority is the higher one.
 */
static void a_pod_that_could_preempt_has_a_place_in_any_case(void **unused)
{
	(void)unused;
	drain_world_node(&w, "z");
	drain_world_node_with(&w, "b", "'pool':'big'", "", "");
	drain_world_node(&w, "c");
	drain_world_owner(&w, "web", 8);
	drain_world_owner(&w, "db", 8);
	drain_world_pod(&w, "web-1", "web", "z", 150);
	drain_world_pod(&w, "web-2", "web", "z", 150);
	drain_world_pod_with(&w, "db-1", "db", "z", 300, true, "'nodeSelector':{'pool':'big'}");
	drain_world_pod(&w, "db-2", "db", "b", 3700);
	drain_world_pod(&w, "db-3", "db", "c", 2400);
	w.config.rules.owner_share = 1;
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "z", "drain");
	assert_true(w.plan->wave.robust);
	drain_world_pod_with(&w, "db-1", "db", "z", 300, true,
			     "'nodeSelector':{'pool':'big'},'priority':1000");
	drain_world_step(&w, NOW + MINUTE);
	drain_world_verdict(&w, "z", "unneeded");
	drain_world_reason(&w, "z", 0, "NotRobust", DEPENDS);
	drain_world_pod(&w, "db-2", "db", "b", 3300);
	drain_world_step(&w, NOW + 2 * MINUTE);
	drain_world_verdict(&w, "z", "drain");
	/* Its owner is the second one; the only pod of a lower priority is on the first node. */
	drain_world_owner(&w, "app", 8);
	drain_world_pod_with(&w, "app-1", "app", "z", 400, true, "'priority':1000");
	drain_world_pod_with(&w, "web-1", "web", "z", 150, true, "'priority':1000");
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-2");
	drain_world_pod(&w, "db-2", "db", "b", 3700);
	drain_world_pod_with(&w, "db-3", "db", "c", 2400, true, "'priority':1000");
	drain_world_step(&w, NOW + 3 * MINUTE);
	drain_world_reason(&w, "z", 0, "NotRobust", DEPENDS);
}

static void robust_waves_are_preferred(void **unused)
{
	(void)unused;
	a_wave_that_depends_on_the_scheduler_is_told(unused);
	drain_world_node(&w, "d");
	drain_world_pod(&w, "web-2", "web", "d", 50);
	drain_world_pod(&w, "web-3", "web", "d", 1);
	drain_world_pod(&w, "web-4", "web", "d", 1);
	drain_world_step(&w, NOW + MINUTE);
	assert_true(w.plan->wave.robust);
	assert_int_equal(w.plan->wave.node_count, 1);
	drain_world_verdict(&w, "d", "drain");
	drain_world_reason(&w, "a", 0, "NotRobust", DEPENDS);
}

/* Its name alone would be looked for in vain among the pods of the node. */
static void a_pending_pod_holds_the_node_it_fits(void **unused)
{
	(void)unused;
	drain_world_node(&w, "a");
	drain_world_node(&w, "b");
	drain_world_owner(&w, "web", 2);
	drain_world_pod(&w, "web-1", "web", "b", 1000);
	drain_world_pod_with(&w, "web-2", "web", "", 3500, false, "");
	drain_world_step(&w, NOW);
	drain_world_verdict(&w, "a", "needed");
	drain_world_reason(
		&w, "a", 0, "NoPlaceToMovePods",
		"pod default/web-2, which is pending and has its room here, fits on no other "
		"node: 1 NodeResourcesFit");
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		STORY(a_budget_tells_before_and_after),
		STORY(upstream_tells_it_as_well),
		STORY(pods_that_are_not_ready_cost_nothing),
		STORY(an_owner_allows_no_less_than_none),
		STORY(a_node_may_ask_for_more_than_is_allowed),
		STORY(a_node_that_waits_for_a_budget_goes_alone),
		STORY(a_wave_ends_when_time_is_up),
		STORY(some_are_tried_in_any_case),
		STORY(half_an_atomic_group_does_not_go_for_want_of_time),
		STORY(a_destination_is_not_drained),
		STORY(a_group_goes_as_a_whole),
		STORY(a_drained_node_has_left_its_group),
		STORY(a_group_stays_for_one_of_its_nodes),
		STORY(a_group_stays_for_a_budget_of_one_of_its_nodes),
		STORY(nodes_with_unreadable_pods_are_left_alone),
		STORY(what_holds_a_destination_is_told),
		STORY(slack_keeps_its_room_wherever_pods_go),
		STORY(extra_capacity_counts_in_no_domain),
		STORY(a_wave_that_depends_on_the_scheduler_is_told),
		STORY(pods_of_one_owner_may_come_last),
		STORY(a_wave_that_depends_on_the_scheduler_does_not_go),
		STORY(a_wave_is_cut_to_what_is_robust),
		STORY(a_pod_that_could_preempt_has_a_place_in_any_case),
		STORY(robust_waves_are_preferred),
		STORY(a_pending_pod_holds_the_node_it_fits),
		STORY(extra_capacity_is_judged_as_it_is_after_the_wave),
		STORY(a_node_that_stays_takes_nothing),
		STORY(atomic_groups_do_not_count_to_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
