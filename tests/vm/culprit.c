/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The likely cause of a pod's waiting, by the pressure of a real kernel: pods with real tasks, one
 * of them guilty or none, sampled as the agent does, at its highest rate. EVENKEEL_CULPRIT_RUNS sets
 * the runs of each scene, EVENKEEL_CULPRIT_FIRST the number of the first (each has random times of
 * its own), EVENKEEL_CULPRIT_SCENE selects one by its first letters:
 *
 *	tests/vm/run -i -t 3600 -e EVENKEEL_CULPRIT_RUNS=100 6.12 build/tests/vm/culprit
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampling.h"
#include "shared/clock.h"
#include "tests/cgroup_fixture.h"
#include "tests/vm/machine.h"

enum { RATE_HZ = 10, SECONDS = 7, PODS_MAX = 4, TASKS_MAX = 16, RUNS = 2 };

#define TICK_NS (NS_PER_SEC / RATE_HZ)

/* How a pod's tasks work. Times are in milliseconds. */
struct pattern {
	int tasks;
	int work, sleep; /* of a task; means of random times. sleep 0: it never sleeps */
	int on, off; /* phases of the whole pod; off 0: always on */
	int in_step; /* phases are those of the pods with the same number; 0: its own */
	const char *quota; /* cpu.max; NULL: none */
};

struct scene {
	const char *name;
	int guilty; /* pod; 0: nobody */
	int least; /* of 100 runs */
	struct pattern pods[PODS_MAX]; /* [0] waits */
};

/* For one CPU. */
static const struct scene scenes[] = {
	{"bursty hog",
	 1,
	 95,
	 {{.tasks = 1, .work = 8, .sleep = 18},
	  {.tasks = 3, .on = 400, .off = 400, .in_step = 1},
	  {.tasks = 1, .work = 4, .sleep = 30, .on = 400, .off = 400, .in_step = 1},
	  {.tasks = 1, .work = 3, .sleep = 15, .on = 300, .off = 450}}},
	{"constant hog",
	 1,
	 95,
	 {{.tasks = 1, .work = 8, .sleep = 18, .on = 400, .off = 300, .in_step = 2},
	  {.tasks = 2},
	  {.tasks = 1, .work = 4, .sleep = 20, .on = 400, .off = 300, .in_step = 2},
	  {.tasks = 1, .work = 4, .sleep = 25}}},
	{"many tasks",
	 1,
	 95,
	 {{.tasks = 1, .work = 8, .sleep = 18},
	  {.tasks = 12, .work = 20, .sleep = 60},
	  {.tasks = 1, .work = 5, .sleep = 20},
	  {.tasks = 2, .work = 3, .sleep = 30}}},
	{"self-throttled",
	 0,
	 99,
	 {{.tasks = 2, .quota = "20000 100000"},
	  {.tasks = 1, .work = 10, .sleep = 10, .on = 300, .off = 500},
	  {.tasks = 1, .work = 4, .sleep = 20},
	  {.tasks = 1, .work = 4, .sleep = 30}}},
};

static struct {
	struct cgroup_fixture *fixture;
	struct sampling *sampling;
	int64_t next_tick_ns;
	uint64_t sequence;
	int runs;
	pid_t tasks[PODS_MAX * TASKS_MAX];
	size_t task_count;
} world;

/* --- tasks ------------------------------------------------------------------------------------ */

static double uniform(uint64_t *random)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*random >> 11) / 9007199254740992.0;
}

static int64_t around_ns(uint64_t *random, int mean_ms)
{
	return (int64_t)(fmin(-log(1 - uniform(random)), 3) * mean_ms * (double)NS_PER_MS);
}

static void sleep_ns(int64_t ns)
{
	const struct timespec t = {ns / NS_PER_SEC, ns % NS_PER_SEC};

	nanosleep(&t, NULL);
}

/* Until the phase that includes the time ends. Equal seeds have equal phases. */
struct phases {
	uint64_t random;
	bool on;
	int64_t end_ns;
};

static void follow(struct phases *f, const struct pattern *p)
{
	while (p->off && f->end_ns <= clock_mono_ns()) {
		f->on = !f->on;
		f->end_ns += around_ns(&f->random, f->on ? p->on : p->off);
	}
}

