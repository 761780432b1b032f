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

#include "aggregator/state/ledger.h"
#include "shared/mem.h"
#include "tests/consistent.h"
#include "tests/ledger_watch.h"

#define S 1000000000LL

static const int64_t now = 1700000000 * S;

static struct ledger_entry entry_of(const char *uid, const char *name, const char *node)
{
	struct ledger_entry e = {.uid = uid, .namespace = "shop", .name = name, .node = node};

	resources_set(&e.requests, RESOURCE_CPU, 500);
	e.expected_cpu_milli = 250;
	e.priority = 7;
	return e;
}

static void reserve(struct ledger *l, const char *uid, const char *node, int64_t at_ns)
{
	struct ledger_entry e = entry_of(uid, uid, node);

	assert_int_equal(ledger_reserve(l, &e, at_ns), 0);
}

/* "a:asked b:charged@n1 c:bound@n2" */
static const char *told(struct ledger *l, int64_t at_ns)
{
	static char text[512];
	struct ledger_copy *c = ledger_take(l, at_ns);
	struct reason why;
	int len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < c->count; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s:%s%s%s", i ? " " : "",
				c->of[i]->name, ledger_state_name(c->of[i]->state),
				*c->of[i]->node ? "@" : "", c->of[i]->node);
	ledger_copy_drop(c);
	if (!ledger_is_consistent(l, &why))
		fail_msg("%s", why.text);
	return text;
}

static struct ledger_counters counters_of(struct ledger *l)
{
	struct ledger_counters c;

	ledger_read_counters(l, &c);
	return c;
}

static void a_pod_is_asked_about_charged_bound_and_shown(void **state)
{
	struct ledger *l = ledger_new();
	struct ledger_counters c;

	(void)state;
	reserve(l, "a", "", now);
	assert_string_equal(told(l, now), "a:asked");
	assert_int_equal(ledger_charge(l, "a", "n1", now + 1), 0);
	assert_string_equal(told(l, now), "a:charged@n1");
	ledger_bind(l, "a", "n2", 17);
	assert_string_equal(told(l, now), "a:bound@n2");
	ledger_settle(l, 16, now);
	assert_string_equal(told(l, now), "a:bound@n2");
	ledger_settle(l, 17, now);
	assert_string_equal(told(l, now), "");
	c = counters_of(l);
	assert_int_equal(c.reserved, 1);
	assert_int_equal(c.charged, 1);
	assert_int_equal(c.bound, 1);
	assert_int_equal(c.moved, 1);
	assert_int_equal(c.settled, 1);
	ledger_free(l);
}

static void an_entry_keeps_what_was_reserved(void **state)
{
	struct ledger *l = ledger_new();
	struct ledger_entry e = entry_of("u", "web-1", "n");
	char gpu[] = "nvidia.com/gpu";
	struct ledger_copy *c;
	int64_t gpus;

	(void)state;
	resources_set_named(&e.requests, gpu, 2);
	assert_int_equal(ledger_reserve(l, &e, now), 0);
	resources_fini(&e.requests);
	c = ledger_take(l, now);
	ledger_charge(l, "u", "m", now + 5);
	assert_int_equal(c->count, 1);
	assert_string_equal(c->of[0]->uid, "u");
	assert_string_equal(c->of[0]->namespace, "shop");
	assert_string_equal(c->of[0]->name, "web-1");
	assert_string_equal(c->of[0]->node, "n");
	assert_int_equal(c->of[0]->state, LEDGER_CHARGED);
	assert_int_equal(c->of[0]->requests.of[RESOURCE_CPU], 500);
	assert_true(resources_find(&c->of[0]->requests, gpu, &gpus));
	assert_int_equal(gpus, 2);
	assert_int_equal(c->of[0]->expected_cpu_milli, 250);
	assert_int_equal(c->of[0]->priority, 7);
	assert_int_equal(c->of[0]->made_ns, now);
	assert_int_equal(c->of[0]->expires_ns, now + LEDGER_TTL_NS);
	ledger_free(l);
	assert_string_equal(c->of[0]->node, "n"); /* who holds a copy needs no ledger */
	ledger_copy_drop(c);
}

