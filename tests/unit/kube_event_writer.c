/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written of an event, and how often; tests/kube has it against a real API server.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "aggregator/edge/kube/event_writer.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/view_fixture.h"

#define SECOND NS_PER_SEC

static const struct object_event node = {
	.api_version = "v1",
	.kind = "Node",
	.namespace = "",
	.name = "n",
	.uid = "u1",
	.reason = "NodeUnneeded",
	.note = "why \"so\"",
	.pause_ns = 300 * SECOND,
};

/* --- requests --------------------------------------------------------------------------------- */

static void expect_request(struct buf *path, const char *want_path, struct buf *body,
			   const char *want_body)
{
	assert_string_equal(path->data, want_path);
	assert_string_equal(body->data, want_body);
	buf_fini(path);
	buf_fini(body);
}

static void test_a_new_event(void **state)
{
	struct buf path = BUF_INIT, body = BUF_INIT;
	struct object_event event = node;

	(void)state;
	event_writer_create(&event, "evenkeel", "evenkeel.1", VIEW_FIXTURE_NOW_NS + 250000000,
			    &path, &body);
	expect_request(&path, "/api/v1/namespaces/default/events", &body,
		       "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{"
		       "\"namespace\":\"default\",\"name\":\"evenkeel.1\"},\"involvedObject\":{"
		       "\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n\",\"uid\":\"u1\"},"
		       "\"type\":\"Normal\",\"reason\":\"NodeUnneeded\",\"message\":"
		       "\"why \\\"so\\\"\",\"firstTimestamp\":\"2026-01-31T12:00:00Z\","
		       "\"lastTimestamp\":\"2026-01-31T12:00:00Z\",\"count\":1,\"source\":{"
		       "\"component\":\"evenkeel\"}}");
	event.namespace = "shop";
	event.warning = true;
	event.uid = "";
	event_writer_create(&event, "evenkeel", "e", VIEW_FIXTURE_NOW_NS, &path, &body);
	assert_non_null(strstr(body.data, "\"namespace\":\"shop\",\"name\":\"n\"},\"type\":"
					  "\"Warning\""));
	assert_string_equal(path.data, "/api/v1/namespaces/shop/events");
	buf_fini(&path);
	buf_fini(&body);
}

/* 1024 bytes are enough for the note; a character that is cut is repaired with three. */
static void test_a_long_note_is_cut(void **state)
{
	struct buf path = BUF_INIT, body = BUF_INIT;
	struct object_event event = node;
	char note[4001];

	(void)state;
	for (size_t i = 0; i < 4000; i += 2)
		memcpy(note + i, "\xC3\xA4", 3);
	event.note = note + 1;
	event_writer_create(&event, "evenkeel", "e", VIEW_FIXTURE_NOW_NS, &path, &body);
	assert_true(body.len > 1000 && body.len < 1024 + 400);
	buf_fini(&path);
	buf_fini(&body);
}

static void test_a_repetition(void **state)
{
	struct buf path = BUF_INIT, body = BUF_INIT;

	(void)state;
	event_writer_repeat(&node, "evenkeel.1", 3, VIEW_FIXTURE_NOW_NS, &path, &body);
	expect_request(&path, "/api/v1/namespaces/default/events/evenkeel.1", &body,
		       "{\"lastTimestamp\":\"2026-01-31T12:00:00Z\",\"count\":3}");
}

/* --- limits ----------------------------------------------------------------------------------- */

static void expect(struct event_limits *l, const struct object_event *event, int64_t at_s,
		   enum event_verdict want, const char *name)
{
	struct event_entry *e = NULL;
	enum event_verdict got = event_limits_admit(l, event, (1000 + at_s) * SECOND, &e);

	if (got != want)
		fail_msg("%s at %lld s: %d instead of %d", event->reason, (long long)at_s, got,
			 want);
	if (got != EVENT_PASSES)
		return;
	assert_string_equal(e->name, name);
	snprintf(e->name, sizeof(e->name), "at-%lld", (long long)at_s);
}

