/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories of quotas that share a cluster: which resources protect a borrower, what counts while it
 * is going, and what is advised.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/mem.h"
#include "tests/preempt_fixture.h"
#include "tests/view_fixture.h"

static struct preempt_fixture f;
static struct preempt_plan plan;
static struct preempt_ask question; /* beside the pod and the time */

static int setup(void **unused)
{
	(void)unused;
	preempt_fixture_init(&f, QUOTA_CORRECTED);
	plan = (struct preempt_plan){0};
	question = (struct preempt_ask){0};
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	preempt_plan_fini(&plan);
	preempt_fixture_fini(&f);
	return 0;
}

static void put_node(const char *name, const char *allocatable)
{
	char *json = mem_printf("{'metadata':{'name':'%s'},'status':{'allocatable':{%s,"
				"'pods':'20'}}}",
				name, allocatable);

	place_fixture_put(&f.cluster, OBJECT_NODE, json);
	free(json);
}

/* The younger the higher its number. more: "" or a comma and further members. */
static void put_pod_as(const char *namespace, int number, const char *node, const char *request,
		       const char *more)
{
	char *text = mem_printf("{'pod':'%s%d','namespace':'%s','uid':'%s%d','node':'%s',"
				"'start':%d,'request':%s%s}",
				namespace, number, namespace, namespace, number, node, number,
				request, more);
	cJSON *flat = preempt_fixture_parse(text), *pod = preempt_fixture_pod(flat);

	preempt_fixture_put(&f, OBJECT_POD, pod);
	cJSON_Delete(flat);
	cJSON_Delete(pod);
	free(text);
}

static void put_pod(const char *namespace, int number, const char *node, const char *request)
{
	put_pod_as(namespace, number, node, request, "");
}

/* "NODE VICTIM VICTIM", "-" without a node. */
static void expect(const char *namespace, const char *request, enum preempt_verdict verdict,
		   const char *text)
{
	char *flat_text = mem_printf("{'pod':'self','namespace':'%s','uid':'self','priority':0,"
				     "'request':%s}",
				     namespace, request);
	cJSON *flat = preempt_fixture_parse(flat_text);
	struct kube_pod *pod = preempt_fixture_record(flat);
	struct preempt_ask ask = question;
	struct buf b = BUF_INIT;

	preempt_plan_fini(&plan);
	plan = (struct preempt_plan){0};
	ask.pod = pod;
	ask.now_ns = VIEW_FIXTURE_NOW_NS;
	preempt_fixture_build(&f, true);
	preempt_make_plan(f.index, f.place, f.book, &f.options, &ask, &plan);
	buf_printf(&b, "%s", plan.chosen.node ? plan.chosen.node : "-");
	for (size_t i = 0; i < plan.chosen.victim_count; i++)
		buf_printf(&b, " %s", plan.chosen.victims[i].pod->object.name);
	if (plan.verdict != verdict || strcmp(b.data, text) != 0)
		fail_msg("%s: %s\n%s%s", preempt_verdict_name(plan.verdict), b.data,
			 plan.narration.data, plan.unblock.len ? plan.unblock.data : "");
	buf_fini(&b);
	object_drop(&pod->object);
	cJSON_Delete(flat);
	free(flat_text);
}

static void no_quota_is_advised_for_a_pod_larger_than_any_node(void **unused)
{
	(void)unused;
	put_node("n", "'cpu':'4','memory':'8Gi'");
	preempt_fixture_quota(&f, "b", "{'cpu':8000}", "{'cpu':8000}");
	put_pod("a", 1, "n", "{'cpu':1000}");
	expect("b", "{'cpu':5000}", PREEMPT_IMPOSSIBLE, "-");
	assert_string_equal(plan.unblock.data, "It asks for more than any node has, were it empty: "
					       "add a larger node, or ask for less.\n");
}

/* It borrows CPU, and has memory to spare below its min, which nobody asks it for. */
static void what_is_not_contested_does_not_protect(void **unused)
{
	(void)unused;
	put_node("n", "'cpu':'6','memory':'64Gi'");
	preempt_fixture_quota(&f, "a", "{'cpu':2000,'memory':17179869184}",
			      "{'cpu':8000,'memory':34359738368}");
	preempt_fixture_quota(&f, "b", "{'cpu':4000,'memory':17179869184}",
			      "{'cpu':8000,'memory':34359738368}");
	for (int i = 1; i <= 6; i++)
		put_pod("a", i, "n", "{'cpu':1000,'memory':1073741824}");
	expect("b", "{'cpu':2000,'memory':1073741824}", PREEMPT_VICTIMS, "n a6 a5");
	/* Not beyond its min of what is contested. */
	expect("b", "{'cpu':4000,'memory':1073741824}", PREEMPT_VICTIMS, "n a6 a5 a4 a3");
	preempt_fixture_quota(&f, "b", "{'cpu':5000,'memory':17179869184}",
			      "{'cpu':8000,'memory':34359738368}");
	expect("b", "{'cpu':5000,'memory':1073741824}", PREEMPT_IMPOSSIBLE, "-");
}

