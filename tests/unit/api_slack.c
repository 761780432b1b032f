/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/slack, from a slot that a planner fills and from a view alone; and what of it Snapshots
 * and metrics have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/planner/plan_peer.h"
#include "aggregator/api/snapshot.h"
#include "aggregator/model/model.h"
#include "shared/clock.h"
#include "tests/api_fixture.h"
#include "tests/slack_fixture.h"
#include "tests/view_fixture.h"

static struct slack_fixture world;
#define number(path) api_fixture_number(&f, path)
#define text(path)   api_fixture_text(&f, path)

static struct api_fixture f;
static struct slack_options options;

static struct view *see(void)
{
	return place_fixture_view(&world.world, NULL, 0);
}

/*
 * 8 CPUs of two nodes, 5 of them requested. web asks for 3 of 1 CPU, of which 2 find room beside
 * what is there; big fits nowhere.
 */
static void make_world(void)
{
	slack_fixture_node(&world, "n1", "z1", "4", "16Gi", "");
	slack_fixture_node(&world, "n2", "z2", "4", "16Gi", "");
	slack_fixture_pod(&world, "one", "n1", "3", "4Gi", "");
	slack_fixture_pod(&world, "two", "n2", "2500m", "4Gi", "");
	slack_fixture_workload(&world, "web", "3", 0, "1", "1Gi", "");
	slack_fixture_workload(&world, "big", "1", 0, "5", "1Gi", "");
	slack_fixture_workload(&world, "typo", "many", 1, "1", "1Gi", "");
}

static int open_fixture(void **state)
{
	(void)state;
	slack_fixture_init(&world);
	make_world();
	slack_options_default(&options);
	api_fixture_open(&f, see());
	f.ctx.slack = &options;
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	api_fixture_close(&f);
	slack_fixture_fini(&world);
	return 0;
}

/* --- the answer */

static void test_classes(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/slack"), 200);
	assert_string_equal(text("kind"), "SlackList");
	assert_string_equal(text("planned"), text("time"));
	assert_string_equal(text("useCap"), "off: no usage data");
	assert_string_equal(api_fixture_names(&f), "shop/ReplicaSet/big shop/ReplicaSet/web unit");
	assert_string_equal(text("items.0.verdict"), "impossible");
	assert_true(number("items.0.unplaced") == 1);
	assert_string_equal(text("items.1.origin"), "workload");
	assert_string_equal(text("items.1.verdict"), "unplaced");
	assert_true(number("items.1.wanted") == 3);
	assert_true(number("items.1.placed") == 2);
	assert_true(number("items.1.refused.NodeResourcesFit") == 2);
	assert_true(number("items.1.shape.memoryBytes") == 1073741824);
	assert_true(number("items.1.slots.byRequests") == 2);
	assert_null(api_fixture_at(f.json, "items.1.slots.byUse"));
	/* 2.5 CPUs are free, and 2 of them usable. */
	assert_true(number("items.1.fragmentation") == 0.2);
	assert_string_equal(text("items.1.nodes.0.node"), "n1");
	assert_true(number("items.1.nodes.1.count") == 1);
	assert_string_equal(text("items.2.verdict"), "placed");
	assert_true(number("total.wanted") == 4);
	assert_true(number("total.unplaced") == 2);
	assert_true(number("total.nodesToAdd") == 1);
	assert_string_equal(text("nodesToAdd.0.like"), "n1");
	assert_true(number("nodesToAdd.0.count") == 1);
	assert_true(number("moves.Placed") == 2);
	assert_null(api_fixture_at(f.json, "narration"));
}

static void test_target(void **state)
{
	(void)state;
	options.rate_ppm = 125000;
	options.base = SLACK_BASE_ALLOCATABLE;
	api_fixture_get(&f, "/v1/slack");
	assert_true(number("target.nodes") == 2);
	assert_true(number("target.allocatable.cpuMillicores") == 8000);
	assert_true(number("target.requested.cpuMillicores") == 5500);
	assert_true(number("target.extra.cpuMillicores") == 1000);
	assert_true(number("target.rate") == 0.125);
	assert_string_equal(text("target.base"), "allocatable");
	assert_string_equal(text("target.from"), "rate");
	assert_true(number("target.unit.cpuMillicores") == 800);
}