static void work(const struct pattern *p, uint64_t phase_seed, uint64_t seed, int64_t begin_ns)
{
	struct phases phases = {.random = phase_seed, .on = true, .end_ns = begin_ns};
	uint64_t random = seed;

	for (;;) {
		int64_t used_ns = clock_thread_cpu_ns(), work_ns = around_ns(&random, p->work);

		follow(&phases, p);
		if (!phases.on) {
			sleep_ns(phases.end_ns - clock_mono_ns());
			continue;
		}
		do {
			for (volatile int turns = 0; turns < 2000; turns++)
				continue;
			follow(&phases, p);
		} while (phases.on && (!p->sleep || clock_thread_cpu_ns() - used_ns < work_ns));
		if (p->sleep)
			sleep_ns(around_ns(&random, p->sleep));
	}
}

/* --- pods ------------------------------------------------------------------------------------- */

static const char *pod_path(int run, int pod)
{
	static char sub[128];

	snprintf(sub, sizeof(sub), "kubepods/pod%08x-0b0a-0908-0706-0504030201%02x", run, pod);
	return sub;
}

static void put(const char *sub, const char *file, const char *text)
{
	if (!cgroup_fixture_write(world.fixture, HIERARCHY_UNIFIED, sub, file, text))
		fail_msg("cannot write %s to %s of %s: %s", text, file, sub, strerror(errno));
}

static void start_pod(const struct scene *s, int run, int pod, int64_t begin_ns)
{
	const struct pattern *p = &s->pods[pod];
	const char *sub = pod_path(run, pod);
	uint64_t seed = (uint64_t)(run * PODS_MAX + pod) * 2654435761U;

	cgroup_fixture_make(world.fixture, 1U << HIERARCHY_UNIFIED, sub);
	if (p->quota)
		put(sub, "cpu.max", p->quota);
	for (int t = 0; t < p->tasks; t++) {
		pid_t pid = fork();

		if (pid == 0) {
			put(sub, "cgroup.procs", "0");
			work(p, p->in_step ? (uint64_t)(run * 64 + p->in_step) : seed,
			     seed + (uint64_t)t * 97, begin_ns);
		}
		assert_true(pid > 0);
		world.tasks[world.task_count++] = pid;
	}
}

static void stop_pods(int run)
{
	char events[256];

	for (size_t i = 0; i < world.task_count; i++)
		kill(world.tasks[i], SIGKILL);
	for (size_t i = 0; i < world.task_count; i++)
		assert_int_equal(waitpid(world.tasks[i], NULL, 0), world.tasks[i]);
	world.task_count = 0;
	for (int pod = 0; pod < PODS_MAX; pod++) {
		const char *sub = pod_path(run, pod);

		while (cgroup_fixture_read(world.fixture, HIERARCHY_UNIFIED, sub, "cgroup.events",
					   events, sizeof(events)) &&
		       !strstr(events, "populated 0"))
			sched_yield();
		cgroup_fixture_remove(world.fixture, 1U << HIERARCHY_UNIFIED, sub);
	}
}

/* --- runs ------------------------------------------------------------------------------------- */

static void tick(void)
{
	struct error error = {""};
	int64_t now = clock_mono_ns();

	world.next_tick_ns += TICK_NS;
	if (world.next_tick_ns > now)
		sleep_ns(world.next_tick_ns - now);
	else
		world.next_tick_ns = now;
	if (sampling_tick(world.sampling, 0, &error))
		fail_msg("%s", error.text);
}

static const struct entry *find_entry(const struct interval *interval, const char *sub)
{
	const char *name = cgroup_fixture_path(world.fixture, sub) + 1;

	for (size_t i = 0; i < interval->entry_count; i++)
		if (strcmp(interval->entries[i].entity->name, name) == 0)
			return &interval->entries[i];
	fail_msg("no %s in the interval", name);
	return NULL;
}

static struct interval *take(void)
{
	return sampling_take(world.sampling, ++world.sequence, world.next_tick_ns - 1,
			     world.next_tick_ns);
}

static const char *name_of(const struct interval *interval, int run, uint32_t ref)
{
	static char text[32];

	if (!ref || ref == CAUSE_SYSTEM)
		return ref ? "system" : "nobody";
	for (int pod = 0; pod < PODS_MAX; pod++)
		if (find_entry(interval, pod_path(run, pod))->ref == ref) {
			snprintf(text, sizeof(text), "pod %d", pod);
			return text;
		}
	return "another pod";
}

