/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs at work whose calls fail: one kind of call after the other, the first from now on, the second, and so on,
 * once or several times in a row. An aggregator hears a real agent and a small fleet, and is asked all the time; a second
 * one, to which nothing happens, hears the same agent.
 *
 *	a call fails  ->  it heals  ->  frames are applied and questions answered again, by the same process
 *
 * At last the windows of both are equal, and of every interval that the fleet made it is known what became of it: it is
 * applied, or its agent still has it.
 *
 * Then memory ends, at the first allocation from now on, some later one, and for good. What is asked may then be refused,
 * or the process ends with a message; started again it has all there was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/fleet/load.h"
#include "tests/process.h"
#include "tests/seam_start.h"
#include "tests/undisturbed.h"

enum { PATIENCE_S = 40, MEET_S = 3, RECONNECT_S = 20, WALK = 2, LONG_MS = 1000 };

static struct {
	struct undisturbed u;
	struct seam *aggregator, *agent;
} s;

static int setup(void **state)
{
	(void)state;
	if (undisturbed_open(&s.u))
		return -1;
	s.aggregator = seam_open(s.u.stack->folder, "aggregator");
	s.agent = seam_open(s.u.stack->folder, "agent");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	undisturbed_close(&s.u);
	seam_close(s.aggregator);
	seam_close(s.agent);
	return 0;
}

/* --- what goes on ------------------------------------------------------------------------------------------------- */

static void start_all(void)
{
	seam_enter(s.aggregator);
	stack_start_aggregator(s.u.stack, DISTURBED);
	seam_enter(NULL);
	stack_start_aggregator(s.u.stack, UNDISTURBED);
	seam_enter(s.agent);
	stack_start_agent(s.u.stack, 2, (const char *[]){"--interval", "1s", NULL});
	seam_enter(NULL);
}

static double frames(int aggregator, const char *result)
{
	char sample[80];

	snprintf(sample, sizeof(sample), "evenkeel_frames_total{result=\"%s\"}", result);
	return stack_metric(s.u.stack, aggregator, sample);
}

static bool has_applied(void *count)
{
	return frames(DISTURBED, "applied") >= *(const double *)count;
}

static void await_applied(double count)
{
	if (!await(has_applied, &count, PATIENCE_S))
		fail_msg("%g frames were applied, not %g", frames(DISTURBED, "applied"), count);
}

static void expect_equal(void)
{
	assert_true(undisturbed_equal(&s.u, "/v1/nodes?node=test-node", PATIENCE_S));
	assert_true(undisturbed_equal(&s.u, "/v1/pods?node=test-node", PATIENCE_S));
}

static void expect_none_refused(int aggregator)
{
	static const char *const refused[] = {"refused",     "malformed", "version", "oversized",
					      "unknown_key", "forged",	  "too_old"};

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (frames(aggregator, refused[i]) != 0)
			fail_msg("%g frames were %s", frames(aggregator, refused[i]), refused[i]);
}

static void expect_running(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, WNOHANG) != 0)
		fail_msg("a process ended: signal %d, status %d", WTERMSIG(status),
			 WEXITSTATUS(status));
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

struct trouble {
	enum seam_call call;
	int error;
	int times; /* in a row */
};

/* What may befall somebody who serves .. */
static const struct trouble of_aggregator[] = {
	{SEAM_ACCEPT, EMFILE, 1},	{SEAM_ACCEPT, ENFILE, 3},
	{SEAM_ACCEPT, ECONNABORTED, 1}, {SEAM_ACCEPT, ENOMEM, 1},
	{SEAM_SEND, ECONNRESET, 1},	{SEAM_SEND, EPIPE, 1},
	{SEAM_SEND, SEAM_SHORT, 20},	{SEAM_SEND, ENOBUFS, 1},
	{SEAM_RECEIVE, ECONNRESET, 1},	{SEAM_RECEIVE, SEAM_SHORT, 20},
	{SEAM_OPTION, ENOBUFS, 1},	{SEAM_POLL, EINTR, 3},
	{SEAM_NN_SEND, EAGAIN, 1},	{SEAM_NN_RECEIVE, EAGAIN, 3},
	{SEAM_NN_RECEIVE, EINTR, 1},
};

