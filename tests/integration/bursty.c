/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two workloads that use half a CPU each: one by the second half of every second, one all the time.
 * To whoever reads the kernel's counters every 15 s they are the same; the real agent and
 * aggregator tell them apart by their deviation, and the bursty one's is the one that follows from
 * its pattern.
 *
 * Ten samples a second may lie anywhere on a pattern of half seconds, which alone changes the
 * deviation of a perfect sampler from 447 to 500 millicores. So the pattern moves by 10 ms a
 * second, through a whole sample in ten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/process.h"
#include "tests/stack.h"

#define TICK_MS	    100
#define ON_MS	    500
#define CYCLE_MS    1000
#define SHIFT_MS    10
#define CYCLES	    10 /* until it is where it was */
#define POLL_NS	    (15 * NS_PER_SEC)
#define LOAD_MILLI  500
#define STEADY_RATE 5 /* samples a second, at least, for the test to mean anything */

enum { BURSTY, STEADY, WORKLOADS, POLLS = 3 /* 30 s */ };

static const char *const names[WORKLOADS] = {"bursty", "steady"};

struct scene {
	struct cgroup_fixture *cgroups;
	struct stack *stack;
	char *paths[WORKLOADS];
	pid_t bursty;
	/* what a poller saw */
	int polls;
	double at_seconds[POLLS], used_seconds[POLLS][WORKLOADS];
};

/* --- the pattern ------------------------------------------------------------------------------ */

/* When cycle k is on: from here on for ON_MS. */
static int64_t on_from_ms(int64_t k)
{
	return k * CYCLE_MS + k % CYCLES * SHIFT_MS;
}

/* How much of [from, from + TICK_MS) it is on, 0..1. */
static double on_share(int64_t from_ms)
{
	double on = 0;

	for (int64_t k = from_ms / CYCLE_MS - 1; k <= from_ms / CYCLE_MS + 1; k++) {
		int64_t begin = on_from_ms(k), end = begin + ON_MS;
		int64_t first = begin > from_ms ? begin : from_ms;
		int64_t last = end < from_ms + TICK_MS ? end : from_ms + TICK_MS;

		on += last > first ? (double)(last - first) : 0;
	}
	return on / TICK_MS;
}

/* Of a perfect sampler at 10 Hz, over all of the pattern and wherever its ticks lie. */
static double pattern_stddev_milli(void)
{
	double sum = 0, squares = 0;
	int count = 0;

	for (int64_t ms = CYCLES * CYCLE_MS; ms < 2 * CYCLES * CYCLE_MS; ms++, count++) {
		double milli = 1000 * on_share(ms);

		sum += milli;
		squares += milli * milli;
	}
	return sqrt(squares / count - sum / count * (sum / count));
}

static pid_t start_bursts(void)
{
	volatile uint64_t work = 0;
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int64_t k = clock_mono_ns() / (CYCLE_MS * NS_PER_MS) + 1;; k++) {
		int64_t begin_ns = on_from_ms(k) * NS_PER_MS;
		struct timespec begin = {begin_ns / NS_PER_SEC, begin_ns % NS_PER_SEC};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &begin, NULL);
		while (clock_mono_ns() < begin_ns + ON_MS * NS_PER_MS)
			work++;
	}
}

/* --- the scene -------------------------------------------------------------------------------- */

static int setup(void **state)
{
	static struct scene scene;
	struct error error = {""};

	*state = &scene;
	scene = (struct scene){0};
	if (sodium_init() < 0)
		return -1;
	scene.cgroups = cgroup_fixture_new("bursty", &error);
	if (!scene.cgroups) {
		print_message("SKIP: %s\n", error.text);
		return 0;
	}
	scene.stack = stack_new();
	for (int i = 0; i < WORKLOADS; i++)
		scene.paths[i] = mem_strdup(cgroup_fixture_path(scene.cgroups, names[i]) + 1);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->bursty)
		process_stop(s->bursty, SIGKILL);
	if (s->stack)
		stack_free(s->stack, 0);
	cgroup_fixture_free(s->cgroups);
	for (int i = 0; i < WORKLOADS; i++)
		free(s->paths[i]);
	return 0;
}

/* 5 ms of every 10: half a CPU in any tenth of a second. False where there is no cpu controller. */
static bool set_quota(struct cgroup_fixture *f, const char *sub)
{
	int from = cgroup_fixture_fs(f)->throttle_from;

	if (from == HIERARCHY_CPU)
		return cgroup_fixture_write(f, from, sub, "cpu.cfs_period_us", "10000") &&
		       cgroup_fixture_write(f, from, sub, "cpu.cfs_quota_us", "5000");
	return from == HIERARCHY_UNIFIED &&
	       cgroup_fixture_write(f, from, sub, "cpu.max", "5000 10000");
}

/* Before everything else that runs here, so that the pattern is what is used. */
static void set_first(struct cgroup_fixture *f, const char *sub)
{
	int from = cgroup_fixture_fs(f)->throttle_from;

	if (from == HIERARCHY_CPU)
		cgroup_fixture_write(f, from, sub, "cpu.shares", "262144");
	else
		cgroup_fixture_write(f, from, sub, "cpu.weight", "10000");
}

static void move_into(struct cgroup_fixture *f, const char *sub, pid_t pid)
{
	char text[32];

	snprintf(text, sizeof(text), "%d", (int)pid);
	for (int h = 0; h < HIERARCHIES; h++)
		if (cgroup_fixture_all(f) & (1u << h))
			assert_true(cgroup_fixture_write(f, h, sub, "cgroup.procs", text));
}

