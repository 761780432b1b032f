/* SPDX-License-Identifier: Apache-2.0 */
/* When the scheduler is to be made to ask again about a pod that filter refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#include "aggregator/api/policy_options.h"
#include "aggregator/api/waiting_pods.h"
#include "aggregator/state/join.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/victim_log.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/api_fixture.h"
#include "tests/model_fixture.h"
#include "tests/view_fixture.h"

/* Of 1 CPU, and the same owner where there is one. */
#define POD(uid, owner)                                                                            \
	"{\"metadata\":{\"name\":\"" uid "\",\"namespace\":\"shop\",\"uid\":\"" uid "\"" owner     \
	"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\""   \
	",\"memory\":\"1Gi\"}}}]}}"
#define OWNER                                                                                      \
	",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":"      \
	"\"web\",\"uid\":\"web\",\"controller\":true}]"
/* Of a name, which is its uid and owner, too, and a namespace. */
#define WAITING                                                                                    \
	"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"%s\",\"ownerReferences\":[" \
	"{"                                                                                        \
	"\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"web\",\"uid\":\"%s\","      \
	"\"controller\":true}]},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"         \
	"\"requests\":{\"cpu\":\"1\"}}}]}}"
/* Of 3 CPUs and one owner. */
#define LARGE(uid)                                                                                 \
	"{\"metadata\":{\"name\":\"" uid "\",\"namespace\":\"shop\",\"uid\":\"" uid "\"" OWNER     \
	"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"3\""   \
	"}}}]}}"
#define ASK(pod, names) "{\"Pod\":" pod ",\"NodeNames\":" names "}"

static struct api_fixture f;
static struct extender_options options;
static struct join *join;
static struct model *model;
static int64_t later_ns;
static void (*meanwhile)(void); /* called once, while an answer is being made */
static unsigned int readers; /* of the view before that */

static unsigned int count_readers(void)
{
	struct view *v = view_slot_take(f.ctx.views);
	unsigned int count = atomic_load(&v->users);

	view_drop(v);
	return count;
}

static int64_t now(void)
{
	void (*call)(void) = meanwhile;

	if (call && count_readers() > readers) {
		meanwhile = NULL;
		call();
	}
	return VIEW_FIXTURE_NOW_NS + later_ns;
}

static void pass_time(double seconds)
{
	later_ns += (int64_t)(seconds * NS_PER_SEC);
}

/* alpha uses 1 of 4 CPUs; 3 are allocatable, and one pod more would use 1.5. */
static void publish(double bravo_milli)
{
	struct node_stats *node_stats[2];
	struct node_stats from = view_fixture_node("alpha", now() - NS_PER_SEC, 3600, 1000, 0);

	node_stats[0] = node_stats_new(&from);
	from = view_fixture_node("bravo", now() - NS_PER_SEC, 3600, bravo_milli, 0);
	node_stats[1] = node_stats_new(&from);
	view_slot_publish(f.ctx.views, join_view(join, node_stats, 2, model_cluster(model), now()));
	node_stats_drop(node_stats[0]);
	node_stats_drop(node_stats[1]);
}

static void put_pod(const char *json)
{
	model_put(model, model_fixture_object(OBJECT_POD, json));
}

