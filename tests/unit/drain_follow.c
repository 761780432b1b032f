/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planner that goes on from the memory of another aggregator, or of a record: evictions, and
 * decisions in the log.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aggregator/api/snapshot.h"
#include "aggregator/planner/drain_log.h"
#include "aggregator/planner/drain_settings.h"
#include "aggregator/planner/plan.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/drain_scene.h"
#include "tests/drain_world.h"
#include "tests/view_fixture.h"

#define NOW    VIEW_FIXTURE_NOW_NS
#define MINUTE (60 * NS_PER_SEC)

/* --- evictions -------------------------------------------------------------------------------- */

static struct drain_world w;

static struct buf text_of(const struct drain_state *s)
{
	struct buf text = BUF_INIT;

	drain_state_write(s, NOW, &text);
	return text;
}

static void take(const struct buf *text)
{
	assert_int_equal(drain_state_read(w.state, text->data, text->len, 10 * MINUTE, NOW + MINUTE,
					  NULL),
			 0);
}

/* Evictions that the step found. */
static int found(void)
{
	int count = 0;

	for (size_t i = 0; i < w.plan->record_count; i++)
		count += w.plan->records[i].event == DRAIN_EVENT_EVICTED;
	return count;
}

/* The state goes on from its own last cluster, and finds no eviction twice. */
static void evictions_are_found_behind_another_memory(void **unused)
{
	struct buf before, after;

	(void)unused;
	drain_world_init(&w);
	drain_world_node(&w, "a");
	drain_world_node_with(&w, "b", "", "", "'unschedulable':true");
	drain_world_owner(&w, "web", 1);
	drain_world_pod(&w, "web-1", "web", "b", 100);
	drain_world_step(&w, NOW);
	before = text_of(w.state);
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-1");
	take(&before);
	drain_world_step(&w, NOW + MINUTE);
	assert_int_equal(found(), 1);
	assert_int_equal(w.plan->reserved.of_evictions, 1);
	after = text_of(w.state);
	/* The same where the memory has it. */
	take(&before);
	drain_world_pod(&w, "web-1", "web", "b", 100);
	drain_world_step(&w, NOW + MINUTE);
	assert_int_equal(w.plan->reserved.of_evictions, 0);
	place_fixture_remove(&w.cluster, OBJECT_POD, "default", "web-1");
	take(&after);
	drain_world_step(&w, NOW + MINUTE);
	assert_int_equal(found(), 0);
	assert_int_equal(w.plan->reserved.of_evictions, 1);
	buf_fini(&before);
	buf_fini(&after);
	drain_world_fini(&w);
}

/* --- decisions -------------------------------------------------------------------------------- */

static struct view *read_scene(const char *more)
{
	char *dump = mem_printf("%s%s", drain_scene_dump, more);
	struct snapshot *s = snapshot_new();
	struct error error = {""};
	struct view *v = NULL;
	int64_t ns;

	assert_int_equal(snapshot_add(s, "dump", dump, strlen(dump), &error), 0);
	assert_int_equal(snapshot_view(s, &v, &ns, &error), 0);
	snapshot_free(s);
	free(dump);
	return v;
}

/* Without slack. */
static struct plan_core *core_new(const struct drain_setup *setup, bool timed,
				  struct drain_log *decisions)
{
	struct slack_options slack;
	struct plan_drain drain;

	slack_options_default(&slack);
	slack.rate_ppm = 0;
	drain_runner_open(&drain, setup, timed, NULL, decisions);
	return plan_core_new(&slack, &drain);
}

static struct plan_result *step(struct plan_core *c, struct view *v, int64_t ns)
{
	const struct plan_input in = {.view = v, .now_ns = ns, .recorded = true};
	struct plan_result *r;

	assert_int_equal(plan_core_step(c, &in, &r, NULL), 0);
	return r;
}

/* Number of rows of a log. */
static size_t count_rows(struct drain_log *l)
{
	struct drain_rows rows;
	size_t count;

	drain_log_read(l, 0, &rows);
	count = rows.count;
	drain_rows_fini(&rows);
	return count;
}

static void remember(struct plan_core *c, const struct shared_body *memory, int64_t now_ns,
		     bool foreign)
{
	const struct plan_text text = {memory->data, memory->len, now_ns, foreign};

	assert_int_equal(plan_core_remember(c, PLAN_DRAIN, &text, NULL), 0);
}

static void follow(struct plan_core *c, const struct plan_result *of, int64_t now_ns)
{
	remember(c, of->memory[PLAN_DRAIN], now_ns, true);
}

