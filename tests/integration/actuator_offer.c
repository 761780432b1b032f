/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of two aggregators the actuator takes a plan that both have made, or that of one after the other is
 * gone; else it waits and tells why. Either may answer each request: times of both are not compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/actuator/slack.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/actuator_scene.h"
#include "tests/process.h"

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))

/* The next plan; `more`: further members of its beginning. */
static void script_plan(struct actuator_scene *s, const char *more, const char *planned)
{
	char *body = mem_printf(
		"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"DrainPlan\","
		"\"id\":\"00c0ffee00c0ffee\",%s\"planned\":\"2026-01-01T%sZ\","
		"\"viewVersion\":1,\"variant\":\"corrected\",\"useCap\":\"off\",\"ownerShare\":0."
		"25,"
		"\"throttled\":{\"nodes\":{\"limit\":10},\"drains\":{\"limit\":10}},"
		"\"wave\":{\"evictions\":\"policy/"
		"v1\",\"anyOrder\":true,\"reserved\":[],\"nodes\":["
		"{\"name\":\"n1\",\"uid\":\"u1\",\"moves\":[],\"guests\":[]}]},\"items\":[]}",
		more, planned);

	kube_peer_script(s->peer, EDGE_GROUP "/drains", &(struct peer_answer){.body = body});
	free(body);
}

static void script_snapshot(struct actuator_scene *s, const char *run, const char *time)
{
	char *body = mem_printf(
		"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\",\"time\":"
		"\"2026-01-01T%sZ\",\"aggregatorRun\":\"%s\",\"sources\":[],\"list\":{\"items\":["
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u1\"},\"spec\":{"
		"\"unschedulable\":true,\"taints\":[{\"key\":\"" MARK_TAINT
		"\",\"effect\":\"NoSchedule\"}]}}]},\"usage\":{\"apiVersion\":\"evenkeel.io/v2\","
		"\"nodes\":[],\"pods\":[]},\"state\":{}}",
		time, run);

	kube_peer_script(s->peer, EDGE_GROUP "/snapshots", &(struct peer_answer){.body = body});
	free(body);
}

static void step(struct actuator_scene *s, const struct act_state *state)
{
	edge_end_step(&s->edge);
	s->now_ns += 3600 * NS_PER_SEC;
	edge_read_plan(&s->edge, state, s->now_ns);
}

/* Reads a plan for an offer, of which the aggregator tells that of the other one. */
static void read_plan(struct actuator_scene *s, const char *peer)
{
	const struct act_state idle = {.drain_count = 0};

	script_plan(s, peer, "12:00:00");
	step(s, &idle);
}

static void plans_are_taken_together_or_alone(void **state)
{
	static const struct {
		const char *peer, *refusal; /* "": it is taken */
	} cases[] = {
		{"", ""},
		{"\"peer\":{\"plan\":\"same\",\"seconds\":0,\"id\":\"00c0ffee00c0ffee\"},", ""},
		{"\"peer\":{\"plan\":\"other\",\"seconds\":0,\"id\":\"1\"},",
		 "the other aggregator has planned another wave"},
		{"\"peer\":{\"plan\":\"other\",\"seconds\":3600,\"id\":\"1\"},",
		 "the other aggregator has planned another wave"},
		{"\"peer\":{\"plan\":\"unknown\",\"seconds\":29,\"id\":\"1\"},",
		 "the other aggregator tells no plan: it counts as gone after 30 s"},
		{"\"peer\":{\"plan\":\"unknown\",\"seconds\":30,\"id\":\"1\"},", ""},
		{"\"peer\":{\"plan\":\"unknown\",\"seconds\":30},", ""},
		{"\"peer\":{\"plan\":\"unknown\"},",
		 "the other aggregator tells no plan: it counts as gone after 30 s"},
		{"\"peer\":7,", "the other aggregator tells no plan: it counts as gone after 30 s"},
	};
	struct actuator_scene *s = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		read_plan(s, cases[i].peer);
		assert_string_equal(s->edge.plan.refusal, cases[i].refusal);
		if (*cases[i].refusal) {
			assert_null(s->edge.plan.offer);
			/* Whoever asked for a drain learns it. */
			assert_string_equal(edge_why_not(&s->edge, "n1"), cases[i].refusal);
		} else {
			assert_non_null(s->edge.plan.offer);
			assert_string_equal(s->edge.plan.id, "00c0ffee00c0ffee");
		}
	}
}