static int setup(void **state)
{
	(void)state;
	later_ns = 0;
	api_fixture_open(&f, NULL);
	api_fixture_extender(&options);
	options.limits.use_cap[SCORE_CPU] = 0.85;
	f.ctx.now_ns = now;
	f.ctx.reservations = reservations_new();
	f.ctx.extender = &options;
	f.ctx.waiting = waiting_pods_new(&f.counters.requeue, &f.counters.events);
	counter_set(&f.counters.requeue.enabled, 1);
	join = join_new();
	model = model_new();
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		model_fixture_sync(model, (enum object_kind)kind);
	model_put(model, model_fixture_node("alpha", 5, 9));
	model_put(model, model_fixture_node("bravo", 5, 9));
	put_pod(POD("p", ""));
	publish(3000);
	counter_add(&f.counters.requeue.sent, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	waiting_pods_free(f.ctx.waiting);
	reservations_free(f.ctx.reservations);
	api_fixture_close(&f);
	join_free(join);
	model_free(model);
	return 0;
}

static bool passes(const char *question)
{
	assert_int_equal(api_fixture_send(&f, "POST", "/extender/filter", question), 200);
	return cJSON_GetArraySize(api_fixture_at(f.json, "NodeNames")) > 0;
}

static uint64_t waiting(void)
{
	return counter_get(&f.counters.requeue.waiting);
}

static bool review(void)
{
	return waiting_pods_review(f.ctx.waiting, &f.ctx);
}

/* Seconds until a review would wake somebody. */
static int seconds_to_nudge(int most)
{
	for (int i = 0; i < most; i++) {
		if (review())
			return i;
		pass_time(1);
	}
	return most;
}

/* The nodes that filter was asked about count, and no others. */
static void what_would_pass_is_told_ever_more_seldom(void **state)
{
	(void)state;
	assert_false(review());
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	assert_int_equal(waiting(), 1);
	assert_false(review());
	publish(1000);
	assert_true(review());
	assert_false(review());
	pass_time(2);
	assert_true(review());
	pass_time(2);
	assert_false(review());
	pass_time(2);
	assert_true(review());
	/* Refused once more, it is soon told again. */
	publish(3000);
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	pass_time(2);
	assert_false(review());
	publish(1000);
	assert_true(review());
	/* Half a minute at least is between the last ones; a clock that is set back ends the wait. */
	for (int i = 0; i < 9; i++) {
		int seconds = seconds_to_nudge(400);

		pass_time(1);
		if (i > 7)
			assert_int_equal(seconds, 299);
	}
	assert_false(review());
	pass_time(-1000);
	assert_true(review());
	publish(1000);
	assert_true(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	assert_int_equal(waiting(), 0);
	assert_false(review());
	assert_false(waiting_pods_review(NULL, &f.ctx));
}

static void a_nudge_that_fails_delays_no_other(void **state)
{
	(void)state;
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	waiting_pods_not_sent(f.ctx.waiting); /* none was due */
	publish(1000);
	for (int i = 0; i < 9; i++) {
		assert_true(review());
		waiting_pods_not_sent(f.ctx.waiting);
	}
	assert_true(review());
	assert_false(review());
	waiting_pods_not_sent(f.ctx.waiting); /* the last review put none off */
	assert_false(review());
	pass_time(2);
	assert_true(review());
	waiting_pods_passed(f.ctx.waiting, "p");
	waiting_pods_not_sent(f.ctx.waiting);
	waiting_pods_not_sent(NULL);
	assert_int_equal(waiting(), 0);
}

/* What was refused before the start is not known. Before the cluster is, schedulers get no answer. */
static void after_a_start_all_are_asked_about(void **state)
{
	struct model *empty = model_new();

	(void)state;
	waiting_pods_free(f.ctx.waiting);
	f.ctx.waiting = waiting_pods_new(&f.counters.requeue, &f.counters.events);
	counter_set(&f.counters.requeue.sent, 0);
	view_slot_publish(f.ctx.views, join_view(join, NULL, 0, model_cluster(empty), now()));
	assert_false(review());
	publish(3000);
	for (int i = 0; i < 2; i++) /* until a nudge is sent */
		assert_true(review());
	counter_add(&f.counters.requeue.sent, 1);
	assert_false(review());
	model_free(empty);
}

static void a_review_has_no_effect(void **state)
{
	struct reservations_copy *c;

	(void)state;
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	publish(1000);
	assert_true(review());
	assert_int_equal(counter_get(&f.counters.extender.refused[EXTENDER_USE_CAP_CPU]), 1);
	assert_int_equal(counter_get(&f.counters.extender.requests[EXTENDER_FILTER]), 1);
	c = reservations_take(f.ctx.reservations, now());
	assert_int_equal(c->count, 0);
	reservations_copy_drop(c);
}

/* The scheduler asks about it again anyway: nodes came or went. */
static void of_other_nodes_all_are_asked_about(void **state)
{
	(void)state;
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	model_put(model, model_fixture_node("charlie", 5, 9));
	publish(3000);
	assert_true(review());
}

static void pods_that_are_gone_are_forgotten(void **state)
{
	(void)state;
	put_pod(POD("q", ""));
	publish(3000);
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	assert_false(passes(ASK(POD("q", ""), "[\"bravo\"]")));
	assert_false(passes(ASK(POD("late", ""), "[\"bravo\"]"))); /* no view has it yet */
	assert_false(passes(ASK("{\"metadata\":{\"name\":\"n\"},\"spec\":{\"containers\":[]}}",
				"[\"nobody\"]"))); /* no uid */
	assert_int_equal(waiting(), 3);
	assert_int_equal(model_remove(model, OBJECT_POD, "shop", "q"), 0);
	publish(3000);
	assert_false(review());
	assert_int_equal(waiting(), 3);
	pass_time(5);
	assert_false(review());
	assert_int_equal(waiting(), 1);
	put_pod("{\"metadata\":{\"name\":\"p\",\"namespace\":\"shop\",\"uid\":\"made-anew\"},"
		"\"spec\":{\"containers\":[]}}");
	publish(3000);
	assert_false(review());
	assert_int_equal(waiting(), 0);
}

/* Without a list of pods none is seen to be gone. */
static void unlisted_pods_are_forgotten_in_the_end(void **state)
{
	struct model *empty = model_new();

	(void)state;
	assert_false(passes(ASK(POD("q", ""), "[\"bravo\"]")));
	view_slot_publish(f.ctx.views, join_view(join, NULL, 0, model_cluster(empty), now()));
	counter_set(&f.counters.requeue.enabled, 0);
	pass_time(899);
	assert_false(review());
	assert_int_equal(waiting(), 1);
	pass_time(1);
	assert_false(review());
	assert_int_equal(waiting(), 0);
	model_free(empty);
}

/* A broken watch lacks the pods that were created since. */
static void a_stale_list_tells_of_no_pod_that_it_is_gone(void **state)
{
	const struct model_source stale = {.state = SOURCE_STALE};

	(void)state;
	model_set_source(model, OBJECT_POD, &stale);
	publish(3000);
	assert_false(passes(ASK(POD("late", ""), "[\"bravo\"]")));
	pass_time(5);
	publish(3000);
	assert_false(review());
	assert_int_equal(waiting(), 1);
	publish(1000);
	assert_true(review());
	pass_time(895);
	assert_false(review());
	assert_int_equal(waiting(), 0);
}

/* One of them is decided about, and a nudge is for all. */
static void pods_of_an_owner_are_one(void **state)
{
	(void)state;
	put_pod(POD("w1", OWNER));
	put_pod(POD("w2", OWNER));
	publish(3000);
	assert_false(passes(ASK(POD("w1", OWNER), "[\"bravo\"]")));
	assert_false(passes(ASK(POD("w2", OWNER), "[\"bravo\"]")));
	assert_int_equal(waiting(), 2);
	assert_false(review());
	publish(1000);
	assert_true(review());
	assert_true(review()); /* the other one */
	assert_false(review());
}

static void nobody_decides_where_nobody_nudges(void **state)
{
	(void)state;
	counter_set(&f.counters.requeue.enabled, 0);
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	publish(1000);
	assert_false(review());
	assert_int_equal(waiting(), 1);
}

static const char *event_pod = "p"; /* of the next event */

/* Its message, "" where there is none. */
static const char *next_event(void)
{
	static struct waiting_event event;

	if (!waiting_pods_take_event(f.ctx.waiting, &event))
		return "";
	assert_string_equal(event.pod->object.namespace, "shop");
	assert_string_equal(event.pod->object.name, event_pod);
	assert_string_equal(event.pod->object.uid, event_pod);
	object_drop(&event.pod->object);
	return event.message;
}

static void a_pod_has_one_event_for_each_reason(void **state)
{
	static const char by_cap[] =
		"CPU use above the cap on 1 of 1 nodes; node bravo: CPU in use ";

	(void)state;
	assert_string_equal(next_event(), "");
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	assert_memory_equal(next_event(), by_cap, strlen(by_cap));
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	assert_string_equal(next_event(), "");
	assert_false(passes(ASK(POD("p", ""), "[\"nobody\",\"bravo\",\"none\"]")));
	assert_string_equal(next_event(),
			    "unknown to evenkeel on 2 of 3 nodes; node nobody: the API had no such "
			    "node 0.0 s ago: it may be gone, or new");
	pass_time(299);
	publish(3000);
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	assert_string_equal(next_event(), "");
	pass_time(1);
	assert_false(passes(ASK(POD("p", ""), "[\"bravo\"]")));
	assert_memory_equal(next_event(), by_cap, strlen(by_cap));
	assert_false(passes(ASK(POD("p", ""), "[\"nobody\"]")));
	assert_string_not_equal(next_event(), "");
	/* A clock that is set back ends the wait. */
	pass_time(-299);
	assert_false(passes(ASK(POD("p", ""), "[\"nobody\"]")));
	assert_string_not_equal(next_event(), "");
	assert_false(passes(ASK(POD("p", ""), "[\"nobody\"]")));
	assert_string_equal(next_event(), "");
}

static void put_quota(const char *namespace, const char *min)
{
	char *json = mem_printf("{\"metadata\":{\"namespace\":\"%s\",\"name\":\"q\"},\"spec\":{"
				"\"min\":{\"cpu\":\"%s\"}}}",
				namespace, min);

	model_put(model, model_fixture_object(OBJECT_ELASTIC_QUOTA, json));
	free(json);
}

static void put_bound(const char *namespace, const char *cpu)
{
	char *json = mem_printf(
		"{\"metadata\":{\"namespace\":\"%s\",\"name\":\"b\",\"uid\":\"%s-b\"},\"spec\":{"
		"\"nodeName\":\"alpha\",\"containers\":[{\"name\":\"c\",\"resources\":{"
		"\"requests\":{\"cpu\":\"%s\"}}}]},\"status\":{\"phase\":\"Running\"}}",
		namespace, namespace, cpu);

	put_pod(json);
	free(json);
}

static void put_ready_node(const char *name)
{
	char *json = mem_printf("{\"metadata\":{\"name\":\"%s\"},\"status\":{\"allocatable\":{"
				"\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"9\"},\"conditions\":[{"
				"\"type\":\"Ready\",\"status\":\"True\"}]}}",
				name);

	model_put(model, model_fixture_object(OBJECT_NODE, json));
	free(json);
}

static void put_unschedulable(const char *pod)
{
	char *json = mem_printf("%.*s,\"status\":{\"conditions\":[{\"type\":\"PodScheduled\","
				"\"status\":\"False\",\"lastTransitionTime\":"
				"\"2026-01-01T00:00:00Z\"}]}}",
				(int)strlen(pod) - 1, pod);

	put_pod(json);
	free(json);
}

static void publish_unmeasured(void)
{
	view_slot_publish(f.ctx.views, join_view(join, NULL, 0, model_cluster(model), now()));
}

/*
 * No scheduler asks for victims where those it finds are not of lower priority, and then it may not
 * even ask filter: the pod has it in an Event.
 */
static void a_pod_within_min_is_told_who_could_give_way(void **state)
{
	(void)state;
	put_ready_node("alpha");
	put_quota("shop", "2");
	put_quota("other", "0");
	put_bound("other", "2");
	publish_unmeasured();
	assert_false(review());
	assert_string_equal(next_event(), "");
	put_unschedulable(POD("p", ""));
	publish_unmeasured();
	pass_time(2);
	assert_false(review());
	assert_string_equal(next_event(), "quota shop is within its min: 1 pod of other could give "
					  "way; see evenkeel quota preempt");
	pass_time(10);
	assert_false(review());
	assert_string_equal(next_event(), "");
	pass_time(300);
	publish_unmeasured();
	assert_false(review());
	assert_memory_equal(next_event(), "quota shop", strlen("quota shop"));
}

/* Nobody's requests make room for the first two, and the first search counts for both. */
static void pods_like_one_without_victims_are_passed_over(void **state)
{
	static const char *const pods[] = {LARGE("l1"), LARGE("l2"), POD("p", ""), POD("q", "")};
	static const char *const told[] = {"", "p", "q", "", ""};

	(void)state;
	put_ready_node("alpha");
	put_quota("shop", "9");
	put_quota("other", "0");
	put_bound("other", "2");
	put_bound("shop", "2");
	for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++)
		put_unschedulable(pods[i]);
	publish_unmeasured();
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		event_pod = told[i];
		assert_false(review());
		assert_int_equal(*next_event() != '\0', *told[i] != '\0');
		pass_time(2);
	}
	event_pod = "p";
}

