/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that plans, on views that a test publishes: when it begins, that it goes on, and that
 * it ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aggregator/engine_planner.h"
#include "shared/clock.h"
#include "shared/file.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/slack_fixture.h"
#include "tests/view_fixture.h"

struct scene {
	struct slack_fixture world;
	struct view_slot *views;
	struct plan_slot *plans;
	struct planner_counters counters;
	struct slack_options options;
	struct planner *planner;
};

static struct scene s;

static int setup(void **state)
{
	(void)state;
	s = (struct scene){.views = view_slot_new(), .plans = plan_slot_new()};
	slack_options_default(&s.options);
	slack_fixture_init(&s.world);
	slack_fixture_node(&s.world, "n1", "z1", "4", "16Gi", "");
	slack_fixture_node(&s.world, "n2", "z1", "4", "16Gi", "");
	slack_fixture_pod(&s.world, "one", "n2", "2", "4Gi", "");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	planner_free(s.planner);
	plan_slot_free(s.plans);
	view_slot_free(s.views);
	slack_fixture_fini(&s.world);
	return 0;
}

static void make(int64_t every_ns, const struct plan_drain *drain)
{
	const struct planner_config config = {
		.views = s.views,
		.plans = s.plans,
		.counters = &s.counters,
		.every_ns = every_ns,
		.slack = &s.options,
		.drain = drain,
	};

	s.planner = planner_new(&config);
}

static void start(void)
{
	struct error error = {""};

	if (planner_start(s.planner, NULL, &error))
		fail_msg("%s", error.text);
}

static void publish(void)
{
	view_slot_publish(s.views, place_fixture_view(&s.world.world, NULL, 0));
}

static bool is_steps(void *ctx)
{
	return counter_get(&s.counters.steps) >= *(const uint64_t *)ctx;
}

static void await_steps(uint64_t steps)
{
	if (!await(is_steps, &steps, 60))
		fail_msg("%d steps, not %d", (int)counter_get(&s.counters.steps), (int)steps);
}

/* Where the one placeholder of the newest plan stands. */
static const char *where(void)
{
	struct plan_result *r = plan_slot_take(s.plans);
	static char name[64];

	assert_non_null(r);
	assert_int_equal(r->slack.placed_count, 1);
	snprintf(name, sizeof(name), "%s", r->slack.view->nodes[r->slack.placed[0].node]->name);
	plan_result_drop(r);
	return name;
}

static void test_first_plan_waits_for_the_cluster(void **state)
{
	struct plan_result *r;

	(void)state;
	make(3600 * NS_PER_SEC, NULL);
	start();
	assert_null(plan_slot_take(s.plans));
	publish();
	await_steps(1);
	assert_string_equal(where(), "n2");
	r = plan_slot_take(s.plans);
	assert_int_equal(r->every_ns, 3600 * NS_PER_SEC);
	plan_result_drop(r);
	/* In the middle of an hour's wait. */
	planner_stop(s.planner);
	assert_int_equal(counter_get(&s.counters.steps), 1);
	assert_int_equal(counter_get(&s.counters.late), 0);
	assert_true(counter_get(&s.counters.took_ns) > 0);
}

static void set_budgets(enum source_state state)
{
	const struct model_source source = {.state = state};

	model_set_source(s.world.world.model, OBJECT_POD_DISRUPTION_BUDGET, &source);
}

