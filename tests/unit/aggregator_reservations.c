/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "aggregator/state/reservations.h"
#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/reservations_watch.h"

#define S 1000000000LL

static const int64_t now = 1700000000 * S;

static struct reservation entry_of(const char *uid, const char *name, const char *node)
{
	struct reservation e = {.uid = uid, .namespace = "shop", .name = name, .node = node};

	resources_set(&e.requests, RESOURCE_CPU, 500);
	e.expected_cpu_milli = 250;
	e.priority = 7;
	return e;
}

static void reserve(struct reservations *set, const char *uid, const char *node, int64_t at_ns)
{
	struct reservation e = entry_of(uid, uid, node);

	assert_int_equal(reservations_reserve(set, &e, at_ns), 0);
}

/* "a:asked b:charged@n1 c:bound@n2" */
static const char *told(struct reservations *set, int64_t at_ns)
{
	static char text[512];
	struct reservations_copy *c = reservations_take(set, at_ns);
	struct error error;
	int len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < c->count; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s:%s%s%s", i ? " " : "",
				c->of[i]->name, reservations_state_name(c->of[i]->state),
				*c->of[i]->node ? "@" : "", c->of[i]->node);
	reservations_copy_drop(c);
	if (!reservations_is_consistent(set, &error))
		fail_msg("%s", error.text);
	return text;
}

static struct reservations_counters counters_of(struct reservations *set)
{
	struct reservations_counters c;

	reservations_read_counters(set, &c);
	return c;
}

static void a_pod_is_asked_about_charged_bound_and_shown(void **state)
{
	struct reservations *set = reservations_new();
	struct reservations_counters c;

	(void)state;
	reserve(set, "a", "", now);
	assert_string_equal(told(set, now), "a:asked");
	assert_int_equal(reservations_charge(set, "a", "n1", now + 1), 0);
	assert_string_equal(told(set, now), "a:charged@n1");
	reservations_bind(set, "a", "n2", 17);
	assert_string_equal(told(set, now), "a:bound@n2");
	reservations_settle(set, 16, now);
	assert_string_equal(told(set, now), "a:bound@n2");
	reservations_settle(set, 17, now);
	assert_string_equal(told(set, now), "");
	c = counters_of(set);
	assert_int_equal(c.reserved, 1);
	assert_int_equal(c.charged, 1);
	assert_int_equal(c.bound, 1);
	assert_int_equal(c.moved, 1);
	assert_int_equal(c.settled, 1);
	reservations_free(set);
}

static void an_entry_keeps_what_was_reserved(void **state)
{
	struct reservations *set = reservations_new();
	struct reservation e = entry_of("u", "web-1", "n");
	char gpu[] = "nvidia.com/gpu";
	struct reservations_copy *c;
	int64_t gpus;

	(void)state;
	resources_set_named(&e.requests, gpu, 2);
	assert_int_equal(reservations_reserve(set, &e, now), 0);
	resources_fini(&e.requests);
	c = reservations_take(set, now);
	reservations_charge(set, "u", "m", now + 5);
	assert_int_equal(c->count, 1);
	assert_string_equal(c->of[0]->uid, "u");
	assert_string_equal(c->of[0]->namespace, "shop");
	assert_string_equal(c->of[0]->name, "web-1");
	assert_string_equal(c->of[0]->node, "n");
	assert_int_equal(c->of[0]->state, RESERVATIONS_CHARGED);
	assert_int_equal(c->of[0]->requests.of[RESOURCE_CPU], 500);
	assert_true(resources_find(&c->of[0]->requests, gpu, &gpus));
	assert_int_equal(gpus, 2);
	assert_int_equal(c->of[0]->expected_cpu_milli, 250);
	assert_int_equal(c->of[0]->priority, 7);
	assert_int_equal(c->of[0]->made_ns, now);
	assert_int_equal(c->of[0]->expires_ns, now + RESERVATIONS_TTL_NS);
	reservations_free(set);
	assert_string_equal(c->of[0]->node, "n"); /* a copy outlives the reservations */
	reservations_copy_drop(c);
}

