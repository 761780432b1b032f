/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel-agent --once on the real kernel: what it prints of a task under a quota and of one that
 * holds memory, against the kernel's own files; and what it does where it cannot print.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
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
#define INTERVAL_S  4 /* of the command below */
#define HOLD_BYTES  (64 * 1024 * 1024)

struct result {
	int code;
	struct buf out, err;
};

/* Through a shell, whose redirections the tests need; the command sees the program as $1. */
static void run(struct result *r, const char *command)
{
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)command,
			(char *)"once",	   (char *)NULL, NULL};
	char *program = mem_strdup(program_path("evenkeel-agent"));

	*r = (struct result){0};
	argv[4] = program;
	r->code = process_run(argv, &r->out, &r->err);
	buf_add_str(&r->out, "");
	buf_add_str(&r->err, "");
	free(program);
}

static void end(struct result *r)
{
	buf_fini(&r->out);
	buf_fini(&r->err);
}

static double number(const cJSON *item, const char *path)
{
	const cJSON *value = json_at(item, path);

	return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static void assert_within(const char *what, double value, double truth, double share)
{
	print_message("%s: %.6g, truth %.6g, off by %.2f %%\n", what, value, truth,
		      100 * (value - truth) / truth);
	assert_true(fabs(value - truth) <= share * truth);
}

/* --- against the kernel ----------------------------------------------------------------------- */

struct scene {
	struct cgroup_fixture *cgroups; /* NULL: skip */
	char *burn, *hold; /* names of the workloads */
};

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

static int setup(void **state)
{
	static struct scene scene;
	struct error why = {""};

	*state = &scene;
	scene = (struct scene){0};
	scene.cgroups = cgroup_fixture_new("once", &why);
	if (!scene.cgroups) {
		print_message("SKIP: %s\n", why.text);
		return 0;
	}
	cgroup_fixture_make(scene.cgroups, cgroup_fixture_all(scene.cgroups), "burn");
	cgroup_fixture_make(scene.cgroups, cgroup_fixture_all(scene.cgroups), "hold");
	scene.burn = mem_strdup(cgroup_fixture_path(scene.cgroups, "burn") + 1);
	scene.hold = mem_strdup(cgroup_fixture_path(scene.cgroups, "hold") + 1);
	if (!set_quota(scene.cgroups, "burn")) {
		print_message("SKIP: no cpu controller to set a quota with\n");
		cgroup_fixture_free(scene.cgroups);
		scene.cgroups = NULL;
		return 0;
	}
	cgroup_fixture_spawn(scene.cgroups, "burn", &(struct cgroup_child){.spin = true});
	cgroup_fixture_spawn(scene.cgroups, "hold",
			     &(struct cgroup_child){.hold_bytes = HOLD_BYTES});
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	cgroup_fixture_free(s->cgroups);
	free(s->burn);
	free(s->hold);
	return 0;
}

/* CPU time of the burning cgroup as the kernel's file has it. */
static double kernel_cpu_seconds(const struct cgroup_fixture *f)
{
	int from = cgroup_fixture_fs(f)->cpu_from;
	const char *file = from == HIERARCHY_CPUACCT ? "cpuacct.usage" : "cpu.stat";
	unsigned long long used = 0;
	char text[1024];

	assert_true(cgroup_fixture_read(f, from, "burn", file, text, sizeof(text)));
	assert_int_equal(
		sscanf(text, from == HIERARCHY_CPUACCT ? "%llu" : "usage_usec %llu", &used), 1);
	return (double)used / (from == HIERARCHY_CPUACCT ? 1e9 : 1e6);
}

static double kernel_memory_bytes(const struct cgroup_fixture *f)
{
	int from = cgroup_fixture_fs(f)->memory_from;
	const char *file = from == HIERARCHY_MEMORY ? "memory.usage_in_bytes" : "memory.current";
	char text[64];

	assert_true(cgroup_fixture_read(f, from, "hold", file, text, sizeof(text)));
	return strtod(text, NULL);
}

/*
 * The kernel's file is read before and after the program, which measures INTERVAL_S of its run_s. The
 * task may use its quota in the rest, and one period's at the bounds. On a busy machine it gets less
 * than its quota.
 */
static void check_burn(const cJSON *burn, double kernel_s, double run_s)
{
	double mean_milli = number(burn, "usage.cpuMillicores.mean");
	double told_s = mean_milli * INTERVAL_S / 1000;
	double rest_s = (run_s - INTERVAL_S + 0.1) * QUOTA_MILLI / 1000;

	assert_non_null(burn);
	print_message("CPU: %.3f s of %.3f s, by the kernel %.3f s of %.3f s\n", told_s,
		      (double)INTERVAL_S, kernel_s, run_s);
	assert_true(told_s <= 1.08 * kernel_s && told_s >= 0.92 * (kernel_s - rest_s));
	assert_true(number(burn, "kernelLimits.cpuMillicores") == QUOTA_MILLI);
	if (kernel_s * 1000 < 0.98 * QUOTA_MILLI * run_s)
		return;
	assert_within("CPU against the quota, millicores", mean_milli, QUOTA_MILLI, 0.08);
	assert_true(number(burn, "contention.throttledSeconds") > 0);
	assert_true(number(burn, "contention.throttledRatio") > 0);
}

static void check_node(const cJSON *json)
{
	const cJSON *node = json_at(json, "node");

	assert_string_equal(json_at(json, "kind")->valuestring, "NodeSample");
	assert_string_equal(json_at(node, "name")->valuestring, "here");
	assert_true(number(node, "capacity.cpuMillicores") ==
		    1000.0 * (double)sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(number(node, "usage.cpuMillicores.mean") > QUOTA_MILLI / 2.0);
	assert_true(number(node, "usage.cpuMillicores.samples") >= 3);
	assert_true(number(node, "cgroups") >= 3);
}

/* Where Kubernetes runs only its pods are workloads. */
static void skip_among_pods(const struct result *r, const char *name)
{
	if (strstr(r->out.data, name) || !strstr(r->out.data, "Pod"))
		return;
	print_message("SKIP: with pods on this machine, plain cgroups are not listed\n");
	skip();
}

static void test_object_against_the_kernel(void **state)
{
	struct scene *s = *state;
	double cpu_before, kernel_s, run_s;
	struct result r;
	int64_t begin;
	cJSON *json;

	if (!s->cgroups)
		skip();
	begin = clock_mono_ns();
	cpu_before = kernel_cpu_seconds(s->cgroups);
	run(&r, "exec \"$1\" --once -o json --interval 4s --node-name here");
	kernel_s = kernel_cpu_seconds(s->cgroups) - cpu_before;
	run_s = (double)(clock_mono_ns() - begin) / NS_PER_SEC;
	assert_int_equal(r.code, 0);
	skip_among_pods(&r, s->burn);
	json = cJSON_Parse(r.out.data);
	assert_non_null(json);
	check_node(json);
	check_burn(json_item(json, s->burn), kernel_s, run_s);
	if (cgroup_fixture_fs(s->cgroups)->memory_from >= 0)
		assert_within("memory against the kernel's file, bytes",
			      number(json_item(json, s->hold), "usage.memoryBytes.last"),
			      kernel_memory_bytes(s->cgroups), 0.02);
	cJSON_Delete(json);
	end(&r);
}

static void test_table_names_the_workload_and_its_quota(void **state)
{
	struct scene *s = *state;
	struct result r;
	char *row;

	if (!s->cgroups)
		skip();
	run(&r, "exec \"$1\" --once --interval 1s --node-name here");
	assert_int_equal(r.code, 0);
	assert_string_equal(r.err.data, "");
	assert_memory_equal(r.out.data, "NODE ", 5);
	assert_non_null(strstr(r.out.data, "\nhere "));
	skip_among_pods(&r, s->burn);
	row = strstr(r.out.data, s->burn);
	assert_non_null(row);
	*strchr(row, '\n') = '\0';
	assert_non_null(strstr(row, " Unit "));
	assert_non_null(strstr(row, " 300m "));
	end(&r);
}

/* --- where it cannot print -------------------------------------------------------------------- */

static void test_refusals(void **state)
{
	static const struct {
		const char *command;
		int code;
		const char *err;
	} cases[] = {
		{"exec \"$1\" --once -o yaml", 2, "--output: \"yaml\" is not known"},
		{"exec \"$1\" --once --interval 16s", 2, "--interval"},
		{"exec \"$1\" --once --interval 15s >&-", 1, /* before it samples */
		 "cannot write to standard output: Bad file descriptor"},
		{"exec \"$1\" --once --interval 1s >/dev/full", 1,
		 "cannot write to standard output: No space left on device"},
		{"exec \"$1\" --once --interval 1s -o json >/dev/full", 1,
		 "cannot write to standard output: No space left on device"},
		{"{ \"$1\" --once --interval 1s; echo $? >&2; } | true", 0,
		 "cannot write to standard output: Broken pipe\n1\n"},
	};
	int64_t begin = clock_mono_ns();
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct result r;

		run(&r, cases[i].command);
		if (r.code != cases[i].code || !strstr(r.err.data, cases[i].err))
			fail_msg("%s: exit %d, \"%s\"", cases[i].command, r.code, r.err.data);
		assert_string_equal(r.out.data, "");
		end(&r);
	}
	assert_true(clock_mono_ns() - begin < 15 * NS_PER_SEC);
}

/* --- without BPF ------------------------------------------------------------------------------ */

/* In a mount namespace where the kernel's types are an empty file. */
static const char without_types[] =
	"unshare -m true || exit 77; exec unshare -m sh -c '"
	"mount -t tmpfs none /sys/kernel/btf && : >/sys/kernel/btf/vmlinux || exit 77; "
	"exec \"$0\" --once --interval 1s' \"$1\"";

/* One line says which tier and why; it works all the same. */
static void test_bad_types_are_told_in_one_line(void **state)
{
	static const char says[] = "evenkeel-agent: warning: sampling by tier T3; ";
	static const char why[] = "T2 cannot be used: the kernel's type information";
	struct result r;
	(void)state;

	run(&r, without_types);
	if (r.code == 77) {
		print_message("SKIP: %s", r.err.data);
		end(&r);
		skip();
	}
	assert_int_equal(r.code, 0);
	assert_non_null(strstr(r.out.data, "\nT3 "));
	assert_memory_equal(r.err.data, says, strlen(says));
	assert_non_null(strstr(r.err.data, why));
	assert_ptr_equal(strchr(r.err.data, '\n'), r.err.data + r.err.len - 1);
	end(&r);
}

/* --- interrupted ------------------------------------------------------------------------------ */

struct running {
	pid_t pid;
	const char *log;
	struct buf text; /* of the log */
	double switches; /* times it had slept when it was first seen sampling */
};

static void read_log(struct running *r)
{
	FILE *file = fopen(r->log, "r");
	char part[4096];
	size_t got;

	buf_clear(&r->text);
	buf_add_str(&r->text, "");
	while (file && (got = fread(part, 1, sizeof(part), file)) > 0)
		buf_add(&r->text, part, got);
	if (file)
		fclose(file);
}

static double context_switches(pid_t pid)
{
	static const char key[] = "voluntary_ctxt_switches:";
	char *path = mem_printf("/proc/%d/status", (int)pid), line[256];
	FILE *file = fopen(path, "r");
	double value = NAN;

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtod(line + strlen(key), NULL);
	if (file)
		fclose(file);
	free(path);
	return value;
}

/* It says that it samples now, and then sleeps before each tick. */
static bool has_ticked(void *ctx)
{
	struct running *r = ctx;

	if (isnan(r->switches)) {
		read_log(r);
		if (strstr(r->text.data, " cgroups, 15 s\n"))
			r->switches = context_switches(r->pid);
	}
	return context_switches(r->pid) >= r->switches + 3;
}

static void test_interrupt_prints_what_there_is(void **state)
{
	char *folder = folder_make(), *log = mem_printf("%s/out", folder);
	char *program = mem_strdup(program_path("evenkeel-agent"));
	char *argv[] = {program,	   (char *)"--once",
			(char *)"-vojson", (char *)"--interval",
			(char *)"15s",	   NULL};
	struct running r = {.pid = process_start(log, argv), .log = log, .switches = NAN};
	int64_t begin = clock_mono_ns();
	cJSON *json;
	(void)state;

	assert_true(await(has_ticked, &r, 14));
	assert_int_equal(process_stop(r.pid, SIGINT), 0);
	assert_true(clock_mono_ns() - begin < 15 * NS_PER_SEC);
	read_log(&r);
	json = cJSON_Parse(strchr(r.text.data, '{'));
	assert_non_null(json);
	assert_true(number(json, "node.usage.cpuMillicores.samples") >= 1);
	cJSON_Delete(json);
	buf_fini(&r.text);
	free(program);
	free(log);
	folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_object_against_the_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_names_the_workload_and_its_quota, setup,
						teardown),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_bad_types_are_told_in_one_line),
		cmocka_unit_test(test_interrupt_prints_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
