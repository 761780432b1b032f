/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that is full, or read-only, under a running aggregator, and under one that starts: it serves, the alarm is
 * up and the log says why; when the disk is well again, it saves without being asked. The disk is a small tmpfs in a
 * mount namespace of this test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/mem.h"
#include "tests/process.h"
#include "tests/stack.h"

struct scene {
	struct stack *stack;
	char *disk, *filler; /* NULL: there can be no disk here */
	const char *why;
};

static bool make_disk(struct scene *s)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
		s->why = strerror(errno);
		return false;
	}
	s->disk = mem_printf("%s/disk", s->stack->folder);
	s->filler = mem_printf("%s/filler", s->disk);
	if (mkdir(s->disk, 0700) || mount("tmpfs", s->disk, "tmpfs", 0, "size=512k")) {
		s->why = strerror(errno);
		return false;
	}
	return true;
}

static int setup(void **state)
{
	static struct scene scene;

	scene = (struct scene){0};
	if (sodium_init() < 0)
		return -1;
	scene.stack = stack_new();
	*state = &scene;
	if (!make_disk(&scene))
		return 0;
	setenv("EVENKEEL_STATE_DIR", scene.disk, 1);
	setenv("EVENKEEL_SAVE_EVERY", "1s", 1);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->stack->aggregators[0].pid)
		stack_kill_aggregator(s->stack, 0);
	if (s->disk)
		umount2(s->disk, MNT_DETACH);
	stack_free(s->stack, 0);
	free(s->disk);
	free(s->filler);
	unsetenv("EVENKEEL_STATE_DIR");
	unsetenv("EVENKEEL_SAVE_EVERY");
	return 0;
}

static void skip_without_disk(const struct scene *s)
{
	if (!s->why)
		return;
	print_message("SKIP: no mount namespace: %s\n", s->why);
	skip();
}

/* All that is left. */
static void fill(const struct scene *s)
{
	int fd = open(s->filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char block[4096] = {0};

	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		continue;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

static void free_up(const struct scene *s)
{
	assert_int_equal(unlink(s->filler), 0);
}

static void make_read_only(const struct scene *s)
{
	if (mount(NULL, s->disk, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL))
		fail_msg("remount: %s", strerror(errno));
}

static void make_writable(const struct scene *s)
{
	if (mount(NULL, s->disk, NULL, MS_REMOUNT | MS_BIND, NULL))
		fail_msg("remount: %s", strerror(errno));
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
static void falls_ill_and_recovers(const struct scene *s, void (*spoil)(const struct scene *s),
				   void (*heal)(const struct scene *s), const char *reason)
{
	double failures;

	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, (const char *[]){"--interval", "1s", NULL});
	await_metric(s, "evenkeel_store_saves_total", 2, 1e9);
	failures = stack_metric(s->stack, 0, "evenkeel_store_failures_total");
	assert_true(failures == 0);
	spoil(s);
	await_metric(s, "evenkeel_store_alarm", 1, 1);
	await_metric(s, "evenkeel_store_failures_total", 3, 1e9);
	assert_true(stack_metric(s->stack, 0, "evenkeel_nodes{state=\"fresh\"}") == 1);
	assert_int_equal(lines_with(s, "are not being saved"), 1);
	if (!lines_with(s, reason))
		fail_msg("the log does not say \"%s\"", reason);
	heal(s);
	await_metric(s, "evenkeel_store_alarm", 0, 0);
	assert_int_equal(lines_with(s, "are being saved again"), 1);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
	stop(s);
	stack_start_aggregator(s->stack, 0);
	assert_true(stack_metric(s->stack, 0, "evenkeel_store_loaded_nodes") == 1);
	stop(s);
}

static void test_full(void **state)
{
	skip_without_disk(*state);
	falls_ill_and_recovers(*state, fill, free_up, "database or disk is full");
}

/* It is ill when the aggregator starts. */
static void starts_ill_and_recovers(const struct scene *s, void (*spoil)(const struct scene *s),
				    void (*heal)(const struct scene *s), const char *reason)
{
	spoil(s);
	stack_start_aggregator(s->stack, 0);
	assert_true(stack_metric(s->stack, 0, "evenkeel_store_alarm") == 1);
	if (!lines_with(s, reason))
		fail_msg("the log does not say \"%s\"", reason);
	heal(s);
	await_metric(s, "evenkeel_store_alarm", 0, 0);
	await_metric(s, "evenkeel_store_saves_total", 1, 1e9);
	stop(s);
}

static void test_starts_full(void **state)
{
	skip_without_disk(*state);
	starts_ill_and_recovers(*state, fill, free_up, "is full");
}

static void test_starts_read_only(void **state)
{
	skip_without_disk(*state);
	starts_ill_and_recovers(*state, make_read_only, make_writable, "Read-only file system");
}

/* A database that is there, on a disk that became read-only before the start. */
static void test_read_only_database(void **state)
{
	const struct scene *s = *state;

	skip_without_disk(s);
	stack_start_aggregator(s->stack, 0);
	await_metric(s, "evenkeel_store_saves_total", 1, 1e9);
	stop(s);
	make_read_only(s);
	stack_start_aggregator(s->stack, 0);
	assert_true(stack_metric(s->stack, 0, "evenkeel_store_alarm") == 1);
	assert_int_equal(lines_with(s, "are not being saved"), 1);
	make_writable(s);
	await_metric(s, "evenkeel_store_alarm", 0, 0);
	assert_int_equal(lines_with(s, "set aside"), 0);
	stop(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_full),
		TEST(test_starts_full),
		TEST(test_starts_read_only),
		TEST(test_read_only_database),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
