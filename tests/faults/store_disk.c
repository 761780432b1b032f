/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that is full, or read-only, under a running aggregator, and under one that starts: it
 * serves, the alarm is up and the log says why; when the disk is well again, it saves without being
 * asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "tests/frame_account.h"
#include "tests/process.h"
#include "tests/small_disk.h"
#include "tests/stack.h"

struct scene {
	struct stack *stack;
	struct small_disk disk;
};

static int setup(void **state)
{
	static struct scene scene;

	scene = (struct scene){0};
	if (sodium_init() < 0)
		return -1;
	scene.stack = stack_new();
	*state = &scene;
	small_disk_init(&scene.disk, scene.stack->folder);
	if (scene.disk.why)
		return 0;
	setenv("EVENKEEL_STATE_DIR", scene.disk.path, 1);
	setenv("EVENKEEL_SAVE_INTERVAL", "1s", 1);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->stack->aggregators[0].pid)
		stack_kill_aggregator(s->stack, 0);
	small_disk_fini(&s->disk);
	stack_free(s->stack, 0);
	unsetenv("EVENKEEL_STATE_DIR");
	unsetenv("EVENKEEL_SAVE_INTERVAL");
	return 0;
}

struct wish {
	const struct scene *s;
	const char *metric;
	double at_least, at_most;
};

static bool is_granted(void *ctx)
{
	const struct wish *w = ctx;
	double value = stack_metric(w->s->stack, 0, w->metric);

	return value >= w->at_least && value <= w->at_most;
}

static void await_metric(const struct scene *s, const char *name, double at_least, double at_most)
{
	struct wish w = {s, name, at_least, at_most};

	if (!await(is_granted, &w, 60))
		fail_msg("%s is %g", name, stack_metric(s->stack, 0, name));
}

static void await_save(const struct scene *s)
{
	static const char saves[] = "evenkeel_store_saves_total";

	await_metric(s, saves, stack_metric(s->stack, 0, saves) + 1, 1e9);
}

/* How many lines of the log have the text. */
static int lines_with(const struct scene *s, const char *text)
{
	char *path = mem_printf("%s/aggregator-0.log", s->stack->folder), line[1024];
	FILE *log = fopen(path, "r");
	int count = 0;

	while (log && fgets(line, sizeof(line), log))
		count += strstr(line, text) != NULL;
	if (log)
		fclose(log);
	free(path);
	return count;
}

static void stop(const struct scene *s)
{
	assert_int_equal(process_stop(s->stack->aggregators[0].pid, SIGTERM), 0);
	s->stack->aggregators[0].pid = 0;
}

/* Down and up again while it runs: one line for each, however often it tried. */
static void falls_ill_and_recovers(const struct scene *s, void (*spoil)(const struct small_disk *d),
				   void (*heal)(const struct small_disk *d), const char *reason)
{
	double failures;

	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, (const char *[]){"--interval", "1s", NULL});
	await_metric(s, "evenkeel_store_saves_total", 2, 1e9);
	failures = stack_metric(s->stack, 0, "evenkeel_store_failures_total");
	assert_true(failures == 0);
	spoil(&s->disk);
	await_metric(s, "evenkeel_store_alarm", 1, 1);
	await_metric(s, "evenkeel_store_failures_total", 3, 1e9);
	await_metric(s, "evenkeel_nodes{state=\"fresh\"}", 1, 1);
	assert_int_equal(lines_with(s, "nothing is being saved"), 1);
	if (!lines_with(s, reason))
		fail_msg("the log does not say \"%s\"", reason);
	heal(&s->disk);
	await_metric(s, "evenkeel_store_alarm", 0, 0);
	await_save(s); /* the line comes between the end of the alarm and the next save */
	assert_int_equal(lines_with(s, "is being saved again"), 1);
	frame_account_expect_whole(s->stack, 0);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	stop(s);
	stack_start_aggregator(s->stack, 0);
	assert_true(stack_metric(s->stack, 0, "evenkeel_store_loaded_nodes") == 1);
	stop(s);
}

static void test_full(void **state)
{
	small_disk_need(&((struct scene *)*state)->disk);
	falls_ill_and_recovers(*state, small_disk_fill, small_disk_free_up,
			       "database or disk is full");
}

/* It is ill when the aggregator starts. */
static void starts_ill_and_recovers(const struct scene *s,
				    void (*spoil)(const struct small_disk *d),
				    void (*heal)(const struct small_disk *d), const char *reason)
{
	spoil(&s->disk);
	stack_start_aggregator(s->stack, 0);
	assert_true(stack_metric(s->stack, 0, "evenkeel_store_alarm") == 1);
	if (!lines_with(s, reason))
		fail_msg("the log does not say \"%s\"", reason);
	heal(&s->disk);
	await_metric(s, "evenkeel_store_alarm", 0, 0);
	await_metric(s, "evenkeel_store_saves_total", 1, 1e9);
	stop(s);
}

static void test_starts_full(void **state)
{
	small_disk_need(&((struct scene *)*state)->disk);
	starts_ill_and_recovers(*state, small_disk_fill, small_disk_free_up, "is full");
}

static void test_starts_read_only(void **state)
{
	small_disk_need(&((struct scene *)*state)->disk);
	starts_ill_and_recovers(*state, small_disk_make_read_only, small_disk_make_writable,
				"Read-only file system");
}

/* A database that is there, on a disk that became read-only before the start. */
static void test_read_only_database(void **state)
{
	const struct scene *s = *state;

	small_disk_need(&s->disk);
	stack_start_aggregator(s->stack, 0);
	await_metric(s, "evenkeel_store_saves_total", 1, 1e9);
	stop(s);
	small_disk_make_read_only(&s->disk);
	stack_start_aggregator(s->stack, 0);
	assert_true(stack_metric(s->stack, 0, "evenkeel_store_alarm") == 1);
	assert_int_equal(lines_with(s, "nothing is being saved"), 1);
	small_disk_make_writable(&s->disk);
	await_metric(s, "evenkeel_store_alarm", 0, 0);
	assert_int_equal(lines_with(s, "set aside"), 0);
	stop(s);
}

/* A record on a full disk: it begins anew, behind a gap. */
static void test_full_under_a_record(void **state)
{
	const struct scene *s = *state;
	char *record = mem_printf("%s/record", s->disk.path);
	char *program = mem_strdup(program_path("evenkeel"));
	char *argv[] = {program, (char *)"replay", record, NULL};
	struct buf out = BUF_INIT, err = BUF_INIT;

	small_disk_need(&s->disk);
	setenv("EVENKEEL_RECORD", record, 1);
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, (const char *[]){"--interval", "1s", NULL});
	await_metric(s, "evenkeel_record_bytes_total", 10000, 1e12);
	small_disk_fill(&s->disk);
	await_metric(s, "evenkeel_record_alarm", 1, 1);
	await_metric(s, "evenkeel_nodes{state=\"fresh\"}", 1, 1);
	assert_int_equal(lines_with(s, "nothing is recorded"), 1);
	small_disk_free_up(&s->disk);
	await_metric(s, "evenkeel_record_alarm", 0, 0);
	assert_int_equal(lines_with(s, "it is recorded again"), 1);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	stop(s);
	unsetenv("EVENKEEL_RECORD");
	assert_int_equal(process_run(argv, &out, &err), 0);
	assert_non_null(strstr(out.data, "segments: 2, gaps: 1, damaged: 0"));
	buf_fini(&out);
	buf_fini(&err);
	free(program);
	free(record);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_full),
		TEST(test_starts_full),
		TEST(test_starts_read_only),
		TEST(test_read_only_database),
		TEST(test_full_under_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
