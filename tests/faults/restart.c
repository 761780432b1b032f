/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregator is killed under load and comes back empty 20 s later. The agent kept its ring, so
 * afterwards every window equals that of a second aggregator that heard the same agent without a
 * break. Of two that know each other (--peer) either one is killed: the other one serves all requests
 * meanwhile, and no window lacks anything once both are there again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>

#include "shared/mem.h"
#include "tests/frame_account.h"
#include "tests/process.h"
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

struct growth {
	const struct stack *stack;
	int i;
	double samples;
};

static bool has_grown(void *ctx)
{
	const struct growth *g = ctx;
	cJSON *nodes = stack_get(g->stack, g->i, "/v1/nodes");
	bool is = undisturbed_samples_of(nodes) >= g->samples;

	cJSON_Delete(nodes);
	return is;
}

/* Kills aggregator i and starts it again; the other one answers for half of an outage meanwhile. */
static void expect_to_lose_nothing_of(struct undisturbed *s, int i)
{
	static const char *const paths[] = {"/v1/nodes", "/v1/pods", "/v1/status", "/v1/fleet"};
	cJSON *before = stack_get(s->stack, 1 - i, "/v1/nodes"), *answer;
	struct growth g = {s->stack, 1 - i,
			   undisturbed_samples_of(before) + (double)OUTAGE_SAMPLES / 2};

	stack_kill_aggregator(s->stack, i);
	for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
		answer = stack_get(s->stack, 1 - i, paths[p]);
		assert_non_null(answer);
		cJSON_Delete(answer);
	}
	assert_true(await(has_grown, &g, 150));
	answer = stack_get(s->stack, 1 - i, "/v1/nodes");
	assert_string_equal(cJSON_GetStringValue(
				    json_at(json_item(answer, "test-node"), "source.state")),
			    "fresh");
	stack_start_aggregator(s->stack, i);
	assert_true(undisturbed_equal(s, "/v1/nodes", 60));
	assert_true(undisturbed_equal(s, "/v1/pods", 60));
	cJSON_Delete(answer);
	cJSON_Delete(before);
}

static void test_either_of_two_may_die(void **state)
{
	static const char *const options[] = {"--interval", "1s", NULL};
	struct undisturbed *s = *state;
	const char *peers[2][3] = {{"--peer", NULL}, {"--peer", NULL}};

	for (int i = 0; i < 2; i++) {
		s->stack->aggregators[i].ingest_port = free_port();
		s->stack->aggregators[i].more = peers[i];
	}
	for (int i = 0; i < 2; i++)
		peers[i][1] =
			mem_printf("tcp://127.0.0.1:%d", s->stack->aggregators[1 - i].ingest_port);
	stack_start_aggregator(s->stack, 0);
	stack_start_aggregator(s->stack, 1);
	stack_start_agent(s->stack, 2, options);
	assert_true(undisturbed_await_samples(s, 50, 60));
	expect_to_lose_nothing_of(s, 0);
	expect_to_lose_nothing_of(s, 1);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	for (int i = 0; i < 2; i++)
		free((char *)peers[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_windows_survive, setup, teardown),
		cmocka_unit_test_setup_teardown(test_either_of_two_may_die, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