/* Pods without a quota are no victims. */
static void isolated_pods_are_told(void **state)
{
	(void)state;
	put_ready_node("alpha");
	put_quota("shop", "2");
	put_bound("other", "4");
	put_unschedulable(POD("p", ""));
	publish_unmeasured();
	assert_false(review());
	assert_string_equal(next_event(),
			    "quota shop is within its min, and no pod that may go would help: "
			    "preemption does not take the 1 pods without a quota (evenkeel quota "
			    "lint, --quota-cover-all)");
}

/* --- victims ---------------------------------------------------------------------------------- */

static void put_guarded(const char *namespace, const char *annotations)
{
	char *json = mem_printf("{\"metadata\":{\"namespace\":\"%s\",\"name\":\"q\","
				"\"annotations\":{%s}},\"spec\":{\"min\":{\"cpu\":\"0\"}}}",
				namespace, annotations);

	model_put(model, model_fixture_object(OBJECT_ELASTIC_QUOTA, json));
	free(json);
}

/* Of 1 CPU, runs since now. */
static void put_borrower(const char *namespace, const char *node)
{
	char *json = mem_printf(
		"{\"metadata\":{\"namespace\":\"%s\",\"name\":\"b\",\"uid\":\"%s-b\"},\"spec\":{"
		"\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"resources\":{"
		"\"requests\":{\"cpu\":\"1\"}}}]},\"status\":{\"phase\":\"Running\","
		"\"startTime\":\"2026-01-31T12:00:00Z\"}}",
		namespace, namespace, node);

	put_pod(json);
	free(json);
}