static void test_notes_name_the_annotation(void **state)
{
	(void)state;
	api_fixture_get(&f, "/v1/slack");
	assert_string_equal(text("notes.1.about"), "shop/ReplicaSet/typo");
	assert_non_null(strstr(text("notes.1.text"), "many"));
}

static void test_explain(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/slack?explain=true"), 200);
	assert_string_equal(text("narration.1"), "shop/ReplicaSet/web is placed: n1, n2");
}

static void test_filters(void **state)
{
	(void)state;
	api_fixture_get(&f, "/v1/slack?class=shop/ReplicaSet/web");
	assert_string_equal(api_fixture_names(&f), "shop/ReplicaSet/web");
	assert_true(number("total.wanted") == 4);
	assert_int_equal(api_fixture_get(&f, "/v1/slack?class=nobody"), 404);
	assert_string_equal(http_fixture_error_field(&f), "class");
	api_fixture_get(&f, "/v1/slack?node=n2");
	assert_string_equal(api_fixture_names(&f), "shop/ReplicaSet/web");
	assert_int_equal(cJSON_GetArraySize(api_fixture_at(f.json, "items.0.nodes")), 1);
	assert_string_equal(text("items.0.nodes.0.node"), "n2");
	assert_int_equal(api_fixture_get(&f, "/v1/slack?node=n3"), 404);
	assert_string_equal(http_fixture_error_field(&f), "node");
}

static void test_yaml(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/slack?format=balloons"), 200);
	assert_string_equal(f.response.content_type, "application/yaml");
	assert_non_null(strstr(f.response.body.data, "kind: Deployment\n"));
	assert_int_equal(api_fixture_get(&f, "/v1/slack?format=capacitybuffer"), 200);
	assert_non_null(strstr(f.response.body.data, "kind: CapacityBuffer\n"));
	assert_int_equal(api_fixture_get(&f, "/v1/slack?format=json"), 200);
	assert_string_equal(text("kind"), "SlackList");
}

static void test_bad_requests(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/slack?format=xml"), 400);
	assert_string_equal(http_fixture_error_field(&f), "format");
	assert_int_equal(api_fixture_get(&f, "/v1/slack?explain=yes"), 400);
	assert_string_equal(http_fixture_error_field(&f), "explain");
	assert_int_equal(api_fixture_get(&f, "/v1/slack?classes=a"), 400);
	assert_string_equal(http_fixture_error_field(&f), "classes");
	assert_int_equal(api_fixture_send(&f, "POST", "/v1/slack", "{}"), 405);
}

static void test_no_cluster(void **state)
{
	struct model_source source = {.state = SOURCE_LISTING};

	(void)state;
	model_set_source(world.world.model, OBJECT_POD, &source);
	view_slot_publish(f.ctx.views, see());
	assert_int_equal(api_fixture_get(&f, "/v1/slack"), 503);
	assert_string_equal(api_fixture_error(&f), "noData");
	assert_string_equal(text("error.message"), "the cluster's pods are not known: listing");
	view_slot_publish(f.ctx.views, view_fixture_new());
	assert_int_equal(api_fixture_get(&f, "/v1/slack"), 503);
}

/* --- with a planner */

static struct plan_result *make_plan(struct plan_core *c, int64_t now_ns)
{
	struct plan_input in = {.view = see(), .now_ns = now_ns};
	struct plan_result *r = NULL;

	assert_int_equal(plan_core_step(c, &in, &r, NULL), 0);
	view_drop(in.view);
	return r;
}

static const char *run_of(const struct plan_slot *plans)
{
	static char text[17];

	snprintf(text, sizeof(text), "%016llx", (unsigned long long)plan_slot_run(plans));
	return text;
}