/* CPU time as the kernel's file has it. */
static double kernel_cpu_seconds(const struct cgroup_fixture *f, const char *sub)
{
	int from = cgroup_fixture_fs(f)->cpu_from;
	unsigned long long used = 0;
	char text[1024];

	if (from == HIERARCHY_CPUACCT) {
		assert_true(cgroup_fixture_read(f, from, sub, "cpuacct.usage", text, sizeof(text)));
		assert_int_equal(sscanf(text, "%llu", &used), 1);
		return (double)used / 1e9;
	}
	assert_true(cgroup_fixture_read(f, from, sub, "cpu.stat", text, sizeof(text)));
	assert_int_equal(sscanf(text, "usage_usec %llu", &used), 1);
	return (double)used / 1e6;
}

/* --- the poller ------------------------------------------------------------------------------- */

/*
 * Reads the counters every 15 s, as one does who watches a cluster from afar; true when that is
 * enough.
 */
static bool poll_counters(void *ctx)
{
	struct scene *s = ctx;
	double now = (double)clock_mono_ns() / NS_PER_SEC;

	if (s->polls && now - s->at_seconds[s->polls - 1] < (double)POLL_NS / NS_PER_SEC)
		return false;
	s->at_seconds[s->polls] = now;
	for (int i = 0; i < WORKLOADS; i++)
		s->used_seconds[s->polls][i] = kernel_cpu_seconds(s->cgroups, names[i]);
	return ++s->polls == POLLS;
}

/* Mean and deviation of the rates between polls, in millicores. */
static void polled(const struct scene *s, int workload, double *mean, double *stddev)
{
	double sum = 0, squares = 0;

	for (int i = 1; i < POLLS; i++) {
		double milli = 1000 *
			       (s->used_seconds[i][workload] - s->used_seconds[i - 1][workload]) /
			       (s->at_seconds[i] - s->at_seconds[i - 1]);

		sum += milli;
		squares += milli * milli;
	}
	*mean = sum / (POLLS - 1);
	*stddev = sqrt(fmax(0, squares / (POLLS - 1) - *mean * *mean));
}

/* --- the test --------------------------------------------------------------------------------- */

static double number(const cJSON *item, const char *path)
{
	const cJSON *value = json_at(item, path);

	return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static void start(struct scene *s)
{
	static const char *const options[] = {"--interval",   "1s",  "--rate", "10",
					      "--cpu-budget", "100", NULL};

	set_first(s->cgroups, "");
	for (int i = 0; i < WORKLOADS; i++)
		set_first(s->cgroups, names[i]);
	cgroup_fixture_spawn(s->cgroups, names[STEADY], &(struct cgroup_child){.spin = true});
	s->bursty = start_bursts();
	move_into(s->cgroups, names[BURSTY], s->bursty);
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, options);
}

/* Whether the machine let each workload use what it is there to use, in each span of the poller. */
static bool load_was_had(const struct scene *s)
{
	double mean, stddev;

	for (int i = 0; i < WORKLOADS; i++) {
		polled(s, i, &mean, &stddev);
		if (fabs(mean - LOAD_MILLI) > 0.05 * LOAD_MILLI || stddev > 0.05 * LOAD_MILLI) {
			print_message("SKIP: %s used %.0f +- %.0f of its %d millicores here\n",
				      names[i], mean, stddev, LOAD_MILLI);
			return false;
		}
	}
	return true;
}

static bool sampled_often(const struct scene *s)
{
	cJSON *nodes = stack_get(s->stack, 0, "/v1/nodes");
	const cJSON *node = json_item(nodes, "test-node");
	double rate = number(node, "source.rateHz");

	if (rate < STEADY_RATE)
		print_message("SKIP: sampled %.1f times a second, by %s\n", rate,
			      cJSON_GetStringValue(json_at(node, "source.tier")));
	cJSON_Delete(nodes);
	return rate >= STEADY_RATE;
}

static void compare(const struct scene *s, const cJSON *pods)
{
	double mean[WORKLOADS], stddev[WORKLOADS], poll_mean[WORKLOADS], poll_stddev[WORKLOADS];
	double want = pattern_stddev_milli();

	for (int i = 0; i < WORKLOADS; i++) {
		const cJSON *pod = json_item(pods, s->paths[i]);

		mean[i] = number(pod, "usage.cpuMillicores.windows.5m.mean");
		stddev[i] = number(pod, "usage.cpuMillicores.windows.5m.stddev");
		polled(s, i, &poll_mean[i], &poll_stddev[i]);
		print_message("%s: measured %.1f +- %.1f millicores (%.0f samples), polled "
			      "%.1f +- %.1f\n",
			      names[i], mean[i], stddev[i],
			      number(pod, "usage.cpuMillicores.windows.5m.samples"), poll_mean[i],
			      poll_stddev[i]);
		assert_true(fabs(mean[i] - LOAD_MILLI) < 0.1 * LOAD_MILLI);
	}
	print_message("deviation that follows from the pattern: %.1f, off by %.2f %%\n", want,
		      100 * (stddev[BURSTY] - want) / want);
	assert_true(fabs(stddev[BURSTY] - want) <= 0.1 * want);
	assert_true(stddev[STEADY] < stddev[BURSTY] / 5);
}

static void test_bursts_are_seen(void **state)
{
	struct scene *s = *state;
	cJSON *pods;

	if (!s->cgroups)
		skip();
	for (int i = 0; i < WORKLOADS; i++)
		cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), names[i]);
	if (!set_quota(s->cgroups, names[STEADY])) {
		print_message("SKIP: no cpu controller to set a quota with\n");
		skip();
	}
	start(s);
	assert_true(await(poll_counters, s, 120));
	if (!load_was_had(s) || !sampled_often(s))
		skip();
	pods = stack_get(s->stack, 0, "/v1/pods?limit=5000"); /* whatever else runs here */
	compare(s, pods);
	cJSON_Delete(pods);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bursts_are_seen, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
