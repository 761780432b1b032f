/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of readings, on cgroup v2 with its controllers: the share of pressure that
 * neighbours cause, the CPU time of cgroups that are gone before the next look, and intervals while
 * somebody sets the wall clock or suspends the machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampling.h"
#include "agent/schedule.h"
#include "shared/clock.h"
#include "tests/cgroup_fixture.h"
#include "tests/vm/machine.h"

#define V2	HIERARCHY_UNIFIED
#define TICK_NS (100 * NS_PER_MS)
#define POD	"pod0f0e0d0c-0b0a-0908-0706-050403020100"

static struct {
	struct cgroup_fixture *fixture;
	struct sampling *sampling;
	int64_t next_tick_ns;
	uint64_t sequence;
} world;

static void pin(pid_t pid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(pid, sizeof(one), &one))
		fail_msg("no CPU %d: %s", cpu, strerror(errno));
}

static int setup(void **state)
{
	static const struct sampling_config config = {
		.cgroup_root = "/sys/fs/cgroup",
		.rate_hz = 10,
		.tier = -1,
		.cpu_budget_percent = 100,
	};
	struct error error = {""};

	(void)state;
	world.sequence = 0;
	world.fixture = cgroup_fixture_new("sampling", &error);
	if (!world.fixture || sampling_open(&world.sampling, &config, &error)) {
		print_error("%s\n", error.text);
		return -1;
	}
	world.next_tick_ns = clock_mono_ns();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sampling_close(world.sampling);
	world.sampling = NULL;
	cgroup_fixture_free(world.fixture);
	return 0;
}

static void need_controllers(void)
{
	if (has_controllers(cgroup_fixture_fs(world.fixture)))
		return;
	print_message("SKIP: no cgroup v2 with its controllers here\n");
	skip();
}

static void make(const char *sub)
{
	cgroup_fixture_make(world.fixture, 1U << V2, sub);
}

static void put(const char *sub, const char *file, const char *text)
{
	if (!cgroup_fixture_write(world.fixture, V2, sub, file, text))
		fail_msg("cannot write %s to %s of %s", text, file, sub);
}

static pid_t spin(const char *sub, int cpu)
{
	pid_t pid = cgroup_fixture_spawn(world.fixture, sub, &(struct cgroup_child){.spin = true});

	pin(pid, cpu);
	return pid;
}

/* In microseconds or whatever the file counts. */
static int64_t number(const char *sub, const char *file, const char *key)
{
	char text[4096];
	const char *at;

	if (!cgroup_fixture_read(world.fixture, V2, sub, file, text, sizeof(text)))
		fail_msg("no %s in %s", file, sub);
	at = strstr(text, key);
	if (at)
		return strtoll(at + strlen(key), NULL, 10);
	fail_msg("no %s in %s", key, file);
	return -1;
}

static int64_t cpu_usec(const char *sub)
{
	return number(sub, "cpu.stat", "usage_usec ");
}

/* Waits for its time as the agent's timer does. */
static void tick(void)
{
	struct error error = {""};
	struct timespec until;

	world.next_tick_ns += TICK_NS;
	until.tv_sec = world.next_tick_ns / NS_PER_SEC;
	until.tv_nsec = world.next_tick_ns % NS_PER_SEC;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	if (sampling_tick(world.sampling, 0, &error))
		fail_msg("%s", error.text);
}

static struct interval *take(int64_t start_ns, int64_t end_ns)
{
	struct interval *i = sampling_take(world.sampling, ++world.sequence, start_ns, end_ns);

	assert_non_null(i);
	return i;
}

/* NULL: no entry of that name. */
static const struct usage *usage_of(const struct interval *interval, const char *sub)
{
	const char *name = cgroup_fixture_path(world.fixture, sub) + 1;

	for (size_t i = 0; i < interval->entry_count; i++) {
		const struct entry *entry = &interval->entries[i];

		if (entry->entity && strcmp(entry->entity->name, name) == 0)
			return &entry->usage;
	}
	return NULL;
}

static double cpu_seconds(const struct usage *u)
{
	return (double)u->cpu_milli.mean * (double)u->cpu_milli.weight / 1000;
}

/* --- pressure -------------------------------------------------------------------------------- */

/*
 * A task with a quota of 40 % runs into it for 30 periods, then it and its neighbour are stopped.
 * Returns the pressure that was not throttling, relative to the throttling.
 */