static void put_waiting(const char *name, const char *namespace)
{
	char *json = mem_printf(WAITING, name, namespace, name, name);

	put_pod(json);
	free(json);
}

/* filter refuses it, and preempt finds nobody on that node. */
static void wait_in_vain(const char *name, const char *namespace, const char *node)
{
	char *pod = mem_printf(WAITING, name, namespace, name, name);
	char *question = mem_printf(ASK("%s", "[\"%s\"]"), pod, node);

	assert_false(passes(question));
	free(question);
	question = mem_printf("{\"Pod\":%s,\"NodeNameToMetaVictims\":{\"%s\":{\"Pods\":[]}}}", pod,
			      node);
	assert_int_equal(api_fixture_send(&f, "POST", "/extender/preempt", question), 200);
	assert_null(api_fixture_at(f.json, "NodeNameToMetaVictims")->child);
	free(question);
	free(pod);
}

/*
 * All of what is guaranteed is in use, by borrowers who run too short a time on alpha, and of whom
 * enough were evicted on bravo. Many pods that wait borrow themselves: nobody ever pays for them.
 */
static void wait_for_victims(int vain)
{
	const struct victim evicted = {"gone", "by-window", "bravo"};
	char name[16];

	put_ready_node("alpha");
	put_ready_node("bravo");
	f.ctx.victims = victim_log_new();
	assert_int_equal(victim_log_put(f.ctx.victims, "x", &evicted, 1,
					victim_log_version(f.ctx.victims), now()),
			 0);
	put_guarded("by-runtime", "\"evenkeel.io/min-runtime\":\"100s\"");
	put_guarded("by-window", "\"evenkeel.io/max-evictions\":\"1/200s\"");
	put_borrower("by-runtime", "alpha");
	put_borrower("by-window", "bravo");
	put_quota("second", "1");
	put_quota("third", "1");
	put_waiting("second", "second");
	put_waiting("third", "third");
	put_guarded("vain", "");
	for (int i = 0; i < vain; i++) {
		snprintf(name, sizeof(name), "%d", i);
		put_waiting(name, "vain");
	}
	publish_unmeasured();
	for (int i = 0; i < vain; i++) {
		snprintf(name, sizeof(name), "%d", i);
		wait_in_vain(name, "vain", "alpha");
	}
	wait_in_vain("second", "second", "alpha");
	wait_in_vain("third", "third", "bravo");
}

