/* SPDX-License-Identifier: Apache-2.0 */
/* The drain of a single node, step by step: what it evicts, what it awaits, and when it is rolled back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/act.h"
#include "shared/clock.h"

#define STEP_NS	 (2 * NS_PER_SEC)
#define BEGIN_NS (1000000 * NS_PER_SEC) /* the wall clock runs beside the monotonic one */

/* A pod that tolerates the taint, and is in no move, holds its node for --max-pod-wait. */
static void test_pod_in_no_move(void **state)
{
	static const struct act_options options = {.pod_wait_ns = 60 * NS_PER_SEC, .holder = "h"};
	const struct act_pod pod = {"uid", "default", "p", "", false};
	const struct act_node node = {.name = "n2",
				      .uid = "u",
				      .mark = {.phase = MARK_EVICTING, .plan = "p"},
				      .cordoned = true,
				      .tainted = true,
				      .pod_count = 1,
				      .pods = &pod};
	struct verify_plan_node of = {.name = "n2", .uid = "u"};
	const struct verify_plan proof = {.node_count = 1, .nodes = &of};
	const struct act_cluster cluster = {.node_count = 1, .nodes = &node};
	const struct act_plan plan = {.proof = &proof, .refusal = ""};
	struct act_state s = {0};
	int rolled_back = -1;

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct act_output out = {0};

		act_step(&s, &options,
			 &(struct act_input){.cluster = &cluster,
					     .plan = &plan,
					     .now_ns = BEGIN_NS + i * STEP_NS,
					     .wall_ns = BEGIN_NS},
			 &out);
		if (out.action_count && rolled_back < 0) {
			rolled_back = i;
			assert_non_null(
				strstr(out.actions[0].text.text, "default/p is in no move"));
		}
		act_output_fini(&out);
	}
	assert_int_equal(rolled_back, 31);
	act_state_fini(&s);
}

/* An owner that is scaled down after the replacement was Ready. */
static void test_fewer_replicas(void **state)
{
	const struct act_options options = {.pod_wait_ns = 60 * NS_PER_SEC,
					    .in_flight_max = 1,
					    .hour_max = 9};
	const struct act_pod pod = {"uid", "default", "p", "o", false};
	struct verify_plan_node of = {.name = "n", .uid = "u", .move_count = 1};
	struct verify_move move = {.namespace = "default", .name = "p", .uid = "uid", .from = "n"};
	const struct verify_plan proof = {
		.node_count = 1, .nodes = &of, .move_count = 1, .moves = &move};
	const struct act_plan plan = {.proof = &proof, .refusal = ""};
	struct act_owner owner = {"o", 3};
	struct act_node node = {.name = "n", .uid = "u", .pod_count = 1, .pods = &pod};
	const struct act_cluster cluster = {
		.node_count = 1, .nodes = &node, .owner_count = 1, .owners = &owner};
	const struct act_input in = {.cluster = &cluster, .plan = &plan, .now_ns = BEGIN_NS};
	struct act_drain d = {.node = (char *)"n", .uid = (char *)"u", .zone = (char *)""};
	struct act_state s = {.drains = &d, .drain_count = 1};
	struct act_output out = {0};
	struct error why = {""};

	(void)state;
	assert_true(act_drain_prove(&d, &plan, BEGIN_NS));
	assert_false(act_drain_follow(&d, &options, &in, &node, &why));
	act_drain_evict(&s, &d, &options, &in, &node, &out);
	assert_int_equal(out.action_count, 1);
	node.pod_count = 0;
	owner.ready = 2;
	assert_false(act_drain_follow(&d, &options, &in, &node, &why));
	owner.ready = 3;
	assert_true(act_drain_follow(&d, &options, &in, &node, &why));
	owner.ready = 1;
	assert_true(act_drain_follow(&d, &options, &in, &node, &why));
	act_drain_unprove(&d);
	act_output_fini(&out);
}

