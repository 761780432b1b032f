/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that reclaim room, step by step in virtual time: a step is a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/actuator/reclaim.h"
#include "shared/clock.h"
#include "shared/mem.h"

enum { PODS = 40, PLANS = 4 };

/* Of a plan: the pod is one of namespace b, the victims are of namespace a or kube-system. */
struct plan {
	const char *pod;
	size_t first, count; /* victims */
};

static struct {
	struct reclaim_state state;
	struct act_options act;
	struct reclaim_options options;
	struct reclaim_input input;
	struct plan plans[PLANS], listed_claims[PLANS];
	size_t plan_count, claim_count;
	bool system; /* victim a1 is of kube-system */
	struct reclaim_seen seen[PODS];
	char uids[PODS][8];
	struct buf told; /* "claim b1", "evict a0", and the narration since the last expect() */
	/* How the API answers. */
	enum act_result claim, evict;
	const char *answer;
	const char *never; /* name of a victim that cannot be evicted; NULL: none */
	int claims, evictions;
} w;

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.options = (struct reclaim_options){.act = &w.act,
					     .evictions_max = 10,
					     .wait_ns = 60 * NS_PER_SEC};
	w.input.now_ns = 1000 * NS_PER_SEC;
	w.input.seen = w.seen;
	w.answer = "";
	for (int i = 0; i < PODS; i++)
		snprintf(w.uids[i], sizeof(w.uids[i]), "a%d", i);
	buf_init(&w.told);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	reclaim_state_fini(&w.state);
	buf_fini(&w.told);
	return 0;
}

/* The list has a plan for the pod with so many victims. */
static void offer(const char *pod, size_t first, size_t count)
{
	w.plans[w.plan_count++] = (struct plan){pod, first, count};
}

static struct reclaim_rescues build(const struct plan *plans, size_t count, const char *id)
{
	struct reclaim_rescues out = {mem_zalloc(count + 1, sizeof(*out.of)), count};

	for (size_t i = 0; i < count; i++) {
		out.of[i] = (struct reclaim_rescue){
			.plan = mem_strdup(id),
			.node = mem_strdup("n1"),
			.namespace = mem_strdup("b"),
			.name = mem_strdup(plans[i].pod),
			.uid = mem_strdup(plans[i].pod),
			.victim_count = plans[i].count,
			.victims = mem_zalloc(plans[i].count + 1, sizeof(*out.of[i].victims)),
		};
		for (size_t k = 0; k < plans[i].count; k++) {
			const char *uid = w.uids[plans[i].first + k];
			bool system = w.system && strcmp(uid, "a1") == 0;

			eviction_init(&out.of[i].victims[k].pod, system ? "kube-system" : "a", uid,
				      uid);
			out.of[i].victims[k].grace_ns = 30 * NS_PER_SEC;
		}
	}
	return out;
}

static struct reclaim_seen *see(const char *uid)
{
	size_t i = 0;

	while (i < w.input.seen_count && strcmp(w.seen[i].uid, uid) != 0)
		i++;
	if (i == w.input.seen_count)
		w.seen[w.input.seen_count++] =
			(struct reclaim_seen){.uid = uid, .node = "", .why = ""};
	return &w.seen[i];
}

static void carry_out(const struct reclaim_action *a)
{
	const struct reclaim_rescue *r = &w.state.rescues.of[a->rescue];
	const struct eviction *v = a->claims ? NULL : &r->victims[a->victim].pod;
	bool never = v && w.never && strcmp(v->name, w.never) == 0;
	enum act_result result = a->claims ? w.claim : never ? ACT_NEVER : w.evict;

	buf_printf(&w.told, "%s %s\n", a->claims ? "claim" : "evict", v ? v->name : r->name);
	w.claims += a->claims;
	w.evictions += !a->claims;
	if (v && result == ACT_DONE)
		see(v->uid)->ending = true;
	act_reclaim_result(&w.state, a, result, w.answer, w.input.now_ns);
}

