/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that live for some milliseconds, against what the kernel says each of them used: a pod
 * in which they come and go between two samples must show their sum, on the v2 tree by every tier
 * that works here, and on v1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler.h"
#include "agent/sampling.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/sanitized.h"

#define POD	  "kubepods/pod5c0a7e5e-11fe-4111-8111-00000000feed"
#define CONTAINER POD "/5c0a7e5e5c0a7e5e5c0a7e5e5c0a7e5e5c0a7e5e5c0a7e5e5c0a7e5e5c0a7e5e"

enum { LIVES = RANDOM_CASES(100), AT_ONCE = 10, BURN_MS_MAX = 4 };

/* One process: its pipes speak of halves of its life, a byte each. */
struct life {
	pid_t pid;
	int to, from;
};

/* How the agent looks at the machine. */
struct way {
	const char *name;
	int from; /* enum hierarchy that CPU time is read from, and that the processes live in */
	int tier;
	/* how many of the stories below are told; moves into v1 cgroups take their time */
	size_t stories;
};

struct scene {
	struct cgroup_fixture *cgroups;
	const struct way *way;
	struct sampling *sampling;
	/* in the container, as its first process would be; some tiers see no empty cgroup */
	struct life keeper;
	double pod_ms, container_ms; /* as sampled */
	double used_ms; /* as measured */
};

/* --- lives ------------------------------------------------------------------------------------ */

static int64_t own_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static void burn(int64_t ns)
{
	int64_t end = own_cpu_ns() + ns;

	while (own_cpu_ns() < end)
		continue;
}

/*
 * Moves into a cgroup where a process cannot be born there. Returns what it used elsewhere: the
 * kernel changes the account at the beginning of the move, whose cost is the new cgroup's.
 */
static int64_t move_into(const struct scene *s, const char *sub)
{
	const struct cgroupfs *fs = cgroup_fixture_fs(s->cgroups);
	char *path = mem_printf("%s/cgroup.procs", cgroup_fixture_path(s->cgroups, sub) + 1);
	int fd = openat(fs->root_fd[s->way->from], path, O_WRONLY | O_CLOEXEC);
	int64_t elsewhere_ns = own_cpu_ns();

	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(1);
	close(fd);
	free(path);
	return elsewhere_ns;
}