/* A proof lasts 10 minutes; the pod in flight is awaited first. */
static void test_proof_expires(void **state)
{
	const struct act_options options = {.pod_wait_ns = 9999 * NS_PER_SEC,
					    .in_flight_max = 2,
					    .hour_max = 9};
	const struct act_pod pods[] = {{"uid", "default", "p", "", true},
				       {"uiq", "default", "q", "", false}};
	struct verify_plan_node of = {.name = "n", .uid = "u", .move_count = 2};
	struct verify_move moves[] = {
		{.namespace = "default", .name = "p", .uid = "uid", .from = "n"},
		{.namespace = "default", .name = "q", .uid = "uiq", .from = "n"}};
	const struct verify_plan proof = {
		.node_count = 1, .nodes = &of, .move_count = 2, .moves = moves};
	const struct act_plan plan = {.proof = &proof, .refusal = ""};
	struct act_node node = {.name = "n", .uid = "u", .pod_count = 2, .pods = pods};
	const struct act_cluster cluster = {.node_count = 1, .nodes = &node};
	struct act_input in = {.cluster = &cluster, .plan = &plan, .now_ns = BEGIN_NS};
	struct act_drain d = {.node = (char *)"n", .uid = (char *)"u", .zone = (char *)""};
	struct act_state s = {.drains = &d, .drain_count = 1};
	struct act_output out = {0};
	struct error why = {""};

	(void)state;
	assert_true(act_drain_prove(&d, &plan, BEGIN_NS));
	act_drain_follow(&d, &options, &in, &node, &why);
	d.moves[1].pod.refused_ns = 7;
	in.now_ns += 600 * NS_PER_SEC + 1;
	act_expire_proofs(&s, in.now_ns);
	assert_true(d.proven);
	act_drain_evict(&s, &d, &options, &in, &node, &out);
	assert_int_equal(out.action_count, 0);
	node.pods++;
	node.pod_count--;
	act_drain_follow(&d, &options, &in, &node, &why);
	act_expire_proofs(&s, in.now_ns);
	assert_false(d.proven);
	assert_true(act_drain_prove(&d, &plan, in.now_ns));
	assert_int_equal(d.moves[1].pod.refused_ns, 7);
	act_drain_evict(&s, &d, &options, &in, &node, &out);
	assert_in_range(out.action_count, 1, 2);
	act_drain_unprove(&d);
	act_output_fini(&out);
}

struct lone {
	struct act_state state;
	struct act_options options;
	struct act_plan plan;
	enum act_result answer; /* to each action */
	bool paused;
};

/* Steps over a cluster of one node until one rolls it back: the number of steps, with the reason. */
static int roll_back_of(struct lone *l, const struct act_node *node, int most, struct error *why)
{
	const struct act_cluster cluster = {.node_count = 1, .nodes = node};
	bool ends = false;
	int i;

	for (i = 0; i < most && !ends; i++) {
		const struct act_input in = {.cluster = &cluster,
					     .plan = &l->plan,
					     .paused = l->paused && i < most / 2,
					     .now_ns = BEGIN_NS + i * STEP_NS,
					     .wall_ns = BEGIN_NS + i * STEP_NS};
		struct act_output out = {0};

		act_step(&l->state, &l->options, &in, &out);
		for (size_t k = 0; k < out.action_count; k++) {
			act_result(&l->state, &out.actions[k], l->answer, "", in.now_ns);
			ends = out.actions[k].mark.phase == MARK_ROLLED_BACK;
			*why = out.actions[k].text;
		}
		act_output_fini(&out);
	}
	act_state_fini(&l->state);
	return ends ? i : -1;
}