static bool is_same(const struct shared_body *a, const struct shared_body *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* A replacement restarts the timer of bravo: a replay finds the eviction without the cluster before. */
static void a_step_is_repeated_from_what_it_began_with(void **unused)
{
#define WEB(name, node, status)                                                                    \
	"- {apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: " name ", uid: u-" name   \
	", creationTimestamp: '2026-01-01T12:01:00Z', ownerReferences: [{apiVersion: apps/v1, "    \
	"kind: ReplicaSet, name: web, uid: uid-web, controller: true}]}, spec: {nodeName: " node   \
	", containers: [{name: c}]}, status: {phase: Running" status "}}\n"
	struct view *before = read_scene(
		WEB("web-8", "alpha", ", conditions: [{type: DisruptionTarget, status: 'True'}]"));
	struct view *v = read_scene(WEB("web-9", "bravo", ""));
	int64_t now_ns = drain_scene_now_ns + 2 * MINUTE;
	struct plan_core *live, *replayed;
	struct plan_result *first, *r, *again;
	struct drain_setup setup;

	(void)unused;
	drain_setup_default(&setup);
	live = core_new(&setup, false, NULL);
	replayed = core_new(&setup, false, NULL);
	first = step(live, before, drain_scene_now_ns);
	r = step(live, v, now_ns);
	remember(replayed, r->begun[PLAN_DRAIN], now_ns, false);
	again = step(replayed, v, now_ns);
	assert_true(is_same(again->memory[PLAN_DRAIN], r->memory[PLAN_DRAIN]));
	plan_result_drop(again);
	/* The memory of the step before does not tell of the eviction. */
	remember(replayed, first->memory[PLAN_DRAIN], now_ns, false);
	again = step(replayed, v, now_ns);
	assert_false(is_same(again->memory[PLAN_DRAIN], r->memory[PLAN_DRAIN]));
	plan_result_drop(again);
	plan_result_drop(first);
	plan_result_drop(r);
	plan_core_free(live);
	plan_core_free(replayed);
	drain_setup_fini(&setup);
	view_drop(before);
	view_drop(v);
#undef WEB
}

/* It stops at the node at which the clock stopped the first one. */
static void a_step_that_was_cut_short_is_repeated(void **unused)
{
	struct view *v = read_scene("");
	struct plan_input in = {.view = v, .now_ns = drain_scene_now_ns};
	struct plan_core *live, *replayed;
	struct plan_result *r, *again;
	struct drain_setup setup;

	(void)unused;
	drain_setup_default(&setup);
	setup.config.rules.simulation_ns = 1;
	setup.config.rules.simulation_min_nodes = 2;
	live = core_new(&setup, true, NULL);
	r = step(live, v, in.now_ns);
	assert_false(r->drain->complete);
	for (int repeats = 0; repeats < 2; repeats++) {
		in.looks = repeats ? r->looks : 0;
		replayed = core_new(&setup, false, NULL);
		assert_int_equal(plan_core_step(replayed, &in, &again, NULL), 0);
		assert_true(again->drain->complete == !repeats);
		assert_true(is_same(again->memory[PLAN_DRAIN], r->memory[PLAN_DRAIN]) == repeats);
		plan_result_drop(again);
		plan_core_free(replayed);
	}
	plan_result_drop(r);
	plan_core_free(live);
	drain_setup_fini(&setup);
	view_drop(v);
}

/* Both have the rows of the elder; alone, the younger goes on with its own. */
static void both_logs_have_the_rows_of_the_elder(void **unused)
{
	/* bravo is needed. */
	static const char big[] =
		"- {apiVersion: v1, kind: Pod, metadata: {namespace: shop, name: big, "
		"uid: u-big}, spec: {nodeName: bravo, containers: [{name: c, "
		"resources: {requests: {cpu: 3}}}]}, status: {phase: Running}}\n";
	struct view *v = read_scene(""), *full = read_scene(big);
	struct drain_log *logs[] = {drain_log_new(), drain_log_new()};
	struct plan_core *elder, *younger;
	struct drain_setup setup;
	int64_t now_ns = drain_scene_now_ns;
	struct plan_result *r;
	struct drain_rows rows;

	(void)unused;
	drain_setup_default(&setup);
	setup.config.assume_unneeded_ns = 15 * MINUTE;
	elder = core_new(&setup, false, logs[0]);
	younger = core_new(&setup, false, logs[1]);
	r = step(elder, v, now_ns);
	assert_int_equal(count_rows(logs[0]), 5);
	follow(younger, r, now_ns);
	assert_int_equal(count_rows(logs[1]), 5);
	plan_result_drop(r);
	/* Its own step says other things of another cluster, and so does the elder's. */
	plan_result_drop(step(younger, full, now_ns + MINUTE));
	assert_int_equal(count_rows(logs[1]), 5);
	r = step(elder, full, now_ns + 2 * MINUTE);
	assert_true(count_rows(logs[0]) > 5);
	follow(younger, r, now_ns + 2 * MINUTE);
	assert_int_equal(count_rows(logs[1]), count_rows(logs[0]));
	follow(younger, r, now_ns + 2 * MINUTE);
	assert_int_equal(count_rows(logs[1]), count_rows(logs[0]));
	plan_result_drop(r);
	/* The elder dies between a step of the younger and its own. */
	plan_result_drop(step(younger, v, now_ns + 3 * MINUTE));
	assert_int_equal(count_rows(logs[1]), count_rows(logs[0]));
	plan_result_drop(step(younger, v, now_ns + 4 * MINUTE));
	drain_log_read(logs[1], count_rows(logs[0]), &rows);
	assert_true(rows.count > 1);
	assert_true(rows.of[0]->time_ns == now_ns + 3 * MINUTE);
	assert_string_equal(rows.of[0]->node, "bravo");
	assert_true(rows.of[1]->time_ns == now_ns + 4 * MINUTE);
	drain_rows_fini(&rows);
	plan_core_free(elder);
	plan_core_free(younger);
	for (int i = 0; i < 2; i++)
		drain_log_free(logs[i]);
	drain_setup_fini(&setup);
	view_drop(v);
	view_drop(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evictions_are_found_behind_another_memory),
		cmocka_unit_test(a_step_is_repeated_from_what_it_began_with),
		cmocka_unit_test(a_step_that_was_cut_short_is_repeated),
		cmocka_unit_test(both_logs_have_the_rows_of_the_elder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