/* Both resources are short: who borrows the one pays only with what leaves it its min of the other. */
static void every_contested_resource_protects(void **unused)
{
	(void)unused;
	put_node("n", "'cpu':'4','memory':'8Gi','example.com/gpu':'4'");
	preempt_fixture_quota(&f, "a", "{'cpu':1000,'memory':6442450944,'example.com/gpu':2}",
			      "{'cpu':8000}");
	preempt_fixture_quota(&f, "b", "{'cpu':3000,'memory':2147483648,'example.com/gpu':2}",
			      "{'cpu':8000}");
	/* a borrows 3 CPUs and 2 GiB, and has its 2 GPUs. */
	put_pod("a", 1, "n", "{'cpu':1000,'memory':4294967296,'example.com/gpu':1}");
	put_pod("a", 2, "n", "{'cpu':1000,'memory':2147483648,'example.com/gpu':1}");
	put_pod("a", 3, "n", "{'cpu':2000,'memory':2147483648}");
	expect("b", "{'cpu':1000,'memory':1073741824}", PREEMPT_VICTIMS, "n a3");
	/* The GPUs are free, and so do not protect a2. */
	expect("b", "{'cpu':1000,'example.com/gpu':1}", PREEMPT_VICTIMS, "n a3");
	/* With a2, too, a would have 4 of its 6 GiB. */
	expect("b", "{'cpu':3000,'memory':2147483648,'example.com/gpu':2}", PREEMPT_IMPOSSIBLE,
	       "-");
}

/* Either would do; the younger one is guaranteed what the older one borrows. */
static void who_loses_least_of_a_guarantee_pays(void **unused)
{
	(void)unused;
	put_node("n", "'cpu':'4','memory':'64Gi'");
	preempt_fixture_quota(&f, "a", "{'cpu':1000,'memory':4294967296}", "{'cpu':8000}");
	preempt_fixture_quota(&f, "b", "{'cpu':3000}", "{'cpu':8000}");
	put_pod("a", 1, "n", "{'cpu':2000,'memory':1048576}");
	put_pod("a", 2, "n", "{'cpu':2000,'memory':4294967296}");
	expect("b", "{'cpu':1000}", PREEMPT_VICTIMS, "n a1");
}

/* Memory is lacked on m and CPU on n: on each the other resource does not protect a. */
static void contested_is_what_the_node_lacks(void **unused)
{
	(void)unused;
	put_node("m", "'cpu':'32','memory':'8'");
	put_node("n", "'cpu':'4','memory':'64'");
	preempt_fixture_quota(&f, "a", "{'cpu':20000,'memory':4}", "{}");
	preempt_fixture_quota(&f, "b", "{'cpu':16000,'memory':80}", "{}");
	for (int i = 1; i <= 4; i++)
		put_pod("a", i, "m", "{'cpu':1000,'memory':2}");
	for (int i = 5; i <= 8; i++)
		put_pod("a", i, "n", "{'cpu':1000,'memory':2}");
	expect("b", "{'cpu':1000,'memory':2}", PREEMPT_VICTIMS, "m a4");
}

/* Five of six CPUs may go, as one is guaranteed; of memory a is below its min throughout. */
static void the_min_of_what_is_contested_is_kept(void **unused)
{
	(void)unused;
	put_node("n", "'cpu':'6','memory':'64'");
	preempt_fixture_quota(&f, "a", "{'cpu':1000,'memory':40}", "{}");
	preempt_fixture_quota(&f, "b", "{'cpu':6000,'memory':20}", "{}");
	for (int i = 1; i <= 6; i++)
		put_pod("a", i, "n", "{'cpu':1000,'memory':2}");
	expect("b", "{'cpu':5000,'memory':2}", PREEMPT_VICTIMS, "n a6 a5 a4 a3 a2");
	expect("b", "{'cpu':6000,'memory':2}", PREEMPT_IMPOSSIBLE, "-");
}