static double contention_of_limited(bool neighbour)
{
	uint64_t contention_ns = 0, throttled_ns = 0;
	int64_t psi_usec, throttled_usec, share_usec;
	pid_t limited, other = 0;

	make("limited");
	make("neighbour");
	put("limited", "cpu.max", "40000 100000");
	pin(0, 1);
	limited = spin("limited", 0);
	if (neighbour)
		other = spin("neighbour", 0);
	do {
		tick();
	} while (number("limited", "cpu.stat", "nr_throttled ") < 30);
	cgroup_fixture_stop(limited);
	if (other)
		cgroup_fixture_stop(other);
	/*
	 * Reading the file brings the kernel's total up to date, which else lags by up to two
	 * seconds.
	 */
	do {
		const struct usage *u;
		struct interval *i;

		psi_usec = number("limited", "cpu.pressure", "total=");
		throttled_usec = number("limited", "cpu.stat", "throttled_usec ");
		for (int t = 0; t < 11; t++)
			tick(); /* a slow pass among them */
		i = take(world.next_tick_ns - 1, world.next_tick_ns);
		u = usage_of(i, "limited");
		assert_non_null(u);
		assert_true(u->have & USAGE_CONTENTION_CPU);
		contention_ns += u->contention_cpu_ns;
		throttled_ns += u->throttled_ns;
		interval_free(i);
	} while (throttled_usec != number("limited", "cpu.stat", "throttled_usec "));
	print_message("%s: pressure %" PRId64 " us, throttled %" PRId64 " us, contention %" PRIu64
		      " us\n",
		      neighbour ? "with a neighbour" : "alone", psi_usec, throttled_usec,
		      contention_ns / 1000);
	assert_int_equal(throttled_ns / 1000, throttled_usec);
	share_usec = psi_usec > throttled_usec ? psi_usec - throttled_usec : 0;
	assert_true(llabs((int64_t)contention_ns / 1000 - share_usec) <=
		    10); /* rounding of the files */
	return (double)(psi_usec - throttled_usec) / (double)throttled_usec;
}

/* The throttling that goes on when the task is stopped ends within its period: 60 ms of 1.8 s. */
static void test_quota_alone_is_no_contention(void **state)
{
	(void)state;
	need_controllers();
	assert_true(fabs(contention_of_limited(false)) < 0.1);
}

/*
 * To get its 40 ms of a CPU that it shares with a neighbour of equal weight it waits about as long
 * again.
 */
static void test_neighbour_is_contention(void **state)
{
	(void)state;
	need_controllers();
	assert_true(contention_of_limited(true) > 0.5);
}

/* --- cgroups that are gone ------------------------------------------------------------------- */

enum { LIVES = 100 };

/* Lives and dies in a cgroup of its own below the pod, which is removed then. */
static void live_shortly(int number_of_life)
{
	char sub[256];
	pid_t pid;

	snprintf(sub, sizeof(sub), "kubepods/%s/%064x", POD, number_of_life);
	make(sub);
	pid = fork();
	if (pid == 0) {
		put(sub, "cgroup.procs", "0");
		for (volatile unsigned int turns = 0;; turns++)
			continue;
	}
	assert_true(pid > 0);
	while (cpu_usec(sub) < 5000)
		sched_yield();
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	while (number(sub, "cgroup.events", "populated "))
		sched_yield();
	cgroup_fixture_remove(world.fixture, 1U << V2, sub);
}

/* Takes an interval of LIVES lives; how much of what the kernel's file of their pod counts is not told, as a share. */
static double lose_by_removal(int round)
{
	double before = (double)cpu_usec("kubepods/" POD) / 1e6, expected, told;
	struct interval *interval;
	const struct usage *u;

	for (int i = 1; i <= LIVES; i++) {
		live_shortly(round * LIVES + i);
		if (i % 7 == 0)
			tick();
	}
	tick();
	interval = take(2 + round, 3 + round);
	u = usage_of(interval, "kubepods/" POD);
	assert_non_null(u);
	told = cpu_seconds(u);
	expected = (double)cpu_usec("kubepods/" POD) / 1e6 - before;
	print_message("%d lives: %.6f s, the kernel's file of their pod %.6f s\n", LIVES, told,
		      expected);
	assert_true(expected >= LIVES * 0.005);
	interval_free(interval);
	return fabs(told - expected) / expected;
}

/*
 * What a dead task's last switch costs may be charged after its cgroup was removed: microseconds, or as
 * long as the emulator runs the other processor just then. A sampler that loses lives does so in
 * every round.
 */
