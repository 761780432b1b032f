/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory ends for programs at work, at the first allocation from now on, some later one, once or
 * for good. What is asked may then be refused, or the process ends with a message; started again it
 * has all there was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/seam_work.h"

#ifndef SEAM_WITHOUT_MEMORY

static struct seam_work *s;

static int setup(void **state)
{
	int rc = seam_work_setup(state);

	s = *state;
	return rc;
}

/* One that says something else than out of memory, or nothing, has crashed. */
static bool said_out_of_memory(const char *program)
{
	char *path = mem_printf("%s/%s-0.log", s->u.stack->folder, program), text[65536];
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
	struct seam_meeting m = {s, h->seam, SEAM_ALLOCATE, 1, h->seam == s->aggregator};

	h->ended = h->ended || has_ended(h->pid, h->program);
	return h->ended || seam_meeting_is_met(&m);
}

/* Ended, or an interval later as well as before. */
static bool is_decided(void *ctx)
{
	struct shortage *h = ctx;

	h->ended = h->ended || has_ended(h->pid, h->program);
	return h->ended || seam_work_frames(s, DISTURBED, "applied") >= h->applied;
}

/* An allocation fails, or all do: true when that was its end. */
static bool run_short(struct shortage *h, int64_t after, int64_t times)
{
	h->ended = false;
	seam_set(h->seam, SEAM_ALLOCATE, ENOMEM, after, times);
	if (!await(is_felt, h, SEAM_WORK_TIMEOUT_S))
		fail_msg("%s allocates nothing", h->program);
	seam_heal(h->seam);
	/* More than what was on its way. */
	h->applied = h->ended ? 0 : seam_work_frames(s, DISTURBED, "applied") + 3;
	if (!await(is_decided, h, SEAM_WORK_TIMEOUT_S))
		fail_msg("without allocation %lld %s neither ends nor goes on", (long long)after,
			 h->program);
	return h->ended;
}

/* Whatever it had acknowledged and lost at its end, agents still have, and nothing else is lost. */
static void test_aggregators_memory(void **state)
{
	static const int64_t after[] = {0, 2, 9, 20, 75, 130, 250, 600};
	struct shortage h = {s->aggregator, &s->u.stack->aggregators[DISTURBED].pid, "aggregator",
			     false, 0};
	int ends = 0, cases = 0;

	(void)state;
	seam_work_start_aggregators(s);
	seam_work_start_agent(s);
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		seam_work_await_applied(s, 2);
		cases++;
		if (run_short(&h, after[i], i % 4 == 3 ? SEAM_FOR_EVER : 1)) {
			ends++;
			seam_work_start_disturbed(s);
		} else if (!await(seam_work_is_ready, s, SEAM_WORK_TIMEOUT_S)) {
			fail_msg("without allocation %lld it does not answer", (long long)after[i]);
		}
	}
	print_message("%d shortages, %d ends\n", cases, ends);
	seam_work_await_applied(s, 2);
	seam_work_expect_none_refused(s, DISTURBED);
	seam_work_expect_none_refused(s, UNDISTURBED);
	seam_work_expect_equal(s);
	assert_int_equal(stack_stop_agent(s->u.stack, SIGTERM), 0);
}

/*
 * What it had not yet sent is gone with it, and it may have told only one of both. But what its
 * last run measured both have, all of it: told again, after they have forgotten everything, it
 * makes the same windows in both.
 */
static void test_agents_memory(void **state)
{
	static const int64_t after[] = {0, 10, 30, 80};
	struct shortage h = {s->agent, &s->u.stack->agent, "agent", false, 0};
	int ends = 0, cases = 0;

	(void)state;
	seam_work_start_aggregators(s);
	seam_work_start_agent(s);
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		seam_work_await_applied(s, seam_work_frames(s, DISTURBED, "applied") + 1);
		cases++;
		if (run_short(&h, after[i], i % 3 == 2 ? SEAM_FOR_EVER : 1)) {
			ends++;
			seam_work_start_agent(s);
		}
	}
	print_message("%d shortages, %d ends\n", cases, ends);
	if (has_ended(&s->u.stack->agent, "agent"))
		fail_msg("the agent ends without a shortage");
	seam_work_await_applied(s, seam_work_frames(s, DISTURBED, "applied") + 2);
	for (int i = 0; i < STACK_AGGREGATORS_MAX; i++) {
		seam_work_expect_none_refused(s, i);
		stack_kill_aggregator(s->u.stack, i);
	}
	seam_work_start_aggregators(s);
	seam_work_await_applied(s, 4);
	seam_work_expect_equal(s);
	assert_int_equal(stack_stop_agent(s->u.stack, SIGTERM), 0);
}

#endif

int main(void)
{
#ifdef SEAM_WITHOUT_MEMORY
	print_message("SKIP: the sanitizer's allocations do not fail\n");
	return 0;
#else
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_aggregators_memory, setup, seam_work_teardown),
		cmocka_unit_test_setup_teardown(test_agents_memory, setup, seam_work_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