static void test_from_the_slot(void **state)
{
	struct plan_core *c = plan_core_new(&options, NULL);
	struct exchange_counters counters = {0};
	struct plan_result *r;

	(void)state;
	f.ctx.plans = plan_slot_new();
	assert_int_equal(api_fixture_get(&f, "/v1/slack"), 503);
	assert_string_equal(text("error.message"), "the first plan is being made: ask again");
	r = make_plan(c, VIEW_FIXTURE_NOW_NS - 50000000000LL);
	r->every_ns = 10000000000LL;
	plan_slot_publish(f.ctx.plans, r);
	assert_int_equal(api_fixture_get(&f, "/v1/slack"), 200);
	assert_true(number("version") == 1);
	assert_null(api_fixture_at(f.json, "stale"));
	assert_string_equal(text("aggregatorRun"), run_of(f.ctx.plans));
	assert_null(api_fixture_at(f.json, "peer"));
	f.ctx.plan_peer = plan_peer_new(f.ctx.plans, &counters, 1, clock_mono_ns());
	api_fixture_tell_plan(&f, r->id + 1, clock_mono_ns());
	api_fixture_get(&f, "/v1/slack");
	assert_string_equal(text("peer.plan"), "other");
	plan_peer_free(f.ctx.plan_peer);
	f.ctx.plan_peer = NULL;
	r = make_plan(c, VIEW_FIXTURE_NOW_NS - 51000000000LL);
	r->every_ns = 10000000000LL;
	plan_slot_publish(f.ctx.plans, r);
	api_fixture_get(&f, "/v1/slack");
	assert_true(number("version") == 2);
	assert_string_equal(text("stale"), "the plan is 51 s old");
	plan_slot_free(f.ctx.plans);
	plan_core_free(c);
}

static void test_stale_cluster(void **state)
{
	struct model_source source = {.state = SOURCE_STALE, .message = "connection refused"};

	(void)state;
	model_set_source(world.world.model, OBJECT_NODE, &source);
	view_slot_publish(f.ctx.views, see());
	assert_int_equal(api_fixture_get(&f, "/v1/slack"), 200);
	assert_string_equal(text("stale"),
			    "the cluster's nodes may have changed: connection refused");
}

/* Arrivals that nobody saw yet want nothing, and their rate is in force. */
static void test_arrivals_are_told(void **state)
{
	(void)state;
	assert_int_equal(api_fixture_get(&f, "/v1/slack?explain=true"), 200);
	assert_null(api_fixture_at(f.json, "target.arrivalSpans"));
	f.accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
	assert_int_equal(api_fixture_get(&f, "/apis/evenkeel.io/v1/slacks"), 200);
	assert_string_equal(text("rows.1.cells.1"), "unplaced");
	assert_string_equal(text("rows.1.cells.2"), "3");
	assert_string_equal(text("rows.1.cells.3"), "2");
	f.accept = NULL;
	options.from_arrivals = true;
	assert_int_equal(api_fixture_get(&f, "/v1/slack"), 200);
	assert_string_equal(text("target.from"), "rate");
	assert_true(number("target.arrivalSpans") == 0);
	assert_true(number("target.arrivalSpansNeeded") ==
		    slack_arrivals_needed(options.node_start_ns));
}

/*
 * A Snapshot of a server that planned gives the same placements, where a plan made anew would have
 * others.
 */
static void test_snapshot_remembers(void **state)
{
	struct plan_core *c = plan_core_new(&options, NULL);
	struct snapshot *s = snapshot_new();
	struct plan_memory memory;
	struct error error = {""};
	struct api_fixture offline;
	struct view *v = NULL;
	int64_t now_ns = 0;

	(void)state;
	options.rate_ppm = 0;
	slack_fixture_workload(&world, "web", "1", 0, "1", "1Gi", "");
	plan_core_free(c);
	c = plan_core_new(&options, NULL);
	f.ctx.plans = plan_slot_new();
	plan_slot_publish(f.ctx.plans, make_plan(c, VIEW_FIXTURE_NOW_NS));
	/* It stands on n1, the fuller; now n2 is. */
	slack_fixture_pod(&world, "late", "n2", "100m", "10Gi", "");
	view_slot_publish(f.ctx.views, see());
	assert_int_equal(api_fixture_get(&f, "/v1/snapshot"), 200);
	assert_string_equal(text("state.slack.classes.1.nodes.0.node"), "n1");
	assert_string_equal(text("aggregatorRun"), run_of(f.ctx.plans));
	if (snapshot_add(s, "s", f.response.body.data, f.response.body.len, &error) ||
	    snapshot_view(s, &v, &now_ns, &error))
		fail_msg("%s", error.text);
	snapshot_take_memory(s, &memory);
	api_fixture_open(&offline, v);
	offline.ctx.slack = &options;
	offline.ctx.memory = &memory;
	assert_int_equal(api_fixture_get(&offline, "/v1/slack?node=n1"), 200);
	assert_string_equal(api_fixture_names(&offline), "shop/ReplicaSet/web");
	offline.ctx.memory = NULL;
	api_fixture_get(&offline, "/v1/slack?node=n2");
	assert_string_equal(api_fixture_names(&offline), "shop/ReplicaSet/web");
	api_fixture_close(&offline);
	plan_memory_fini(&memory);
	snapshot_free(s);
	plan_slot_free(f.ctx.plans);
	plan_core_free(c);
}