/* A node waits for a proof. The clock of aggregator b is an hour ahead of that of a. */
static void times_of_one_aggregator_are_compared(void **state)
{
	static const struct {
		const char *runs; /* "abbb ab": that answer requests of plans, then of snapshots */
		const char *planned, *snapshot; /* minutes and seconds, by the clock of each */
		const char *refusal; /* "": there is a proof */
	} steps[] = {
		{"a a", "10:00", "10:10", "no plan is newer than the taints"},
		/* The plan of b is newer by its own clock alone. */
		{"ba ba", "10:09", "10:12", "no plan is newer than the taints"},
		{"bba bba", "10:11", "10:13", ""},
		/* a is gone: the taints are seen again. */
		{"bbbb b", "10:12", "10:14", "no plan is newer than the taints"},
		{"b aaaa", "10:15", "10:16", "plan and snapshot are of different aggregators"},
		{"b b", "10:15", "10:16", ""},
	};
	struct act_drain drain = {.node = "n1", .uid = "u1", .mark.phase = MARK_TAINTED};
	const struct act_state waits = {.drains = &drain, .drain_count = 1};
	struct actuator_scene *s = *state;
	size_t plans = 0, snapshots = 0;

	for (size_t i = 0; i < COUNT(steps); i++) {
		bool snapshot = false;

		for (const char *run = steps[i].runs; *run; run++) {
			char *time = mem_printf("%d:%s", *run == 'a' ? 12 : 13,
						snapshot ? steps[i].snapshot : steps[i].planned);
			char name[2] = {*run}, more[64];

			snprintf(more, sizeof(more), "\"aggregatorRun\":\"%s\",", name);
			if (*run == ' ')
				snapshot = true;
			else if (snapshot)
				script_snapshot(s, name, time);
			else
				script_plan(s, more, time);
			plans += *run != ' ' && !snapshot;
			snapshots += *run != ' ' && snapshot;
			free(time);
		}
		step(s, &waits);
		assert_int_equal(kube_peer_count(s->peer, EDGE_GROUP "/drains"), plans);
		assert_int_equal(kube_peer_count(s->peer, EDGE_GROUP "/snapshots"), snapshots);
		assert_string_equal(s->edge.plan.refusal, steps[i].refusal);
		assert_int_equal(!s->edge.plan.proof, !!*steps[i].refusal);
	}
}

static void slack_waits_for_agreement(void **state)
{
	struct actuator_scene *s = *state;
	struct slack_keeper keeper = {.failing = false};
	static const struct {
		const char *report;
		bool taken;
	} cases[] = {
		{"{\"peer\":{\"plan\":\"other\",\"seconds\":9}}", false},
		{"{\"peer\":{\"plan\":\"unknown\",\"seconds\":29}}", false},
		{"{\"peer\":{\"plan\":\"same\",\"seconds\":0}}", true},
		{"{\"peer\":{\"plan\":\"unknown\",\"seconds\":30}}", true},
		{"{}", true},
	};
	size_t taken = 0;

	for (size_t i = 0; i < COUNT(cases); i++) {
		kube_peer_script(s->peer, EDGE_GROUP "/slacks",
				 &(struct peer_answer){.body = cases[i].report});
		if (cases[i].taken)
			kube_peer_script(s->peer, EDGE_GROUP "/slacks?format",
					 &(struct peer_answer){.body = ""});
		taken += cases[i].taken;
		s->now_ns += 3600 * NS_PER_SEC;
		slack_run(&keeper, &s->edge, false, s->now_ns);
		assert_int_equal(kube_peer_count(s->peer, "/slacks?format"), taken);
	}
	slack_forget(&keeper);
}

/* A look in 15 s, and at once by a successor. */
static void slack_looks_now_and_then(void **state)
{
	static const struct {
		int64_t at_ns;
		bool forgets; /* before */
		size_t looks;
	} cases[] = {
		{1, false, 1},
		{15 * NS_PER_SEC, false, 1},
		{15 * NS_PER_SEC + 1, false, 2},
		{15 * NS_PER_SEC + 2, true, 3},
		{2, true, 4},
	};
	struct actuator_scene *s = *state;
	struct slack_keeper keeper = {.failing = false};

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (cases[i].forgets)
			slack_forget(&keeper);
		slack_run(&keeper, &s->edge, false, cases[i].at_ns);
		assert_int_equal(kube_peer_count(s->peer, "/apis/autoscaling.x-k8s.io/v1beta1"),
				 cases[i].looks);
	}
}

static void a_refusal_is_logged_once(void **state)
{
	struct act_drain drain = {.node = "n1", .mark.phase = MARK_EVICTING, .proven = true};
	const struct act_state busy = {.drains = &drain, .drain_count = 1}; /* wants nothing */
	static const char other[] = "\"peer\":{\"plan\":\"other\"},";
	struct actuator_scene *s = *state;
	struct stderr_log caught;
	char *log;

	stderr_log_begin(&caught);
	read_plan(s, other);
	step(s, &busy);
	read_plan(s, other);
	read_plan(s, "\"stale\":\"the plan is 98 s old\",");
	read_plan(s, "\"stale\":\"the plan is 108 s old\",");
	read_plan(s, "");
	read_plan(s, "");
	read_plan(s, other);
	log = stderr_log_end(&caught);
	assert_string_equal(
		log, "evenkeel: no plan yet: the other aggregator has planned another wave\n"
		     "evenkeel: no plan yet: the plan is stale: the plan is 98 s old\n"
		     "evenkeel: there is a plan now\n"
		     "evenkeel: no plan yet: the other aggregator has planned another wave\n");
	free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, actuator_scene_setup, actuator_scene_teardown)
		TEST(plans_are_taken_together_or_alone), TEST(times_of_one_aggregator_are_compared),
		TEST(slack_waits_for_agreement),	 TEST(slack_looks_now_and_then),
		TEST(a_refusal_is_logged_once),
	};

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