static void reserving_again_replaces_but_not_what_is_bound(void **state)
{
	struct reservations *set = reservations_new();
	struct reservation renamed = entry_of("a", "zz", "n9");

	(void)state;
	reserve(set, "a", "n1", now);
	reserve(set, "b", "", now);
	reserve(set, "a", "", now);
	assert_string_equal(told(set, now), "a:asked b:asked");
	assert_int_equal(reservations_reserve(set, &renamed, now), 0);
	assert_string_equal(told(set, now), "b:asked zz:charged@n9");
	reservations_bind(set, "a", "n2", 3);
	reserve(set, "a", "n4", now);
	assert_string_equal(told(set, now), "b:asked zz:bound@n2");
	assert_int_equal(reservations_charge(set, "a", "n5", now), -ENOENT);
	assert_int_equal(reservations_charge(set, "none", "n5", now), -ENOENT);
	reservations_bind(set, "a", "n3", 4); /* told again: the first counts */
	assert_string_equal(told(set, now), "b:asked zz:bound@n2");
	assert_int_equal(counters_of(set).reserved, 2);
	assert_int_equal(counters_of(set).bound, 1);
	reservations_free(set);
}

static void what_is_not_bound_in_time_expires(void **state)
{
	struct reservations *set = reservations_new();

	(void)state;
	reserve(set, "a", "", now);
	reserve(set, "b", "", now + 10 * S);
	reservations_charge(set, "a", "n", now + 20 * S);
	reserve(set, "c", "n", now + 21 * S);
	reservations_bind(set, "c", "n", 5);
	assert_string_equal(told(set, now + 40 * S - 1), "a:charged@n b:asked c:bound@n");
	assert_string_equal(told(set, now + 40 * S), "a:charged@n c:bound@n");
	assert_int_equal(counters_of(set).expired, 1);
	reservations_settle(set, 4, now + 50 * S); /* nobody asks: it goes all the same */
	assert_int_equal(counters_of(set).expired, 2);
	assert_string_equal(told(set, now + 500 * S), "c:bound@n"); /* it runs somewhere */
	assert_int_equal(reservations_charge(set, "a", "n", now), -ENOENT);
	reservations_free(set);
}

static void a_clock_that_is_set_back_keeps_nothing_for_hours(void **state)
{
	struct reservations *set = reservations_new();

	(void)state;
	reserve(set, "late", "", now + 3600 * S);
	reserve(set, "new", "", now);
	assert_string_equal(told(set, now), "new:asked");
	reserve(set, "ahead", "", now + 5); /* threads read it one after the other */
	reserve(set, "behind", "", now - 5);
	assert_string_equal(told(set, now), "ahead:asked behind:asked new:asked");
	assert_string_equal(told(set, now + RESERVATIONS_TTL_NS), "ahead:asked");
	assert_string_equal(told(set, INT64_MIN), "");
	reserve(set, "last", "", INT64_MAX - 1);
	assert_string_equal(told(set, INT64_MAX - 1), "last:asked");
	reservations_free(set);
}

static void deleted_and_unschedulable_pods_are_gone(void **state)
{
	struct reservations *set = reservations_new();

	(void)state;
	reserve(set, "a", "", now + S / 2);
	reserve(set, "b", "n", now);
	reserve(set, "c", "n", now);
	reservations_bind(set, "c", "n", 5);
	reservations_unschedulable(set, "a");
	reservations_unschedulable(set, "c"); /* no longer true */
	reservations_unschedulable(set, "d");
	assert_string_equal(told(set, now), "b:charged@n c:bound@n");
	reservations_release(set, "b");
	reservations_release(set, "c");
	reservations_release(set, "c");
	reservations_unschedulable(set, "c");
	reservations_bind(set, "c", "n", 6); /* what was not reserved is not charged */
	assert_string_equal(told(set, now), "");
	assert_int_equal(counters_of(set).unschedulable, 1);
	assert_int_equal(counters_of(set).released, 2);
	reservations_free(set);
}

static int claim(struct reservations *set, const char *uid, const char *node, int64_t at_ns)
{
	struct reservations_copy *seen = reservations_take(set, at_ns);
	struct reservation e = entry_of(uid, uid, node);
	int rc = reservations_claim(set, &e, seen, at_ns);

	reservations_copy_drop(seen);
	return rc;
}

static bool is_claimed(struct reservations *set, int64_t at_ns)
{
	struct reservations_copy *c = reservations_take(set, at_ns);
	bool claimed = c->count && reservation_is_claim(c->of[0], at_ns);

	reservations_copy_drop(c);
	return claimed;
}

