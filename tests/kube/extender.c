/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a real kube-scheduler puts pods when it asks the extender, and when it cannot: by real use,
 * by deviation, in a burst, against hard limits, without an aggregator. What the nodes and their
 * residents are: tests/sched_world.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <curl/curl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/extender_tap.h"
#include "tests/process.h"
#include "tests/sched_world.h"
#include "tests/stack.h"

enum { POOL = 60, BURST = 40 };
/* What a resident uses. */
enum { CALM, BURSTY, HOT, KINDS };

static const char *const kind_names[KINDS] = {"calm", "bursty", "hot"};
static const char *const no_options[] = {NULL};

static struct sched_world *world;
static struct extender_tap *tap;

static size_t kind_of(size_t node)
{
	return node % KINDS;
}

/* --- real use decides ------------------------------------------------------------------------ */

/* Pods of the pool by what the residents of their nodes use. */
struct kinds {
	size_t of[KINDS];
};

static struct kinds place_pool(const char *prefix)
{
	struct kinds kinds = {{0}};
	struct sched_placed p;

	sched_make_pods(world, prefix, POOL, sched_small_pod);
	p = sched_await_placed(world, prefix, POOL);
	sched_print(prefix, p.on);
	for (size_t i = 0; i < SCHED_NODES; i++)
		kinds.of[kind_of(i)] += (size_t)p.on[i];
	print_message("          %-10s", "");
	for (int k = 0; k < KINDS; k++)
		print_message(" %zu %s", kinds.of[k], kind_names[k]);
	print_message("\n");
	return kinds;
}

static void use_by_kind(void)
{
	for (size_t i = 0; i < SCHED_NODES; i++)
		sched_use(world, i, kind_of(i) == HOT ? 13600 : 3200,
			  kind_of(i) == BURSTY ? 5600 : 320);
}

/* By requests all nodes are the same, and so they are filled. */
static void test_stock_scheduler_does_not_see_use(void **state)
{
	struct kinds kinds;

	(void)state;
	use_by_kind();
	control_plane_start_scheduler(world->bed->plane, NULL);
	control_plane_await_scheduler(world->bed->plane, SCHED_NODES, SCHED_NODES);
	kinds = place_pool("stock");
	for (int k = 0; k < KINDS; k++)
		assert_in_range(kinds.of[k], POOL / KINDS - 4, POOL / KINDS + 4);
	sched_remove_pods(world);
}

/*
 * A scheduler that does not know of use puts a third of the pods on the hot nodes, at random 20
 * with a deviation of 3.7: 5 or fewer once in 200,000 times.
 */
static void test_real_use_decides(void **state)
{
	struct kinds kinds;

	(void)state;
	sched_restart_aggregator(world, no_options);
	sched_start(world, world->bed->aggregators[0].http_port, true, 0);
	kinds = place_pool("evenkeel");
	assert_in_range(kinds.of[HOT], 0, 5);
	sched_await_no_reservations(world);
	sched_remove_pods(world);
}

/*
 * The same without LimitAware, so that use alone decides. Bursty nodes have the mean of the calm
 * ones: who sees means puts 30 of 60 there with a deviation of 3.9, 12 or fewer once in 600,000
 * times.
 */
static void test_deviation_decides(void **state)
{
	static const char *const options[] = {"--extender-blend",
					      "TargetLoadPacking,LoadVariationRiskBalancing", NULL};
	struct kinds kinds;

	(void)state;
	sched_restart_aggregator(world, options);
	kinds = place_pool("by-use");
	assert_in_range(kinds.of[HOT], 0, 5);
	assert_in_range(kinds.of[BURSTY], 0, 12);
	sched_await_no_reservations(world);
	sched_remove_pods(world);
}

/* --- a burst --------------------------------------------------------------------------------- */

static size_t most_of(const struct sched_placed *p)
{
	int most = 0;

	for (size_t i = 0; i < SCHED_NODES; i++)
		most = p->on[i] > most ? p->on[i] : most;
	return (size_t)most;
}

/*
 * The scheduler stands still until all are made, so that they come at once however slow this
 * machine is.
 */
static struct sched_placed place_burst(const char *prefix)
{
	struct sched_placed p;
	int64_t start_ns;
	double seconds;