static void step(int seconds)
{
	struct reclaim_rescues plans = build(w.plans, w.plan_count, "p");
	struct reclaim_rescues claims = build(w.listed_claims, w.claim_count, RECLAIM_TAKEN_OVER);
	struct reclaim_output out = {0};

	w.input.now_ns += seconds * NS_PER_SEC;
	w.input.plans = &plans;
	w.input.claims = &claims;
	act_reclaim_step(&w.state, &w.options, &w.input, &out);
	if (out.narration.len)
		buf_add_str(&w.told, out.narration.data);
	for (size_t i = 0; i < out.action_count; i++)
		carry_out(&out.actions[i]);
	free(out.actions);
	buf_fini(&out.narration);
	reclaim_rescues_fini(&plans);
	reclaim_rescues_fini(&claims);
}

/* A step a second; what is told stays. */
static void pass(int seconds)
{
	while (seconds-- > 0)
		step(1);
}

static void expect(const char *told)
{
	assert_string_equal(w.told.len ? w.told.data : "", told);
	buf_clear(&w.told);
}

static void test_a_pod_gets_its_room(void **state)
{
	(void)state;
	offer("b1", 0, 2);
	step(0);
	expect("pod b/b1 gets room on n1: 2 pods are to go\nclaim b1\n");
	step(1);
	expect("pod a/a0 is evicted for b/b1\npod a/a1 is evicted for b/b1\nevict a0\nevict a1\n");
	w.plan_count = 0;
	see("a0")->ending = true;
	pass(8);
	expect("");
	step(1);
	expect("claim b1\n"); /* again, after 10 s */
	see("a0")->gone = see("a1")->gone = true;
	pass(5);
	expect("");
	see("b1")->node = "n1";
	step(1);
	expect("pod b/b1 is bound to n1: 2 pods were evicted for it\n");
	assert_int_equal(w.state.rescues.count, 0);
}

/* Nobody goes before the room is claimed, or after the claim may have ended. */
static void test_no_eviction_without_a_claim(void **state)
{
	(void)state;
	offer("b1", 0, 1);
	w.claim = ACT_UNKNOWN;
	step(0);
	pass(5);
	assert_int_equal(w.claims, 6);
	assert_int_equal(w.evictions, 0);
	w.claim = ACT_DONE;
	w.evict = ACT_NOT_YET;
	pass(2);
	assert_int_equal(w.evictions, 1);
	pass(7);
	w.claim = ACT_UNKNOWN;
	pass(10);
	w.evictions = 0;
	pass(20);
	assert_int_equal(w.evictions, 0);
	w.claim = ACT_DONE;
	pass(2);
	assert_int_equal(w.evictions, 1);
}

/* Nobody is evicted in the step whose renewal is refused. */
static void test_a_refused_renewal_ends_the_plan(void **state)
{
	(void)state;
	offer("b1", 0, 2);
	w.evict = ACT_NOT_YET;
	step(0);
	pass(9);
	w.claim = ACT_GONE;
	w.evict = ACT_DONE;
	w.evictions = 0;
	w.answer = "the pod needs no victims now";
	for (size_t i = 0; i < w.state.rescues.of[0].victim_count; i++)
		w.state.rescues.of[0].victims[i].pod.retry_ns = 0;
	buf_clear(&w.told);
	pass(2);
	expect("claim b1\npod b/b1 is given up: its room cannot be claimed: the pod needs no "
	       "victims now\n");
}

/* A claim names its plan as long as a victim is left to be evicted. */
static void test_a_claim_whose_victims_were_evicted(void **state)
{
	(void)state;
	w.options.evictions_max = 1;
	offer("b1", 0, 2);
	step(0);
	pass(51);
	assert_int_equal(w.evictions, 1);
	assert_string_equal(w.state.rescues.of[0].plan, "p");
	pass(21);
	assert_int_equal(w.evictions, 2);
	assert_string_equal(w.state.rescues.of[0].plan, "taken-over");
}

static void test_a_plan_that_is_outdated_is_dropped(void **state)
{
	(void)state;
	offer("b1", 0, 1);
	w.claim = ACT_GONE;
	w.answer = "the plan is another one";
	step(0);
	buf_clear(&w.told);
	step(1);
	expect("pod b/b1 is given up: its room cannot be claimed: the plan is another one\n");
	assert_int_equal(w.evictions, 0);
	w.claim = ACT_DONE;
	w.plans[0].first = 3;
	step(4);
	expect("");
	step(1);
	expect("pod b/b1 gets room on n1: 1 pods are to go\nclaim b1\n");
}