/* A scheduler refuses the pod, sends it elsewhere and gives it up: its room stays. */
static void a_claim_outlives_what_a_scheduler_does(void **state)
{
	struct reservations *set = reservations_new();

	(void)state;
	assert_int_equal(claim(set, "a", "n1", now), 0);
	reservations_unschedulable(set, "a");
	assert_string_equal(told(set, now), "a:charged@n1");
	reserve(set, "a", "", now + S);
	assert_string_equal(told(set, now), "a:charged@n1");
	reservations_charge(set, "a", "n2", now + 2 * S);
	assert_string_equal(told(set, now), "a:charged@n2");
	assert_true(is_claimed(set, now + 2 * S));
	reservations_unschedulable(set, "a");
	assert_string_equal(told(set, now + RESERVATIONS_CLAIM_NS - 1), "a:charged@n1");
	assert_string_equal(told(set, now + RESERVATIONS_CLAIM_NS), "");
	assert_int_equal(counters_of(set).expired, 1);
	assert_int_equal(counters_of(set).unschedulable, 0);
	reservations_free(set);
}

static void a_claim_ends_with_its_pod_and_its_time(void **state)
{
	struct reservations *set = reservations_new();

	(void)state;
	assert_int_equal(claim(set, "a", "n1", now), 0);
	assert_int_equal(claim(set, "a", "n1", now + 40 * S), 0); /* renewed */
	assert_true(is_claimed(set, now + 84 * S));
	/* What a scheduler charged late lives on as any reservation. */
	reservations_charge(set, "a", "n2", now + 80 * S);
	assert_false(is_claimed(set, now + 85 * S));
	assert_string_equal(told(set, now + 85 * S), "a:charged@n2");
	assert_int_equal(claim(set, "a", "n3", now + 86 * S), 0);
	reservations_bind(set, "a", "n2", 5);
	assert_false(is_claimed(set, now + 86 * S));
	reservations_unschedulable(set, "a");
	assert_string_equal(told(set, now + 86 * S), "a:bound@n2");
	assert_int_equal(claim(set, "a", "n3", now + 86 * S), -EALREADY);
	assert_int_equal(claim(set, "b", "", now), -EINVAL);
	assert_int_equal(claim(set, "b", "n1", now), 0);
	reservations_release(set, "b");
	assert_string_equal(told(set, now), "a:bound@n2");
	assert_int_equal(counters_of(set).claimed, 4);
	reservations_free(set);
}

/* Between the decision and the claim another pod was promised room. */
static void a_claim_is_of_what_was_seen(void **state)
{
	struct reservations *set = reservations_new();
	struct reservations_copy *seen = reservations_take(set, now);
	struct reservation e = entry_of("a", "a", "n1");

	(void)state;
	reserve(set, "b", "n1", now);
	assert_int_equal(reservations_claim(set, &e, seen, now), -EAGAIN);
	reservations_copy_drop(seen);
	seen = reservations_take(set, now);
	e = entry_of("b", "b", "n1");
	assert_int_equal(claim(set, "a", "n1", now), 0);
	assert_int_equal(reservations_reserve_seen(set, &e, seen, now), -EAGAIN);
	reservations_copy_drop(seen);
	reservations_free(set);
}

static void nothing_is_reserved_without_uid_or_above_the_bounds(void **state)
{
	struct reservations *set = reservations_new();
	char *longer = mem_zalloc(RESERVATIONS_TEXT_MAX + 2, 1);
	char long_name[2 * RESERVATIONS_TEXT_MAX + 2];
	struct reservation e = entry_of("", "p", "");

	(void)state;
	memset(longer, 'x', RESERVATIONS_TEXT_MAX + 1);
	snprintf(long_name, sizeof(long_name), "x/%0*d", 2 * RESERVATIONS_TEXT_MAX - 1, 0);
	assert_int_equal(reservations_reserve(set, &e, now), -EINVAL);
	e = entry_of(longer, "p", "");
	assert_int_equal(reservations_reserve(set, &e, now), -EINVAL);
	e = entry_of("u", longer, "");
	assert_int_equal(reservations_reserve(set, &e, now), -EINVAL);
	e = entry_of("u", "p", longer);
	assert_int_equal(reservations_reserve(set, &e, now), -EINVAL);
	e = entry_of("u", "p", "");
	e.namespace = longer;
	assert_int_equal(reservations_reserve(set, &e, now), -EINVAL);
	e = entry_of("u1", "p1", "");
	e.namespace = longer + 1;
	assert_int_equal(reservations_reserve(set, &e, now), 0);
	e = entry_of("u", "p", "");
	resources_set_named(&e.requests, long_name, 1);
	assert_int_equal(reservations_reserve(set, &e, now), -EINVAL);
	resources_fini(&e.requests);
	e = entry_of("u2", "p2", "");
	resources_set_named(&e.requests, long_name + 1, 1);
	assert_int_equal(reservations_reserve(set, &e, now), 0);
	resources_fini(&e.requests);
	e = entry_of(longer + 1, longer + 1, longer + 1);
	assert_int_equal(reservations_reserve(set, &e, now), 0);
	assert_int_equal(reservations_charge(set, longer + 1, longer, now), -ENOENT);
	e = entry_of("u", "p", "");
	for (int i = 0; i <= RESERVATIONS_EXTENDED_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "x/%d", i);
		resources_set_named(&e.requests, name, 1);
	}
	assert_int_equal(reservations_reserve(set, &e, now), -EINVAL);
	resources_fini(&e.requests);
	reservations_free(set);
	reservations_free(NULL);
	free(longer);
}