static void reserving_again_replaces_but_not_what_is_bound(void **state)
{
	struct ledger *l = ledger_new();
	struct ledger_entry renamed = entry_of("a", "zz", "n9");

	(void)state;
	reserve(l, "a", "n1", now);
	reserve(l, "b", "", now);
	reserve(l, "a", "", now);
	assert_string_equal(told(l, now), "a:asked b:asked");
	assert_int_equal(ledger_reserve(l, &renamed, now), 0);
	assert_string_equal(told(l, now), "b:asked zz:charged@n9");
	ledger_bind(l, "a", "n2", 3);
	reserve(l, "a", "n4", now);
	assert_string_equal(told(l, now), "b:asked zz:bound@n2");
	assert_int_equal(ledger_charge(l, "a", "n5", now), -ENOENT);
	assert_int_equal(ledger_charge(l, "none", "n5", now), -ENOENT);
	ledger_bind(l, "a", "n3", 4); /* told again: the first counts */
	assert_string_equal(told(l, now), "b:asked zz:bound@n2");
	assert_int_equal(counters_of(l).reserved, 2);
	assert_int_equal(counters_of(l).bound, 1);
	ledger_free(l);
}

static void what_is_not_bound_in_time_expires(void **state)
{
	struct ledger *l = ledger_new();

	(void)state;
	reserve(l, "a", "", now);
	reserve(l, "b", "", now + 10 * S);
	ledger_charge(l, "a", "n", now + 20 * S);
	reserve(l, "c", "n", now + 21 * S);
	ledger_bind(l, "c", "n", 5);
	assert_string_equal(told(l, now + 40 * S - 1), "a:charged@n b:asked c:bound@n");
	assert_string_equal(told(l, now + 40 * S), "a:charged@n c:bound@n");
	assert_int_equal(counters_of(l).expired, 1);
	ledger_settle(l, 4, now + 50 * S); /* nobody asks: it goes all the same */
	assert_int_equal(counters_of(l).expired, 2);
	assert_string_equal(told(l, now + 500 * S), "c:bound@n"); /* it runs somewhere */
	assert_int_equal(ledger_charge(l, "a", "n", now), -ENOENT);
	ledger_free(l);
}

static void a_clock_that_is_set_back_keeps_nothing_for_hours(void **state)
{
	struct ledger *l = ledger_new();

	(void)state;
	reserve(l, "late", "", now + 3600 * S);
	reserve(l, "new", "", now);
	assert_string_equal(told(l, now), "new:asked");
	reserve(l, "ahead", "", now + 5); /* threads read it one after the other */
	reserve(l, "behind", "", now - 5);
	assert_string_equal(told(l, now), "ahead:asked behind:asked new:asked");
	assert_string_equal(told(l, now + LEDGER_TTL_NS), "ahead:asked");
	assert_string_equal(told(l, INT64_MIN), "");
	reserve(l, "last", "", INT64_MAX - 1);
	assert_string_equal(told(l, INT64_MAX - 1), "last:asked");
	ledger_free(l);
}

static void deleted_and_unschedulable_pods_are_gone(void **state)
{
	struct ledger *l = ledger_new();

	(void)state;
	reserve(l, "a", "", now + S / 2);
	reserve(l, "b", "n", now);
	reserve(l, "c", "n", now);
	ledger_bind(l, "c", "n", 5);
	ledger_unschedulable(l, "a");
	ledger_unschedulable(l, "c"); /* no longer true */
	ledger_unschedulable(l, "d");
	assert_string_equal(told(l, now), "b:charged@n c:bound@n");
	ledger_release(l, "b");
	ledger_release(l, "c");
	ledger_release(l, "c");
	ledger_unschedulable(l, "c");
	ledger_bind(l, "c", "n", 6); /* what was not reserved is not charged */
	assert_string_equal(told(l, now), "");
	assert_int_equal(counters_of(l).unschedulable, 1);
	assert_int_equal(counters_of(l).released, 2);
	ledger_free(l);
}