/* The plan for the other victims is carried out; a rescue without any is left alone. */
static void test_an_outdated_plan_with_victims_left(void **state)
{
	(void)state;
	for (size_t left = 0; left <= 1; left++) {
		offer("b1", 0, 1 + left);
		w.evict = ACT_NOT_YET;
		step(0);
		step(1);
		see("a0")->gone = true;
		w.claim = ACT_GONE;
		w.answer = "the plan is another one";
		w.plan_count = 0;
		pass(9);
		buf_clear(&w.told);
		step(1);
		expect("pod b/b1 is given up: its room cannot be claimed: the plan is another "
		       "one\n");
		w.claim = ACT_DONE;
		offer("b1", 1, 1);
		pass(4);
		expect("");
		step(1);
		expect(left ? "pod b/b1 gets room on n1: 1 pods are to go\nclaim b1\n" : "");
		teardown(NULL);
		setup(NULL);
	}
}

/* Of 5 victims two go in a minute; a second plan waits for the first. */
static void test_evictions_have_a_rate(void **state)
{
	(void)state;
	w.options.evictions_max = 2;
	offer("b1", 0, 5);
	offer("b2", 5, 1);
	step(0);
	pass(59);
	assert_int_equal(w.evictions, 2);
	pass(3);
	assert_int_equal(w.evictions, 4);
	assert_int_equal(w.state.rescues.count, 1);
	pass(57);
	assert_int_equal(w.evictions, 4);
	pass(3);
	assert_int_equal(w.evictions, 6);
	assert_int_equal(w.state.rescues.count, 2);
	assert_null(strstr(w.told.data, "is given up"));
}

/* 429: more and more rarely, and not for ever. */
static void test_budgets_are_waited_for(void **state)
{
	(void)state;
	offer("b1", 0, 1);
	w.evict = ACT_NOT_YET;
	step(0);
	pass(60);
	assert_in_range(w.evictions, 4, 6);
	buf_clear(&w.told);
	pass(1);
	expect("pod b/b1 is given up: its victim a/a0 may not be evicted: its disruption budget "
	       "allows no eviction\n");
	pass(598);
	expect("");
	pass(2);
	assert_non_null(strstr(w.told.data, "pod b/b1 gets room"));
}

static void test_a_budget_that_allows_later_is_used(void **state)
{
	(void)state;
	offer("b1", 0, 1);
	w.evict = ACT_NOT_YET;
	step(0);
	pass(10);
	assert_true(w.evictions >= 2);
	w.evictions = 0;
	w.evict = ACT_DONE;
	pass(20);
	assert_int_equal(w.evictions, 1);
	assert_int_equal(w.state.rescues.of[0].evicted, 1);
}

static void test_what_cannot_be_evicted_is_given_up(void **state)
{
	(void)state;
	offer("b1", 0, 2);
	w.evict = ACT_NEVER;
	w.answer = "two budgets";
	step(0);
	step(1);
	buf_clear(&w.told);
	step(1);
	expect("pod b/b1 is given up: pod a/a1 cannot be evicted: two budgets\n");
}

static void test_a_victim_evicted_later_does_not_hide_one_that_cannot_be(void **state)
{
	(void)state;
	offer("b1", 0, 2);
	w.never = "a0";
	w.answer = "two budgets";
	step(0);
	step(1);
	buf_clear(&w.told);
	step(1);
	expect("pod b/b1 is given up: pod a/a0 cannot be evicted: two budgets\n");
}

/* Its grace is waited for, and then the wait. */
static void test_a_victim_that_does_not_end(void **state)
{
	(void)state;
	offer("b1", 0, 1);
	step(0);
	step(1);
	w.plan_count = 0;
	see("a0")->ending = true;
	pass(90);
	assert_int_equal(w.state.rescues.count, 1);
	buf_clear(&w.told);
	step(1);
	expect("pod b/b1 is given up: its victim a/a0 does not end\n");
}

static void test_a_pod_that_is_not_bound(void **state)
{
	(void)state;
	offer("b1", 0, 1);
	step(0);
	step(1);
	w.plan_count = 0;
	see("a0")->gone = true;
	see("b1")->why = "0/1 nodes are available";
	pass(61);
	buf_clear(&w.told);
	step(1);
	expect("pod b/b1 is given up: its victims are gone and it is not bound: 0/1 nodes are "
	       "available\n");
	/* The claim that the aggregator still lists is not taken over. */
	w.listed_claims[w.claim_count++] = (struct plan){"b1", 0, 0};
	step(1);
	expect("");
}

