/* SPDX-License-Identifier: Apache-2.0 */
/* What an aggregator tells another one of its reservations, and what that one makes of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "aggregator/state/reservations_message.h"
#include "shared/body.pb-c.h"
#include "shared/mem.h"
#include "tests/consistent.h"

#define S 1000000000LL

enum { SESSION = 77 };

static const int64_t now = 1700000000 * S;

/* Two aggregators, and the body between them. */
struct pair {
	struct reservations *one, *other;
	struct buf body;
};

static int setup(void **state)
{
	static struct pair p;

	p = (struct pair){.one = reservations_new(), .other = reservations_new()};
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	reservations_free(p->one);
	reservations_free(p->other);
	buf_fini(&p->body);
	return 0;
}

static void reserve(struct reservations *set, const char *uid, const char *node, int64_t at_ns)
{
	const struct reservation e = {.uid = uid, .namespace = "shop", .name = uid, .node = node};

	assert_int_equal(reservations_reserve(set, &e, at_ns), 0);
}

/* Tells the other one, whose clock is that much ahead, of a pod. */
static void tell(struct pair *p, const char *uid, int64_t at_ns, int64_t ahead_ns)
{
	const struct reservation *e = reservations_hold(p->one, uid);
	struct error error = {""};
	size_t count;

	reservations_message_begin(&p->body, SESSION);
	reservations_message_add(&p->body, uid, e, at_ns);
	reservation_drop(e);
	assert_int_equal(reservations_message_take(p->other, &p->body, SESSION, at_ns + ahead_ns,
						   &count, &error),
			 0);
	assert_true(reservations_is_consistent(p->other, &error));
}

/* "a@n1 b": the names of what is reserved, with their nodes. */
static const char *listed(struct reservations *set, int64_t at_ns)
{
	static char text[256];
	struct reservations_copy *c = reservations_take(set, at_ns);
	int len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < c->count; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s%s%s", i ? " " : "",
				c->of[i]->name, *c->of[i]->node ? "@" : "", c->of[i]->node);
	reservations_copy_drop(c);
	return text;
}

static void the_other_has_all_members(void **state)
{
	struct pair *p = *state;
	struct reservation e = {
		.uid = "u",
		.namespace = "shop",
		.name = "web-1",
		.node = "n1",
		.expected_cpu_milli = 250,
		.expected_high_cpu_milli = 500,
		.expected_mem_bytes = 1LL << 40,
		.priority = -5,
	};
	const struct reservation *got;

	resources_set(&e.requests, RESOURCE_CPU, 1500);
	resources_set(&e.requests, RESOURCE_MEMORY, 0);
	resources_set_named(&e.requests, "nvidia.com/gpu", 2);
	assert_int_equal(reservations_claim(p->one, &e, NULL, now), 0);
	tell(p, "u", now + 2 * S, 3600 * S);
	got = reservations_hold(p->other, "u");
	assert_non_null(got);
	assert_string_equal(got->namespace, "shop");
	assert_string_equal(got->name, "web-1");
	assert_string_equal(got->node, "n1");
	assert_string_equal(got->claim, "n1");
	assert_int_equal(got->state, RESERVATIONS_CHARGED);
	assert_int_equal(got->expected_cpu_milli, 250);
	assert_int_equal(got->expected_high_cpu_milli, 500);
	assert_true(got->expected_mem_bytes == 1LL << 40);
	assert_int_equal(got->priority, -5);
	assert_true(resources_equal(&got->requests, &e.requests));
	/* By the other clock. */
	assert_true(got->changed_ns == now + 3600 * S);
	assert_true(got->expires_ns == now + 3600 * S + RESERVATIONS_CLAIM_NS);
	assert_true(got->claim_ns == got->expires_ns);
	reservation_drop(got);
	resources_fini(&e.requests);
}

