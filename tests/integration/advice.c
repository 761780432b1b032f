/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Advice against the truth: the real agent and aggregator watch workloads whose demand is known. The
 * requests proposed, and percentiles, are within 10 % of it; with the proposed CPU limit in the
 * kernel, a workload of bursts is throttled within three points of what was predicted, in each of
 * EVENKEEL_ADVICE_RUNS runs (default: 1).
 *
 * Loads use a share of each 5 ms, also when they wait for the CPU first. What they missed of earlier
 * ones they do not make up for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/process.h"
#include "tests/stack.h"

#define SLICE_NS  (5 * NS_PER_MS)
#define PERIOD_US 100000

enum { WATCH_SECONDS = 46, LIMITED_MS = 20000, LEAK_STEP = 4 << 20, LEAK_MOST = 96 << 20 };

/* on and off: hundredths of a core, in the first on_ms of each cycle and in the rest of it. */
static const struct load {
	const char *name;
	int cycle_ms, on_ms, on, off;
	int cpu; /* that it runs on: no two have more than one core */
	int quota_milli; /* 0: none */
	bool leaks, late; /* late: it is made after the agent starts */
	double p90, p95; /* of demand; 0: of no matter */
} loads[] = {
	{"constant", 1000, 0, 0, 21, .p90 = 210, .p95 = 210},
	/* The kernel counts each period: more than 0.5 ms of it is used. */
	{"bursty", 10000, 1000, 43, 1, .p95 = 430},
	/* Its phases move through the samples. */
	{"periodic", 1010, 505, 31, 0, .cpu = 1, .p90 = 310, .p95 = 310},
	{"mixed", 10000, 1000, 48, 21, .cpu = 1, .p95 = 480},
	{"throttled", 1000, 0, 0, 100, .quota_milli = 100, .p90 = 1000, .p95 = 1000},
	{"leak", 1000, 0, 0, 0, .leaks = true, .cpu = 1},
	{"start", 60000, 10000, 15, 0, .late = true},
};

enum { CONSTANT, BURSTY, PERIODIC, MIXED, THROTTLED, LEAK, START, LOADS };

/*
 * CPU time that a load was meant to use, and used, in its bursts. In a sum over all times the cost
 * of wakeups would hide that bursts were cut short.
 */
struct tally {
	atomic_llong meant_ns, used_ns;
};

struct scene {
	struct cgroup_fixture *cgroups;
	struct tally *tallies; /* shared with the loads */
	struct stack *stack;
	char *paths[LOADS];
	pid_t pids[LOADS];
};

/* --- loads ------------------------------------------------------------------------------------ */

static void leak(void)
{
	static char *all;
	static size_t used;

	if (!all)
		all = mem_zalloc(1, LEAK_MOST);
	if (used < LEAK_MOST)
		memset(all + used, 1, LEAK_STEP);
	used += used < LEAK_MOST ? LEAK_STEP : 0;
}

static int64_t own_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static void use_cpu(int64_t ns, int64_t end_ns)
{
	int64_t begun_ns = own_cpu_ns();
	volatile uint64_t work = 0;

	while (own_cpu_ns() - begun_ns < ns && clock_mono_ns() < end_ns)
		work++;
}

static void bear(const struct load *l, struct tally *tally)
{
	int64_t begun_ns = clock_mono_ns();

	for (int64_t slice = 0;; slice++) {
		int64_t at_ns = begun_ns + slice * SLICE_NS, used_ns = own_cpu_ns();
		struct timespec at = {at_ns / NS_PER_SEC, at_ns % NS_PER_SEC};
		int share = slice * SLICE_NS / NS_PER_MS % l->cycle_ms < l->on_ms ? l->on : l->off;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		use_cpu(share * SLICE_NS / 100, at_ns + SLICE_NS);
		if (share >= l->on && share >= l->off) {
			atomic_fetch_add(&tally->used_ns, own_cpu_ns() - used_ns);
			atomic_fetch_add(&tally->meant_ns, share * SLICE_NS / 100);
		}
		if (l->leaks && at_ns % NS_PER_SEC < SLICE_NS)
			leak();
	}
}

/* Of the bandwidth controller; false where there is none. */
static bool set_quota(const struct scene *s, const char *sub, int64_t milli)
{
	int from = cgroup_fixture_fs(s->cgroups)->throttle_from;
	char text[64];
	bool v1 = from == HIERARCHY_CPU;

	snprintf(text, sizeof(text), v1 ? "%lld" : "%lld 100000",
		 (long long)milli * PERIOD_US / 1000);
	return from >= 0 && cgroup_fixture_write(s->cgroups, from, sub,
						 v1 ? "cpu.cfs_quota_us" : "cpu.max", text);
}

