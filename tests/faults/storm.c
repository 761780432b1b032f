/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregator is killed under five thousand agents, which all come back at once when it does. All
 * are heard again, what they measured since they began is counted exactly once, and the windows of
 * all nodes and pods equal those of an aggregator that heard the same and was never disturbed.
 *
 * Then the same again and again with a fleet in which agents die too, clocks are off and acks are
 * lost, over a database.
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

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/fleet/load.h"
#include "tests/frame_account.h"
#include "tests/process.h"
#include "tests/undisturbed.h"

enum {
	NODES = 5000,
	TROUBLED = 150,
	KILLS = 2,
	INTERVAL_S = 5,
	TIMEOUT_S = 180, /* 15 are usual */
	FRAMES_A_SECOND = 40000, /* more than any aggregator can hear */
};

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

static double frames_of(int aggregator, const char *result)
{
	char sample[80];

	snprintf(sample, sizeof(sample), "evenkeel_frames_total{result=\"%s\"}", result);
	return stack_metric(scene.stack, aggregator, sample);
}

static double frames(const char *result)
{
	return frames_of(DISTURBED, result);
}

/* Frames that came so far, whatever became of them. */
static double heard(void)
{
	struct frame_account a = frame_account_of(scene.stack, DISTURBED);

	return frame_account_heard(&a);
}

static bool has_applied(void *count)
{
	return frames("applied") >= *(const double *)count;
}

static void await_applied(double count)
{
	if (!await(has_applied, &count, TIMEOUT_S))
		fail_msg("%g frames were applied, not %g", frames("applied"), count);
}

/* Back, and all of them heard. */
static void come_back(double nodes)
{
	int64_t begin_ns = clock_mono_ns();
	double took_s;

	stack_start_aggregator(scene.stack, DISTURBED);
	took_s = load_await_fresh(scene.stack, nodes, begin_ns, TIMEOUT_S);
	assert_false(isnan(took_s));
	print_message("%.0f nodes are back after %.1f s\n", nodes, took_s);
}

/* --- a storm ---------------------------------------------------------------------------------- */

/* All but what is on its way is told again. */
static bool has_caught_up(void *unused)
{
	(void)unused;
	return frames("applied") + NODES >= frames_of(UNDISTURBED, "applied");
}

/*
 * The rings reach back to the beginning, so the one that came back was told of everything, and has
 * it once. What was heard after the count was taken and before the kill died with it: no more than
 * can be read in that time, nor than of each node what it made since and one that was due.
 */
static void expect_all_accounted(const cJSON *report, double heard_before, double uncounted_s)
{
	double uncounted =
		fmin(FRAMES_A_SECOND * uncounted_s, NODES * (1 + uncounted_s / INTERVAL_S));
	double made = load_number(report, "intervals.made");

	print_message("%.0f intervals, %.0f timeouts, %.0f duplicates, %.0f times asked for "
		      "everything\n",
		      made, load_number(report, "frames.timeouts"), frames("duplicate"),
		      frames("need_full"));
	frame_account_expect_whole(scene.stack, DISTURBED);
	frame_account_expect_whole(scene.stack, UNDISTURBED);
	assert_true(load_number(report, "intervals.unanswered") == 0);
	assert_true(load_number(report, "intervals.refused") == 0);
	assert_true(load_number(report, "intervals.skipped") == 0);
	assert_true(load_number(report, "frames.badAcks") == 0);
	assert_true(frames("applied") == made);
	assert_true(frames_of(UNDISTURBED, "applied") == made);
	assert_true(frames("need_full") > 0);
	frame_account_expect_frames(report, heard_before + heard(), uncounted);
}

static void expect_equal_windows(void)
{
	size_t nodes, pods;

	assert_true(undisturbed_await_views(&scene, TIMEOUT_S));
	assert_true(undisturbed_equal_lists(&scene, "nodes", &nodes));
	assert_true(undisturbed_equal_lists(&scene, "pods", &pods));
	assert_true(nodes == NODES && pods >= NODES);
}

