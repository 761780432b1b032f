/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events about objects, against a server that answers as scripted; tests/kube has them on a real
 * one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aggregator/edge/kube/event_writer.h"
#include "aggregator/planner/drain_log.h"
#include "shared/mem.h"
#include "tests/kube_scene.h"
#include "tests/process.h"
#include "tests/quota_fixture.h"

#define SECONDS 30

struct events_scene {
	struct kube_scene *kube;
	struct counters counters;
	struct api_context ctx;
	struct event_writer *writer;
};

static void see(struct kube_scene *s)
{
	tls_request_fini(&s->seen);
	tls_server_seen(s->https, &s->seen);
}

/* A node, and a quota that is over its max. */
static void open_scene(struct events_scene *e, struct kube_scene *kube,
		       const struct tls_answer *answer)
{
	char *items = mem_printf("%s%s%s", quota_fixture_node("n", "cpu: 8, memory: 32Gi"),
				 quota_fixture_quota("team-a", "q", "cpu: 1, memory: 1Gi",
						     "cpu: 4, memory: 8Gi"),
				 quota_fixture_pod("team-a", "p", "n", 0, "cpu: 6, memory: 1Gi"));
	struct view *v = quota_fixture_view(items);

	v->cluster->sources[OBJECT_ELASTIC_QUOTA].state = SOURCE_SYNCED;
	v->cluster->sources[OBJECT_POD].state = SOURCE_SYNCED;
	*e = (struct events_scene){.kube = kube};
	e->ctx = (struct api_context){
		.views = view_slot_new(),
		.counters = &e->counters,
		.now_ns = clock_wall_ns,
		.decisions = drain_log_new(),
	};
	view_slot_publish(e->ctx.views, v);
	kube_scene_serve(kube, &kube->server, NULL);
	tls_server_script(kube->https, answer, 1);
	free(items);
}

static void start(struct events_scene *e, unsigned int of)
{
	assert_int_equal(
		event_writer_start(&e->writer, &e->kube->config, of, &e->ctx, &e->kube->why), 0);
}

static void close_scene(struct events_scene *e)
{
	event_writer_stop(e->writer);
	drain_log_free(e->ctx.decisions);
	view_slot_free(e->ctx.views);
}

static void decide(struct events_scene *e, enum drain_event event)
{
	drain_log_add(e->ctx.decisions,
		      &(struct drain_record){.time_ns = 1,
					     .event = event,
					     .reason = DRAIN_NO_PLACE,
					     .verdict = true,
					     .node = (char *)"n",
					     .text = (char *)"why"},
		      1);
}

struct awaited {
	atomic_uint_least64_t *counter;
	uint64_t value;
};

static bool is_counted(void *ctx)
{
	const struct awaited *a = ctx;

	return counter_get(a->counter) == a->value;
}

static void await_count(atomic_uint_least64_t *counter, uint64_t value)
{
	if (!await(is_counted, &(struct awaited){counter, value}, SECONDS))
		fail_msg("%llu instead of %llu", (unsigned long long)counter_get(counter),
			 (unsigned long long)value);
}

/* The second event of a reason within five minutes is left out, that of another reason is not. */
static void test_written(void **state)
{
	static const struct tls_answer created = {"/events", 201, "{}"};
	struct events_scene e;

	open_scene(&e, *state, &created);
	start(&e, EVENTS_OF_NODES);
	decide(&e, DRAIN_EVENT_UNNEEDED);
	await_count(&e.counters.events.written, 1);
	see(e.kube);
	assert_string_equal(e.kube->seen.method, "POST");
	assert_string_equal(e.kube->seen.path, "/api/v1/namespaces/default/events");
	assert_non_null(strstr(e.kube->seen.body, "\"reason\":\"NodeUnneeded\""));
	decide(&e, DRAIN_EVENT_UNNEEDED);
	decide(&e, DRAIN_EVENT_NEEDED);
	await_count(&e.counters.events.written, 2);
	await_count(&e.counters.events.limited, 1);
	see(e.kube);
	assert_int_equal(e.kube->seen.requests, 2);
	assert_non_null(strstr(e.kube->seen.body, "\"reason\":\"NodeNeeded\""));
	close_scene(&e);
}

static void test_quotas(void **state)
{
	static const struct tls_answer created = {"/events", 201, "{}"};
	struct events_scene e;

	open_scene(&e, *state, &created);
	start(&e, EVENTS_OF_QUOTAS);
	await_count(&e.counters.events.written, 1);
	see(e.kube);
	assert_string_equal(e.kube->seen.path, "/api/v1/namespaces/team-a/events");
	assert_non_null(strstr(e.kube->seen.body, "\"reason\":\"QuotaOverMax\""));
	assert_non_null(strstr(e.kube->seen.body, "\"involvedObject\":{\"apiVersion\":"));
	close_scene(&e);
	/* The state lasts, and is not told again. */
	assert_int_equal(counter_get(&e.counters.events.written), 1);
	assert_int_equal(counter_get(&e.counters.events.limited), 0);
}

/*
 * An API server that has no time gets one request, and then none for a minute; whoever decides goes
 * on meanwhile, and the stop comes at once.
 */
static void test_a_busy_server_is_left_alone(void **state)
{
	static const struct tls_answer busy = {"/events", 503, "{}"};
	struct events_scene e;
	int64_t began_ns;

	open_scene(&e, *state, &busy);
	start(&e, EVENTS_OF_NODES | EVENTS_OF_QUOTAS);
	decide(&e, DRAIN_EVENT_UNNEEDED);
	await_count(&e.counters.events.failed, 1);
	for (int i = 0; i < 2 * DRAIN_LOG_MAX; i++)
		decide(&e, i % 2 ? DRAIN_EVENT_UNNEEDED : DRAIN_EVENT_NEEDED);
	began_ns = clock_mono_ns();
	close_scene(&e);
	assert_true(clock_mono_ns() - began_ns < 5 * SECOND);
	see(e.kube);
	assert_int_equal(e.kube->seen.requests, 1);
	assert_int_equal(counter_get(&e.counters.events.failed), 1);
}

/* A namespace that ends takes no events; others do. */
static void test_a_refused_event_is_given_up(void **state)
{
	static const struct tls_answer forbidden = {"/namespaces/default/", 403, "{}"};
	struct events_scene e;

	open_scene(&e, *state, &forbidden);
	start(&e, EVENTS_OF_NODES);
	decide(&e, DRAIN_EVENT_UNNEEDED);
	decide(&e, DRAIN_EVENT_NEEDED);
	await_count(&e.counters.events.failed, 2);
	close_scene(&e);
	assert_int_equal(counter_get(&e.counters.events.written), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kube_scene_setup, kube_scene_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_written),
		TEST(test_quotas),
		TEST(test_a_busy_server_is_left_alone),
		TEST(test_a_refused_event_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