#define GOING ",'terminating':true"

/* The fullest node, unless a nominated pod has its room. */
static void a_pod_with_room_needs_no_victims(void **unused)
{
	(void)unused;
	put_node("m", "'cpu':'4'");
	put_node("n", "'cpu':'4'");
	preempt_fixture_quota(&f, "a", "{'cpu':2000}", "{}");
	preempt_fixture_quota(&f, "b", "{'cpu':4000}", "{}");
	put_pod("b", 1, "n", "{'cpu':3000}");
	expect("a", "{'cpu':1000}", PREEMPT_NOT_NEEDED, "n");
	put_pod_as("a", 1, "", "{'cpu':1000}", ",'nominated_node':'n'");
	expect("a", "{'cpu':1000}", PREEMPT_NOT_NEEDED, "m");
}

/* With ten that are going a uses all of its min: their room is not b's to pay once more. */
static void pods_that_are_going_count_for_their_quota(void **unused)
{
	(void)unused;
	put_node("n", "'cpu':'24'");
	preempt_fixture_quota(&f, "a", "{'cpu':12000}", "{}");
	preempt_fixture_quota(&f, "b", "{'cpu':12000}", "{}");
	for (int i = 1; i <= 10; i++)
		put_pod_as("a", i, "n", "{'cpu':1000}", GOING);
	put_pod("a", 11, "n", "{'cpu':2000}");
	for (int i = 1; i <= 6; i++)
		put_pod("b", i, "n", "{'cpu':2000}");
	expect("a", "{'cpu':1000}", PREEMPT_WAIT, "n");
	expect("a", "{'cpu':12000}", PREEMPT_IMPOSSIBLE, "-");
}

/* An extender offers n: until a1 is gone, a may have one CPU more. */
static void pods_that_are_going_count_for_offers(void **unused)
{
	const struct preempt_offer offer = {.node = "n"};
	cJSON *flat = preempt_fixture_parse("{'pod':'self','namespace':'a','uid':'self',"
					    "'priority':0,'request':{'cpu':2000}}");
	struct kube_pod *pod = preempt_fixture_record(flat);
	struct preempt_answer answer;

	(void)unused;
	put_node("m", "'cpu':'4'");
	put_node("n", "'cpu':'4'");
	preempt_fixture_quota(&f, "a", "{'cpu':6000}", "{'cpu':5000}");
	preempt_fixture_quota(&f, "b", "{'cpu':0}", "{}");
	put_pod_as("a", 1, "m", "{'cpu':4000}", GOING);
	for (int i = 1; i <= 4; i++)
		put_pod("b", i, "n", "{'cpu':1000}");
	question.pod = pod;
	question.now_ns = VIEW_FIXTURE_NOW_NS;
	preempt_fixture_build(&f, true);
	preempt_for_extender(f.index, f.place, f.book, &f.options, &question, &offer, 1, &answer);
	assert_int_equal(answer.count, 0);
	preempt_answer_fini(&answer);
	object_drop(&pod->object);
	cJSON_Delete(flat);
}

/*
 * Two of a's six go, and b asks for four: two more suffice, and leave a its min. If those that go
 * were still counted for a, four more would go, and a would end with nothing.
 */
static void pods_of_others_that_are_going_are_not_paid_for_twice(void **unused)
{
	(void)unused;
	put_node("n", "'cpu':'6'");
	preempt_fixture_quota(&f, "a", "{'cpu':2000}", "{}");
	preempt_fixture_quota(&f, "b", "{'cpu':4000}", "{}");
	for (int i = 1; i <= 6; i++)
		put_pod_as("a", i, "n", "{'cpu':1000}", i > 4 ? GOING : "");
	expect("b", "{'cpu':2000}", PREEMPT_WAIT, "n");
	expect("b", "{'cpu':4000}", PREEMPT_VICTIMS, "n a4 a3");
}

/* Node m has room when a1 is gone, where the pod must not go. Until then a borrows for it. */
static void the_neighbour_pays_when_they_are_gone(void **unused)
{
	static const bool only_n[] = {false, true};

	(void)unused;
	put_node("m", "'cpu':'4'");
	put_node("n", "'cpu':'8'");
	preempt_fixture_quota(&f, "a", "{'cpu':4000}", "{}");
	preempt_fixture_quota(&f, "b", "{'cpu':6000}", "{}");
	put_pod_as("a", 1, "m", "{'cpu':4000}", GOING);
	for (int i = 1; i <= 8; i++)
		put_pod("b", i, "n", "{'cpu':1000}");
	question.allowed = only_n;
	expect("a", "{'cpu':1000}", PREEMPT_IMPOSSIBLE, "-");
	preempt_plan_fini(&plan);
	question.exchanged = (const char *const[]){"a1"};
	question.exchanged_count = 1;
	expect("a", "{'cpu':1000}", PREEMPT_VICTIMS, "n b8");
}