static void test_all_come_back_at_once(void **state)
{
	double heard_before, uncounted_s;
	int64_t counted_ns;
	cJSON *report;
	pid_t fleet;
	char *also;

	(void)state;
	stack_start_aggregator(scene.stack, DISTURBED);
	stack_start_aggregator(scene.stack, UNDISTURBED);
	also = mem_printf("tcp://127.0.0.1:%d", scene.stack->aggregators[UNDISTURBED].ingest_port);
	{
		const char *options[] = {"--nodes",	"5000",		"--pods-per-node",
					 "2",		"--containers", "1",
					 "--ring-span", "600s",		"--interval",
					 "5s",		"--also",	also,
					 NULL};

		fleet = fleet_start(scene.stack, options);
	}
	free(also);
	await_applied(4 * NODES);
	counted_ns = clock_mono_ns();
	heard_before = heard();
	stack_kill_aggregator(scene.stack, DISTURBED);
	uncounted_s = (double)(clock_mono_ns() - counted_ns) / NS_PER_SEC;
	come_back(NODES);
	assert_true(await(has_caught_up, NULL, TIMEOUT_S));
	report = fleet_stop(scene.stack, fleet);
	assert_non_null(report);
	expect_all_accounted(report, heard_before, uncounted_s);
	expect_equal_windows();
	cJSON_Delete(report);
}

/* --- a storm among other troubles ------------------------------------------------------------- */

/*
 * Nothing is counted twice: no node has more samples than it can have, none used what it does not
 * have.
 */
static void expect_sane_nodes(int64_t begin_ns)
{
	cJSON *list = stack_get(scene.stack, DISTURBED, "/v1/nodes?limit=1000");
	const cJSON *node;
	double most = (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC * 10 + 20, sum = 0;
	int count = 0;

	cJSON_ArrayForEach (node, json_at(list, "items")) {
		const cJSON *w = json_at(node, "usage.cpuMillicores.windows.15m");
		double n = load_number(w, "samples");

		if (!(n > 0 && n <= most))
			fail_msg("%s has %g samples of at most %g",
				 cJSON_GetStringValue(json_at(node, "name")), n, most);
		assert_true(load_number(w, "min") >= 0);
		assert_true(load_number(w, "max") <= load_number(node, "capacity.cpuMillicores"));
		sum += n;
		count++;
	}
	print_message("%.0f %% of the time is in the windows\n", 100 * sum / (most * count));
	assert_int_equal(count, TROUBLED);
	cJSON_Delete(list);
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

static void test_in_trouble(void **state)
{
	static const char *const options[] = {"--nodes",     "150",	     "--pods-per-node",
					      "5",	     "--containers", "1",
					      "--interval",  "1s",	     "--pod-life",
					      "6s",	     "--node-life",  "9s",
					      "--node-down", "2s",	     "--skew",
					      "3s",	     "--ack-loss",   "0.1",
					      "--ack-delay", "1s",	     NULL};
	int64_t begin_ns = clock_mono_ns();
	cJSON *report;
	pid_t fleet;

	(void)state;
	start_over_a_database();
	fleet = fleet_start(scene.stack, options);
	await_applied(3 * TROUBLED);
	for (int i = 0; i < KILLS; i++) {
		stack_kill_aggregator(scene.stack, DISTURBED);
		start_over_a_database();
		await_applied(4 * TROUBLED);
		/* Others may have sent all of these. */
		assert_false(isnan(load_await_fresh(scene.stack, TROUBLED, begin_ns, TIMEOUT_S)));
		frame_account_expect_none_refused(scene.stack, DISTURBED);
		expect_sane_nodes(begin_ns);
	}
	report = fleet_stop(scene.stack, fleet);
	assert_non_null(report);
	assert_true(load_number(report, "restarts") > 0);
	assert_true(load_number(report, "lostAcks") > 0);
	assert_true(load_number(report, "delayedAcks") > 0);
	assert_true(load_number(report, "intervals.refused") == 0);
	cJSON_Delete(report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_come_back_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_trouble, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