	sched_await_heard(world);
	kill(world->bed->plane->scheduler, SIGSTOP);
	start_ns = clock_mono_ns();
	sched_make_pods(world, prefix, BURST, sched_large_pod);
	seconds = (double)(clock_mono_ns() - start_ns) / NS_PER_SEC;
	kill(world->bed->plane->scheduler, SIGCONT);
	p = sched_await_placed(world, prefix, BURST);
	sched_print(prefix, p.on);
	print_message("          %d pods made in %.1f s, at most %zu on a node\n", BURST, seconds,
		      most_of(&p));
	sched_await_no_reservations(world);
	sched_remove_pods(world);
	return p;
}

/*
 * One node has much room, the others are half full. Without reservations all pods that are decided
 * before the next view see the same room; the tap makes that all of them.
 */
static void test_burst_spreads(void **state)
{
	struct sched_placed without, with;

	(void)state;
	for (size_t i = 0; i < SCHED_NODES; i++)
		sched_use(world, i, i ? 8000 : 2400, 320);
	sched_restart_aggregator(world, no_options);
	tap = extender_tap_start(world->bed->aggregators[0].http_port);
	sched_start(world, extender_tap_port(tap), true, 0);
	extender_tap_freeze(tap, true);
	without = place_burst("without");
	assert_true(sched_metric(world, "evenkeel_ledger_reserved_total") == 0);
	extender_tap_freeze(tap, false);
	with = place_burst("with");
	assert_true(sched_metric(world, "evenkeel_ledger_reserved_total") == BURST);
	assert_true(most_of(&with) <= 3 * BURST / 8);
	assert_true(most_of(&without) >= 3 * BURST / 4);
}

/* --- what the scheduler says of pods without a node ------------------------------------------ */

struct events {
	const char *prefix; /* of the pods' names */
	size_t want, pods;
	char message[1024]; /* the last one */
};

static void read_event(struct events *e, const cJSON *event, cJSON *seen)
{
	const char *name = cJSON_GetStringValue(json_at(event, "involvedObject.name"));

	if (!name || strncmp(name, e->prefix, strlen(e->prefix)) != 0)
		return;
	snprintf(e->message, sizeof(e->message), "%s", json_at(event, "message")->valuestring);
	if (!cJSON_HasObjectItem(seen, name))
		cJSON_AddTrueToObject(seen, name);
}

static bool are_refused(void *ctx)
{
	struct events *e = ctx;
	cJSON *list, *seen = cJSON_CreateObject();
	struct buf answer = BUF_INIT;
	const cJSON *event;

	control_plane_send(
		world->bed->plane, "GET",
		"/api/v1/namespaces/default/events?fieldSelector=reason=FailedScheduling", NULL,
		&answer);
	list = cJSON_Parse(answer.data);
	cJSON_ArrayForEach (event, json_at(list, "items"))
		read_event(e, event, seen);
	e->pods = (size_t)cJSON_GetArraySize(seen);
	cJSON_Delete(list);
	cJSON_Delete(seen);
	buf_fini(&answer);
	return e->pods == e->want;
}

/* As `kubectl describe pod` shows them. */
static struct events await_refused(const char *prefix, size_t want)
{
	struct events e = {.prefix = prefix, .want = want};

	if (!await(are_refused, &e, SCHED_TIMEOUT))
		fail_msg("%zu of %zu pods %s.. have an event", e.pods, want, prefix);
	print_message("          told: %s\n", e.message);
	return e;
}

/* --- without an aggregator ------------------------------------------------------------------- */

enum { FEW = 5 };

static void test_ignorable_fails_open(void **state)
{
	(void)state;
	sched_start(world, world->bed->aggregators[0].http_port, true, 0);
	kube_testbed_kill_aggregator(world->bed, 0);
	sched_make_pods(world, "open", FEW, sched_small_pod);
	sched_await_placed(world, "open", FEW);
}

/*
 * What comes back is no event of the cluster: the scheduler looks again at the next one, or within
 * minutes.
 */