/* In an order that is neither that of the names nor its reverse. */
static void full_reservations_refuse_new_pods_only(void **state)
{
	struct reservations *set = reservations_new();
	char uid[16];
	struct reservations_copy *c;
	struct error error;

	(void)state;
	for (uint32_t i = 0; i < RESERVATIONS_PODS_MAX; i++) {
		snprintf(uid, sizeof(uid), "u%u", i * 7919 % RESERVATIONS_PODS_MAX);
		reserve(set, uid, "n", now);
	}
	assert_int_equal(
		reservations_reserve(
			set,
			&(struct reservation){.uid = "v", .namespace = "", .name = "", .node = ""},
			now),
		-ENOSPC);
	reserve(set, "u5", "m", now + 1);
	assert_int_equal(counters_of(set).refused, 1);
	c = reservations_take(set, now + 1);
	assert_int_equal(c->count, RESERVATIONS_PODS_MAX);
	reservations_copy_drop(c);
	assert_true(reservations_is_consistent(set, &error));
	reservations_settle(set, 0, now + RESERVATIONS_TTL_NS); /* all but one at once */
	assert_string_equal(told(set, now + RESERVATIONS_TTL_NS), "u5:charged@m");
	reserve(set, "v", "", now);
	reservations_free(set);
}

/* --- how long the lock is held ---------------------------------------------------------------- */

/*
 * A clock that steps each time it is read: the lock reads it when it is taken and when it is given
 * back.
 */
static int64_t readings;

static int64_t count_readings(void)
{
	return ++readings;
}

static void fill(struct reservations *set)
{
	char uid[16];

	for (uint32_t i = 0; i < RESERVATIONS_PODS_MAX; i++) {
		snprintf(uid, sizeof(uid), "u%u", i);
		reserve(set, uid, "n", now);
	}
}

static void bind_all(struct reservations *set)
{
	char uid[16];

	for (uint32_t i = 0; i < RESERVATIONS_PODS_MAX; i++) {
		snprintf(uid, sizeof(uid), "u%u", i);
		reservations_bind(set, uid, "n", 1 + i % 3);
	}
}

/* As many as there may be expire, or are settled, with the lock free in between. */
static void many_go_in_parts(void **state)
{
	struct reservations *set = reservations_new();

	(void)state;
	reservations_watch(set, count_readings);
	fill(set);
	readings = 0;
	reservations_copy_drop(reservations_take(set, now + RESERVATIONS_TTL_NS));
	assert_in_range(readings / 2, RESERVATIONS_PODS_MAX / 1024,
			RESERVATIONS_PODS_MAX / 1024 + 2);
	assert_string_equal(told(set, now), "");
	assert_int_equal(counters_of(set).expired, RESERVATIONS_PODS_MAX);
	fill(set);
	bind_all(set);
	readings = 0;
	reservations_settle(set, 3, now);
	assert_in_range(readings / 2, RESERVATIONS_PODS_MAX / 1024,
			RESERVATIONS_PODS_MAX / 1024 + 2);
	assert_string_equal(told(set, now), "");
	assert_int_equal(counters_of(set).settled, RESERVATIONS_PODS_MAX);
	reservations_free(set);
}

