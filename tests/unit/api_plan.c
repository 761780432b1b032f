/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot of plans, and the core that makes them: what is held lives, what did not change is the
 * same body, and drains find the cluster as it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/plan.h"
#include "shared/mem.h"
#include "tests/slack_fixture.h"
#include "tests/view_fixture.h"

static struct slack_fixture world;
static struct slack_options options;

static int open_world(void **state)
{
	(void)state;
	slack_fixture_init(&world);
	slack_fixture_node(&world, "n1", "z1", "4", "16Gi", "");
	slack_fixture_pod(&world, "one", "n1", "2", "4Gi", "");
	slack_options_default(&options);
	return 0;
}

static int close_world(void **state)
{
	(void)state;
	slack_fixture_fini(&world);
	return 0;
}

static struct plan_result *step(struct plan_core *c)
{
	struct plan_input in = {.view = place_fixture_view(&world.world, NULL, 0),
				.now_ns = VIEW_FIXTURE_NOW_NS};
	struct error why = {""};
	struct plan_result *r;

	if (plan_core_step(c, &in, &r, &why))
		fail_msg("%s", why.text);
	view_drop(in.view);
	return r;
}

/* --- the slot */

static void test_slot(void **state)
{
	struct plan_core *c = plan_core_new(&options, NULL);
	struct plan_slot *s = plan_slot_new();
	struct plan_result *first, *again;

	(void)state;
	assert_null(plan_slot_take(s));
	plan_slot_publish(s, step(c));
	first = plan_slot_take(s);
	assert_int_equal(first->version, 1);
	plan_slot_publish(s, step(c));
	again = plan_slot_take(s);
	assert_int_equal(again->version, 2);
	plan_core_free(c);
	plan_slot_free(s);
	/* Whoever has one keeps it, with its view and its names. */
	assert_string_equal(first->slack.classes[0].key, "unit");
	assert_string_equal(first->slack.view->nodes[first->slack.placed[0].node]->name, "n1");
	plan_result_drop(first);
	plan_result_drop(again);
	plan_result_drop(NULL);
}

enum { READS = 2000 };

static void *read_often(void *arg)
{
	uint64_t last = 0;

	for (int i = 0; i < READS; i++) {
		struct plan_result *r = plan_slot_take(arg);

		if (!r || r->version < last || strcmp(r->slack.classes[0].key, "unit") != 0)
			return arg;
		last = r->version;
		plan_result_drop(r);
	}
	return NULL;
}

/* For the sanitizers: readers see whole plans, and never an older one after a newer. */
static void test_many_readers(void **state)
{
	struct plan_core *c = plan_core_new(&options, NULL);
	struct plan_slot *s = plan_slot_new();
	pthread_t readers[2];
	void *failed;

	(void)state;
	plan_slot_publish(s, step(c));
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_often, s), 0);
	for (int i = 0; i < 100; i++)
		plan_slot_publish(s, step(c));
	for (int i = 0; i < 2; i++) {
		pthread_join(readers[i], &failed);
		assert_null(failed);
	}
	plan_core_free(c);
	plan_slot_free(s);
}

/* --- the core */

static void test_memory_is_the_same_body_until_it_changes(void **state)
{
	struct plan_core *c = plan_core_new(&options, NULL);
	struct plan_result *a = step(c), *b = step(c), *d;

	(void)state;
	assert_ptr_equal(a->memory[PLAN_SLACK], b->memory[PLAN_SLACK]);
	assert_null(a->memory[PLAN_DRAIN]);
	slack_fixture_node(&world, "n0", "z1", "4", "16Gi", "");
	slack_fixture_pod(&world, "two", "n1", "2", "4Gi", "");
	d = step(c);
	assert_ptr_not_equal(a->memory[PLAN_SLACK], d->memory[PLAN_SLACK]);
	assert_non_null(strstr(d->memory[PLAN_SLACK]->data, "\"n0\""));
	plan_result_drop(a);
	plan_result_drop(b);
	plan_result_drop(d);
	plan_core_free(c);
}

static int remember(struct plan_core *c, enum plan_part part, const char *text, struct error *why)
{
	return plan_core_remember(
		c, part, &(struct plan_text){text, strlen(text), VIEW_FIXTURE_NOW_NS, false}, why);
}

static void test_remembers(void **state)
{
	static const char text[] = "{\"classes\":[{\"class\":\"unit\",\"wanted\":2,"
				   "\"cpuMillicores\":800,\"memoryBytes\":3435973836,\"nodes\":["
				   "{\"node\":\"n1\",\"count\":2}]}]}";
	struct plan_core *c = plan_core_new(&options, NULL);
	struct error why = {""};
	struct plan_result *r;

	(void)state;
	assert_int_not_equal(remember(c, PLAN_SLACK, "{}", &why), 0);
	assert_string_equal(why.text, "classes: must be a list");
	/* Nobody plans drains here. */
	assert_int_equal(remember(c, PLAN_DRAIN, "{}", &why), 0);
	assert_int_equal(remember(c, PLAN_SLACK, text, &why), 0);
	r = step(c);
	assert_int_equal(r->slack.classes[0].placed, 2);
	assert_int_equal(r->slack.classes[0].target, 1);
	plan_result_drop(r);
	/* After steps as well; a text without placeholders leaves those by the present numbers. */
	assert_int_not_equal(remember(c, PLAN_SLACK, "{\"classes\":7}", &why), 0);
	r = step(c);
	assert_int_equal(r->slack.classes[0].placed, 2);
	plan_result_drop(r);
	assert_int_equal(remember(c, PLAN_SLACK, "{\"classes\":[]}", &why), 0);
	r = step(c);
	assert_int_equal(r->slack.classes[0].placed, 1);
	plan_result_drop(r);
	plan_core_free(c);
}

