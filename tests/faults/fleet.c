/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fleet in which everything goes wrong that can on ordinary days: agents die and start again,
 * pods come and go, clocks are off, acks are lost and late. The aggregator accepts every frame,
 * counts none twice, and whatever was acknowledged it has applied.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>

#include "tests/fleet/launch.h"
#include "tests/frame_account.h"
#include "tests/process.h"

enum { NODES = 40, APPLIED = 8 * NODES, TIMEOUT_S = 120 };

static double frames(const struct stack *s, const char *result)
{
	char sample[80];

	snprintf(sample, sizeof(sample), "evenkeel_frames_total{result=\"%s\"}", result);
	return stack_metric(s, 0, sample);
}

static double number(const cJSON *report, const char *path)
{
	const cJSON *value = json_at(report, path);

	if (!cJSON_IsNumber(value))
		fail_msg("no number \"%s\"", path);
	return cJSON_GetNumberValue(value);
}

static bool enough_happened(void *ctx)
{
	return frames(ctx, "applied") >= APPLIED && frames(ctx, "duplicate") >= 4;
}

static void check_trouble(const cJSON *report)
{
	assert_true(number(report, "restarts") > 0);
	assert_true(number(report, "newPods") > NODES);
	assert_true(number(report, "lostAcks") > 0);
	assert_true(number(report, "delayedAcks") > 0);
	assert_true(number(report, "frames.timeouts") > 0);
}

static void check_account(const struct stack *s, const cJSON *report)
{
	struct frame_account a = frame_account_of(s, 0);
	double applied = frames(s, "applied"), unanswered = number(report, "intervals.unanswered");
	double acked = number(report, "intervals.acked"), made = number(report, "intervals.made");

	frame_account_expect_none_refused(s, 0);
	assert_true(number(report, "intervals.refused") == 0);
	assert_true(made == acked + unanswered + number(report, "intervals.skipped"));
	/* An ack that was lost may be one of an interval that was applied. */
	assert_true(applied >= acked && applied <= acked + unanswered);
	frame_account_expect_frames(report, frame_account_heard(&a),
				    number(report, "intervals.inDoubt"));
}

static void test_everything_goes_wrong(void **state)
{
	static const char *const options[] = {"--nodes",     "40",	     "--pods-per-node",
					      "8",	     "--containers", "2",
					      "--interval",  "1s",	     "--pod-life",
					      "6s",	     "--node-life",  "9s",
					      "--node-down", "2s",	     "--skew",
					      "3s",	     "--ack-loss",   "0.1",
					      "--ack-delay", "300ms",	     NULL};
	struct stack *s = stack_new();
	bool enough;
	cJSON *report;
	pid_t fleet;

	(void)state;
	stack_start_aggregator(s, 0);
	fleet = fleet_start(s, options);
	enough = await(enough_happened, s, TIMEOUT_S);
	report = fleet_stop(s, fleet);
	if (!enough || !report)
		fleet_print_log(s);
	assert_true(enough);
	assert_non_null(report);
	check_trouble(report);
	check_account(s, report);
	cJSON_Delete(report);
	stack_free(s, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_goes_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