/* A thread beside the first one has slept: the planner's one, after a look. */
static bool has_looked(void *ctx)
{
	static const char key[] = "\nvoluntary_ctxt_switches:";
	char *own = mem_printf("/task/%d/", (int)getpid());
	bool looked = false;
	glob_t found = {0};

	(void)ctx;
	assert_int_equal(glob("/proc/self/task/*/status", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct buf text = BUF_INIT;
		struct error error;
		const char *at = NULL;

		/* A thread that was joined may vanish meanwhile. */
		if (!file_read(found.gl_pathv[i], 1 << 16, &text, &error))
			at = strstr(text.data, key);
		looked |= at && !strstr(found.gl_pathv[i], own) &&
			  strtoull(at + strlen(key), NULL, 10) > 0;
		buf_fini(&text);
	}
	globfree(&found);
	free(own);
	return looked;
}

static void test_first_plan_waits_for_all_kinds(void **state)
{
	(void)state;
	set_budgets(SOURCE_LISTING);
	publish();
	make(3600 * NS_PER_SEC, NULL);
	start();
	assert_true(await(has_looked, NULL, 60));
	assert_int_equal(counter_get(&s.counters.steps), 0);
	set_budgets(SOURCE_SYNCED);
	publish();
	await_steps(1);
}

#define NOW VIEW_FIXTURE_NOW_NS

static bool awaits(enum source_state budgets, enum source_state nodes, int64_t measured_ns,
		   int64_t known_for_ns)
{
	const struct model_source source = {.state = nodes};
	struct node_stats from = view_fixture_node("n1", measured_ns, 3600, 100, 0);
	struct node_stats *stats = node_stats_new(&from);
	struct view *v;
	bool more;

	set_budgets(budgets);
	model_set_source(s.world.world.model, OBJECT_NODE, &source);
	v = place_fixture_view(&s.world.world, &stats, 1);
	more = planner_awaits_more(v, known_for_ns, NOW);
	view_drop(v);
	node_stats_drop(stats);
	return more;
}

static void test_what_the_first_plan_waits_for(void **state)
{
	static const int64_t minute_ns = 60 * NS_PER_SEC;
	static const struct {
		enum source_state budgets, nodes;
		int64_t age_ns;
		bool more;
	} rows[] = {
		{SOURCE_SYNCED, SOURCE_SYNCED, NS_PER_SEC, false},
		{SOURCE_LISTING, SOURCE_SYNCED, NS_PER_SEC, true},
		{SOURCE_NONE, SOURCE_SYNCED, NS_PER_SEC, true},
		{SOURCE_STALE, SOURCE_STALE, NS_PER_SEC, false},
		{SOURCE_FORBIDDEN, SOURCE_SYNCED, NS_PER_SEC, false},
		{SOURCE_ABSENT, SOURCE_SYNCED, NS_PER_SEC, false},
		{SOURCE_SYNCED, SOURCE_SYNCED, EXPIRED_NS, false},
		{SOURCE_SYNCED, SOURCE_SYNCED, EXPIRED_NS + 1, true},
		{SOURCE_NONE, SOURCE_SNAPSHOT, EXPIRED_NS + 1, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t measured_ns = NOW - rows[i].age_ns;

		assert_int_equal(awaits(rows[i].budgets, rows[i].nodes, measured_ns, minute_ns),
				 rows[i].more);
		assert_false(awaits(rows[i].budgets, rows[i].nodes, measured_ns, minute_ns + 1));
	}
}

static void test_goes_on_with_newer_views(void **state)
{
	uint64_t steps;

	(void)state;
	publish();
	make(NS_PER_SEC / 100, NULL);
	start();
	await_steps(3);
	assert_string_equal(where(), "n2");
	/*
	 * The node leaves; a view that is published is planned for by the step after the one under
	 * way.
	 */
	place_fixture_remove(&s.world.world, OBJECT_NODE, "", "n2");
	publish();
	steps = counter_get(&s.counters.steps);
	await_steps(steps + 2);
	assert_string_equal(where(), "n1");
}

/* Each is counted, the first is logged. */
static void test_late_steps_are_counted(void **state)
{
	struct stderr_log caught;
	double took_s;
	char *log;

	(void)state;
	publish();
	make(1, NULL);
	stderr_log_begin(&caught);
	start();
	await_steps(3);
	planner_stop(s.planner);
	log = stderr_log_end(&caught);
	assert_int_equal(counter_get(&s.counters.late), counter_get(&s.counters.steps));
	assert_int_equal(sscanf(log, "evenkeel: warning: a plan took %lf s", &took_s), 1);
	assert_non_null(strstr(log, " s, more than the 0.0 s of --plan-interval"));
	assert_true(took_s <= (double)counter_get(&s.counters.took_ns) / NS_PER_SEC + 0.1);
	assert_string_equal(strchr(log, '\n'), "\n");
	free(log);
}

static void test_remembers_before_it_starts(void **state)
{
	static const char good[] = "{\"classes\":[{\"class\":\"unit\",\"wanted\":1,\"nodes\":[{"
				   "\"node\":\"n1\",\"count\":1}]}]}";

	(void)state;
	publish();
	make(NS_PER_SEC / 100, NULL);
	planner_remember(s.planner, "slack", "garbage", 7);
	planner_remember(s.planner, "of another version", "x", 1);
	planner_remember(s.planner, "slack", good, strlen(good));
	start();
	await_steps(2);
	assert_string_equal(where(), "n1");
	planner_remember(s.planner, "slack", "too late", 8);
	await_steps(4);
	assert_string_equal(where(), "n1");
}

/* --- a step that would never end by itself */

static atomic_bool entered;

static void drain_for_ever(void *state, struct place *p, const struct plan_input *in,
			   struct plan_result *out)
{
	(void)state;
	(void)p;
	(void)out;
	atomic_store(&entered, true);
	while (!in->out_of_time(in->ctx))
		continue;
}

static void free_nothing(void *state)
{
	(void)state;
}

static bool is_entered(void *ctx)
{
	(void)ctx;
	return atomic_load(&entered);
}

static void test_a_stop_ends_a_long_step(void **state)
{
	static const struct plan_drain drain = {.step = drain_for_ever, .free = free_nothing};

	(void)state;
	publish();
	make(3600 * NS_PER_SEC, &drain);
	start();
	assert_true(await(is_entered, NULL, 60));
	planner_stop(s.planner);
	/* What slack has is published, so that it can be saved. */
	assert_string_equal(where(), "n2");
}

/* --- a step that takes much of a CPU */

#define CPU_NS (NS_PER_SEC / 20)

static void drain_hard(void *state, struct place *p, const struct plan_input *in,
		       struct plan_result *out)
{
	int64_t until_ns = clock_thread_cpu_ns() + CPU_NS;

	(void)state;
	(void)p;
	(void)in;
	(void)out;
	while (clock_thread_cpu_ns() < until_ns)
		continue;
}

static void test_plans_take_a_share_of_a_cpu(void **state)
{
	static const struct plan_drain drain = {.step = drain_hard, .free = free_nothing};
	int64_t start_ns = clock_mono_ns();
	struct plan_result *r;

	(void)state;
	publish();
	make(1, &drain);
	start();
	await_steps(2);
	assert_true(clock_mono_ns() - start_ns >= 40 * CPU_NS);
	r = plan_slot_take(s.plans);
	assert_true(r->every_ns >= 40 * CPU_NS);
	plan_result_drop(r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_first_plan_waits_for_the_cluster),
		TEST(test_first_plan_waits_for_all_kinds),
		TEST(test_what_the_first_plan_waits_for),
		TEST(test_goes_on_with_newer_views),
		TEST(test_late_steps_are_counted),
		TEST(test_remembers_before_it_starts),
		TEST(test_a_stop_ends_a_long_step),
		TEST(test_plans_take_a_share_of_a_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