/* A kernel works for some time after its start. */
static void await_calm(void)
{
	double used;

	do {
		struct interval *interval;

		for (int t = 0; t < 2 * RATE_HZ; t++)
			tick();
		interval = take();
		used = (double)interval->node.usage.cpu_milli.mean / 1000;
		interval_free(interval);
	} while (used > 0.25);
}

/* Whether the right one is named. */
static bool run_once(const struct scene *s, int run)
{
	const struct entry *waits, *guilty;
	struct interval *interval;
	bool right;

	for (int pod = 0; pod < PODS_MAX; pod++)
		start_pod(s, run, pod, clock_mono_ns());
	for (int t = 0; t < SECONDS * RATE_HZ; t++)
		tick();
	interval = take();
	waits = find_entry(interval, pod_path(run, 0));
	guilty = find_entry(interval, pod_path(run, s->guilty));
	right = waits->cause.ref == (s->guilty ? guilty->ref : 0);
	print_message("%s %d: %s, share %.2f, waits %.2f, %d ticks%s; use", s->name, run,
		      name_of(interval, run, waits->cause.ref), (double)waits->cause.share,
		      (double)waits->usage.contention_cpu_ns / 1e9 / (double)waits->usage.seconds,
		      (int)waits->usage.cpu_milli.samples, right ? "" : " WRONG");
	for (int pod = 0; pod < PODS_MAX; pod++)
		print_message(
			" %.2f",
			(double)find_entry(interval, pod_path(run, pod))->usage.cpu_milli.mean /
				1000);
	print_message(", machine %.2f, this program %.2f\n",
		      (double)interval->node.usage.cpu_milli.mean / 1000,
		      (double)interval->node.agent_cpu_ns / 1e9 /
			      (double)interval->node.usage.seconds);
	stop_pods(run);
	tick();
	interval_free(interval);
	interval_free(take());
	return right;
}

static void test_scene(void **state)
{
	const struct scene *s = *state;
	const char *only = getenv("EVENKEEL_CULPRIT_SCENE"),
		   *text = getenv("EVENKEEL_CULPRIT_FIRST");
	int first = text ? (int)strtol(text, NULL, 10) : 0, wrong = 0;

	if (!has_controllers(cgroup_fixture_fs(world.fixture)) || !is_time_counted()) {
		print_message("SKIP: needs cgroup v2 with its controllers and tests/vm/run -i\n");
		skip();
	}
	if (only && strncmp(only, s->name, strlen(only)) != 0)
		skip();
	/* Its phases need a machine without other work, and more than a few runs. */
	if (s == &scenes[0] && !getenv("EVENKEEL_CULPRIT_RUNS")) {
		print_message("SKIP: %s needs EVENKEEL_CULPRIT_RUNS\n", s->name);
		skip();
	}
	await_calm();
	for (int run = first; run < first + world.runs; run++)
		wrong += !run_once(s, run);
	print_message("%s: %d of %d right\n", s->name, world.runs - wrong, world.runs);
	/* A single miss says nothing of a few runs. */
	assert_true(wrong <= 1 || wrong * 100 <= (100 - s->least) * world.runs);
}

static int setup(void **state)
{
	static const struct sampling_config config = {
		.cgroup_root = "/sys/fs/cgroup",
		.rate_hz = RATE_HZ,
		.tier = -1,
		.cpu_budget_percent = 100,
	};
	const char *runs = getenv("EVENKEEL_CULPRIT_RUNS");
	struct error error = {""};

	(void)state;
	world.runs = runs ? (int)strtol(runs, NULL, 10) : RUNS;
	world.fixture = cgroup_fixture_new("culprit", &error);
	if (world.fixture && has_controllers(cgroup_fixture_fs(world.fixture))) {
		cgroup_fixture_make(world.fixture, 1U << HIERARCHY_UNIFIED, "kubepods");
		put("kubepods", "cgroup.subtree_control", "+cpu +memory +pids");
	}
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
	cgroup_fixture_free(world.fixture);
	return 0;
}

int main(void)
{
	enum { SCENES = sizeof(scenes) / sizeof(scenes[0]) };
	struct CMUnitTest tests[SCENES];

	for (int i = 0; i < SCENES; i++)
		tests[i] = (struct CMUnitTest){.name = scenes[i].name,
					       .test_func = test_scene,
					       .initial_state = (void *)&scenes[i]};
	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, setup, teardown);
}