/* m has memory when its own pod is gone, and the quotas allow the CPUs when 29 others are gone, too. */
static void many_pods_of_other_nodes_pay(void **unused)
{
	(void)unused;
	put_node("m", "'cpu':'8','memory':'4'");
	put_node("n", "'cpu':'4'");
	put_node("o", "'cpu':'4'");
	preempt_fixture_quota(&f, "a", "{'cpu':1000}", "{}");
	preempt_fixture_quota(&f, "b", "{'cpu':3000}", "{}");
	put_pod("a", 1, "m", "{'cpu':100,'memory':4}");
	for (int i = 2; i <= 40; i++)
		put_pod("a", i, i % 2 ? "n" : "o", "{'cpu':100}");
	expect("b", "{'cpu':3000,'memory':4}", PREEMPT_VICTIMS,
	       "m a40 a39 a38 a37 a36 a35 a34 a33 a32 a31 a30 a29 a28 a27 a26 a25 a24 a23 a22 a21 "
	       "a20 a19 a18 a17 a16 a15 a14 a13 a12 a1");
}

static void put_budget(const char *namespace, const char *status)
{
	char *json =
		mem_printf("{'metadata':{'name':'all','namespace':'%s'},'spec':{'selector':{}},"
			   "'status':{%s}}",
			   namespace, status);

	place_fixture_put(&f.cluster, OBJECT_POD_DISRUPTION_BUDGET, json);
	free(json);
}

/* Six borrowed CPUs, and a status of the budget that is some 100 ms old. */
static void put_burst(const char *status, const char *more)
{
	put_node("n", "'cpu':'6'");
	preempt_fixture_quota(&f, "b", "{'cpu':6000}", "{}");
	preempt_fixture_quota(&f, "a", "{}", "{}");
	put_budget("a", status);
	for (int i = 1; i <= 6; i++)
		put_pod_as("a", i, "n", "{'cpu':1000}", i > 4 ? more : "");
}

static void victims_that_were_told_count_for_their_budget(void **unused)
{
	(void)unused;
	put_burst("'disruptionsAllowed':2", "");
	question.in_flight = (const char *const[]){"a6", "a5"};
	question.in_flight_count = 1;
	expect("b", "{'cpu':2000}", PREEMPT_VICTIMS, "n a5");
	expect("b", "{'cpu':3000}", PREEMPT_IMPOSSIBLE, "-");
	preempt_plan_fini(&plan);
	question.in_flight_count = 2;
	expect("b", "{'cpu':2000}", PREEMPT_WAIT, "n");
	expect("b", "{'cpu':3000}", PREEMPT_IMPOSSIBLE, "-");
}

static void pods_in_deletion_count_for_their_budget(void **unused)
{
	(void)unused;
	put_burst("'disruptionsAllowed':3,'currentHealthy':6,'desiredHealthy':3,'expectedPods':6",
		  GOING);
	expect("b", "{'cpu':3000}", PREEMPT_VICTIMS, "n a4");
	expect("b", "{'cpu':4000}", PREEMPT_IMPOSSIBLE, "-");
}

/* a and c borrow four each: a pays first, of whose pods with the lowest priority, until c's turn. */
static void the_most_over_its_weighted_share_pays(void **unused)
{
	struct quota *a, *c;

	(void)unused;
	put_node("n", "'cpu':'12'");
	a = preempt_fixture_quota(&f, "a", "{'cpu':2000}", "{}");
	preempt_fixture_quota(&f, "b", "{'cpu':8000}", "{}");
	c = preempt_fixture_quota(&f, "c", "{'cpu':2000}", "{}");
	a->weight = 1;
	c->weight = 3;
	for (int i = 1; i <= 6; i++) {
		put_pod_as("a", i, "n", "{'cpu':1000}", i > 3 ? ",'priority':100" : "");
		put_pod("c", i, "n", "{'cpu':1000}");
	}
	expect("b", "{'cpu':1000}", PREEMPT_VICTIMS, "n a3");
	expect("b", "{'cpu':4000}", PREEMPT_VICTIMS, "n a3 a2 c6 a1");
	preempt_plan_fini(&plan);
	c->weight = 1;
	expect("b", "{'cpu':4000}", PREEMPT_VICTIMS, "n c6 a3 c5 a2");
}