static void the_format_is_that_of_the_library(void **state)
{
	struct pair *p = *state;
	const struct reservation *e;
	Evenkeel__Exchange *x;

	reserve(p->one, "a", "n1", now);
	e = reservations_hold(p->one, "a");
	reservations_message_begin(&p->body, SESSION);
	reservations_message_add(&p->body, "a", e, now + 7);
	reservation_drop(e);
	reservations_message_add(&p->body, "b", NULL, now);
	x = evenkeel__exchange__unpack(NULL, p->body.len, (const uint8_t *)p->body.data);
	assert_non_null(x);
	assert_int_equal(x->session, SESSION);
	assert_int_equal(x->n_reservations, 2);
	assert_string_equal(x->reservations[0]->uid, "a");
	assert_string_equal(x->reservations[0]->namespace_, "shop");
	assert_string_equal(x->reservations[0]->node, "n1");
	assert_int_equal(x->reservations[0]->age_ns, 7);
	assert_true(x->reservations[0]->life_ns == RESERVATIONS_TTL_NS - 7);
	assert_string_equal(x->reservations[1]->uid, "b");
	assert_int_equal(x->reservations[1]->life_ns, 0);
	evenkeel__exchange__free_unpacked(x, NULL);
}

static void the_last_answer_counts(void **state)
{
	struct pair *p = *state;

	reserve(p->one, "a", "n1", now);
	tell(p, "a", now + 1, 0);
	assert_string_equal(listed(p->other, now + 1), "a@n1");
	reservations_charge(p->one, "a", "n2", now + 2);
	tell(p, "a", now + 3, 0);
	assert_string_equal(listed(p->other, now + 3), "a@n2");
	reservations_unschedulable(p->one, "a");
	tell(p, "a", now + 4, 0);
	assert_string_equal(listed(p->other, now + 4), "");
	/* Both were apart for a while: an older answer changes nothing. */
	reserve(p->one, "b", "n1", now);
	reserve(p->other, "b", "n3", now + 10 * S);
	tell(p, "b", now + 11 * S, 0);
	assert_string_equal(listed(p->other, now + 11 * S), "b@n3");
}

static void what_is_told_expires_as_at_home(void **state)
{
	struct pair *p = *state;

	reserve(p->one, "a", "n1", now);
	tell(p, "a", now + 29 * S, 0);
	assert_string_equal(listed(p->other, now + RESERVATIONS_TTL_NS - 1), "a@n1");
	assert_string_equal(listed(p->other, now + RESERVATIONS_TTL_NS), "");
	/* A reservation that has expired is none. */
	reserve(p->other, "b", "n1", now + 29 * S);
	reserve(p->one, "b", "n2", now + 29 * S);
	tell(p, "b", now + 60 * S, 0);
	assert_string_equal(listed(p->other, now + 58 * S), "");
}

static void a_pod_with_a_node_stays_as_the_api_has_it(void **state)
{
	struct pair *p = *state;

	reserve(p->one, "a", "n1", now);
	reserve(p->other, "a", "n1", now);
	reservations_bind(p->other, "a", "n2", 17);
	tell(p, "a", now, 0);
	assert_string_equal(listed(p->other, now), "a@n2");
	reservations_release(p->one, "a");
	tell(p, "a", now, 0);
	assert_string_equal(listed(p->other, now), "a@n2");
	/* One that is remembered to have a node gets no reservation. */
	reservations_remember(p->other, "b");
	reserve(p->one, "b", "n1", now);
	tell(p, "b", now, 0);
	assert_string_equal(listed(p->other, now), "a@n2");
	/* What is bound here is not told. */
	reservations_bind(p->one, "b", "n1", 3);
	tell(p, "b", now, 0);
	assert_int_equal(p->body.len, 2);
}

static void a_reservation_that_is_told_makes_others_look_again(void **state)
{
	struct pair *p = *state;
	struct reservations_copy *seen = reservations_take(p->other, now);
	const struct reservation e = {.uid = "b", .namespace = "shop", .name = "b", .node = ""};

	reserve(p->one, "a", "n1", now);
	tell(p, "a", now, 0);
	assert_int_equal(reservations_reserve_seen(p->other, &e, seen, now), -EAGAIN);
	reservations_copy_drop(seen);
}