static void a_copy_is_the_same_until_something_changes(void **state)
{
	struct reservations *set = reservations_new();
	struct reservations_copy *a, *b;

	(void)state;
	reserve(set, "a", "", now);
	a = reservations_take(set, now);
	b = reservations_take(set, now + 1);
	assert_ptr_equal(a, b);
	reservations_copy_drop(b);
	reservations_settle(set, 5, now + 1);
	reservations_release(set, "none");
	b = reservations_take(set, now + 1);
	assert_ptr_equal(a, b);
	reservations_copy_drop(b);
	reservations_charge(set, "a", "n", now);
	b = reservations_take(set, now);
	assert_ptr_not_equal(a, b);
	assert_int_equal(a->of[0]->state, RESERVATIONS_ASKED);
	assert_int_equal(b->of[0]->state, RESERVATIONS_CHARGED);
	reservations_copy_drop(a);
	reservations_copy_drop(b);
	reservations_copy_drop(NULL);
	reservations_free(set);
}

/*
 * Whatever happens between taking the copy and taking the view, a pod is in one of them, and counts
 * in one.
 */
static void copy_and_view_have_every_pod_once(void **state)
{
	struct reservations *set = reservations_new();
	struct reservations_copy *asked, *charged, *bound;

	(void)state;
	reserve(set, "a", "", now);
	asked = reservations_take(set, now);
	reservations_charge(set, "a", "n", now);
	charged = reservations_take(set, now);
	assert_true(reservations_counts(charged->of[0], 99));
	reservations_bind(set, "a", "n", 8);
	bound = reservations_take(set, now);
	reservations_settle(set, 8, now);
	for (int i = 0; i < 3; i++) {
		const struct reservation *e = (i == 0 ? asked : i == 1 ? charged : bound)->of[0];

		assert_true(reservations_counts(e, 0));
		assert_true(reservations_counts(e, 7));
		assert_false(reservations_counts(e, 8));
		assert_false(reservations_counts(e, 9));
	}
	reservations_copy_drop(asked);
	reservations_copy_drop(charged);
	reservations_copy_drop(bound);
	reservations_free(set);
}

/* --- against a model that keeps it simple ----------------------------------------------------- */

enum { UIDS = 12, STEPS = 20000 };

struct naive {
	bool there;
	enum reservations_state state;
	int node;
	int64_t made_ns, expires_ns;
	uint64_t generation;
};

struct world {
	struct reservations *set;
	struct naive of[UIDS];
	int64_t now_ns;
	uint64_t generation; /* of the model */
	unsigned int seed;
};