static void start_load(struct scene *s, int i)
{
	const char *sub = loads[i].name;
	char text[32];

	cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), sub);
	cgroup_fixture_prefer(s->cgroups, sub);
	s->pids[i] = fork();
	if (s->pids[i] == 0) {
		cpu_set_t one;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CPU_ZERO(&one);
		CPU_SET((size_t)loads[i].cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		raise(SIGSTOP); /* until it is in its cgroup */
		bear(&loads[i], &s->tallies[i]);
	}
	assert_int_equal(waitpid(s->pids[i], NULL, WUNTRACED), s->pids[i]);
	snprintf(text, sizeof(text), "%d", (int)s->pids[i]);
	for (int h = 0; h < HIERARCHIES; h++)
		if (cgroup_fixture_all(s->cgroups) & (1u << h))
			assert_true(cgroup_fixture_write(s->cgroups, h, sub, "cgroup.procs", text));
	if (loads[i].quota_milli)
		assert_true(set_quota(s, sub, loads[i].quota_milli));
	kill(s->pids[i], SIGCONT);
}

/* --- advice ----------------------------------------------------------------------------------- */

static const cJSON *advice_of(const cJSON *doc, const char *path)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, cJSON_GetObjectItem(doc, "items")) {
		if (strcmp(cJSON_GetStringValue(json_at(item, "workload.name")), path) == 0)
			return item;
	}
	return NULL;
}

static double number(const cJSON *item, const char *path)
{
	const cJSON *at = item ? json_at(item, path) : NULL;

	return cJSON_IsNumber(at) ? at->valuedouble : NAN;
}

static bool is_within(const char *what, const char *which, double value, double want)
{
	bool good = fabs(value - want) <= 0.1 * want;

	print_message("%s: %s %.1f, truth %.1f%s\n", what, which, value, want,
		      good ? "" : ": WRONG");
	return good;
}

/* The limit leaves out a hundredth of the samples, of which a busy machine shifts some. */
static bool check_load(const struct load *l, const cJSON *item)
{
	double limit = number(item, "proposed.limits.cpuMillicores");
	bool good = item != NULL;

	if (l->p90 > 0)
		good &= is_within(l->name, "CPU request",
				  number(item, "proposed.requests.cpuMillicores"), l->p90);
	if (l->p95 > 0)
		good &= is_within(l->name, "p95", number(item, "demand.cpuMillicores.p95"), l->p95);
	if (l->p95 > 0 && !(limit > 0.95 * l->p95 && limit < 1.3 * l->p95)) {
		print_message("%s: CPU limit %.0f: WRONG\n", l->name, limit);
		good = false;
	}
	return good;
}

static double peak_in_kernel(const struct scene *s, const char *sub)
{
	int from = cgroup_fixture_fs(s->cgroups)->memory_from;
	char text[64] = "";
	bool v1 = from == HIERARCHY_MEMORY;

	assert_true(cgroup_fixture_read(s->cgroups, from, sub,
					v1 ? "memory.usage_in_bytes" : "memory.current", text,
					sizeof(text)));
	return strtod(text, NULL);
}

static bool check_memory(const struct scene *s, const cJSON *item)
{
	double peak = peak_in_kernel(s, loads[LEAK].name);
	bool right = is_within("leak", "peak", number(item, "demand.memoryPeakBytes"), peak);

	return is_within("leak", "memory request", number(item, "proposed.requests.memoryBytes"),
			 peak * 1.15) &&
	       right;
}

/* The first two minutes are a start, and no demand beyond it. */
static bool check_start(const cJSON *item)
{
	double peak = number(item, "demand.cpuMillicores.startPeak");

	/* The largest sample of all: on a busy machine ticks come late. */
	print_message("start: peak %.1f, truth 150\n", peak);
	return peak > 0.9 * 150 && peak < 2 * 150 &&
	       isnan(number(item, "proposed.requests.cpuMillicores"));
}

struct periods {
	double all, throttled;
};

static struct periods read_periods(const struct scene *s, const char *sub)
{
	int from = cgroup_fixture_fs(s->cgroups)->throttle_from;
	unsigned long long all = 0, throttled = 0;
	const char *at;
	char text[1024];

	assert_true(cgroup_fixture_read(s->cgroups, from, sub, "cpu.stat", text, sizeof(text)));
	at = strstr(text, "nr_periods");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "nr_periods %llu nr_throttled %llu", &all, &throttled), 2);
	return (struct periods){(double)all, (double)throttled};
}

static const char *const queries[] = {"/v1/advice?limit=5000",
				      "/v1/advice?limit=5000&throttledBelow=15%25"};

/* Loads on CPUs of their own that get their proposed limits at once. */
static const int limited[] = {BURSTY, MIXED};
enum { LIMITED = sizeof(limited) / sizeof(limited[0]) };

