/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs at work whose calls fail: one kind of call after the other, the first from now on, the
 * second, and so on, once or several times in a row. An aggregator hears a small fleet, or a real
 * agent, and is asked all the time; a second one, to which nothing happens, hears the same.
 *
 * a call fails  ->  it heals  ->  frames are applied and questions answered again, by the same
 * process
 *
 * At last the windows of both are equal, and of every interval and of every frame it is known what
 * became of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/fleet/load.h"
#include "tests/frame_account.h"
#include "tests/process.h"
#include "tests/seam_work.h"

enum { NODES = 10, MEET_S = 3, RECONNECT_S = 20, WALK = 2, LONG_MS = 1000, IN_VAIN_MOST = 100 };

static struct seam_work *s;

static int setup(void **state)
{
	int rc = seam_work_setup(state);

	s = *state;
	return rc;
}

static void expect_running(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, WNOHANG) != 0)
		fail_msg("a process ended: signal %d, status %d", WTERMSIG(status),
			 WEXITSTATUS(status));
}

struct trouble {
	enum seam_call call;
	int error;
	int times; /* in a row */
};

/* What may befall somebody who serves .. */
static const struct trouble of_aggregator[] = {
	{SEAM_ACCEPT, EMFILE, 1},	{SEAM_ACCEPT, ENFILE, 3},   {SEAM_ACCEPT, ECONNABORTED, 1},
	{SEAM_ACCEPT, ENOMEM, 1},	{SEAM_SEND, ECONNRESET, 1}, {SEAM_SEND, EPIPE, 1},
	{SEAM_SEND, SEAM_SHORT, 20},	{SEAM_SEND, ENOBUFS, 1},    {SEAM_RECEIVE, ECONNRESET, 1},
	{SEAM_RECEIVE, SEAM_SHORT, 20}, {SEAM_OPTION, ENOBUFS, 1},  {SEAM_POLL, EINTR, 3},
};

/* .. and somebody who connects: after its connection was reset, so that it has to. */
static const struct trouble of_agent[] = {
	{SEAM_SEND, SEAM_SHORT, 20},	{SEAM_RECEIVE, ECONNRESET, 1},
	{SEAM_RECEIVE, SEAM_SHORT, 20}, {SEAM_SOCKET, EMFILE, 1},
	{SEAM_CONNECT, ENETUNREACH, 1}, {SEAM_NN_SEND, EAGAIN, 2},
	{SEAM_NN_RECEIVE, EAGAIN, 2},	{SEAM_POLL, EINTR, 3},
};

static double met_ever; /* calls that failed */

/* True when it happened. */
static bool befall(struct seam *seam, const struct trouble *t, int64_t after)
{
	struct seam_meeting m = {s, seam, t->call, t->times, seam == s->aggregator};
	bool met;

	seam_set(seam, t->call, t->error, after, t->times);
	met = await(seam_meeting_is_met, &m, seam == s->agent ? RECONNECT_S : MEET_S);
	met_ever += (double)seam_met(seam, t->call);
	seam_heal(seam);
	expect_running(s->u.stack->aggregators[DISTURBED].pid);
	if (s->u.stack->agent)
		expect_running(s->u.stack->agent);
	return met;
}

static void walk(const struct trouble *t)
{
	int met = 0;

	for (int64_t after = 0; after < WALK; after++)
		met += befall(s->aggregator, t, after);
	if (!met)
		fail_msg("%s is never called", seam_call_name(t->call));
}

/*
 * Every interval was applied once, by both. Every frame came and had a result, or was sent again.
 */
