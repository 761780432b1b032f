/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregator is killed under load and comes back empty 20 s later. The agent kept its ring, so
 * afterwards every window equals that of a second aggregator that heard the same agent without a
 * break.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>

#include "tests/frame_account.h"
#include "tests/stack.h"
#include "tests/undisturbed.h"

#define OUTAGE_SAMPLES 200 /* of the undisturbed one at 10 Hz: 20 s */

static int setup(void **state)
{
	static struct undisturbed scene;

	*state = &scene;
	return undisturbed_open(&scene);
}

static int teardown(void **state)
{
	undisturbed_close(*state);
	return 0;
}

static void test_windows_survive(void **state)
{
	static const char *const options[] = {"--interval", "1s", NULL};
	struct undisturbed *s = *state;

	stack_start_aggregator(s->stack, DISTURBED);
	stack_start_aggregator(s->stack, UNDISTURBED);
	stack_start_agent(s->stack, 2, options);
	assert_true(undisturbed_await_samples(s, 50, 60));
	stack_kill_aggregator(s->stack, DISTURBED);
	assert_true(undisturbed_await_samples(s, 50 + OUTAGE_SAMPLES, 300));
	stack_start_aggregator(s->stack, DISTURBED);
	assert_true(undisturbed_equal(s, "/v1/nodes", 60));
	assert_true(undisturbed_equal(s, "/v1/pods", 60));
	/* It was asked for everything once, and of nothing anything is missing. */
	assert_true(stack_metric(s->stack, DISTURBED,
				 "evenkeel_frames_total{result=\"need_full\"}") == 1);
	frame_account_expect_whole(s->stack, DISTURBED);
	frame_account_expect_whole(s->stack, UNDISTURBED);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_windows_survive, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