/* .. and somebody who connects: after its connection was reset, so that it has to. */
static const struct trouble of_agent[] = {
	{SEAM_SEND, SEAM_SHORT, 20},	{SEAM_RECEIVE, ECONNRESET, 1},
	{SEAM_RECEIVE, SEAM_SHORT, 20}, {SEAM_SOCKET, EMFILE, 1},
	{SEAM_CONNECT, ENETUNREACH, 1}, {SEAM_NN_SEND, EAGAIN, 2},
	{SEAM_NN_RECEIVE, EAGAIN, 2},	{SEAM_POLL, EINTR, 3},
};

struct meeting {
	struct seam *seam;
	enum seam_call call;
	int64_t times;
	bool ask; /* the aggregator, to keep its callers coming */
};

static bool is_met(void *ctx)
{
	const struct meeting *m = ctx;
	struct buf body = BUF_INIT;

	if (m->ask) {
		char *url = mem_printf("http://127.0.0.1:%d/v1/nodes",
				       s.u.stack->aggregators[DISTURBED].http_port);

		/* This one may be the one that fails. */
		http_get(url, &body);
		free(url);
	}
	buf_fini(&body);
	return seam_met(m->seam, m->call) >= m->times;
}

/* True when it happened. */
static bool befall(struct seam *seam, const struct trouble *t, int64_t after)
{
	struct meeting m = {seam, t->call, t->times, seam == s.aggregator};
	bool met;

	seam_set(seam, t->call, t->error, after, t->times);
	met = await(is_met, &m, seam == s.agent ? RECONNECT_S : MEET_S);
	seam_heal(seam);
	expect_running(s.u.stack->aggregators[DISTURBED].pid);
	expect_running(s.u.stack->agent);
	return met;
}

static void walk(const struct trouble *t)
{
	int met = 0;

	for (int64_t after = 0; after < WALK; after++)
		met += befall(s.aggregator, t, after);
	if (!met)
		fail_msg("%s is never called", seam_call_name(t->call));
}

static bool is_ready(void *ctx)
{
	cJSON *json = stack_get(s.u.stack, DISTURBED, "/v1/nodes");
	bool yes = json != NULL;

	(void)ctx;
	cJSON_Delete(json);
	return yes;
}

/* Every interval was applied, or an agent that was stopped had no answer; none twice, none refused. */
static void expect_accounted(const cJSON *report)
{
	double made = load_number(report, "intervals.made");
	double unanswered = load_number(report, "intervals.unanswered");
	double applied = frames(DISTURBED, "applied") - frames(UNDISTURBED, "applied");
	double sent = load_number(report, "frames.sent");
	double again = frames(DISTURBED, "duplicate");

	print_message("%.0f intervals made in %.0f frames, %.0f applied, %.0f unanswered, %.0f "
		      "came twice\n",
		      made, sent, applied, unanswered, again);
	expect_none_refused(DISTURBED);
	expect_none_refused(UNDISTURBED);
	assert_true(load_number(report, "intervals.refused") == 0);
	assert_true(load_number(report, "intervals.skipped") == 0);
	assert_true(made == load_number(report, "intervals.acked") + unanswered);
	assert_true(applied >= made - unanswered && applied <= made);
}

static void test_aggregators_calls(void **state)
{
	static const char *const options[] = {"--nodes",    "10",	    "--pods-per-node",
					      "3",	    "--containers", "1",
					      "--interval", "1s",	    NULL};
	cJSON *report;
	pid_t fleet;

	(void)state;
	start_all();
	fleet = fleet_start(s.u.stack, options);
	await_applied(20);
	for (size_t i = 0; i < sizeof(of_aggregator) / sizeof(of_aggregator[0]); i++) {
		walk(&of_aggregator[i]);
		if (!await(is_ready, NULL, PATIENCE_S))
			fail_msg("after %s (error %d) it does not answer",
				 seam_call_name(of_aggregator[i].call), of_aggregator[i].error);
	}
	await_applied(frames(DISTURBED, "applied") + 30);
	expect_equal();
	assert_int_equal(stack_stop_agent(s.u.stack, SIGTERM), 0);
	report = fleet_stop(s.u.stack, fleet);
	assert_non_null(report);
	expect_accounted(report);
	cJSON_Delete(report);
}