static void test_a_pod_that_is_gone_costs_nobody(void **state)
{
	(void)state;
	offer("b1", 0, 1);
	step(0);
	buf_clear(&w.told);
	w.plan_count = 0;
	see("b1")->gone = true;
	step(1);
	expect("pod b/b1 is gone: no more pods are evicted for it\n");
	assert_int_equal(w.evictions, 0);
}

/* Of victims that were evicted. */
static void test_a_pause_keeps_the_claim(void **state)
{
	(void)state;
	w.options.evictions_max = 1;
	offer("b1", 0, 2);
	step(0);
	step(1);
	w.input.paused = true;
	pass(299);
	assert_int_equal(w.evictions, 1);
	assert_int_equal(w.claims, 31);
	w.input.paused = false;
	pass(2);
	assert_int_equal(w.evictions, 2);
}

/* A plan that evicted nobody is planned anew, when its claim has ended. */
static void test_a_pause_drops_the_plan(void **state)
{
	(void)state;
	offer("b1", 0, 1);
	step(0);
	buf_clear(&w.told);
	w.input.paused = true;
	w.listed_claims[w.claim_count++] = (struct plan){"b1", 0, 0};
	pass(45);
	expect("the plan for pod b/b1 is dropped: no pod was evicted before the pause\n");
	w.claim_count = 0;
	w.input.paused = false;
	w.plans[0].first = 1;
	pass(17);
	expect("pod b/b1 gets room on n1: 1 pods are to go\nclaim b1\npod a/a1 is evicted for "
	       "b/b1\nevict a1\n");
}

static void test_nothing_begins_in_a_pause(void **state)
{
	(void)state;
	offer("b1", 0, 1);
	w.input.paused = true;
	pass(5);
	expect("");
}

/* Its victims are gone, or are planned anew when the claim has ended. */
static void test_a_successor_keeps_the_room(void **state)
{
	(void)state;
	w.listed_claims[w.claim_count++] = (struct plan){"b1", 0, 0};
	pass(11);
	expect("the room of pod b/b1 on n1 is kept, which another holder claimed\nclaim b1\n");
	w.claim_count = 0;
	see("b1")->node = "n1";
	step(1);
	expect("pod b/b1 is bound to n1: 0 pods were evicted for it\n");
}

static void test_a_dry_run_waits_for_nothing(void **state)
{
	(void)state;
	w.options.dry_run = true;
	offer("b1", 0, 2);
	pass(300);
	assert_int_equal(w.claims, 1);
	assert_int_equal(w.evictions, 2);
	assert_non_null(strstr(w.told.data, "pod b/b1 is given up: this is a dry run\n"));
}

static void test_namespaces_are_left_alone(void **state)
{
	static const char *const allowed[] = {"c"};

	(void)state;
	w.system = true;
	offer("b1", 0, 2);
	pass(60);
	expect("pod b/b1 is left alone: its victim kube-system/a1 is of a namespace that evenkeel "
	       "leaves alone\n");
	w.act.namespaces = allowed;
	w.act.namespace_count = 1;
	pass(600);
	expect("pod b/b1 is left alone: its victim a/a0 is of a namespace that evenkeel leaves "
	       "alone\n");
	assert_int_equal(w.claims, 0);
}

/* The API was away: nothing was waited for. */
static void test_a_gap_is_no_wait(void **state)
{
	(void)state;
	offer("b1", 0, 1);
	step(0);
	step(1);
	see("a0")->gone = true;
	step(300);
	assert_int_equal(w.state.rescues.count, 1);
}