static void expect_accounted(const cJSON *report)
{
	struct frame_account a = frame_account_of(s->u.stack, DISTURBED);
	double made = load_number(report, "intervals.made");

	print_message("%.0f intervals made, %.0f timeouts, %.0f calls failed\n", made,
		      load_number(report, "frames.timeouts"), met_ever);
	seam_work_expect_none_refused(s, DISTURBED);
	seam_work_expect_none_refused(s, UNDISTURBED);
	assert_true(load_number(report, "intervals.refused") == 0);
	assert_true(load_number(report, "intervals.skipped") == 0);
	assert_true(load_number(report, "intervals.unanswered") == 0);
	assert_true(load_number(report, "frames.badAcks") == 0);
	assert_true(a.frames[FRAME_RESULT_applied] == made);
	assert_true(seam_work_frames(s, UNDISTURBED, "applied") == made);
	frame_account_expect_frames(report, frame_account_heard(&a), 0);
}

static void expect_equal_lists(void)
{
	size_t nodes, pods;

	assert_true(undisturbed_await_views(&s->u, SEAM_WORK_TIMEOUT_S));
	assert_true(undisturbed_equal_lists(&s->u, "nodes", &nodes));
	assert_true(undisturbed_equal_lists(&s->u, "pods", &pods));
	assert_true(nodes == NODES && pods >= NODES);
}

/* Tells both. */
static pid_t start_fleet(void)
{
	char *also =
		mem_printf("tcp://127.0.0.1:%d", s->u.stack->aggregators[UNDISTURBED].ingest_port);
	const char *options[] = {"--nodes",
				 "10",
				 "--pods-per-node",
				 "3",
				 "--containers",
				 "1",
				 "--interval",
				 "1s",
				 "--also",
				 also,
				 NULL};
	pid_t fleet = fleet_start(s->u.stack, options);

	free(also);
	return fleet;
}

static void test_aggregators_calls(void **state)
{
	cJSON *report;
	pid_t fleet;

	(void)state;
	met_ever = 0;
	seam_work_start_aggregators(s);
	fleet = start_fleet();
	seam_work_await_applied(s, 2 * NODES);
	for (size_t i = 0; i < sizeof(of_aggregator) / sizeof(of_aggregator[0]); i++) {
		walk(&of_aggregator[i]);
		if (!await(seam_work_is_ready, s, SEAM_WORK_TIMEOUT_S))
			fail_msg("after %s (error %d) it does not answer",
				 seam_call_name(of_aggregator[i].call), of_aggregator[i].error);
	}
	seam_work_await_applied(s, seam_work_frames(s, DISTURBED, "applied") + 3 * NODES);
	report = fleet_stop(s->u.stack, fleet);
	assert_non_null(report);
	expect_accounted(report);
	expect_equal_lists();
	cJSON_Delete(report);
}

/* --- the agent's ------------------------------------------------------------------------------ */

static bool have_equal_frames(void *ctx)
{
	(void)ctx;
	return seam_work_frames(s, DISTURBED, "applied") ==
	       seam_work_frames(s, UNDISTURBED, "applied");
}

static void test_agents_calls(void **state)
{
	const struct trouble reset = {SEAM_SEND, ECONNRESET, 1};

	(void)state;
	seam_work_start_aggregators(s);
	seam_work_start_agent(s);
	seam_work_await_applied(s, 2);
	for (size_t i = 0; i < sizeof(of_agent) / sizeof(of_agent[0]); i++) {
		const struct trouble *t = &of_agent[i];

		if (t->call == SEAM_SOCKET || t->call == SEAM_CONNECT)
			seam_set(s->agent, reset.call, reset.error, 0, reset.times);
		if (!befall(s->agent, t, 0))
			fail_msg("%s is never called", seam_call_name(t->call));
		seam_work_await_applied(s, seam_work_frames(s, DISTURBED, "applied") + 1);
	}
	seam_work_expect_equal(s);
	seam_work_expect_none_refused(s, DISTURBED);
	seam_work_expect_none_refused(s, UNDISTURBED);
	/* An agent that stops waits two seconds for acks: only its last frames may be under way. */
	assert_true(await(have_equal_frames, NULL, SEAM_WORK_TIMEOUT_S));
	assert_int_equal(stack_stop_agent(s->u.stack, SIGTERM), 0);
	/* It sent to both what it measured, all of it. */
	assert_true(await(have_equal_frames, NULL, SEAM_WORK_TIMEOUT_S));
}