static void the_end_of_each_time_is_noticed(void **state)
{
	int seconds;

	(void)state;
	wait_for_victims(3);
	seconds = seconds_to_nudge(150);
	assert_in_range(seconds, 100, 115);
	waiting_pods_passed(f.ctx.waiting, "second");
	seconds += seconds_to_nudge(150);
	assert_in_range(seconds, 200, 230);
	waiting_pods_passed(f.ctx.waiting, "third");
	assert_int_equal(seconds_to_nudge(20), 20);
	victim_log_free(f.ctx.victims);
}

/* More than there is time to search for. */
static void whose_time_has_come_is_searched_for_first(void **state)
{
	(void)state;
	wait_for_victims(400);
	pass_time(99.5);
	assert_in_range(seconds_to_nudge(20), 1, 15);
	victim_log_free(f.ctx.victims);
}

/* No time tells of it. */
static void victims_that_a_change_frees_are_noticed(void **state)
{
	(void)state;
	wait_for_victims(3);
	assert_int_equal(seconds_to_nudge(10), 10);
	put_guarded("by-window", "");
	publish_unmeasured();
	assert_in_range(seconds_to_nudge(10), 0, 5);
	victim_log_free(f.ctx.victims);
}

static void view_is_as_good(void *slot, uint64_t ticket)
{
	view_slot_answer(slot, ticket);
}

