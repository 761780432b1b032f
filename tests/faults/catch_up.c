/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agents that have measured for a quarter of an hour with nobody there to tell. What their rings
 * hold is told oldest first, and while it is the aggregator is killed again, over its database:
 * nothing that was acknowledged is lost, and all windows equal those of one that heard everything
 * at a stretch. What a ring without room has joined comes coarser, with the CPU time it had to the
 * last microsecond, and is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "shared/timefmt.h"
#include "tests/fleet/load.h"
#include "tests/fleet/machine_sim.h"
#include "tests/frame_account.h"
#include "tests/process.h"
#include "tests/undisturbed.h"

/*
 * History ends some seconds before the last interval is told: older ones would leave the windows
 * meanwhile.
 */
enum { NODES = 150, PODS = 4, HISTORY_S = 840, INTERVAL_S = 5, TIMEOUT_S = 180 };

static struct undisturbed scene;

static int setup(void **state)
{
	(void)state;
	return undisturbed_open(&scene);
}

static int teardown(void **state)
{
	(void)state;
	undisturbed_close(&scene);
	return 0;
}

static void start_over_a_database(void)
{
	char *dir = mem_printf("%s/state", scene.stack->folder);

	setenv("EVENKEEL_STATE_DIR", dir, 1);
	setenv("EVENKEEL_SAVE_INTERVAL", "1s", 1);
	stack_start_aggregator(scene.stack, DISTURBED);
	unsetenv("EVENKEEL_STATE_DIR");
	unsetenv("EVENKEEL_SAVE_INTERVAL");
	free(dir);
}

/* With a ring of so much memory each. */
static pid_t start_fleet(const char *ring_kib, bool for_both)
{
	char *also =
		mem_printf("tcp://127.0.0.1:%d", scene.stack->aggregators[UNDISTURBED].ingest_port);
	const char *options[] = {"--nodes",
				 "150",
				 "--pods-per-node",
				 "4",
				 "--containers",
				 "1",
				 "--history",
				 "840s",
				 "--ring-span",
				 "900s",
				 "--interval",
				 "5s",
				 "--ring-kib",
				 ring_kib,
				 for_both ? "--also" : NULL,
				 also,
				 NULL};
	pid_t fleet = fleet_start(scene.stack, options);

	free(also);
	return fleet;
}

static double metric_of(int aggregator, const char *name)
{
	return stack_metric(scene.stack, aggregator, name);
}

static double applied_by(int aggregator)
{
	return metric_of(aggregator, "evenkeel_frames_total{result=\"applied\"}");
}

struct wish {
	int aggregator;
	double applied;
};

static bool has_applied(void *ctx)
{
	const struct wish *w = ctx;

	return applied_by(w->aggregator) >= w->applied;
}

static void await_applied(int aggregator, double applied)
{
	struct wish w = {aggregator, applied};

	if (!await(has_applied, &w, TIMEOUT_S))
		fail_msg("%g frames were applied, not %g", applied_by(aggregator), applied);
}

static void await_fresh(void)
{
	int64_t begin_ns = clock_mono_ns();
	double took_s = load_await_fresh(scene.stack, NODES, begin_ns, TIMEOUT_S);

	assert_false(isnan(took_s));
	print_message("all are fresh after %.1f s\n", took_s);
}

static void expect_equal_windows(void)
{
	size_t nodes, pods;

	assert_true(undisturbed_await_views(&scene, TIMEOUT_S));
	assert_true(undisturbed_equal_lists(&scene, "nodes", &nodes));
	assert_true(undisturbed_equal_lists(&scene, "pods", &pods));
	assert_true(nodes == NODES && pods >= NODES);
}

/* --- all of it is in the rings ---------------------------------------------------------------- */

static void test_killed_while_catching_up(void **state)
{
	double history = (double)NODES * HISTORY_S / INTERVAL_S, made;
	cJSON *report;
	pid_t fleet;

	(void)state;
	start_over_a_database();
	stack_start_aggregator(scene.stack, UNDISTURBED);
	fleet = start_fleet("7168", true);
	await_applied(DISTURBED, history / 3);
	stack_kill_aggregator(scene.stack, DISTURBED);
	start_over_a_database();
	await_fresh();
	await_applied(DISTURBED, history);
	await_applied(UNDISTURBED, history);
	report = fleet_stop(scene.stack, fleet);
	assert_non_null(report);
	made = load_number(report, "intervals.made");
	assert_true(load_number(report, "intervals.unanswered") == 0);
	assert_true(load_number(report, "intervals.skipped") == 0);
	assert_true(load_number(report, "intervals.refused") == 0);
	assert_true(applied_by(DISTURBED) == made);
	assert_true(applied_by(UNDISTURBED) == made);
	frame_account_expect_whole(scene.stack, DISTURBED);
	frame_account_expect_whole(scene.stack, UNDISTURBED);
	expect_equal_windows();
	cJSON_Delete(report);
}

/* --- more than the rings hold ----------------------------------------------------------------- */

/* What the machine really used in the window, measured in one piece. */
static double true_mean(struct cluster *c, uint32_t node, int64_t start_ns, int64_t end_ns)
{
	struct machine_sim *m = machine_sim_new(c, node);
	struct interval *i = machine_sim_take(m, 1, start_ns, end_ns);
	double mean = (double)i->node.usage.cpu_milli.mean;

	interval_free(i);
	machine_sim_free(m);
	return mean;
}