/* --- for long --------------------------------------------------------------------------------- */

/* How often it accepts within a second. */
static int64_t accepts_within_a_second(void)
{
	int64_t calls = seam_calls(s->aggregator, SEAM_ACCEPT);

	poll(NULL, 0, LONG_MS);
	return seam_calls(s->aggregator, SEAM_ACCEPT) - calls;
}

/*
 * No descriptor for agents, for a second in which one waits; it is heard then, and is no work
 * meanwhile.
 */
static void test_accept_fails_for_long(void **state)
{
	struct seam_meeting m = {s, s->aggregator, SEAM_ACCEPT, 1, false};
	double applied;
	int64_t calls;

	(void)state;
	seam_work_start_aggregators(s);
	seam_work_start_agent(s);
	seam_work_await_applied(s, 2);
	applied = seam_work_frames(s, DISTURBED, "applied");
	seam_set(s->aggregator, SEAM_ACCEPT, EMFILE, 0, SEAM_FOR_EVER);
	seam_set(s->agent, SEAM_SEND, ECONNRESET, 0, 2);
	assert_true(await(seam_meeting_is_met, &m, SEAM_WORK_TIMEOUT_S));
	calls = accepts_within_a_second();
	print_message("%lld times accepted in vain within a second\n", (long long)calls);
	assert_true(calls <= IN_VAIN_MOST);
	seam_heal(s->aggregator);
	seam_work_await_applied(s, applied + 3);
	seam_work_expect_equal(s);
	assert_int_equal(stack_stop_agent(s->u.stack, SIGTERM), 0);
}

static bool has_accepted_since(void *calls)
{
	return seam_calls(s->aggregator, SEAM_ACCEPT) > *(const int64_t *)calls;
}

static int client_of(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* The limit of open files; no descriptor above it is closed. */
static struct rlimit limit_files(pid_t pid, rlim_t files)
{
	struct rlimit before, now;

	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, NULL, &before), 0);
	now = (struct rlimit){files, before.rlim_max};
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &now, NULL), 0);
	return before;
}

/*
 * Clients come while there is no descriptor for any, not even to turn them away with, and none of
 * them is in yet. That is no work; they are answered later, and agents are heard meanwhile.
 */
static void test_no_descriptor_for_clients(void **state)
{
	enum { CLIENTS = 5 };
	const struct stack_aggregator *a = &s->u.stack->aggregators[DISTURBED];
	int fds[CLIENTS];
	struct rlimit before;
	int64_t calls;

	(void)state;
	seam_work_start_aggregators(s);
	seam_work_start_agent(s);
	seam_work_await_applied(s, 2);
	before = limit_files(a->pid, 3);
	calls = seam_calls(s->aggregator, SEAM_ACCEPT);
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = client_of(a->http_port);
	assert_true(await(has_accepted_since, &calls, SEAM_WORK_TIMEOUT_S));
	calls = accepts_within_a_second();
	print_message("%lld times accepted in vain within a second\n", (long long)calls);
	assert_true(calls <= IN_VAIN_MOST);
	limit_files(a->pid, before.rlim_cur);
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	assert_true(await(seam_work_is_ready, s, SEAM_WORK_TIMEOUT_S));
	seam_work_await_applied(s, seam_work_frames(s, DISTURBED, "applied") + 2);
	seam_work_expect_equal(s);
	assert_int_equal(stack_stop_agent(s->u.stack, SIGTERM), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_aggregators_calls, setup, seam_work_teardown),
		cmocka_unit_test_setup_teardown(test_agents_calls, setup, seam_work_teardown),
		cmocka_unit_test_setup_teardown(test_accept_fails_for_long, setup,
						seam_work_teardown),
		cmocka_unit_test_setup_teardown(test_no_descriptor_for_clients, setup,
						seam_work_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