static void borrow(void)
{
	put_borrower("borrower", "alpha");
	publish_unmeasured();
}

/* The scheduler heard first of what makes victims possible, and would not ask again. */
static void a_vain_search_is_repeated_with_what_comes_meanwhile(void **state)
{
	static const char question[] =
		"{\"Pod\":{\"metadata\":{\"name\":\"second\",\"namespace\":\"second\",\"uid\":"
		"\"second\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
		"\"requests\":{\"cpu\":\"1\"}}}]}},\"NodeNameToMetaVictims\":{\"alpha\":{\"Pods\":"
		"[]}}}";

	(void)state;
	put_ready_node("alpha");
	put_guarded("borrower", "");
	put_quota("second", "1");
	publish_unmeasured();
	view_slot_on_refresh(f.ctx.views, view_is_as_good, f.ctx.views);
	readers = count_readers();
	meanwhile = borrow;
	assert_int_equal(api_fixture_send(&f, "POST", "/extender/preempt", question), 200);
	assert_string_equal(cJSON_GetStringValue(api_fixture_at(
				    f.json, "NodeNameToMetaVictims.alpha.Pods.0.UID")),
			    "borrower-b");
}

static void answers_linger_a_twentieth_of_the_time(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_true(waiting_pods_may_linger(f.ctx.waiting, now()));
	assert_false(waiting_pods_may_linger(f.ctx.waiting, now()));
	pass_time(4);
	assert_true(waiting_pods_may_linger(f.ctx.waiting, now()));
	assert_false(waiting_pods_may_linger(f.ctx.waiting, now()));
	pass_time(1000);
	for (int i = 0; i < 10; i++)
		assert_true(waiting_pods_may_linger(f.ctx.waiting, now()));
	assert_false(waiting_pods_may_linger(f.ctx.waiting, now()));
}

static void answers_linger_after_the_clock_is_set_back(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_true(waiting_pods_may_linger(f.ctx.waiting, now()));
	pass_time(0.1);
	assert_true(waiting_pods_may_linger(f.ctx.waiting, now()));
	assert_false(waiting_pods_may_linger(f.ctx.waiting, now()));
	pass_time(-3600);
	for (int i = 0; i < 10; i++)
		assert_true(waiting_pods_may_linger(f.ctx.waiting, now()));
	assert_false(waiting_pods_may_linger(f.ctx.waiting, now()));
}

static void many_pods_are_bounded(void **state)
{
	struct waiting_event event;
	size_t events = 0;

	(void)state;
	for (int i = 0; i < WAITING_PODS_MAX + 10; i++) {
		char *question = mem_printf("{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":"
					    "\"y\",\"uid\":\"%d\"},\"spec\":{\"containers\":[]}},"
					    "\"NodeNames\":[\"nobody\"]}",
					    i);

		assert_false(passes(question));
		free(question);
	}
	assert_int_equal(waiting(), WAITING_PODS_MAX);
	/* Nobody took the events: the oldest are kept, the others are counted. */
	while (waiting_pods_take_event(f.ctx.waiting, &event)) {
		object_drop(&event.pod->object);
		events++;
	}
	assert_true(events > 0);
	assert_int_equal(events + counter_get(&f.counters.events.limited), WAITING_PODS_MAX + 10);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_would_pass_is_told_ever_more_seldom),
		T(a_nudge_that_fails_delays_no_other),
		T(after_a_start_all_are_asked_about),
		T(a_review_has_no_effect),
		T(of_other_nodes_all_are_asked_about),
		T(pods_that_are_gone_are_forgotten),
		T(unlisted_pods_are_forgotten_in_the_end),
		T(a_stale_list_tells_of_no_pod_that_it_is_gone),
		T(pods_of_an_owner_are_one),
		T(nobody_decides_where_nobody_nudges),
		T(a_pod_has_one_event_for_each_reason),
		T(a_pod_within_min_is_told_who_could_give_way),
		T(pods_like_one_without_victims_are_passed_over),
		T(isolated_pods_are_told),
		T(the_end_of_each_time_is_noticed),
		T(whose_time_has_come_is_searched_for_first),
		T(victims_that_a_change_frees_are_noticed),
		T(a_vain_search_is_repeated_with_what_comes_meanwhile),
		T(answers_linger_a_twentieth_of_the_time),
		T(answers_linger_after_the_clock_is_set_back),
		T(many_pods_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