/* --- the agent's -------------------------------------------------------------------------------------------------- */

static void test_agents_calls(void **state)
{
	const struct trouble reset = {SEAM_SEND, ECONNRESET, 1};

	(void)state;
	start_all();
	await_applied(2);
	for (size_t i = 0; i < sizeof(of_agent) / sizeof(of_agent[0]); i++) {
		const struct trouble *t = &of_agent[i];

		if (t->call == SEAM_SOCKET || t->call == SEAM_CONNECT)
			seam_set(s.agent, reset.call, reset.error, 0, reset.times);
		if (!befall(s.agent, t, 0))
			fail_msg("%s is never called", seam_call_name(t->call));
		await_applied(frames(DISTURBED, "applied") + 1);
	}
	expect_equal();
	expect_none_refused(DISTURBED);
	expect_none_refused(UNDISTURBED);
	assert_int_equal(stack_stop_agent(s.u.stack, SIGTERM), 0);
	/* It sent to both what it measured, all of it. */
	assert_true(frames(DISTURBED, "applied") == frames(UNDISTURBED, "applied"));
}

/* --- for long ----------------------------------------------------------------------------------------------------- */

/*
 * No descriptor for agents, for a second in which one waits; then it is heard. nanomsg 1.1.5 tries again at once all the
 * time, which costs a core meanwhile and is only told here.
 */
static void test_accept_fails_for_long(void **state)
{
	struct meeting m = {s.aggregator, SEAM_ACCEPT, 1, false};
	double applied;
	int64_t calls;

	(void)state;
	start_all();
	await_applied(2);
	applied = frames(DISTURBED, "applied");
	seam_set(s.aggregator, SEAM_ACCEPT, EMFILE, 0, SEAM_FOR_EVER);
	seam_set(s.agent, SEAM_SEND, ECONNRESET, 0, 2);
	assert_true(await(is_met, &m, PATIENCE_S));
	calls = seam_calls(s.aggregator, SEAM_ACCEPT);
	poll(NULL, 0, LONG_MS);
	calls = seam_calls(s.aggregator, SEAM_ACCEPT) - calls;
	print_message("%lld times accepted in vain within a second\n", (long long)calls);
	seam_heal(s.aggregator);
	await_applied(applied + 3);
	expect_equal();
	assert_int_equal(stack_stop_agent(s.u.stack, SIGTERM), 0);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

#ifndef __SANITIZE_ADDRESS__

/* One that says something else than out of memory, or nothing, has crashed. */
static bool said_out_of_memory(const char *program)
{
	char *path = mem_printf("%s/%s-0.log", s.u.stack->folder, program), text[65536];
	FILE *log = fopen(path, "re");
	bool said = false;
	size_t len;

	assert_non_null(log);
	len = fread(text, 1, sizeof(text) - 1, log);
	text[len] = '\0';
	said = strcasestr(text, "out of memory") || strstr(text, "Cannot allocate memory");
	fclose(log);
	free(path);
	return said;
}

/* True when it ended, as it may. */
static bool has_ended(pid_t *pid, const char *program)
{
	int status;

	if (waitpid(*pid, &status, WNOHANG) == 0)
		return false;
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !said_out_of_memory(program))
		fail_msg("%s ended: signal %d, status %d", program, WTERMSIG(status),
			 WEXITSTATUS(status));
	*pid = 0;
	return true;
}

struct shortage {
	struct seam *seam;
	pid_t *pid;
	const char *program;
	bool ended;
	double applied; /* awaited, to see that it goes on */
};