/* Tells what it used before it was here; then burns, each half when told to. */
static void live(const struct scene *s, const char *sub, int to, int from, int64_t burn_ns)
{
	int64_t elsewhere_ns = 0;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (s->way->from != HIERARCHY_UNIFIED)
		elsewhere_ns = move_into(s, sub);
	if (write(from, &elsewhere_ns, sizeof(elsewhere_ns)) != sizeof(elsewhere_ns))
		_exit(1);
	for (int half = 0; half < 2; half++) {
		if (read(to, &byte, 1) != 1)
			_exit(1);
		burn(burn_ns / 2);
		if (write(from, "d", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static pid_t fork_into(const struct scene *s, const char *sub)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	int fd = -1;
	pid_t pid;

	if (s->way->from == HIERARCHY_UNIFIED) {
		const struct cgroupfs *fs = cgroup_fixture_fs(s->cgroups);

		fd = openat(fs->root_fd[HIERARCHY_UNIFIED],
			    cgroup_fixture_path(s->cgroups, sub) + 1,
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (__u64)fd;
	}
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	assert_true(pid >= 0);
	if (pid && fd >= 0)
		close(fd);
	return pid;
}

static void begin_life(const struct scene *s, const char *sub, int64_t burn_ns, struct life *l)
{
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	l->pid = fork_into(s, sub);
	if (l->pid == 0)
		live(s, sub, to[0], from[1], burn_ns);
	close(to[0]);
	close(from[1]);
	l->to = to[1];
	l->from = from[0];
}

static void await_begin(struct scene *s, const struct life *l)
{
	int64_t elsewhere_ns = 0;

	assert_int_equal(read(l->from, &elsewhere_ns, sizeof(elsewhere_ns)), sizeof(elsewhere_ns));
	s->used_ms -= (double)elsewhere_ns / NS_PER_MS;
}

static void live_half(const struct life *l)
{
	char byte;

	assert_int_equal(write(l->to, "g", 1), 1);
	assert_int_equal(read(l->from, &byte, 1), 1);
}

/* The kernel's own word for what it used in all its life. */
static void end_life(struct scene *s, const struct life *l)
{
	struct rusage usage;
	int status;

	assert_int_equal(wait4(l->pid, &status, 0, &usage), l->pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	s->used_ms += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
		      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
	close(l->to);
	close(l->from);
}

/* --- scene ------------------------------------------------------------------------------------ */

static void make(struct scene *s, const char *sub)
{
	cgroup_fixture_make(s->cgroups, 1U << s->way->from, sub);
}

static void take(struct scene *s)
{
	struct interval *i = sampling_take(s->sampling, 1, NS_PER_SEC, 2 * NS_PER_SEC);

	assert_non_null(i);
	for (size_t n = 0; n < i->entry_count; n++) {
		const struct moments32 *cpu = &i->entries[n].usage.cpu_milli;
		double ms = (double)cpu->mean * (double)cpu->weight;
		const char *name = i->entries[n].entity->name;

		if (!strcmp(name, cgroup_fixture_path(s->cgroups, POD) + 1))
			s->pod_ms += ms;
		if (!strcmp(name, cgroup_fixture_path(s->cgroups, CONTAINER) + 1))
			s->container_ms += ms;
	}
	interval_free(i);
}

static void tick(struct scene *s)
{
	struct error error = {""};

	if (sampling_tick(s->sampling, 0, &error))
		fail_msg("%s", error.text);
}

static void expect(const struct scene *s, const char *what, double sampled_ms)
{
	print_message("%s, %s: %.3f ms, used %.3f ms, off by %.3f %%\n", s->way->name, what,
		      sampled_ms, s->used_ms, 100 * (sampled_ms - s->used_ms) / s->used_ms);
	assert_true(s->used_ms > LIVES);
	assert_true(fabs(sampled_ms - s->used_ms) <= 0.01 * s->used_ms);
}

/* False where the tier does not work here. */
static bool open_scene(struct scene *s, const struct way *way)
{
	const struct cgroupfs *fs = cgroup_fixture_fs(s->cgroups);
	struct sampling_config config = {
		.cgroup_root = way->from == HIERARCHY_UNIFIED ? fs->mount[HIERARCHY_UNIFIED]
							      : "/sys/fs/cgroup",
		.rate_hz = 10,
		.tier = way->tier,
		.cpu_budget_percent = 100,
	};
	struct error error = {""};

	s->way = way;
	make(s, "kubepods");
	make(s, POD);
	make(s, CONTAINER);
	begin_life(s, CONTAINER, 0, &s->keeper);
	await_begin(s, &s->keeper);
	s->used_ms = s->pod_ms = s->container_ms = 0;
	if (sampling_open(&s->sampling, &config, &error)) {
		print_message("SKIP: %s: %s\n", way->name, error.text);
		return false;
	}
	return true;
}

static void close_scene(struct scene *s)
{
	sampling_close(s->sampling);
	s->sampling = NULL;
	live_half(&s->keeper);
	live_half(&s->keeper);
	end_life(s, &s->keeper);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* At once, since moving into a v1 cgroup takes some 40 ms. */
static void begin_lives(struct scene *s, struct life *lives, const char *one)
{
	char sub[128];

	for (int n = 0; n < AT_ONCE; n++) {
		snprintf(sub, sizeof(sub), POD "/l%d", n);
		if (!one)
			make(s, sub);
		begin_life(s, one ? one : sub, (1 + n % BURN_MS_MAX) * NS_PER_MS, &lives[n]);
	}
	for (int n = 0; n < AT_ONCE; n++) {
		await_begin(s, &lives[n]);
		live_half(&lives[n]);
	}
}

static void end_lives(struct scene *s, const struct life *lives, const char *one)
{
	char sub[128];

	for (int n = 0; n < AT_ONCE; n++) {
		live_half(&lives[n]);
		end_life(s, &lives[n]);
		snprintf(sub, sizeof(sub), POD "/l%d", n);
		if (!one)
			cgroup_fixture_remove(s->cgroups, 1U << s->way->from, sub);
	}
}

/* Each in a cgroup of its own, which is made and removed between two samples. */
static void live_and_go(struct scene *s)
{
	struct life lives[AT_ONCE];

	for (int n = 0; n < LIVES / AT_ONCE; n++) {
		begin_lives(s, lives, NULL);
		end_lives(s, lives, NULL);
		tick(s);
	}
	take(s);
	expect(s, "lives of less than a tick", s->pod_ms);
}

/* The second half of each comes after its last sample. */
static void live_over_a_tick(struct scene *s)
{
	struct life lives[AT_ONCE];

	for (int n = 0; n < LIVES / AT_ONCE; n++) {
		begin_lives(s, lives, NULL);
		tick(s);
		end_lives(s, lives, NULL);
	}
	tick(s);
	take(s);
	expect(s, "lives over a tick", s->pod_ms);
}

/* Only the processes go. */
static void live_in_one_cgroup(struct scene *s)
{
	struct life lives[AT_ONCE];

	for (int n = 0; n < LIVES / AT_ONCE; n++) {
		begin_lives(s, lives, CONTAINER);
		end_lives(s, lives, CONTAINER);
		tick(s);
	}
	take(s);
	expect(s, "lives in one cgroup", s->container_ms);
	expect(s, "and its pod", s->pod_ms);
}

static void run(struct scene *s, const struct way *way, bool *any)
{
	static void (*const stories[])(struct scene *) = {live_and_go, live_in_one_cgroup,
							  live_over_a_tick};

	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]) && i < way->stories; i++) {
		bool works = open_scene(s, way);

		if (works)
			stories[i](s);
		close_scene(s);
		if (!works)
			return;
		*any = true;
	}
}

static int setup(void **state)
{
	static struct scene scene;
	struct error error = {""};

	scene = (struct scene){.cgroups = cgroup_fixture_new("short", &error)};
	if (!scene.cgroups)
		print_message("SKIP: %s\n", error.text);
	*state = &scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	sampling_close(s->sampling);
	cgroup_fixture_free(s->cgroups);
	return 0;
}

static void test_on_v2(void **state)
{
	static const struct way ways[] = {
		{"v2, T0", HIERARCHY_UNIFIED, TIER_T0, 3},
		{"v2, T1", HIERARCHY_UNIFIED, TIER_T1, 3},
		{"v2, T2", HIERARCHY_UNIFIED, TIER_T2, 3},
		{"v2, T3", HIERARCHY_UNIFIED, TIER_T3, 3},
	};
	struct scene *s = *state;
	bool any = false;

	if (!s->cgroups || cgroup_fixture_fs(s->cgroups)->root_fd[HIERARCHY_UNIFIED] < 0)
		skip();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		run(s, &ways[i], &any);
	if (!any)
		skip();
}

static void test_on_v1(void **state)
{
	static const struct way ways[] = {
		{"v1, T1", HIERARCHY_CPUACCT, TIER_T1, 2},
		{"v1, T3", HIERARCHY_CPUACCT, TIER_T3, 1},
	};
	struct scene *s = *state;
	bool any = false;

	if (!s->cgroups || cgroup_fixture_fs(s->cgroups)->cpu_from != HIERARCHY_CPUACCT) {
		print_message("SKIP: no cpuacct hierarchy here\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		run(s, &ways[i], &any);
	if (!any)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_on_v2, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_v1, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