static void nothing_is_reserved_without_uid_or_above_the_bounds(void **state)
{
	struct ledger *l = ledger_new();
	char *longer = mem_zalloc(LEDGER_TEXT_MAX + 2, 1);
	struct ledger_entry e = entry_of("", "p", "");

	(void)state;
	memset(longer, 'x', LEDGER_TEXT_MAX + 1);
	assert_int_equal(ledger_reserve(l, &e, now), -EINVAL);
	e = entry_of(longer, "p", "");
	assert_int_equal(ledger_reserve(l, &e, now), -EINVAL);
	e = entry_of("u", longer, "");
	assert_int_equal(ledger_reserve(l, &e, now), -EINVAL);
	e = entry_of("u", "p", longer);
	assert_int_equal(ledger_reserve(l, &e, now), -EINVAL);
	e = entry_of(longer + 1, longer + 1, longer + 1);
	assert_int_equal(ledger_reserve(l, &e, now), 0);
	assert_int_equal(ledger_charge(l, longer + 1, longer, now), -ENOENT);
	e = entry_of("u", "p", "");
	for (int i = 0; i <= LEDGER_EXTENDED_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "x/%d", i);
		resources_set_named(&e.requests, name, 1);
	}
	assert_int_equal(ledger_reserve(l, &e, now), -EINVAL);
	resources_fini(&e.requests);
	ledger_free(l);
	ledger_free(NULL);
	free(longer);
}