/* Any answers: no pod is evicted again that was, no more go in a minute than may, and all ends. */
static void test_any_answers(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 300; seed++) {
		int evicted[PODS] = {0}, times[4096], count = 0;

		setup(NULL);
		w.options.evictions_max = 3;
		offer("b1", 0, (size_t)(rand_r(&seed) % 6));
		for (int second = 0; second < 700; second++) {
			size_t before = w.told.len;
			char *at;

			w.claim = (enum act_result)(rand_r(&seed) % 5);
			w.evict = (enum act_result)(rand_r(&seed) % 5);
			if (rand_r(&seed) % 3)
				w.claim = ACT_DONE;
			for (int i = 0; i < 6; i++)
				if (evicted[i] && !see(w.uids[i])->gone)
					see(w.uids[i])->gone = rand_r(&seed) % 4 == 0;
			step(1);
			for (at = w.told.data ? w.told.data + before : NULL;
			     at && (at = strstr(at, "evict a")); at++) {
				int i = (int)strtol(at + strlen("evict a"), NULL, 10);

				assert_false(evicted[i]);
				times[count++] = second;
				assert_true(count <= 3 || second - times[count - 4] >= 60);
				evicted[i] = w.evict == ACT_DONE;
			}
		}
		assert_true(w.state.rescues.count <= 1);
		teardown(NULL);
	}
}

/* --- the list --------------------------------------------------------------------------------- */

#define ITEM(more)                                                                                 \
	"{\"plan\":\"p\",\"namespace\":\"b\",\"name\":\"b1\",\"uid\":\"u\",\"node\":\"n1\"" more "}"
#define SINCE(second) ",\"unschedulable\":\"2026-01-01T00:00:" second "Z\""
#define VICTIM	      "{\"namespace\":\"a\",\"name\":\"a1\",\"uid\":\"v\",\"graceSeconds\":30}"

static void test_plans_are_read(void **state)
{
	static const struct {
		const char *item;
		size_t plans, victims;
	} cases[] = {
		{ITEM(SINCE("05")), 1, 0},
		{ITEM(SINCE("05") ",\"victims\":[" VICTIM "," VICTIM "]"), 1, 2},
		{ITEM(SINCE("05") ",\"victims\":[" VICTIM ",{\"name\":\"a2\"}]"), 0, 0},
		{ITEM(SINCE("05") ",\"victims\":7"), 1, 0},
		{ITEM(SINCE("06")), 0, 0}, /* too soon */
		{ITEM(SINCE("05") ",\"nominatedNode\":\"n2\""), 0, 0},
		{ITEM(""), 0, 0},
		{"{\"namespace\":\"b\",\"name\":\"b1\"" SINCE("00") "}", 0, 0},
		{"7", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = mem_printf("{\"time\":\"2026-01-01T00:00:10Z\",\"items\":[%s],"
					"\"claims\":[" ITEM("") ",{}]}",
					cases[i].item);
		cJSON *list = cJSON_Parse(text);
		struct reclaim_rescues plans = reclaim_read_plans(list, "items");

		if (plans.count != cases[i].plans ||
		    (plans.count && plans.of[0].victim_count != cases[i].victims))
			fail_msg("%s: %zu plans", cases[i].item, plans.count);
		if (cases[i].victims)
			assert_true(plans.of[0].victims[1].grace_ns == 30 * NS_PER_SEC);
		reclaim_rescues_fini(&plans);
		plans = reclaim_read_plans(list, "claims");
		assert_int_equal(plans.count, 1);
		reclaim_rescues_fini(&plans);
		cJSON_Delete(list);
		free(text);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_pod_gets_its_room),
		T(test_no_eviction_without_a_claim),
		T(test_a_refused_renewal_ends_the_plan),
		T(test_a_claim_whose_victims_were_evicted),
		T(test_a_plan_that_is_outdated_is_dropped),
		T(test_an_outdated_plan_with_victims_left),
		T(test_evictions_have_a_rate),
		T(test_budgets_are_waited_for),
		T(test_a_budget_that_allows_later_is_used),
		T(test_what_cannot_be_evicted_is_given_up),
		T(test_a_victim_evicted_later_does_not_hide_one_that_cannot_be),
		T(test_a_victim_that_does_not_end),
		T(test_a_pod_that_is_not_bound),
		T(test_a_pod_that_is_gone_costs_nobody),
		T(test_a_pause_keeps_the_claim),
		T(test_a_pause_drops_the_plan),
		T(test_nothing_begins_in_a_pause),
		T(test_a_successor_keeps_the_room),
		T(test_a_dry_run_waits_for_nothing),
		T(test_namespaces_are_left_alone),
		T(test_a_gap_is_no_wait),
		cmocka_unit_test(test_any_answers),
		cmocka_unit_test(test_plans_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