static void test_removed_cgroups_stay_in_their_pod(void **state)
{
	enum { ROUNDS = 3 };
	int round = 0;

	(void)state;
	need_controllers();
	make("kubepods");
	put("kubepods", "cgroup.subtree_control", "+cpu +memory +pids");
	make("kubepods/" POD);
	pin(0,
	    1); /* and with it the short lives: the last switch of each is over when the test runs */
	tick();
	interval_free(take(1, 2));
	while (lose_by_removal(round) >= 0.002)
		assert_true(++round < ROUNDS);
}

/* --- clocks ---------------------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written = false;

	if (fd >= 0) {
		written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
		close(fd);
	}
	if (!written)
		fail_msg("cannot write %s to %s: %s", text, path, strerror(errno));
}

/* What has happened to the wall clock besides time passing. */
struct clocks {
	int64_t mono_ns, wall_ns;
};

static struct clocks now(void)
{
	return (struct clocks){clock_mono_ns(), clock_wall_ns()};
}

static void shift_wall(int64_t seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += seconds;
	assert_int_equal(clock_settime(CLOCK_REALTIME, &t), 0);
}

/* Asleep until the clock's alarm; the monotonic clock stands still. */
static void suspend(int64_t seconds)
{
	char text[32];

	write_text("/sys/class/rtc/rtc0/wakealarm", "0");
	snprintf(text, sizeof(text), "+%" PRId64, seconds);
	write_text("/sys/class/rtc/rtc0/wakealarm", text);
	write_text("/sys/power/state", "mem");
}

struct journey {
	struct schedule schedule;
	struct clocks last; /* when the newest interval ended */
	int64_t last_end_ns;
	double seconds, cpu; /* sums over the intervals */
};

enum { TOLERANCE_NS = 50 * 1000 * 1000 }; /* between two clocks that are read one after the other */

static void expect_near(const char *what, int64_t value, int64_t expected)
{
	if (llabs(value - expected) > TOLERANCE_NS)
		fail_msg("%s: %" PRId64 " instead of %" PRId64 " ns", what, value, expected);
}

/* Ticks to the end of an interval and looks at it. */
static void expect_interval(struct journey *j)
{
	struct clocks end;
	int64_t start_ns, end_ns, length, jump;
	struct interval *interval;
	const struct usage *u;

	do {
		tick();
		end = now();
	} while (!schedule_due(&j->schedule, end.mono_ns));
	schedule_end(&j->schedule, end.mono_ns, end.wall_ns, &start_ns, &end_ns);
	interval = take(start_ns, end_ns);
	length = end.mono_ns - j->last.mono_ns;
	jump = end.wall_ns - j->last.wall_ns - length;
	assert_true(start_ns < end_ns);
	expect_near("length", end_ns - start_ns, length);
	expect_near("start", start_ns, j->last_end_ns + jump);
	u = usage_of(interval, "worker");
	assert_non_null(u);
	j->seconds += (double)u->seconds;
	j->cpu += cpu_seconds(u);
	j->last = end;
	j->last_end_ns = end_ns;
	interval_free(interval);
}

static void travel(struct journey *j)
{
	static const int64_t shifts[] = {3600, -7200, 3, -3, 0, 3600};

	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		expect_interval(j);
		tick();
		if (shifts[i])
			shift_wall(shifts[i]);
		else
			suspend(3);
		expect_interval(j);
	}
}

static void test_wall_clock_and_suspend(void **state)
{
	struct journey j = {.last = now()};
	struct clocks begin = j.last;
	int64_t used_usec;
	double expected;
	pid_t pid;

	(void)state;
	if (!in_virtual_machine()) {
		print_message("SKIP: sets the clock and suspends: in a virtual machine only\n");
		skip();
	}
	make("worker");
	put("worker", "cpu.max", "50000 100000");
	pid = spin("worker", 0);
	schedule_start(&j.schedule, "vm", NS_PER_SEC, begin.mono_ns, begin.wall_ns);
	j.last_end_ns = begin.wall_ns;
	travel(&j);
	cgroup_fixture_stop(pid);
	used_usec = cpu_usec("worker");
	expect_interval(&j);
	expected = (double)(j.last.mono_ns - begin.mono_ns) / 1e9;
	print_message("sampled %.3f s of %.3f s, CPU %.6f s of %.6f s\n", j.seconds, expected,
		      j.cpu, (double)used_usec / 1e6);
	assert_true(fabs(j.cpu * 1e6 - (double)used_usec) < 1e-5 * (double)used_usec);
	assert_true(fabs(j.seconds - expected) < 0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_quota_alone_is_no_contention, setup, teardown),
		cmocka_unit_test_setup_teardown(test_neighbour_is_contention, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removed_cgroups_stay_in_their_pod, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_wall_clock_and_suspend, setup, teardown),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