/* In an order that is neither that of the names nor its reverse. */
static void a_full_ledger_refuses_new_pods_only(void **state)
{
	struct ledger *l = ledger_new();
	char uid[16];
	struct ledger_copy *c;
	struct reason why;

	(void)state;
	for (uint32_t i = 0; i < LEDGER_PODS_MAX; i++) {
		snprintf(uid, sizeof(uid), "u%u", i * 7919 % LEDGER_PODS_MAX);
		reserve(l, uid, "n", now);
	}
	assert_int_equal(
		ledger_reserve(
			l,
			&(struct ledger_entry){.uid = "v", .namespace = "", .name = "", .node = ""},
			now),
		-ENOSPC);
	reserve(l, "u5", "m", now + 1);
	assert_int_equal(counters_of(l).refused, 1);
	c = ledger_take(l, now + 1);
	assert_int_equal(c->count, LEDGER_PODS_MAX);
	ledger_copy_drop(c);
	assert_true(ledger_is_consistent(l, &why));
	ledger_settle(l, 0, now + LEDGER_TTL_NS); /* all but one at once */
	assert_string_equal(told(l, now + LEDGER_TTL_NS), "u5:charged@m");
	reserve(l, "v", "", now);
	ledger_free(l);
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

static void fill(struct ledger *l)
{
	char uid[16];

	for (uint32_t i = 0; i < LEDGER_PODS_MAX; i++) {
		snprintf(uid, sizeof(uid), "u%u", i);
		reserve(l, uid, "n", now);
	}
}

static void bind_all(struct ledger *l)
{
	char uid[16];

	for (uint32_t i = 0; i < LEDGER_PODS_MAX; i++) {
		snprintf(uid, sizeof(uid), "u%u", i);
		ledger_bind(l, uid, "n", 1 + i % 3);
	}
}

/* As many as there may be expire, or are settled, with the lock free in between. */
static void many_go_in_parts(void **state)
{
	struct ledger *l = ledger_new();

	(void)state;
	ledger_watch(l, count_readings);
	fill(l);
	readings = 0;
	ledger_copy_drop(ledger_take(l, now + LEDGER_TTL_NS));
	assert_in_range(readings / 2, LEDGER_PODS_MAX / 1024, LEDGER_PODS_MAX / 1024 + 2);
	assert_string_equal(told(l, now), "");
	assert_int_equal(counters_of(l).expired, LEDGER_PODS_MAX);
	fill(l);
	bind_all(l);
	readings = 0;
	ledger_settle(l, 3, now);
	assert_in_range(readings / 2, LEDGER_PODS_MAX / 1024, LEDGER_PODS_MAX / 1024 + 2);
	assert_string_equal(told(l, now), "");
	assert_int_equal(counters_of(l).settled, LEDGER_PODS_MAX);
	ledger_free(l);
}

static void a_copy_is_the_same_until_something_changes(void **state)
{
	struct ledger *l = ledger_new();
	struct ledger_copy *a, *b;

	(void)state;
	reserve(l, "a", "", now);
	a = ledger_take(l, now);
	b = ledger_take(l, now + 1);
	assert_ptr_equal(a, b);
	ledger_copy_drop(b);
	ledger_settle(l, 5, now + 1);
	ledger_release(l, "none");
	b = ledger_take(l, now + 1);
	assert_ptr_equal(a, b);
	ledger_copy_drop(b);
	ledger_charge(l, "a", "n", now);
	b = ledger_take(l, now);
	assert_ptr_not_equal(a, b);
	assert_int_equal(a->of[0]->state, LEDGER_ASKED);
	assert_int_equal(b->of[0]->state, LEDGER_CHARGED);
	ledger_copy_drop(a);
	ledger_copy_drop(b);
	ledger_copy_drop(NULL);
	ledger_free(l);
}

/*
 * Whatever happens between taking the copy and taking the view, a pod is in one of them, and counts
 * in one.
 */
static void copy_and_view_have_every_pod_once(void **state)
{
	struct ledger *l = ledger_new();
	struct ledger_copy *asked, *charged, *bound;

	(void)state;
	reserve(l, "a", "", now);
	asked = ledger_take(l, now);
	ledger_charge(l, "a", "n", now);
	charged = ledger_take(l, now);
	assert_true(ledger_counts(charged->of[0], 99));
	ledger_bind(l, "a", "n", 8);
	bound = ledger_take(l, now);
	ledger_settle(l, 8, now);
	for (int i = 0; i < 3; i++) {
		const struct ledger_entry *e = (i == 0 ? asked : i == 1 ? charged : bound)->of[0];

		assert_true(ledger_counts(e, 0));
		assert_true(ledger_counts(e, 7));
		assert_false(ledger_counts(e, 8));
		assert_false(ledger_counts(e, 9));
	}
	ledger_copy_drop(asked);
	ledger_copy_drop(charged);
	ledger_copy_drop(bound);
	ledger_free(l);
}

/* --- against a model that keeps it simple ----------------------------------------------------- */

enum { UIDS = 12, STEPS = 20000 };

struct naive {
	bool there;
	enum ledger_state state;
	int node;
	int64_t made_ns, expires_ns;
	uint64_t generation;
};

struct world {
	struct ledger *l;
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
	ledger_settle(w->l, 0, w->now_ns);
	for (int i = 0; i < UIDS; i++)
		if (w->of[i].there && w->of[i].state != LEDGER_BOUND &&
		    w->of[i].expires_ns <= w->now_ns)
			w->of[i].there = false;
}

static void step_reserve(struct world *w, int i)
{
	struct naive *n = &w->of[i];
	int node = draw(w, 4);

	reserve(w->l, uids[i], nodes[node], w->now_ns);
	if (n->there && n->state == LEDGER_BOUND)
		return;
	*n = (struct naive){true,
			    node ? LEDGER_CHARGED : LEDGER_ASKED,
			    node,
			    w->now_ns,
			    w->now_ns + LEDGER_TTL_NS,
			    0};
}

static void step_charge(struct world *w, int i)
{
	struct naive *n = &w->of[i];
	int node = 1 + draw(w, 3);
	bool may = n->there && n->state != LEDGER_BOUND;

	assert_int_equal(ledger_charge(w->l, uids[i], nodes[node], w->now_ns), may ? 0 : -ENOENT);
	if (!may)
		return;
	n->state = LEDGER_CHARGED;
	n->node = node;
	n->expires_ns = w->now_ns + LEDGER_TTL_NS;
}

static void step_event(struct world *w, int i)
{
	struct naive *n = &w->of[i];
	int node = 1 + draw(w, 3);

	switch (draw(w, 3)) {
	case 0:
		ledger_bind(w->l, uids[i], nodes[node], ++w->generation);
		if (n->there && n->state != LEDGER_BOUND) {
			n->state = LEDGER_BOUND;
			n->node = node;
			n->generation = w->generation;
		}
		break;
	case 1:
		ledger_release(w->l, uids[i]);
		n->there = false;
		break;
	default:
		ledger_unschedulable(w->l, uids[i]);
		if (n->there && n->state != LEDGER_BOUND)
			n->there = false;
	}
}

static void step_settle(struct world *w)
{
	uint64_t shown = w->generation - (uint64_t)draw(w, 3) % (w->generation + 1);

	ledger_settle(w->l, shown, w->now_ns);
	for (int i = 0; i < UIDS; i++)
		if (w->of[i].there && w->of[i].state == LEDGER_BOUND &&
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
					ledger_state_name(w->of[i].state), w->of[i].node ? "@" : "",
					nodes[w->of[i].node]);
	assert_string_equal(told(w->l, w->now_ns), expected);
}

static void any_events_leave_what_a_simple_model_has(void **state)
{
	struct world w = {.l = ledger_new(), .now_ns = now, .seed = 1};

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
	assert_true(counters_of(w.l).expired > 100 && counters_of(w.l).settled > 100 &&
		    counters_of(w.l).moved > 100 && counters_of(w.l).unschedulable > 100);
	ledger_free(w.l);
}

/*
 * Who decided before others were promised something decides again; what becomes of promises is no
 * reason.
 */
static void who_looked_too_early_looks_again(void **state)
{
	struct ledger *l = ledger_new();
	struct ledger_entry e = entry_of("u", "web-1", "");
	struct ledger_copy *early = ledger_take(l, now), *later;

	(void)state;
	reserve(l, "a", "", now);
	assert_int_equal(ledger_reserve_seen(l, &e, early, now), -EAGAIN);
	assert_string_equal(told(l, now), "a:asked");
	later = ledger_take(l, now);
	ledger_charge(l, "a", "n1", now);
	reserve(l, "a", "n1", now); /* the same again */
	ledger_bind(l, "a", "n1", 17);
	assert_int_equal(ledger_reserve_seen(l, &e, later, now), 0);
	/* More for one that is there is news, too. */
	ledger_copy_drop(later);
	later = ledger_take(l, now);
	e.requests.of[RESOURCE_CPU]++;
	assert_int_equal(ledger_reserve(l, &e, now), 0);
	assert_int_equal(ledger_reserve_seen(l, &e, later, now), -EAGAIN);
	resources_fini(&e.requests);
	ledger_copy_drop(early);
	ledger_copy_drop(later);
	ledger_free(l);
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
		cmocka_unit_test(nothing_is_reserved_without_uid_or_above_the_bounds),
		cmocka_unit_test(a_full_ledger_refuses_new_pods_only),
		cmocka_unit_test(many_go_in_parts),
		cmocka_unit_test(a_copy_is_the_same_until_something_changes),
		cmocka_unit_test(who_looked_too_early_looks_again),
		cmocka_unit_test(copy_and_view_have_every_pod_once),
		cmocka_unit_test(any_events_leave_what_a_simple_model_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