static bool check_limit(const struct scene *s, const cJSON *doc, int load, struct periods before)
{
	const cJSON *item = advice_of(doc, s->paths[load]);
	struct periods after = read_periods(s, loads[load].name);
	double predicted = number(item, "proposed.throttledRatio"), all = after.all - before.all,
	       measured = (after.throttled - before.throttled) / all;

	print_message("%s, limit %.0f millicores: throttled in %.1f%% of %.0f periods, predicted "
		      "%.1f%%\n",
		      loads[load].name, number(item, "proposed.limits.cpuMillicores"),
		      100 * measured, all, 100 * predicted);
	return fabs(measured - predicted) <= 0.03;
}

static bool check_limits(const struct scene *s, const char *query)
{
	cJSON *doc = stack_get(s->stack, 0, query);
	struct periods before[LIMITED];
	bool good = true;

	for (size_t i = 0; i < LIMITED; i++) {
		const char *sub = loads[limited[i]].name;
		const cJSON *item = advice_of(doc, s->paths[limited[i]]);

		assert_true(
			set_quota(s, sub, (int64_t)number(item, "proposed.limits.cpuMillicores")));
		before[i] = read_periods(s, sub);
	}
	poll(NULL, 0, LIMITED_MS);
	for (size_t i = 0; i < LIMITED; i++) {
		good &= check_limit(s, doc, limited[i], before[i]);
		assert_true(set_quota(s, loads[limited[i]].name, 100000));
	}
	cJSON_Delete(doc);
	return good;
}

/* All but those that get limits. */
static void stop_loads(struct scene *s)
{
	for (int i = 0; i < LOADS; i++) {
		if (i == BURSTY || i == MIXED)
			continue;
		process_stop(s->pids[i], SIGKILL);
		s->pids[i] = 0;
	}
}

static double seconds_watched(const struct scene *s, int load)
{
	cJSON *doc = stack_get(s->stack, 0, queries[0]);
	double hours = number(advice_of(doc, s->paths[load]), "hours");

	cJSON_Delete(doc);
	return 3600 * hours;
}

static bool is_listed(void *ctx)
{
	return seconds_watched(ctx, CONSTANT) > 0;
}

static bool is_watched(void *ctx)
{
	return seconds_watched(ctx, START) >= WATCH_SECONDS;
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
	scene.cgroups = cgroup_fixture_new("advice", &error);
	if (!scene.cgroups) {
		print_message("SKIP: %s\n", error.text);
		return 0;
	}
	scene.tallies = mmap(NULL, LOADS * sizeof(struct tally), PROT_READ | PROT_WRITE,
			     /* cppcheck-suppress invalidFunctionArg */
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	scene.stack = stack_new();
	for (int i = 0; i < LOADS; i++)
		scene.paths[i] = mem_strdup(cgroup_fixture_path(scene.cgroups, loads[i].name) + 1);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	for (int i = 0; i < LOADS; i++) {
		if (s->pids[i])
			process_stop(s->pids[i], SIGKILL);
		free(s->paths[i]);
	}
	if (s->stack)
		stack_free(s->stack, 0);
	cgroup_fixture_free(s->cgroups);
	return 0;
}

static void start(struct scene *s)
{
	static const char *const more[] = {"--interval=1s", "--cpu-budget=100", NULL};

	cgroup_fixture_prefer(s->cgroups, "");
	for (int i = 0; i < LOADS; i++)
		if (!loads[i].late)
			start_load(s, i);
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, more);
	assert_true(await(is_listed, s, 30));
	start_load(s, START);
	assert_true(await(is_watched, s, 150));
}

/* Whether the machine had time for the loads; a throttled one, and one that is late, may have less. */
static bool loads_were_had(const struct scene *s)
{
	for (int i = 0; i < THROTTLED; i++) {
		double share = (double)atomic_load(&s->tallies[i].used_ns) /
			       (double)atomic_load(&s->tallies[i].meant_ns);

		if (share > 0.96 && share < 1.04)
			continue;
		print_message("SKIP: %s used %.0f%% of what it should\n", loads[i].name,
			      100 * share);
		return false;
	}
	return true;
}

static void test_advice_is_true(void **state)
{
	const char *text = getenv("EVENKEEL_ADVICE_RUNS");
	int runs = text ? (int)strtol(text, NULL, 10) : 1;
	struct scene *s = *state;
	bool good = true;
	cJSON *doc;

	if (!s->cgroups || cgroup_fixture_fs(s->cgroups)->throttle_from < 0)
		skip();
	start(s);
	if (!loads_were_had(s))
		skip();
	doc = stack_get(s->stack, 0, queries[0]);
	for (int i = 0; i < LOADS; i++)
		good &= check_load(&loads[i], advice_of(doc, s->paths[i]));
	good &= check_memory(s, advice_of(doc, s->paths[LEAK]));
	good &= check_start(advice_of(doc, s->paths[START]));
	cJSON_Delete(doc);
	stop_loads(s);
	for (int run = 0; run < runs; run++)
		for (size_t q = 0; q < 2; q++)
			good &= check_limits(s, queries[q]);
	assert_true(good);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_advice_is_true, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
