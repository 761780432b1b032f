/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole chain against the kernel's own word: a task that burns CPU under a quota of 30 % and
 * one that holds 200 MiB, watched for 20 s by the real agent, aggregator and command.
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
#include <unistd.h>

#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"
#include "tests/process.h"
#include "tests/stack.h"

#define QUOTA_MILLI 300
#define HOLD_BYTES  (200 * 1024 * 1024)
#define SAMPLES	    200 /* at 10 Hz: 20 s */

struct scene {
	struct cgroup_fixture *cgroups;
	struct stack *stack;
	char *burn, *hold; /* names of the workloads */
	cJSON *pods; /* last answer of `evenkeel pods -o json` */
};

static int setup(void **state)
{
	static struct scene scene;
	struct error error = {""};

	*state = &scene;
	scene = (struct scene){0};
	if (sodium_init() < 0)
		return -1;
	scene.cgroups = cgroup_fixture_new("ground", &error);
	if (!scene.cgroups) {
		print_message("SKIP: %s\n", error.text);
		return 0;
	}
	scene.stack = stack_new();
	scene.burn = mem_strdup(cgroup_fixture_path(scene.cgroups, "burn") + 1);
	scene.hold = mem_strdup(cgroup_fixture_path(scene.cgroups, "hold") + 1);
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->stack)
		stack_free(s->stack, 0);
	cgroup_fixture_free(s->cgroups);
	cJSON_Delete(s->pods);
	free(s->burn);
	free(s->hold);
	return 0;
}

/*
 * 30 ms of every 100 ms, in the words of whichever hierarchy has the cpu controller; false where
 * none has.
 */
static bool set_quota(struct cgroup_fixture *f, const char *sub)
{
	int from = cgroup_fixture_fs(f)->throttle_from;

	if (from == HIERARCHY_CPU)
		return cgroup_fixture_write(f, from, sub, "cpu.cfs_period_us", "100000") &&
		       cgroup_fixture_write(f, from, sub, "cpu.cfs_quota_us", "30000");
	return from == HIERARCHY_UNIFIED &&
	       cgroup_fixture_write(f, from, sub, "cpu.max", "30000 100000");
}

/* CPU time of the burning cgroup as the kernel's file has it. */
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

static double kernel_memory_bytes(const struct cgroup_fixture *f, const char *sub)
{
	int from = cgroup_fixture_fs(f)->memory_from;
	const char *file = from == HIERARCHY_MEMORY ? "memory.usage_in_bytes" : "memory.current";
	char text[64];

	assert_true(cgroup_fixture_read(f, from, sub, file, text, sizeof(text)));
	return strtod(text, NULL);
}

/* Asks with the real command, as a person would. */
static cJSON *ask_pods(const struct scene *s)
{
	char *program = mem_strdup(program_path("evenkeel"));
	char *server = mem_printf("http://127.0.0.1:%d", s->stack->aggregators[0].http_port);
	char *argv[] = {program,      (char *)"--server", server, (char *)"pods",
			(char *)"-o", (char *)"json",	  NULL};
	struct buf out = BUF_INIT;
	cJSON *json = NULL;

	if (process_run(argv, &out, NULL) == 0 && out.data)
		json = cJSON_Parse(out.data);
	buf_fini(&out);
	free(program);
	free(server);
	return json;
}

static double number(const cJSON *item, const char *path)
{
	const cJSON *value = json_at(item, path);

	return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static bool enough_samples(void *ctx)
{
	struct scene *s = ctx;

	cJSON_Delete(s->pods);
	s->pods = ask_pods(s);
	return number(json_item(s->pods, s->burn), "usage.cpuMillicores.windows.5m.samples") >=
	       SAMPLES;
}

static void assert_within(const char *what, double value, double truth, double share)
{
	print_message("%s: %.6g, truth %.6g, off by %.2f %%\n", what, value, truth,
		      100 * (value - truth) / truth);
	assert_true(fabs(value - truth) <= share * truth);
}

/* The quota holds the burning task back; tests/integration/advice.c waits for its demand. */
static void check_advice(const struct scene *s)
{
	cJSON *doc = stack_get(s->stack, 0, "/v1/advice?limit=5000");
	const cJSON *item, *burn = NULL;

	cJSON_ArrayForEach (item, json_at(doc, "items")) {
		if (!strcmp(cJSON_GetStringValue(json_at(item, "workload.name")), s->burn))
			burn = item;
	}
	assert_true(number(burn, "demand.throttledRatio") > 0);
	cJSON_Delete(doc);
}

static void test_against_the_kernel(void **state)
{
	/* The rate stays, even if a pass costs more. */
	static const char *const options[] = {"--interval", "1s", "--cpu-budget", "100", NULL};
	struct scene *s = *state;
	double cpu_before, kernel_milli;
	int64_t begin;
	const cJSON *burn, *hold;

	if (!s->cgroups)
		skip();
	cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), "burn");
	cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), "hold");
	if (!set_quota(s->cgroups, "burn")) {
		print_message("SKIP: no cpu controller to set a quota with\n");
		skip();
	}
	cgroup_fixture_spawn(s->cgroups, "burn", &(struct cgroup_child){.spin = true});
	cgroup_fixture_spawn(s->cgroups, "hold", &(struct cgroup_child){.hold_bytes = HOLD_BYTES});
	stack_start_aggregator(s->stack, 0);
	stack_start_agent(s->stack, 1, options);
	begin = clock_mono_ns();
	cpu_before = kernel_cpu_seconds(s->cgroups, "burn");
	assert_true(await(enough_samples, s, 120));
	kernel_milli = (kernel_cpu_seconds(s->cgroups, "burn") - cpu_before) * 1000 /
		       ((double)(clock_mono_ns() - begin) / NS_PER_SEC);

	burn = json_item(s->pods, s->burn);
	/* On a busy machine it may get less than its quota, which then holds nothing back. */
	if (fabs(kernel_milli - QUOTA_MILLI) <= 0.02 * QUOTA_MILLI) {
		assert_within("CPU against the quota, millicores",
			      number(burn, "usage.cpuMillicores.windows.5m.mean"), QUOTA_MILLI,
			      0.03);
		assert_true(number(burn, "contention.throttledSeconds") > 0);
		assert_true(number(burn, "contention.throttledRatio") > 0);
		check_advice(s);
	} else {
		print_message("the kernel gave it %.6g millicores of its %d\n", kernel_milli,
			      (int)QUOTA_MILLI);
	}
	assert_within("CPU against the kernel's file, millicores",
		      number(burn, "usage.cpuMillicores.windows.5m.mean"), kernel_milli, 0.03);
	assert_true(number(burn, "kernelLimits.cpuMillicores") == QUOTA_MILLI);

	hold = json_item(s->pods, s->hold);
	if (cgroup_fixture_fs(s->cgroups)->memory_from < 0)
		skip();
	assert_within("memory against what was asked for, bytes",
		      number(hold, "usage.memoryBytes.latest.value"), HOLD_BYTES, 0.02);
	assert_within("memory against the kernel's file, bytes",
		      number(hold, "usage.memoryBytes.latest.value"),
		      kernel_memory_bytes(s->cgroups, "hold"), 0.02);
	assert_int_equal(stack_stop_agent(s->stack, SIGTERM), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_against_the_kernel, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