static void test_bad_state_of_a_snapshot(void **state)
{
	static const char bad[] =
		"{\"apiVersion\":\"evenkeel.io/v1\",\"kind\":\"Snapshot\",\"time\":"
		"\"2026-01-31T12:00:00Z\",\"list\":{\"apiVersion\":\"v1\","
		"\"kind\":\"List\",\"items\":[]},\"usage\":{\"apiVersion\":"
		"\"evenkeel.io/v2\",\"kind\":\"Usage\",\"time\":"
		"\"2026-01-31T12:00:00Z\",\"nodes\":[],\"pods\":[]},\"state\":{"
		"\"slack\":{\"classes\":[{\"class\":\"unit\"}]}}}";
	struct snapshot *s = snapshot_new();
	struct error error = {""};

	(void)state;
	assert_int_not_equal(snapshot_add(s, "bad.json", bad, strlen(bad), &error), 0);
	assert_string_equal(error.text,
			    "bad.json:1: state.slack: classes[0].wanted: must be a whole "
			    "number of 0 to 50000");
	snapshot_free(s);
}

/* --- metrics */

static void expect_metric(const char *line)
{
	if (!strstr(f.response.body.data, line))
		fail_msg("no %s", line);
}

static void test_metrics(void **state)
{
	struct plan_core *c = plan_core_new(&options, NULL);

	(void)state;
	api_fixture_get(&f, "/metrics");
	assert_null(strstr(f.response.body.data, "evenkeel_planner"));
	f.ctx.plans = plan_slot_new();
	api_fixture_get(&f, "/metrics");
	expect_metric("evenkeel_planner_steps_total 0\n");
	assert_null(strstr(f.response.body.data, "evenkeel_slack"));
	counter_add(&f.counters.planner.steps, 2);
	counter_add(&f.counters.planner.took_ns, 1500000000);
	plan_slot_publish(f.ctx.plans, make_plan(c, VIEW_FIXTURE_NOW_NS));
	api_fixture_get(&f, "/metrics");
	expect_metric("evenkeel_planner_steps_total 2\n");
	expect_metric("evenkeel_planner_seconds_total 1.5\n");
	expect_metric("evenkeel_slack_wanted{class=\"shop/ReplicaSet/web\"} 3\n");
	expect_metric("evenkeel_slack_placed{class=\"shop/ReplicaSet/web\"} 2\n");
	expect_metric("evenkeel_slack_unplaced{class=\"shop/ReplicaSet/web\"} 1\n");
	expect_metric("evenkeel_slack_slots{class=\"shop/ReplicaSet/web\",by=\"requests\"} 2\n");
	expect_metric("evenkeel_slack_nodes_to_add 1\n");
	expect_metric("evenkeel_slack_extra_cpu_millicores 550\n");
	expect_metric("evenkeel_slack_extra_memory_bytes 858993460\n");
	expect_metric("# TYPE evenkeel_slack_moves_total counter\n");
	expect_metric("evenkeel_slack_moves_total{cause=\"Placed\"} 2\n");
	expect_metric("evenkeel_slack_moves_total{cause=\"PushedOut\"} 0\n");
	expect_metric("evenkeel_slack_classes_left_out 0\n");
	/* A plan that moves nothing does not take back what was counted. */
	plan_slot_publish(f.ctx.plans, make_plan(c, VIEW_FIXTURE_NOW_NS));
	api_fixture_get(&f, "/metrics");
	expect_metric("evenkeel_slack_moves_total{cause=\"Placed\"} 2\n");
	plan_slot_free(f.ctx.plans);
	plan_core_free(c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
	const struct CMUnitTest tests[] = {
		TEST(test_classes),
		TEST(test_target),
		TEST(test_notes_name_the_annotation),
		TEST(test_explain),
		TEST(test_filters),
		TEST(test_yaml),
		TEST(test_bad_requests),
		TEST(test_no_cluster),
		TEST(test_from_the_slot),
		TEST(test_stale_cluster),
		TEST(test_arrivals_are_told),
		TEST(test_snapshot_remembers),
		cmocka_unit_test(test_bad_state_of_a_snapshot),
		TEST(test_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