/* Whatever the answers to evictions are, a pod that stays ends its drain after --max-pod-wait. */
static void test_pod_that_stays(void **state)
{
	static const enum act_result answers[] = {ACT_UNKNOWN, ACT_GONE, ACT_DONE, ACT_NOT_YET};
	const struct act_pod pod = {"uid", "default", "p", "", false};
	const struct act_node node = {.name = "n2",
				      .uid = "u",
				      .mark = {.phase = MARK_EVICTING, .plan = "p"},
				      .cordoned = true,
				      .tainted = true,
				      .pod_count = 1,
				      .pods = &pod};
	struct verify_plan_node of = {.name = "n2", .uid = "u", .move_count = 1};
	struct verify_move move = {
		.namespace = "default", .name = "p", .uid = "uid", .from = "n2", .to = "n0"};
	const struct verify_plan proof = {
		.node_count = 1, .nodes = &of, .move_count = 1, .moves = &move};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct lone l = {.options = {.pod_wait_ns = 60 * NS_PER_SEC,
					     .in_flight_max = 1,
					     .hour_max = 9,
					     .holder = "h"},
				 .plan = {.proof = &proof, .refusal = ""},
				 .answer = answers[i]};
		struct error why = {""};
		int steps = roll_back_of(&l, &node, 100, &why);

		assert_in_range(steps, 31, 42);
		assert_non_null(strstr(why.text, "default/p cannot be evicted for longer than "
						 "--max-pod-wait"));
	}
}

/* A phase that does not end is rolled back after 2 minutes, of which a successor counts all. */
static void test_phases_end(void **state)
{
	static const struct {
		enum mark_phase phase;
		int before; /* steps of a former holder */
		bool paused; /* for 100 steps */
		int steps;
		const char *why;
	} cases[] = {
		{MARK_TAINTED, 0, false, 62, "did not agree within 2 minutes"},
		{MARK_TAINTED, 0, true, 161, "did not agree within 2 minutes"},
		{MARK_TAINTED, 50, false, 12, "did not agree within 2 minutes"},
		{MARK_TAINTED, -50, false, 62, "did not agree within 2 minutes"},
		{MARK_VERIFIED, 0, false, 62, "--after failed for 2 minutes"},
		{MARK_VERIFIED, 50, false, 62, "--after failed for 2 minutes"},
	};
	const struct act_pod pod = {"uid", "default", "p", "", false};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct act_node node = {.name = "n2",
					      .uid = "u",
					      .mark = {.phase = cases[i].phase,
						       .plan = "p",
						       .since_ns = BEGIN_NS -
								   cases[i].before * STEP_NS},
					      .cordoned = true,
					      .tainted = true,
					      .pod_count = cases[i].phase == MARK_TAINTED,
					      .pods = &pod};
		struct lone l = {.options = {.after = ACT_DELETE_NODE, .holder = "h"},
				 .plan = {.refusal = ""},
				 .answer = ACT_NEVER,
				 .paused = cases[i].paused};
		struct error why = {""};

		assert_int_equal(roll_back_of(&l, &node, 200, &why), cases[i].steps);
		assert_non_null(strstr(why.text, cases[i].why));
	}
}

static void test_unreadable_annotation(void **state)
{
	static const struct act_options options = {.drain = true, .holder = "h"};
	struct act_node node = {.name = "n2", .uid = "u", .mark.phase = MARK_GARBLED};
	const struct act_cluster cluster = {.node_count = 1, .nodes = &node};
	const struct act_plan plan = {.refusal = ""};

	(void)state;
	node.cordoned = true;
	for (int tainted = 0; tainted <= 1; tainted++) {
		struct act_output out = {0};
		struct act_state s = {0};

		node.tainted = tainted;
		act_step(&s, &options,
			 &(struct act_input){.cluster = &cluster,
					     .plan = &plan,
					     .now_ns = BEGIN_NS,
					     .wall_ns = BEGIN_NS},
			 &out);
		assert_int_equal(out.action_count, tainted);
		if (tainted)
			assert_int_equal(out.actions[0].cordon, ACT_CORDON_ENDS);
		act_output_fini(&out);
		act_state_fini(&s);
	}
}

