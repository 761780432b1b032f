/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strangers who want all connections that an aggregator has for agents: they greet as agents do,
 * say little that is no frame, and come back whenever they are closed. An agent that is new, and
 * one that was heard before, get in all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"
#include "tests/stranger.h"

enum {
	FILES = 1024,
	PLACES = FILES - 256, /* for agents */
	CROWD = PLACES + 64,
	ADDRESSES = 4,
	PATIENCE_S = 60,
};

#define PAUSE_NS (2 * NS_PER_SEC)

static const char hello[] = "\0SP\0\0\x30\0\0";
static const char little[] = "\0\0\0\0\0\0\0\x04\x80\0\0\x01"; /* a request without a frame */

struct scene {
	struct stack *stack;
	int fds[CROWD]; /* 0: not connected */
	int first_address, addresses; /* that they come from: 127.0.0. this */
	bool patient, talk, gone; /* patient: they come back now and then, else at once */
	int64_t last_ns; /* when they last came or talked */
	const char *metric;
	double wanted;
};

static int setup(void **state)
{
	const struct rlimit few = {FILES, FILES};
	struct scene *s = mem_zalloc(1, sizeof(*s));

	*state = s;
	if (setrlimit(RLIMIT_NOFILE, &few))
		return -1;
	s->stack = stack_new();
	stack_start_aggregator(s->stack, 0);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < CROWD; i++)
		if (s->fds[i] > 0)
			close(s->fds[i]);
	stack_free(s->stack, 0);
	free(s);
	return 0;
}

static void come(struct scene *s, int i)
{
	char from[16];

	snprintf(from, sizeof(from), "127.0.0.%d", s->first_address + i % s->addresses);
	s->fds[i] = stranger_connect(s->stack->aggregators[0].ingest_port, from);
	if (s->fds[i] > 0 && s->talk)
		stranger_say(s->fds[i], hello, sizeof(hello) - 1);
}

static bool is_cut(int fd)
{
	struct buf heard = BUF_INIT;
	bool cut = stranger_hear(fd, 0, &heard);

	buf_fini(&heard);
	return cut;
}

/* Who was closed comes again, and all say a little now and then. */
static void attack(struct scene *s)
{
	int64_t now_ns = clock_mono_ns();
	bool due = now_ns - s->last_ns >= PAUSE_NS;

	if (s->gone || (s->patient && !due))
		return;
	if (due)
		s->last_ns = now_ns;
	for (int i = 0; i < CROWD; i++) {
		if (s->fds[i] > 0 && !is_cut(s->fds[i])) {
			if (due && s->talk)
				stranger_say(s->fds[i], little, sizeof(little) - 1);
			continue;
		}
		if (s->fds[i] > 0)
			close(s->fds[i]);
		come(s, i);
	}
}

static bool is_reached(void *ctx)
{
	struct scene *s = ctx;

	attack(s);
	return stack_metric(s->stack, 0, s->metric) >= s->wanted;
}

/* While the attack goes on. */
static void await_metric(struct scene *s, const char *metric, double wanted)
{
	s->metric = metric;
	s->wanted = wanted;
	if (!await(is_reached, s, PATIENCE_S))
		fail_msg("%s is %g, not %g", metric, stack_metric(s->stack, 0, metric), wanted);
}

static double applied(const struct scene *s)
{
	return stack_metric(s->stack, 0, "evenkeel_frames_total{result=\"applied\"}");
}

static void await_applied(struct scene *s)
{
	await_metric(s, "evenkeel_frames_total{result=\"applied\"}", applied(s) + 3);
}

static void expect_agents_get_in(struct scene *s)
{
	static const char *const options[] = {"--interval", "1s", NULL};
	int64_t begin_ns;

	/* They were there first, have all they can, and have been sent away. */
	await_metric(s, "evenkeel_ingest_closed_total{reason=\"room\"}", CROWD);
	begin_ns = clock_mono_ns();
	stack_start_agent(s->stack, 1, options);
	await_applied(s);
	print_message("a new agent is heard after %.1f s\n",
		      (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC);
	assert_int_equal(stack_stop_agent(s->stack, SIGKILL), 128 + SIGKILL);
	begin_ns = clock_mono_ns();
	stack_start_agent(s->stack, 1, options);
	await_applied(s);
	print_message("the next one from its address after %.1f s\n",
		      (double)(clock_mono_ns() - begin_ns) / NS_PER_SEC);
	assert_true(stack_metric(s->stack, 0, "evenkeel_ingest_connections") <= PLACES);
	s->gone = true;
	assert_true(stack_metric(s->stack, 0, "evenkeel_intervals_missing_total") == 0);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

/* All from where the agent is, so that nothing tells them apart. */
static void test_one_address(void **state)
{
	struct scene *s = *state;

	s->first_address = s->addresses = 1;
	s->patient = s->talk = true;
	expect_agents_get_in(s);
}

static void test_many_addresses_that_talk(void **state)
{
	struct scene *s = *state;

	s->first_address = 2;
	s->addresses = ADDRESSES;
	s->talk = true;
	expect_agents_get_in(s);
}

static void test_many_addresses_that_are_silent(void **state)
{
	struct scene *s = *state;

	s->first_address = 2;
	s->addresses = ADDRESSES;
	expect_agents_get_in(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_one_address),
		TEST(test_many_addresses_that_talk),
		TEST(test_many_addresses_that_are_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