static int64_t time_at(const cJSON *window, const char *key)
{
	int64_t ns = 0;

	if (timefmt_parse(cJSON_GetStringValue(json_at(window, key)), &ns, NULL))
		fail_msg("no time \"%s\"", key);
	return ns;
}

static void expect_true_totals(void)
{
	struct cluster_config config = {
		.nodes = NODES, .pods_per_node = PODS, .containers = 1, .seed = 1};
	struct cluster *c = cluster_new(&config);
	double worst = 0, shortest_s = HISTORY_S;

	for (uint32_t node = 0; node < NODES; node += 7) {
		char name[CLUSTER_NAME_MAX], *path;
		const cJSON *window;
		int64_t start_ns, end_ns;
		double mean;
		cJSON *list;

		cluster_node_name(node, name);
		path = mem_printf("/v1/nodes?node=%s", name);
		list = stack_get(scene.stack, DISTURBED, path);
		window = json_at(json_item(list, name), "usage.cpuMillicores.windows.15m");
		start_ns = time_at(window, "start");
		end_ns = time_at(window, "end");
		mean = true_mean(c, node, start_ns, end_ns);
		worst = fmax(worst, fabs(load_number(window, "mean") / mean - 1));
		shortest_s = fmin(shortest_s, (double)(end_ns - start_ns) / NS_PER_SEC);
		cJSON_Delete(list);
		free(path);
	}
	cluster_free(c);
	print_message("windows of at least %.0f s; CPU time off by at most %.2g\n", shortest_s,
		      worst);
	assert_true(worst < 1e-5);
	assert_true(shortest_s > HISTORY_S - 240);
}

static void test_longer_than_the_ring(void **state)
{
	double made, merged, coarse;
	cJSON *report, *status;
	pid_t fleet;

	(void)state;
	stack_start_aggregator(scene.stack, DISTURBED);
	fleet = start_fleet("64", false);
	await_fresh();
	report = fleet_stop(scene.stack, fleet);
	assert_non_null(report);
	made = load_number(report, "intervals.made");
	merged = metric_of(DISTURBED, "evenkeel_intervals_merged_total");
	print_message("%.0f intervals, %.0f of them within others\n", made, merged);
	assert_true(load_number(report, "intervals.unanswered") == 0);
	assert_true(merged > made / 2);
	assert_true(applied_by(DISTURBED) + merged + load_number(report, "intervals.skipped") ==
		    made);
	status = stack_get(scene.stack, DISTURBED, "/v1/status");
	coarse = load_number(status, "frames.mergedIntervals");
	assert_true(coarse == merged);
	frame_account_expect_none_refused(scene.stack, DISTURBED);
	assert_true(metric_of(DISTURBED, "evenkeel_intervals_missing_total") == 0);
	expect_true_totals();
	cJSON_Delete(status);
	cJSON_Delete(report);
}

/* --- less than was not saved ------------------------------------------------------------------ */

enum { FEW = 20 };

/* Tells both. */
static pid_t start_short_fleet(void)
{
	char *also =
		mem_printf("tcp://127.0.0.1:%d", scene.stack->aggregators[UNDISTURBED].ingest_port);
	const char *options[] = {"--nodes",	"20", "--pods-per-node", "3",  "--containers", "1",
				 "--ring-span", "6s", "--interval",	 "1s", "--also",       also,
				 NULL};
	pid_t fleet = fleet_start(scene.stack, options);

	free(also);
	return fleet;
}

static bool has_saved(void *ctx)
{
	return metric_of(DISTURBED, "evenkeel_store_saves_total") >= *(const double *)ctx;
}

/* All that was applied when it is called is in the database. */
static void await_save(void)
{
	/* The one that runs may have begun before. */
	double saves = metric_of(DISTURBED, "evenkeel_store_saves_total") + 2;

	assert_true(await(has_saved, &saves, TIMEOUT_S));
}

/*
 * Rings reach back for less than the aggregator is away. What it had heard and not saved is gone
 * with it, and so is what the rings lost: each such interval is counted as missing, and all others
 * were applied once, before the last save or after the start.
 */
static void test_unsaved_and_out_of_the_rings(void **state)
{
	double saved_least, saved_most, made, missing, saved;
	cJSON *report;
	pid_t fleet;

	(void)state;
	start_over_a_database();
	stack_start_aggregator(scene.stack, UNDISTURBED);
	fleet = start_short_fleet();
	await_applied(DISTURBED, 3 * FEW);
	saved_least = applied_by(DISTURBED);
	await_save();
	/* And what it hears between this look and its end. */
	saved_most = applied_by(DISTURBED) + 2 * FEW;
	stack_kill_aggregator(scene.stack, DISTURBED);
	await_applied(UNDISTURBED, saved_most + 12 * FEW);
	start_over_a_database();
	await_applied(DISTURBED, 5 * FEW);
	report = fleet_stop(scene.stack, fleet);
	assert_non_null(report);
	made = load_number(report, "intervals.made");
	missing = metric_of(DISTURBED, "evenkeel_intervals_missing_total");
	saved = made - missing - applied_by(DISTURBED);
	print_message("%.0f intervals made, %.0f of them saved, %.0f missing\n", made, saved,
		      missing);
	assert_true(load_number(report, "intervals.unanswered") == 0);
	assert_true(applied_by(UNDISTURBED) == made);
	assert_true(missing >= 4 * FEW);
	assert_true(saved >= saved_least && saved <= saved_most);
	frame_account_expect_none_refused(scene.stack, DISTURBED);
	cJSON_Delete(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_killed_while_catching_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_longer_than_the_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsaved_and_out_of_the_rings, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