static void test_not_ignorable_fails_closed(void **state)
{
	struct events e;

	(void)state;
	sched_start(world, world->bed->aggregators[0].http_port, false, FEW);
	sched_make_pods(world, "closed", FEW, sched_small_pod);
	e = await_refused("closed", FEW);
	assert_non_null(strstr(e.message, "/extender/filter"));
	sched_await_placed(world, "closed", 0);
	sched_restart_aggregator(world, no_options);
	control_plane_must(world->bed->plane, "PATCH", "/api/v1/nodes/node-00",
			   "{\"metadata\":{\"labels\":{\"evenkeel.io/back\":\"true\"}}}");
	sched_await_placed(world, "closed", FEW);
	sched_await_no_reservations(world);
	sched_remove_pods(world);
}

/* --- hard limits ----------------------------------------------------------------------------- */

static void test_hot_node_is_refused(void **state)
{
	static const char *const options[] = {"--extender-use-cap-cpu", "0.85", NULL};
	struct kinds kinds;
	struct events e;
	char *more = mem_printf("\"nodeSelector\":{\"kubernetes.io/hostname\":\"%s\"},",
				world->names[HOT]);

	(void)state;
	use_by_kind();
	sched_restart_aggregator(world, options);
	sched_make_pod(world, "wants-hot", more, sched_small_pod);
	e = await_refused("wants-hot", 1);
	assert_non_null(strstr(e.message, "1 CPU use above the cap"));
	kinds = place_pool("capped");
	assert_int_equal(kinds.of[HOT], 0);
	free(more);
}

/* What filter would say now; of a pod without a uid nothing is remembered. */
static bool would_pass(void)
{
	char *pod = sched_pod_text("asked", "", sched_small_pod);
	char *question = mem_printf("{\"Pod\":%s,\"NodeNames\":[\"%s\"]}", pod, world->names[0]);
	cJSON *answer = NULL;
	bool passes;

	assert_int_equal(kube_testbed_post(world->bed, 0, "/extender/filter", question, &answer),
			 200);
	passes = cJSON_GetArraySize(json_at(answer, "NodeNames")) > 0;
	cJSON_Delete(answer);
	free(question);
	free(pod);
	return passes;
}

/*
 * All nodes are above the cap, and become idle, which the 99th percentile of their recent use shows
 * after 7 quarters of a minute. No event of the cluster tells the scheduler; so it would ask again
 * after minutes.
 */
static void test_pod_is_bound_when_use_falls(void **state)
{
	static const char *const options[] = {
		"--extender-use-cap-cpu", "0.51", "--extender-use-z", "0", "--nudge-claim",
		"default/nudge",	  NULL};
	int64_t began_ns;

	(void)state;
	sched_remove_pods(world);
	control_plane_must(world->bed->plane, "POST",
			   "/api/v1/namespaces/default/persistentvolumeclaims",
			   "{\"metadata\":{\"name\":\"nudge\"},\"spec\":{\"accessModes\":["
			   "\"ReadWriteOnce\"],\"storageClassName\":\"\",\"volumeName\":\"none\","
			   "\"resources\":{\"requests\":{\"storage\":\"1Mi\"}}}}");
	for (size_t i = 0; i < SCHED_NODES; i++)
		sched_use(world, i, 8100, 0);
	sched_restart_aggregator(world, options);
	sched_make_pod(world, "waits", "", sched_small_pod);
	await_refused("waits", 1);
	assert_false(would_pass());
	for (size_t i = 0; i < SCHED_NODES; i++)
		sched_use(world, i, 100, 0);
	while (!would_pass())
		sched_await_heard(world);
	began_ns = clock_mono_ns();
	sched_await_placed(world, "waits", 1);
	print_message("          bound %.2f s after use fell below the cap\n",
		      (double)(clock_mono_ns() - began_ns) / NS_PER_SEC);
	assert_true(clock_mono_ns() - began_ns < 10 * NS_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stock_scheduler_does_not_see_use),
		cmocka_unit_test(test_real_use_decides),
		cmocka_unit_test(test_deviation_decides),
		cmocka_unit_test(test_burst_spreads),
		cmocka_unit_test(test_ignorable_fails_open),
		cmocka_unit_test(test_not_ignorable_fails_closed),
		cmocka_unit_test(test_hot_node_is_refused),
		cmocka_unit_test(test_pod_is_bound_when_use_falls),
	};
	int failed;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT))
		return 1;
	world = sched_world_new();
	if (!world)
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	sched_world_free(world, failed != 0);
	extender_tap_stop(tap);
	return failed != 0;
}
