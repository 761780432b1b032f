/* SPDX-License-Identifier: Apache-2.0 */
/* How nodes that could be drained rank beside others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "aggregator/planner/plan.h"
#include "aggregator/api/policy_options.h"
#include "aggregator/policy/drain/drain.h"
#include "shared/clock.h"
#include "tests/api_fixture.h"
#include "tests/view_fixture.h"

/* A pod of 1 CPU, which is what it is expected to use. */
#define ASK                                                                                        \
	"{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"shop\",\"uid\":\"p\"},"            \
	"\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\","    \
	"\"memory\":\"1Gi\"}}}]}},\"NodeNames\":[\"alpha\",\"bravo\",\"mute\"]}"

static struct api_fixture f;
static struct extender_options options;
static struct drain_plan_node nodes[] = {{.name = "alpha"}, {.name = "bravo"}, {.name = "mute"}};
static struct drain_plan plan = {.node_count = 3, .nodes = nodes};

static struct view *make_view(double alpha_milli, double bravo_milli)
{
	const int64_t end_ns = VIEW_FIXTURE_NOW_NS - NS_PER_SEC;
	struct node_stats node_stats[] = {
		view_fixture_node("alpha", end_ns, 3600, alpha_milli, 100),
		view_fixture_node("bravo", end_ns, 3600, bravo_milli, 100),
		{.name = "mute"}};

	return view_fixture_of(node_stats, 3);
}

static void leave_plan(struct drain_plan *unused)
{
	(void)unused;
}

static struct plan_result *plan_without_cap(void)
{
	struct plan_result *r = plan_result_new();

	r->drain = &plan;
	r->drain_free = leave_plan;
	r->time_ns = VIEW_FIXTURE_NOW_NS;
	return r;
}

/* alpha is almost empty; bravo uses 1.5 of its 3.8 CPUs, 1.8 at times. */
static int setup(void **state)
{
	struct plan_result *r = plan_without_cap();
	struct place_options usual;

	(void)state;
	api_fixture_open(&f, make_view(100, 1500));
	api_fixture_extender(&options);
	f.ctx.extender = &options;
	r->use_cap = true;
	place_options_default(&usual);
	r->cap = usual.cap;
	f.ctx.plans = plan_slot_new();
	plan_slot_publish(f.ctx.plans, r);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	plan_slot_free(f.ctx.plans);
	api_fixture_close(&f);
	return 0;
}

static void expect(enum drain_verdict alpha, enum drain_verdict bravo, const char *steps)
{
	nodes[0].verdict = alpha;
	nodes[1].verdict = bravo;
	nodes[2].verdict = DRAIN_NEEDED;
	assert_int_equal(api_fixture_send(&f, "POST", "/extender/prioritize", ASK), 200);
	assert_string_equal(f.response.body.data, steps);
}

#define STEPS(alpha, bravo)                                                                        \
	"[{\"Host\":\"alpha\",\"Score\":" alpha "},{\"Host\":\"bravo\",\"Score\":" bravo           \
	"},{\"Host\":\"mute\",\"Score\":0}]"

/* A pod that came to a candidate would move again with the drain, however empty that is. */
static void nodes_that_stay_rank_above_candidates(void **state)
{
	(void)state;
	expect(DRAIN_UNNEEDED, DRAIN_NEEDED, STEPS("5", "10"));
	expect(DRAIN_SELECTED, DRAIN_NEEDED, STEPS("5", "10"));
	expect(DRAIN_NEEDED, DRAIN_UNNEEDED, STEPS("10", "5"));
}

static void candidates_alone_have_all_steps(void **state)
{
	(void)state;
	expect(DRAIN_NEEDED, DRAIN_NEEDED, STEPS("10", "1"));
	expect(DRAIN_UNNEEDED, DRAIN_SELECTED, STEPS("10", "1"));
}

/* bravo stays, and would use up to 3.6 of its 3.8 CPUs with the pod. */
static void a_node_that_would_be_hot_ranks_with_the_candidates(void **state)
{
	(void)state;
	view_slot_publish(f.ctx.views, make_view(100, 2300));
	expect(DRAIN_UNNEEDED, DRAIN_NEEDED, STEPS("10", "1"));
}

/* Without a cap for drains none is too hot to stay. */
static void no_node_is_hot_without_a_cap(void **state)
{
	(void)state;
	plan_slot_publish(f.ctx.plans, plan_without_cap());
	view_slot_publish(f.ctx.views, make_view(100, 2300));
	expect(DRAIN_UNNEEDED, DRAIN_NEEDED, STEPS("5", "10"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nodes_that_stay_rank_above_candidates),
		T(candidates_alone_have_all_steps),
		T(a_node_that_would_be_hot_ranks_with_the_candidates),
		T(no_node_is_hot_without_a_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
