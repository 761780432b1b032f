/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that reclaim room: what the actuator reads of them and of their pods, and what it writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/reclaim.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/actuator_scene.h"

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))
#define CLAIM	  "POST " EDGE_GROUP "/quotas/reclaim/reservations"
#define EVICT	  "POST /api/v1/namespaces/a/pods/a1/eviction"
#define POD	  "/api/v1/namespaces/b/pods/b1"
#define VICTIM	  "/api/v1/namespaces/a/pods/a1"

#define VICTIMS                                                                                    \
	"\"victims\":[{\"namespace\":\"a\",\"name\":\"a1\",\"uid\":\"ua\",\"graceSeconds\":30}]"
#define PLAN(since, more)                                                                          \
	"{\"plan\":\"7\",\"node\":\"n1\",\"namespace\":\"b\",\"name\":\"b1\",\"uid\":\"ub\","      \
	"\"unschedulable\":\"2026-01-01T00:00:" since "Z\"" more "}"
#define LIST(items, claims)                                                                        \
	"{\"time\":\"2026-01-01T00:00:30Z\",\"evictions\":\"policy/v1beta1\",\"items\":[" items    \
	"],\"claims\":[" claims "]}"
#define OBJECT(uid, spec) "{\"metadata\":{\"uid\":\"" uid "\"}," spec "}"

static struct act_options rules;
static struct reclaim reclaim;

static int setup(void **state)
{
	struct actuator_scene *s;

	actuator_scene_setup(state);
	s = *state;
	s->now_ns = clock_mono_ns(); /* of answers: steps are ahead of it */
	reclaim = (struct reclaim){
		.options = {.act = &rules, .evictions_max = 10, .wait_ns = 60 * NS_PER_SEC}};
	return 0;
}

static int teardown(void **state)
{
	reclaim_forget(&reclaim);
	return actuator_scene_teardown(state);
}

/* A step in a second; list NULL: none is due. */
static bool step(struct actuator_scene *s, const char *list)
{
	bool wrote;

	edge_end_step(&s->edge);
	s->now_ns += NS_PER_SEC;
	if (list)
		actuator_scene_answer(s, EDGE_GROUP "/quotas/reclaim", 200, list);
	wrote = reclaim_run(&reclaim, &s->edge, false, s->now_ns);
	return wrote;
}

static size_t count_claims(struct actuator_scene *s)
{
	return kube_peer_count(s->peer, CLAIM);
}

static size_t count_lists(struct actuator_scene *s)
{
	return kube_peer_count(s->peer, EDGE_GROUP "/quotas/reclaim") - count_claims(s);
}

static size_t count_evictions(struct actuator_scene *s)
{
	return kube_peer_count(s->peer, EVICT);
}

static void a_pod_gets_its_room(void **state)
{
	struct actuator_scene *s = *state;

	s->edge.transitions = 7;
	assert_true(step(s, LIST(PLAN("25", "," VICTIMS), "")));
	actuator_scene_expect_body(
		s, CLAIM, "{\"plan\":\"7\",\"namespace\":\"b\",\"name\":\"b1\",\"uid\":\"ub\"}");
	assert_int_equal(kube_peer_count(s->peer, "POST /api/v1/namespaces/b/events?"), 1);
	actuator_scene_answer(s, POD, 200, OBJECT("ub", "\"spec\":{}"));
	actuator_scene_answer(s, VICTIM, 200, OBJECT("ua", "\"spec\":{\"nodeName\":\"n1\"}"));
	assert_true(step(s, NULL));
	actuator_scene_expect_body(
		s, EVICT "?fieldManager=evenkeel-actuator-7",
		"{\"apiVersion\":\"policy/v1beta1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":"
		"\"a1\",\"namespace\":\"a\"},\"deleteOptions\":{\"preconditions\":{\"uid\":\"ua\"}}"
		"}");
	assert_int_equal(kube_peer_count(s->peer, "POST /api/v1/namespaces/a/events?"), 1);
	assert_int_equal(reclaim.state.rescues.of[0].evicted, 1);
	/* The victim is gone; the pod is bound. */
	actuator_scene_answer(s, POD, 200, OBJECT("ub", "\"spec\":{}"));
	assert_false(step(s, NULL));
	assert_true(reclaim.state.rescues.of[0].victims[0].pod.gone);
	actuator_scene_answer(s, POD, 200, OBJECT("ub", "\"spec\":{\"nodeName\":\"n1\"}"));
	assert_false(step(s, NULL));
	assert_int_equal(reclaim.state.rescues.count, 0);
	assert_int_equal(count_claims(s), 1);
	assert_int_equal(count_evictions(s), 1);
	assert_int_equal(count_lists(s), 1);
	/* Of one Event each. */
	assert_int_equal(kube_peer_count(s->peer, "/events?"), 2);
}