/* a is over its share by all of the CPU and a quarter of the memory, c by three quarters of it. */
static void the_resource_that_is_most_over_its_share_counts(void **unused)
{
	(void)unused;
	put_node("n", "'cpu':'8','memory':'32'");
	preempt_fixture_quota(&f, "a", "{'memory':2}", "{}");
	preempt_fixture_quota(&f, "b", "{'cpu':4000,'memory':16}", "{}");
	preempt_fixture_quota(&f, "c", "{'cpu':2000}", "{}");
	for (int i = 1; i <= 4; i++) {
		put_pod("a", i, "n", "{'cpu':1000,'memory':4}");
		put_pod("c", i + 4, "n", "{'cpu':1000,'memory':4}");
	}
	expect("b", "{'cpu':1000,'memory':4}", PREEMPT_VICTIMS, "n a4");
}

/* The node of the one that borrows the most, though its pods have the higher priority. */
static void the_node_is_chosen_by_weighted_shares(void **unused)
{
	(void)unused;
	put_node("m", "'cpu':'4'");
	put_node("n", "'cpu':'4'");
	preempt_fixture_quota(&f, "b", "{'cpu':8000}", "{}");
	preempt_fixture_quota(&f, "a", "{}", "{}")->weight = 1;
	preempt_fixture_quota(&f, "c", "{}", "{}")->weight = 2;
	for (int i = 1; i <= 4; i++) {
		put_pod("c", i, "m", "{'cpu':1000}");
		put_pod_as("a", i, "n", "{'cpu':1000}", ",'priority':100");
	}
	expect("b", "{'cpu':1000}", PREEMPT_VICTIMS, "n a4");
}

/* Five were evicted 50, 40 .. 10 minutes ago, when ten an hour were allowed: now it is two. */
static void max_evictions_tells_when_enough_has_passed(void **unused)
{
	const int64_t minute_ns = 60 * 1000000000LL;
	struct victim_past past[5];
	struct quota *a;

	(void)unused;
	put_node("n", "'cpu':'6'");
	preempt_fixture_quota(&f, "b", "{'cpu':6000}", "{}");
	a = preempt_fixture_quota(&f, "a", "{}", "{}");
	a->evictions_max = 2;
	a->evictions_ns = 60 * minute_ns;
	for (int i = 1; i <= 6; i++)
		put_pod("a", i, "n", "{'cpu':1000}");
	for (int i = 0; i < 5; i++)
		past[i] =
			(struct victim_past){VIEW_FIXTURE_NOW_NS - (50 - 10 * i) * minute_ns, "a"};
	question.past = past;
	question.past_count = 5;
	expect("b", "{'cpu':1000}", PREEMPT_IMPOSSIBLE, "-");
	assert_int_equal(plan.retry_ns, VIEW_FIXTURE_NOW_NS + 40 * minute_ns);
	preempt_plan_fini(&plan);
	/* One may go, and two would have to. */
	question.past_count = 1;
	expect("b", "{'cpu':2000}", PREEMPT_IMPOSSIBLE, "-");
	assert_int_equal(plan.retry_ns, VIEW_FIXTURE_NOW_NS + 10 * minute_ns);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(what_is_not_contested_does_not_protect),
		STORY(every_contested_resource_protects),
		STORY(who_loses_least_of_a_guarantee_pays),
		STORY(contested_is_what_the_node_lacks),
		STORY(the_min_of_what_is_contested_is_kept),
		STORY(many_pods_of_other_nodes_pay),
		STORY(a_pod_with_room_needs_no_victims),
		STORY(pods_that_are_going_count_for_their_quota),
		STORY(pods_that_are_going_count_for_offers),
		STORY(pods_of_others_that_are_going_are_not_paid_for_twice),
		STORY(the_neighbour_pays_when_they_are_gone),
		STORY(victims_that_were_told_count_for_their_budget),
		STORY(pods_in_deletion_count_for_their_budget),
		STORY(the_most_over_its_weighted_share_pays),
		STORY(the_resource_that_is_most_over_its_share_counts),
		STORY(the_node_is_chosen_by_weighted_shares),
		STORY(max_evictions_tells_when_enough_has_passed),
		STORY(no_quota_is_advised_for_a_pod_larger_than_any_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