static bool is_felt(void *ctx)
{
	struct shortage *h = ctx;
	struct meeting m = {h->seam, SEAM_ALLOCATE, 1, h->seam == s.aggregator};

	h->ended = h->ended || has_ended(h->pid, h->program);
	return h->ended || is_met(&m);
}

/* Ended, or an interval later as well as before. */
static bool is_decided(void *ctx)
{
	struct shortage *h = ctx;

	h->ended = h->ended || has_ended(h->pid, h->program);
	return h->ended || frames(DISTURBED, "applied") >= h->applied;
}

/* An allocation fails, or all do: true when that was its end. */
static bool run_short(struct shortage *h, int64_t after, int64_t times)
{
	h->ended = false;
	h->applied = frames(DISTURBED, "applied") + 2;
	seam_set(h->seam, SEAM_ALLOCATE, ENOMEM, after, times);
	if (!await(is_felt, h, PATIENCE_S))
		fail_msg("%s allocates nothing", h->program);
	seam_heal(h->seam);
	if (!await(is_decided, h, PATIENCE_S))
		fail_msg("without allocation %lld %s neither ends nor goes on", (long long)after,
			 h->program);
	return h->ended;
}

static void restart_aggregator(void)
{
	seam_enter(s.aggregator);
	stack_start_aggregator(s.u.stack, DISTURBED);
	seam_enter(NULL);
}

/* Whatever it had acknowledged and lost at its end, agents still have, and nothing else is lost. */
static void test_aggregators_memory(void **state)
{
	static const int64_t after[] = {0, 2, 9, 20, 75, 130, 250, 600};
	struct shortage h = {s.aggregator, &s.u.stack->aggregators[DISTURBED].pid, "aggregator",
			     false, 0};
	int ends = 0, cases = 0;

	(void)state;
	start_all();
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		await_applied(2);
		cases++;
		if (run_short(&h, after[i], i % 4 == 3 ? SEAM_FOR_EVER : 1)) {
			ends++;
			restart_aggregator();
		} else if (!await(is_ready, NULL, PATIENCE_S)) {
			fail_msg("without allocation %lld it does not answer", (long long)after[i]);
		}
	}
	print_message("%d shortages, %d ends\n", cases, ends);
	await_applied(2);
	expect_none_refused(DISTURBED);
	expect_none_refused(UNDISTURBED);
	expect_equal();
	assert_int_equal(stack_stop_agent(s.u.stack, SIGTERM), 0);
}

static void restart_agent(void)
{
	seam_enter(s.agent);
	stack_start_agent(s.u.stack, 2, (const char *[]){"--interval", "1s", "--no-confine", NULL});
	seam_enter(NULL);
}

/* What it had not yet sent is gone with it, for both; its next run adds to what they have, in both alike. */
static void test_agents_memory(void **state)
{
	static const int64_t after[] = {0, 10, 30, 80};
	struct shortage h = {s.agent, &s.u.stack->agent, "agent", false, 0};
	int ends = 0, cases = 0;
	double applied;

	(void)state;
	stack_start_aggregator(s.u.stack, DISTURBED);
	stack_start_aggregator(s.u.stack, UNDISTURBED);
	restart_agent();
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		await_applied(frames(DISTURBED, "applied") + 1);
		cases++;
		if (run_short(&h, after[i], i % 3 == 2 ? SEAM_FOR_EVER : 1)) {
			ends++;
			restart_agent();
		}
	}
	print_message("%d shortages, %d ends\n", cases, ends);
	applied = frames(DISTURBED, "applied");
	await_applied(applied + 2);
	for (int i = 0; i < STACK_AGGREGATORS_MAX; i++)
		expect_none_refused(i);
	assert_int_equal(stack_stop_agent(s.u.stack, SIGTERM), 0);
}

#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_aggregators_calls),	  TEST(test_agents_calls),
		TEST(test_accept_fails_for_long),
#ifndef __SANITIZE_ADDRESS__
		TEST(test_aggregators_memory),	  TEST(test_agents_memory),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