struct countdown {
	int left;
};

static bool is_counted_down(void *ctx)
{
	struct countdown *c = ctx;

	return c->left == 0 || c->left-- == 0;
}

/* Wherever a step is ended, the next goes on from the plan before. */
static void test_ended_anywhere(void **state)
{
	struct plan_core *c = plan_core_new(&options, NULL);
	struct plan_result *first = step(c), *r = NULL;
	struct plan_input in = {.now_ns = VIEW_FIXTURE_NOW_NS, .out_of_time = is_counted_down};
	struct error why = {""};
	int ended = 0, reading = 0, rc;

	(void)state;
	slack_fixture_node(&world, "n0", "z1", "4", "16Gi", "");
	slack_fixture_workload(&world, "web", "2", 0, "500m", "1Gi", "");
	in.view = place_fixture_view(&world.world, NULL, 0);
	for (;; ended++) {
		struct countdown countdown = {ended};

		in.ctx = &countdown;
		rc = plan_core_step(c, &in, &r, &why);
		if (!rc)
			break;
		assert_int_equal(rc, -EINTR);
		if (strcmp(why.text, "the step was ended before the cluster was read") == 0)
			assert_int_equal(reading++, ended);
		else
			assert_string_equal(why.text, "the step was ended before it was done");
		assert_null(r);
	}
	assert_true(reading > 2 && ended > reading + 5);
	assert_int_equal(r->slack.placed_count, 3);
	/* What stood on n1 stands there still. */
	assert_int_equal(r->slack.move_count, 2);
	plan_result_drop(first);
	plan_result_drop(r);
	view_drop(in.view);
	plan_core_free(c);
}

/* --- drains behind it */

struct drain_plan {
	int number;
};

struct fake_drain {
	int steps, plans, freed;
	char remembered[64];
	bool was_clean, saw_slack;
};

static void free_plan(struct drain_plan *plan)
{
	free(plan);
}

static void drain_step_fake(void *state, struct place *p, const struct plan_input *in,
			    struct plan_result *out)
{
	struct fake_drain *d = state;
	struct place *fresh;
	struct place_options o;
	struct buf text = BUF_INIT;
	place_pod probe;

	place_options_default(&o);
	o.now_ns = in->now_ns;
	fresh = place_new(in->view, &o);
	probe = place_add_pod(p, out->slack.classes[0].record);
	/*
	 * Two more fit beside the pod, or one where the placeholder still stood: put there whatever
	 * fits.
	 */
	for (d->plans = 0; place_check(p, probe, 0) == PLACE_FITS; d->plans++) {
		place_put(p, probe, 0);
		probe = place_add_pod(p, out->slack.classes[0].record);
	}
	d->was_clean = place_node_count(p) == place_node_count(fresh);
	d->saw_slack = out->slack.placed_count == 1;
	place_free(fresh);
	out->drain = mem_zalloc(1, sizeof(*out->drain));
	out->drain_free = free_plan;
	buf_printf(&text, "%d", ++d->steps);
	out->memory[PLAN_DRAIN] = shared_body_new(&text);
}

static int drain_restore_fake(void *state, const struct plan_text *text, struct error *error)
{
	struct fake_drain *d = state;

	(void)error;
	memcpy(d->remembered, text->data, text->len);
	return 0;
}

static void drain_free_fake(void *state)
{
	((struct fake_drain *)state)->freed++;
}

static void test_drains_find_the_cluster_as_it_is(void **state)
{
	struct fake_drain d = {0};
	struct plan_drain drain = {
		.state = &d,
		.restore = drain_restore_fake,
		.step = drain_step_fake,
		.free = drain_free_fake,
	};
	struct plan_core *c;
	struct plan_result *r;

	(void)state;
	place_options_default(&drain.places);
	c = plan_core_new(&options, &drain);
	assert_int_equal(remember(c, PLAN_DRAIN, "timers", NULL), 0);
	assert_string_equal(d.remembered, "timers");
	for (int i = 1; i <= 2; i++) {
		r = step(c);
		assert_int_equal(d.steps, i);
		assert_true(d.was_clean && d.saw_slack);
		/* 2 CPUs are free, and a unit is 800m. */
		assert_int_equal(d.plans, 2);
		assert_string_equal(r->memory[PLAN_DRAIN]->data, i == 1 ? "1" : "2");
		assert_non_null(r->drain);
		/* And what they changed is not there in the next step. */
		assert_int_equal(r->slack.classes[0].placed, 1);
		plan_result_drop(r);
	}
	plan_core_free(c);
	assert_int_equal(d.freed, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
	const struct CMUnitTest tests[] = {
		TEST(test_slot),
		TEST(test_many_readers),
		TEST(test_memory_is_the_same_body_until_it_changes),
		TEST(test_remembers),
		TEST(test_ended_anywhere),
		TEST(test_drains_find_the_cluster_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