/* It is renewed in 10 s. */
static void a_claim_of_a_former_holder_is_kept(void **state)
{
	assert_false(step(*state, LIST("", "{\"node\":\"n1\",\"namespace\":\"b\",\"name\":\"b1\","
					   "\"uid\":\"ub\"}")));
	assert_int_equal(reclaim.state.rescues.count, 1);
	assert_int_equal(count_claims(*state), 0);
}

/* Without a claim no pod is evicted: it is claimed again, or left alone for a while. */
static void answers_to_a_claim(void **state)
{
	static const struct {
		int status;
		size_t claims; /* in three steps */
		bool evicts;
		int64_t left_s; /* after the second */
	} cases[] = {
		{201, 1, true, 0},  {500, 2, true, 0},	  {401, 3, true, 0},	{409, 1, false, 5},
		{404, 1, false, 5}, {403, 1, false, 600}, {422, 1, false, 600},
	};

	teardown(state);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct actuator_scene *s;

		setup(state);
		s = *state;
		/* A 401 is tried twice. */
		for (int k = 0; k < (cases[i].status == 401 ? 2 : 1); k++)
			actuator_scene_answer(s, CLAIM, cases[i].status, "{\"message\":\"no\"}");
		step(s, LIST(PLAN("25", "," VICTIMS), ""));
		for (int k = 0; k < 2; k++) {
			actuator_scene_answer(s, POD, 200, OBJECT("ub", "\"spec\":{}"));
			actuator_scene_answer(s, VICTIM, 200, OBJECT("ua", "\"spec\":{}"));
			step(s, NULL);
		}
		assert_int_equal(count_claims(s), cases[i].claims);
		assert_int_equal(count_evictions(s), cases[i].evicts);
		assert_int_equal(reclaim.state.left_count, !cases[i].evicts);
		if (!cases[i].evicts)
			assert_int_equal(reclaim.state.left[0].until_ns - s->now_ns,
					 (cases[i].left_s - 1) * NS_PER_SEC);
		if (i + 1 < COUNT(cases))
			teardown(state);
	}
}

/* Every 5 s. */
static void plans_are_listed_now_and_then(void **state)
{
	struct actuator_scene *s = *state;

	for (size_t i = 0; i < 11; i++) {
		step(s, i % 5 ? NULL : LIST("", ""));
		assert_int_equal(count_lists(s), 1 + i / 5);
	}
	reclaim_forget(&reclaim);
	step(s, LIST("", ""));
	assert_int_equal(count_lists(s), 4);
}

static void pods_as_the_api_has_them(void **state)
{
#define PENDING	   OBJECT("ub", "\"spec\":{}")
#define RUNNING(u) OBJECT(u, "\"spec\":{\"nodeName\":\"n1\"}")
	static const struct {
		int pod_status;
		const char *pod;
		int victim_status;
		const char *victim;
		bool evicts;
	} cases[] = {
		{200, PENDING, 200, RUNNING("ua"), true},
		{200, PENDING, 404, "{}", false},
		{200, PENDING, 200, RUNNING("other"), false},
		{200, PENDING, 200, OBJECT("ua", "\"status\":{\"phase\":\"Failed\"}"), false},
		{200, PENDING, 200,
		 "{\"metadata\":{\"uid\":\"ua\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}",
		 false},
		{200, PENDING, 500, "{}", true}, /* as before */
		{500, "{}", 200, RUNNING("ua"), true},
		{403, "{}", 200, RUNNING("ua"), true},
		{404, "{}", 200, RUNNING("ua"), false},
		{200, RUNNING("ub"), 200, RUNNING("ua"), false},
		{200, RUNNING("other"), 200, RUNNING("ua"), false},
	};

	teardown(state);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct actuator_scene *s;

		setup(state);
		s = *state;
		step(s, LIST(PLAN("25", "," VICTIMS), ""));
		actuator_scene_answer(s, POD, cases[i].pod_status, cases[i].pod);
		actuator_scene_answer(s, VICTIM, cases[i].victim_status, cases[i].victim);
		assert_int_equal(step(s, NULL), cases[i].evicts);
		assert_int_equal(count_evictions(s), cases[i].evicts);
		if (i + 1 < COUNT(cases))
			teardown(state);
	}
}

/* A claim would keep other pods off the room. */
static void a_dry_run_claims_nothing(void **state)
{
	struct actuator_scene *s = *state;
	char *path;

	s->edge.dry_run = reclaim.options.dry_run = true;
	step(s, LIST(PLAN("25", "," VICTIMS), ""));
	actuator_scene_answer(s, POD, 200, PENDING);
	actuator_scene_answer(s, VICTIM, 200, RUNNING("ua"));
	step(s, NULL);
	assert_int_equal(count_claims(s), 0);
	path = kube_peer_path(s->peer, EVICT, 0);
	assert_string_equal(path, EVICT "?fieldManager=evenkeel-actuator-0&dryRun=All");
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_pod_gets_its_room),	TEST(a_claim_of_a_former_holder_is_kept),
		TEST(answers_to_a_claim),	TEST(plans_are_listed_now_and_then),
		TEST(pods_as_the_api_has_them), TEST(a_dry_run_claims_nothing),
	};

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