static const char *const uids[UIDS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
static const char *const nodes[] = {"", "n1", "n2", "n3"};

static int draw(struct world *w, int below)
{
	return rand_r(&w->seed) % below;
}

/*
 * Events have no time of their own: what expired before is bound, if nobody has looked since. Here
 * somebody has.
 */
static void naive_expire(struct world *w)
{
	reservations_settle(w->set, 0, w->now_ns);
	for (int i = 0; i < UIDS; i++)
		if (w->of[i].there && w->of[i].state != RESERVATIONS_BOUND &&
		    w->of[i].expires_ns <= w->now_ns)
			w->of[i].there = false;
}

static void step_reserve(struct world *w, int i)
{
	struct naive *n = &w->of[i];
	int node = draw(w, 4);

	reserve(w->set, uids[i], nodes[node], w->now_ns);
	if (n->there && n->state == RESERVATIONS_BOUND)
		return;
	*n = (struct naive){true,
			    node ? RESERVATIONS_CHARGED : RESERVATIONS_ASKED,
			    node,
			    w->now_ns,
			    w->now_ns + RESERVATIONS_TTL_NS,
			    0};
}

static void step_charge(struct world *w, int i)
{
	struct naive *n = &w->of[i];
	int node = 1 + draw(w, 3);
	bool may = n->there && n->state != RESERVATIONS_BOUND;

	assert_int_equal(reservations_charge(w->set, uids[i], nodes[node], w->now_ns),
			 may ? 0 : -ENOENT);
	if (!may)
		return;
	n->state = RESERVATIONS_CHARGED;
	n->node = node;
	n->expires_ns = w->now_ns + RESERVATIONS_TTL_NS;
}

static void step_event(struct world *w, int i)
{
	struct naive *n = &w->of[i];
	int node = 1 + draw(w, 3);

	switch (draw(w, 3)) {
	case 0:
		reservations_bind(w->set, uids[i], nodes[node], ++w->generation);
		if (n->there && n->state != RESERVATIONS_BOUND) {
			n->state = RESERVATIONS_BOUND;
			n->node = node;
			n->generation = w->generation;
		}
		break;
	case 1:
		reservations_release(w->set, uids[i]);
		n->there = false;
		break;
	default:
		reservations_unschedulable(w->set, uids[i]);
		if (n->there && n->state != RESERVATIONS_BOUND)
			n->there = false;
	}
}

static void step_settle(struct world *w)
{
	uint64_t shown = w->generation - (uint64_t)draw(w, 3) % (w->generation + 1);

	reservations_settle(w->set, shown, w->now_ns);
	for (int i = 0; i < UIDS; i++)
		if (w->of[i].there && w->of[i].state == RESERVATIONS_BOUND &&
		    w->of[i].generation <= shown)
			w->of[i].there = false;
}

static void compare(struct world *w)
{
	char expected[512] = "";
	int len = 0;

	for (int i = 0; i < UIDS; i++)
		if (w->of[i].there)
			len += snprintf(expected + len, sizeof(expected) - (size_t)len,
					"%s%s:%s%s%s", len ? " " : "", uids[i],
					reservations_state_name(w->of[i].state),
					w->of[i].node ? "@" : "", nodes[w->of[i].node]);
	assert_string_equal(told(w->set, w->now_ns), expected);
}

static void any_events_leave_what_a_simple_model_has(void **state)
{
	struct world w = {.set = reservations_new(), .now_ns = now, .seed = 1};

	(void)state;
	for (int step = 0; step < STEPS; step++) {
		int what = draw(&w, 10), i = draw(&w, UIDS);

		w.now_ns += draw(&w, 8) * S / 2;
		naive_expire(&w);
		if (what < 4)
			step_reserve(&w, i);
		else if (what < 6)
			step_charge(&w, i);
		else if (what < 9)
			step_event(&w, i);
		else
			step_settle(&w);
		compare(&w);
	}
	assert_true(counters_of(w.set).expired > 100 && counters_of(w.set).settled > 100 &&
		    counters_of(w.set).moved > 100 && counters_of(w.set).unschedulable > 100);
	reservations_free(w.set);
}

/*
 * Who decided before others were promised something decides again; what becomes of promises is no
 * reason.
 */
static void who_looked_too_early_looks_again(void **state)
{
	struct reservations *set = reservations_new();
	struct reservation e = entry_of("u", "web-1", "");
	struct reservations_copy *early = reservations_take(set, now), *later;

	(void)state;
	reserve(set, "a", "", now);
	assert_int_equal(reservations_reserve_seen(set, &e, early, now), -EAGAIN);
	assert_string_equal(told(set, now), "a:asked");
	later = reservations_take(set, now);
	reservations_charge(set, "a", "n1", now);
	reserve(set, "a", "n1", now); /* the same again */
	reservations_bind(set, "a", "n1", 17);
	assert_int_equal(reservations_reserve_seen(set, &e, later, now), 0);
	/* More for one that is there is news, too. */
	reservations_copy_drop(later);
	later = reservations_take(set, now);
	e.requests.of[RESOURCE_CPU]++;
	assert_int_equal(reservations_reserve(set, &e, now), 0);
	assert_int_equal(reservations_reserve_seen(set, &e, later, now), -EAGAIN);
	resources_fini(&e.requests);
	reservations_copy_drop(early);
	reservations_copy_drop(later);
	reservations_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_asked_about_charged_bound_and_shown),
		cmocka_unit_test(an_entry_keeps_what_was_reserved),
		cmocka_unit_test(reserving_again_replaces_but_not_what_is_bound),
		cmocka_unit_test(what_is_not_bound_in_time_expires),
		cmocka_unit_test(a_clock_that_is_set_back_keeps_nothing_for_hours),
		cmocka_unit_test(deleted_and_unschedulable_pods_are_gone),
		cmocka_unit_test(a_claim_outlives_what_a_scheduler_does),
		cmocka_unit_test(a_claim_ends_with_its_pod_and_its_time),
		cmocka_unit_test(a_claim_is_of_what_was_seen),
		cmocka_unit_test(nothing_is_reserved_without_uid_or_above_the_bounds),
		cmocka_unit_test(full_reservations_refuse_new_pods_only),
		cmocka_unit_test(many_go_in_parts),
		cmocka_unit_test(a_copy_is_the_same_until_something_changes),
		cmocka_unit_test(who_looked_too_early_looks_again),
		cmocka_unit_test(copy_and_view_have_every_pod_once),
		cmocka_unit_test(any_events_leave_what_a_simple_model_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