/* A node that a person takes back is as it was; the others are drained. */
static void test_undo(void **state)
{
	static const struct act_options options = {.drain = true, .holder = "h"};
	const struct act_node node = {.name = "n2",
				      .uid = "u",
				      .mark = {.phase = MARK_DRAINED, .plan = "p"},
				      .cordoned = true,
				      .tainted = true,
				      .wants_undo = true};
	const struct act_cluster cluster = {.node_count = 1, .nodes = &node};
	const struct act_plan plan = {.refusal = ""};
	struct act_output out = {0};
	struct act_state s = {0};

	(void)state;
	act_step(&s, &options,
		 &(struct act_input){.cluster = &cluster,
				     .plan = &plan,
				     .now_ns = BEGIN_NS,
				     .wall_ns = BEGIN_NS},
		 &out);
	assert_int_equal(out.action_count, 1);
	assert_int_equal(out.actions[0].mark.phase, MARK_ROLLED_BACK);
	assert_int_equal(out.actions[0].cordon, ACT_CORDON_ENDS);
	assert_false(out.actions[0].tainted);
	act_output_fini(&out);
	act_state_fini(&s);
}

/* --- rest after a drain ----------------------------------------------------------------------- */

/* The node takes pods again, and the plan has it again. */
static void test_rest(void **state)
{
	static const struct {
		enum mark_phase phase;
		bool asked;
		int64_t age_s;
		const char *says; /* "" : it is claimed */
	} cases[] = {
		{MARK_DRAINED, false, 24 * 3600 - 1,
		 "node n is left alone: it was drained less than 24 hours ago: evenkeel act drain "
		 "drains it again\n"},
		{MARK_DRAINED, false, 24 * 3600, ""},
		{MARK_DRAINED, true, 1, ""},
		{MARK_ROLLED_BACK, true, 599,
		 "node n is left alone: it was rolled back less than 10 minutes ago\n"},
		{MARK_ROLLED_BACK, false, 600, ""},
	};
	static const struct act_options options = {.drain = true, .holder = "h"};
	struct verify_plan_node of = {.name = "n", .uid = "u"};
	const struct verify_plan offer = {.node_count = 1, .nodes = &of};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct act_node node = {
			.name = "n",
			.uid = "u",
			.mark = {.phase = cases[i].phase, .plan = "p", .since_ns = BEGIN_NS},
			.wants_drain = cases[i].asked,
			.selected = true};
		const struct act_cluster cluster = {.node_count = 1, .nodes = &node};
		const struct act_plan plan = {.offer = &offer, .id = "q", .refusal = ""};
		struct act_output out = {0};
		struct act_state s = {0};
		const char *why;

		act_step(&s, &options,
			 &(struct act_input){.cluster = &cluster,
					     .plan = &plan,
					     .now_ns = BEGIN_NS,
					     .wall_ns = BEGIN_NS + cases[i].age_s * NS_PER_SEC},
			 &out);
		assert_string_equal(out.narration.len ? out.narration.data : "", cases[i].says);
		assert_int_equal(out.action_count, !*cases[i].says);
		why = act_why_left(&s, "n");
		assert_int_equal(why != NULL, *cases[i].says != 0);
		if (why)
			assert_non_null(strstr(cases[i].says, why));
		act_output_fini(&out);
		act_state_fini(&s);
	}
}

/* --- rates ------------------------------------------------------------------------------------ */

struct pair {
	const char *zones[2], *owners[2];
	size_t hour_max, in_flight_max;
	bool any_order;
	size_t evicted;
};