static void a_bad_body_changes_nothing(void **state)
{
#define GOOD "\x08\x4d\x12\x06\x0a\x01g\x10\x80\x08"
#define BODY(text)                                                                                 \
	{                                                                                          \
		(text), sizeof(text) - 1                                                           \
	}
	static const struct {
		const char *bytes;
		size_t len;
	} bodies[] = {
		BODY("\x08\x4c"), /* another session */
		BODY(""),
		BODY(GOOD "\x12\x09"), /* cut off */
		BODY(GOOD "\x12\x02\x10\x01"), /* without a uid */
		BODY(GOOD "\x12\x03\x0a\x01\x00"), /* NUL */
		BODY(GOOD "\x12\x0d\x0a\x01h\x10\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* life */
		BODY(GOOD "\x12\x07\x0a\x01h\x6a\x02\x10\x02"), /* a request without a name */
		BODY("\xff"),
	};
	const struct buf good = {(char *)GOOD, sizeof(GOOD) - 1, 0};
	struct pair *p = *state;
	struct error error;
	size_t count;

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		const struct buf body = {(char *)bodies[i].bytes, bodies[i].len, 0};

		error.text[0] = '\0';
		assert_int_equal(reservations_message_take(p->other, &body, SESSION, now, &count,
							   &error),
				 -EBADMSG);
		assert_true(error.text[0] != '\0');
		assert_int_equal(count, 0);
		assert_string_equal(listed(p->other, now), "");
	}
	assert_int_equal(reservations_message_take(p->other, &good, SESSION, now, &count, &error),
			 0);
	assert_int_equal(count, 1);
	assert_string_equal(listed(p->other, now), "");
}

/* Fields 100 (a number) and 101 (a text), behind the known ones, and in front of them. */
static void fields_of_a_newer_release_are_ignored(void **state)
{
	static const char fields[] = "\xa0\x06\x07\xaa\x06\x03new";
	struct pair *p = *state;
	struct error error = {""};
	size_t count;

	reserve(p->one, "a", "n1", now);
	for (int front = 0; front < 2; front++) {
		const struct reservation *e = reservations_hold(p->one, "a");
		struct buf body = BUF_INIT;

		reservations_message_begin(&p->body, SESSION);
		reservations_message_add(&p->body, "a", e, now);
		reservation_drop(e);
		if (front)
			buf_add(&body, fields, sizeof(fields) - 1);
		buf_add(&body, p->body.data, p->body.len);
		if (!front)
			buf_add(&body, fields, sizeof(fields) - 1);
		assert_int_equal(reservations_message_take(p->other, &body, SESSION, now, &count,
							   &error),
				 0);
		assert_int_equal(count, 1);
		assert_string_equal(listed(p->other, now), "a@n1");
		buf_fini(&body);
	}
}

/* As long as a scheduler can make it: it fits into a frame, and one more request is refused. */
static void a_long_reservation_is_told(void **state)
{
	struct pair *p = *state;
	char name[2 * RESERVATIONS_TEXT_MAX + 1], uid[RESERVATIONS_TEXT_MAX + 1];
	struct reservation e = {.uid = uid, .namespace = uid, .name = uid, .node = uid};
	struct error error;
	size_t count;

	memset(uid, 'u', sizeof(uid) - 1);
	uid[sizeof(uid) - 1] = '\0';
	memset(name, 'r', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < RESERVATIONS_EXTENDED_MAX; i++) {
		name[0] = (char)('0' + i);
		resources_set_named(&e.requests, name, INT64_MAX);
	}
	assert_int_equal(reservations_reserve(p->one, &e, now), 0);
	tell(p, uid, now, 0);
	assert_true(p->body.len < RESERVATIONS_MESSAGE_ONE_MAX);
	assert_string_not_equal(listed(p->other, now), "");
	resources_set_named(&e.requests, "more", 1);
	e.state = RESERVATIONS_CHARGED;
	e.claim = "";
	e.expires_ns = now + S;
	reservations_message_begin(&p->body, SESSION);
	reservations_message_add(&p->body, uid, &e, now);
	assert_int_equal(reservations_message_take(p->other, &p->body, SESSION, now, &count,
						   &error),
			 -EBADMSG);
	resources_fini(&e.requests);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(the_other_has_all_members),
		TEST(the_format_is_that_of_the_library),
		TEST(the_last_answer_counts),
		TEST(what_is_told_expires_as_at_home),
		TEST(a_pod_with_a_node_stays_as_the_api_has_it),
		TEST(a_reservation_that_is_told_makes_others_look_again),
		TEST(a_bad_body_changes_nothing),
		TEST(fields_of_a_newer_release_are_ignored),
		TEST(a_long_reservation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