static void test_one_for_an_object_and_reason(void **state)
{
	struct event_limits l = {0};
	struct object_event other = node, reason = node, changed = node;

	(void)state;
	other.name = "m";
	reason.reason = "NodeNeeded";
	changed.note = "another";
	expect(&l, &node, 0, EVENT_PASSES, "");
	expect(&l, &node, 299, EVENT_LEFT_OUT, "");
	expect(&l, &other, 299, EVENT_PASSES, "");
	expect(&l, &reason, 299, EVENT_PASSES, "");
	/* The same sentence is a repetition, another one an event of its own. */
	expect(&l, &node, 300, EVENT_PASSES, "at-0");
	expect(&l, &changed, 599, EVENT_LEFT_OUT, "");
	expect(&l, &changed, 600, EVENT_PASSES, "");
	expect(&l, &changed, 900, EVENT_PASSES, "at-600");
	event_limits_fini(&l);
}

static void test_a_state_is_repeated_seldom(void **state)
{
	struct event_limits l = {0};
	struct object_event quota = node;

	(void)state;
	quota.lasting_ns = 1800 * SECOND;
	expect(&l, &quota, 0, EVENT_PASSES, "");
	for (int at = 10; at < 1800; at += 10)
		expect(&l, &quota, at, EVENT_WAITS, "");
	expect(&l, &quota, 1800, EVENT_PASSES, "at-0");
	/* It ends, and comes back. */
	expect(&l, &quota, 1870, EVENT_WAITS, "");
	expect(&l, &quota, 2100, EVENT_PASSES, "at-1800");
	event_limits_fini(&l);
}

static void test_so_many_of_all(void **state)
{
	struct event_limits l = {0};
	struct object_event quota = node;
	char name[16];

	(void)state;
	for (int i = 0; i < EVENT_LIMITS_BURST + 2; i++) {
		struct object_event event = node;

		snprintf(name, sizeof(name), "n%d", i);
		event.name = name;
		expect(&l, &event, 0, i < EVENT_LIMITS_BURST ? EVENT_PASSES : EVENT_LEFT_OUT, "");
	}
	/* A state is only put off. */
	quota.lasting_ns = 1800 * SECOND;
	expect(&l, &quota, 0, EVENT_WAITS, "");
	expect(&l, &quota, EVENT_LIMITS_EVERY_S, EVENT_PASSES, "");
	quota.name = "other";
	expect(&l, &quota, EVENT_LIMITS_EVERY_S, EVENT_WAITS, "");
	event_limits_expire(&l, 5000 * SECOND);
	assert_int_equal(HASH_COUNT(l.entries), 0);
	event_limits_fini(&l);
}

/* Objects beyond the bound have no events until others are forgotten. */
static void test_memory_is_bounded(void **state)
{
	struct event_limits l = {0};
	struct object_event event = node;
	struct event_entry *e;
	char name[16];

	(void)state;
	event.name = name;
	for (int i = 0; i < EVENT_LIMITS_MAX + 5; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		event_limits_admit(&l, &event, 1000 * SECOND, &e);
	}
	assert_int_equal(HASH_COUNT(l.entries), EVENT_LIMITS_MAX);
	expect(&l, &event, 100, EVENT_LEFT_OUT, "");
	event_limits_expire(&l, 4600 * SECOND);
	expect(&l, &event, 3600, EVENT_PASSES, "");
	event_limits_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_event),
		cmocka_unit_test(test_a_long_note_is_cut),
		cmocka_unit_test(test_a_repetition),
		cmocka_unit_test(test_one_for_an_object_and_reason),
		cmocka_unit_test(test_a_state_is_repeated_seldom),
		cmocka_unit_test(test_so_many_of_all),
		cmocka_unit_test(test_memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