/* Drains of one pod each, the first in that phase; how many are evicted at once. */
static size_t evicted_at_once(const struct pair *p, enum mark_phase first)
{
	const struct act_options options = {.pod_wait_ns = 60 * NS_PER_SEC,
					    .in_flight_max = p->in_flight_max,
					    .hour_max = p->hour_max};
	const struct act_pod pods[] = {{"p0", "default", "p0", p->owners[0], false},
				       {"p1", "default", "p1", p->owners[1], false}};
	static const struct act_owner owners[] = {{"o1", 3}, {"o2", 3}};
	struct verify_plan_node of[] = {{.name = "n0", .uid = "u0", .move_count = 1},
					{.name = "n1", .uid = "u1", .move_count = 1}};
	struct verify_move moves[] = {
		{.namespace = "default", .name = "p0", .uid = "p0", .from = "n0"},
		{.namespace = "default", .name = "p1", .uid = "p1", .from = "n1", .node = 1}};
	const struct verify_plan proof = {
		.node_count = 2, .nodes = of, .move_count = 2, .moves = moves};
	const struct act_plan plan = {.proof = &proof, .any_order = p->any_order, .refusal = ""};
	const struct act_node nodes[] = {
		{.name = "n0", .uid = "u0", .pod_count = 1, .pods = &pods[0]},
		{.name = "n1", .uid = "u1", .pod_count = 1, .pods = &pods[1]}};
	const struct act_cluster cluster = {
		.node_count = 2, .nodes = nodes, .owner_count = 2, .owners = owners};
	const struct act_input in = {.cluster = &cluster, .plan = &plan, .now_ns = BEGIN_NS};
	struct act_drain drains[] = {{.node = (char *)"n0",
				      .uid = (char *)"u0",
				      .zone = (char *)p->zones[0],
				      .mark.phase = first},
				     {.node = (char *)"n1",
				      .uid = (char *)"u1",
				      .zone = (char *)p->zones[1],
				      .mark.phase = MARK_EVICTING}};
	struct error why = {""};
	struct act_state s = {.drains = drains, .drain_count = 2};
	struct act_output out = {0};
	size_t count;

	for (size_t i = 0; i < 2; i++) {
		assert_true(act_drain_prove(&drains[i], &plan, BEGIN_NS));
		assert_false(act_drain_follow(&drains[i], &options, &in, &nodes[i], &why));
	}
	for (size_t i = 0; i < 2; i++)
		if (drains[i].mark.phase == MARK_EVICTING)
			act_drain_evict(&s, &drains[i], &options, &in, &nodes[i], &out);
	count = out.action_count;
	for (size_t i = 0; i < 2; i++)
		act_drain_unprove(&drains[i]);
	act_output_fini(&out);
	return count;
}

static void test_pods_at_once(void **state)
{
	static const struct pair cases[] = {
		{{"a", "a"}, {"", ""}, 9, 9, true, 2},
		{{"a", "b"}, {"", ""}, 9, 9, true, 1},
		{{"", ""}, {"", ""}, 9, 9, true, 2},
		{{"a", "a"}, {"", ""}, 1, 9, true, 1},
		{{"a", "a"}, {"", ""}, 2, 9, true, 2},
		{{"a", "a"}, {"", ""}, 9, 1, true, 1},
		{{"a", "a"}, {"", ""}, 9, 2, true, 2},
		{{"a", "a"}, {"", ""}, 9, 9, false, 1},
		{{"a", "a"}, {"o1", "o2"}, 9, 9, true, 2},
		{{"a", "a"}, {"o1", "o1"}, 9, 9, true, 1},
		{{"a", "a"}, {"o1", "o3"}, 9, 9, true, 1}, /* which is not known */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(evicted_at_once(&cases[i], MARK_EVICTING), cases[i].evicted);
}

/* A proven node whose patch to evicting failed holds the nodes after it. */
static void test_nodes_wait_for_a_tainted_one(void **state)
{
	static const struct pair cases[] = {
		{{"a", "a"}, {"", ""}, 9, 9, false, 0},
		{{"a", "a"}, {"", ""}, 9, 9, true, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(evicted_at_once(&cases[i], MARK_TAINTED), cases[i].evicted);
}

/* --- an eviction ------------------------------------------------------------------------------ */

/* Seconds until the pod is tried again. */
static void test_waits_after_refusals(void **state)
{
	static const int budget_s[] = {2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60};
	struct eviction v = {.namespace = (char *)"default", .name = (char *)"p"};
	int64_t now_ns = BEGIN_NS, first_ns = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(budget_s) / sizeof(budget_s[0]); i++) {
		int64_t wait_ns = budget_s[i] * NS_PER_SEC;

		assert_true(eviction_is_due(&v, now_ns));
		eviction_ask(&v, now_ns);
		assert_false(eviction_is_due(&v, now_ns));
		eviction_answer(&v, ACT_NOT_YET, "", ++now_ns);
		first_ns = first_ns ? first_ns : now_ns;
		assert_true(v.refused_ns == first_ns);
		assert_false(eviction_is_due(&v, now_ns + wait_ns - 1));
		now_ns += wait_ns;
	}
	eviction_ask(&v, now_ns);
	eviction_answer(&v, ACT_UNKNOWN, "", now_ns);
	assert_false(eviction_is_due(&v, now_ns + 15 * NS_PER_SEC - 1));
	assert_true(eviction_is_due(&v, now_ns + 15 * NS_PER_SEC));
	eviction_answer(&v, ACT_NEVER, "no", now_ns);
	assert_false(eviction_is_due(&v, now_ns + 3600 * NS_PER_SEC));
	assert_string_equal(v.failure.text, "pod default/p cannot be evicted: no");
}

static void test_what_is_seen_of_an_eviction(void **state)
{
	static const struct {
		bool asked, gone; /* before */
		int64_t evicted_s; /* -1: it was not */
		bool there, ends; /* now */
		int64_t then_s; /* evicted, after it; -1: it is not */
		int64_t refused_s; /* -1: it is not */
	} cases[] = {
		{false, false, -1, true, false, -1, -1},
		{false, false, -1, true, true, 100, -1}, /* by another */
		{false, false, -1, false, false, -1, -1}, /* it was gone before */
		{true, false, -1, false, false, 100, -1}, /* the answer was lost */
		{true, true, -1, false, false, -1, -1},
		{true, false, 85, true, false, 85, -1},
		{true, false, 84, true, false, -1, 84}, /* it stays */
		{true, false, 50, true, true, 50, -1},
		{true, false, 50, false, false, 50, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct eviction v = {.asked = cases[i].asked, .gone = cases[i].gone};

		if (cases[i].evicted_s >= 0)
			v.evicted_ns = cases[i].evicted_s * NS_PER_SEC;
		eviction_see(&v, cases[i].there, cases[i].ends, 100 * NS_PER_SEC);
		assert_true(v.evicted_ns ==
			    (cases[i].then_s < 0 ? 0 : cases[i].then_s * NS_PER_SEC));
		assert_true(v.refused_ns ==
			    (cases[i].refused_s < 0 ? 0 : cases[i].refused_s * NS_PER_SEC));
		assert_int_equal(v.gone, !cases[i].there);
	}
}

static void test_rate(void **state)
{
	struct act_rate r = {.count = 0};

	(void)state;
	act_rate_add(&r, 1);
	act_rate_add(&r, 5);
	assert_int_equal(act_rate_left(&r, 3, 10, 5), 1);
	assert_int_equal(act_rate_left(&r, 1, 10, 5), 0);
	assert_int_equal(act_rate_left(&r, 3, 10, 11), 2);
	assert_int_equal(act_rate_left(&r, 3, 10, 15), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pod_in_no_move),
		cmocka_unit_test(test_fewer_replicas),
		cmocka_unit_test(test_proof_expires),
		cmocka_unit_test(test_pod_that_stays),
		cmocka_unit_test(test_phases_end),
		cmocka_unit_test(test_unreadable_annotation),
		cmocka_unit_test(test_undo),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_pods_at_once),
		cmocka_unit_test(test_nodes_wait_for_a_tainted_one),
		cmocka_unit_test(test_waits_after_refusals),
		cmocka_unit_test(test_what_is_seen_of_an_eviction),
		cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
