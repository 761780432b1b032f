/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <string.h>

#include "agent/sampler_files_parse.h"

#define FILES_MAX 4
#define CPU_STAT_2                                                                                 \
	"usage_usec 5000\nuser_usec 1\nnr_periods 31\nnr_throttled 12\nthrottled_usec 98\n"
#define SOME_FULL "some avg10=0.01 total=11\nfull avg10=0.00 total=7\n"

struct file {
	bool v2;
	const char *name, *text;
};

static void parse(const struct file *file, struct files_target *t)
{
	for (size_t i = 0; i < FILES_SOURCES; i++) {
		if (files_sources[i].v2 != file->v2 ||
		    strcmp(files_sources[i].file, file->name) != 0)
			continue;
		files_parse(&files_sources[i], file->text, t);
		return;
	}
	fail_msg("nobody reads %s", file->name);
}

/* The members that a reading of 0 can be told from; those that are not named stay 0. */
static void check(const char *what, const struct reading *got, const struct reading *want)
{
	static const struct {
		const char *name;
		size_t offset;
	} members[] = {
		{"cpu_ns", offsetof(struct reading, cpu_ns)},
		{"mem_bytes", offsetof(struct reading, mem_bytes)},
		{"inactive_file_bytes", offsetof(struct reading, inactive_file_bytes)},
		{"throttled_ns", offsetof(struct reading, throttled_ns)},
		{"periods", offsetof(struct reading, periods)},
		{"throttled_periods", offsetof(struct reading, throttled_periods)},
		{"oom_kills", offsetof(struct reading, oom_kills)},
		{"psi_cpu_ns", offsetof(struct reading, psi_cpu_ns)},
		{"psi_mem_ns", offsetof(struct reading, psi_mem_ns)},
		{"psi_cpu_full_ns", offsetof(struct reading, psi_cpu_full_ns)},
		{"psi_mem_full_ns", offsetof(struct reading, psi_mem_full_ns)},
		{"swap_bytes", offsetof(struct reading, swap_bytes)},
		{"mem_protected_bytes", offsetof(struct reading, mem_protected_bytes)},
		{"cpu_quota_ns", offsetof(struct reading, cpu_quota_ns)},
		{"cpu_period_ns", offsetof(struct reading, cpu_period_ns)},
		{"cpu_burst_ns", offsetof(struct reading, cpu_burst_ns)},
		{"mem_limit_bytes", offsetof(struct reading, mem_limit_bytes)},
		{"mem_high_bytes", offsetof(struct reading, mem_high_bytes)},
		{"swap_limit_bytes", offsetof(struct reading, swap_limit_bytes)},
		{"pids_limit", offsetof(struct reading, pids_limit)},
	};

	if (got->have != want->have || got->pids != want->pids)
		fail_msg("%s: have %#x, pids %" PRIu64, what, got->have, got->pids);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		int64_t a, b;

		memcpy(&a, (const char *)got + members[i].offset, sizeof(a));
		memcpy(&b, (const char *)want + members[i].offset, sizeof(b));
		if (a != b)
			fail_msg("%s: %s is %" PRId64, what, members[i].name, a);
	}
}

static const struct test_case {
	const char *what;
	struct file files[FILES_MAX]; /* up to the first without a name */
	struct reading want;
	enum { SLOW, FAST, SLOW_OF_ROOT } pass;
} cases[] = {
	{"v1 CPU", {{false, "cpuacct.usage", "77\n"}}, {.have = HAVE_CPU, .cpu_ns = 77}, FAST},
	{"v2 CPU, fast",
	 {{true, "cpu.stat", CPU_STAT_2}},
	 {.have = HAVE_CPU, .cpu_ns = 5000000},
	 FAST},
	{"v2 CPU, slow",
	 {{true, "cpu.stat", CPU_STAT_2}},
	 {.have = HAVE_CPU | HAVE_THROTTLE,
	  .cpu_ns = 5000000,
	  .periods = 31,
	  .throttled_periods = 12,
	  .throttled_ns = 98000},
	 SLOW},
	{"v2 CPU without its controller",
	 {{true, "cpu.stat", "usage_usec 5\nuser_usec 1\n"}},
	 {.have = HAVE_CPU, .cpu_ns = 5000},
	 SLOW},
	{"v1 throttling",
	 {{false, "cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 2\n"}},
	 {.have = HAVE_THROTTLE, .periods = 4, .throttled_periods = 3, .throttled_ns = 2},
	 SLOW},
	{"v1 quota",
	 {{false, "cpu.cfs_quota_us", "20000\n"},
	  {false, "cpu.cfs_period_us", "100000\n"},
	  {false, "cpu.cfs_burst_us", "5000\n"}},
	 {.have = HAVE_CPU_LIMIT,
	  .cpu_quota_ns = 20000000,
	  .cpu_period_ns = 100000000,
	  .cpu_burst_ns = 5000000},
	 SLOW},
	{"v1 without quota",
	 {{false, "cpu.cfs_quota_us", "-1\n"}, {false, "cpu.cfs_period_us", "100000\n"}},
	 {.have = HAVE_CPU_LIMIT, .cpu_quota_ns = LIMIT_NONE, .cpu_period_ns = 100000000},
	 SLOW},
	{"v1 quota alone",
	 {{false, "cpu.cfs_quota_us", "20000\n"}},
	 {.cpu_quota_ns = 20000000},
	 SLOW},
	{"v2 quota",
	 {{true, "cpu.max", "20000 100000\n"}, {true, "cpu.max.burst", "1000\n"}},
	 {.have = HAVE_CPU_LIMIT,
	  .cpu_quota_ns = 20000000,
	  .cpu_period_ns = 100000000,
	  .cpu_burst_ns = 1000000},
	 SLOW},
	{"a burst that is none",
	 {{true, "cpu.max", "max 100000\n"}, {true, "cpu.max.burst", "9223372036854775807\n"}},
	 {.have = HAVE_CPU_LIMIT, .cpu_quota_ns = LIMIT_NONE, .cpu_period_ns = 100000000},
	 SLOW},
	{"v1 memory",
	 {{false, "memory.usage_in_bytes", "4096\n"},
	  {false, "memory.stat",
	   "swap 1\ninactive_file 2\ntotal_swap 8192\ntotal_inactive_file 1024\n"},
	  {false, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n"}},
	 {.have = HAVE_MEMORY | HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE | HAVE_SWAP | HAVE_OOM,
	  .mem_bytes = 4096,
	  .inactive_file_bytes = 1024,
	  .swap_bytes = 8192,
	  .oom_kills = 6},
	 SLOW},
	{"v1 without swap accounting",
	 {{false, "memory.stat", "inactive_file 2\ntotal_inactive_file 1024\n"}},
	 {.have = HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE, .inactive_file_bytes = 1024},
	 SLOW},
	{"v1 limits",
	 {{false, "memory.limit_in_bytes", "1048576\n"},
	  {false, "memory.memsw.limit_in_bytes", "3145728\n"}},
	 {.have = HAVE_MEMORY_LIMIT | HAVE_SWAP_LIMIT,
	  .mem_limit_bytes = 1048576,
	  .swap_limit_bytes = 2097152},
	 SLOW},
	{"v1 no swap allowed",
	 {{false, "memory.limit_in_bytes", "1048576\n"},
	  {false, "memory.memsw.limit_in_bytes", "1048576\n"}},
	 {.have = HAVE_MEMORY_LIMIT | HAVE_SWAP_LIMIT, .mem_limit_bytes = 1048576},
	 SLOW},
	{"v1 memory limit only",
	 {{false, "memory.limit_in_bytes", "1048576\n"},
	  {false, "memory.memsw.limit_in_bytes", "9223372036854771712\n"}},
	 {.have = HAVE_MEMORY_LIMIT | HAVE_SWAP_LIMIT,
	  .mem_limit_bytes = 1048576,
	  .swap_limit_bytes = LIMIT_NONE},
	 SLOW},
	{"v1 limits that changed in between",
	 {{false, "memory.limit_in_bytes", "2097152\n"},
	  {false, "memory.memsw.limit_in_bytes", "1048576\n"}},
	 {.have = HAVE_MEMORY_LIMIT, .mem_limit_bytes = 2097152},
	 SLOW},
	{"v1 swap limit without its other half",
	 {{false, "memory.memsw.limit_in_bytes", "1048576\n"}},
	 {0},
	 SLOW},
	{"v2 memory",
	 {{true, "memory.current", "4096\n"},
	  {true, "memory.stat", "anon 1\ninactive_file 1024\n"},
	  {true, "memory.events", "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\n"},
	  {true, "memory.swap.current", "512\n"}},
	 {.have = HAVE_MEMORY | HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE | HAVE_SWAP | HAVE_OOM,
	  .mem_bytes = 4096,
	  .inactive_file_bytes = 1024,
	  .swap_bytes = 512,
	  .oom_kills = 4},
	 SLOW},
	{"v2 limits",
	 {{true, "memory.max", "4096\n"},
	  {true, "memory.high", "2048\n"},
	  {true, "memory.swap.max", "0\n"},
	  {true, "pids.max", "100\n"}},
	 {.have = HAVE_MEMORY_LIMIT | HAVE_MEMORY_HIGH | HAVE_SWAP_LIMIT | HAVE_PIDS_LIMIT,
	  .mem_limit_bytes = 4096,
	  .mem_high_bytes = 2048,
	  .pids_limit = 100},
	 SLOW},
	{"v2 without limits",
	 {{true, "memory.max", "max\n"},
	  {true, "memory.high", "max\n"},
	  {true, "memory.swap.max", "max\n"},
	  {true, "pids.max", "max\n"}},
	 {.have = HAVE_MEMORY_LIMIT | HAVE_MEMORY_HIGH | HAVE_SWAP_LIMIT | HAVE_PIDS_LIMIT,
	  .mem_limit_bytes = LIMIT_NONE,
	  .mem_high_bytes = LIMIT_NONE,
	  .swap_limit_bytes = LIMIT_NONE,
	  .pids_limit = LIMIT_NONE},
	 SLOW},
	{"protected by memory.low",
	 {{true, "memory.min", "4096\n"}, {true, "memory.low", "8192\n"}},
	 {.have = USAGE_PROTECTED, .mem_protected_bytes = 8192},
	 SLOW},
	{"protected by memory.min",
	 {{true, "memory.min", "4096\n"}, {true, "memory.low", "0\n"}},
	 {.have = USAGE_PROTECTED, .mem_protected_bytes = 4096},
	 SLOW},
	{"all of it protected",
	 {{true, "memory.current", "12288\n"}, {true, "memory.low", "max\n"}},
	 {.have = HAVE_MEMORY | USAGE_PROTECTED, .mem_bytes = 12288, .mem_protected_bytes = 12288},
	 SLOW},
	{"pids", {{true, "pids.current", "3\n"}}, {.have = HAVE_PIDS, .pids = 3}, SLOW},
	{"pids beyond range", {{true, "pids.current", "4294967296\n"}}, {0}, SLOW},
	{"pressure",
	 {{true, "cpu.pressure", SOME_FULL}, {true, "memory.pressure", SOME_FULL}},
	 {.have = HAVE_PSI | HAVE_PSI_CPU_FULL | HAVE_PSI_MEMORY_FULL,
	  .psi_cpu_ns = 11000,
	  .psi_cpu_full_ns = 7000,
	  .psi_mem_ns = 11000,
	  .psi_mem_full_ns = 7000},
	 SLOW},
	{"pressure before 5.13",
	 {{true, "cpu.pressure", "some avg10=0.01 total=11\n"},
	  {true, "memory.pressure", SOME_FULL}},
	 {.have = HAVE_PSI | HAVE_PSI_MEMORY_FULL,
	  .psi_cpu_ns = 11000,
	  .psi_mem_ns = 11000,
	  .psi_mem_full_ns = 7000},
	 SLOW},
	{"pressure of CPU only",
	 {{true, "cpu.pressure", SOME_FULL}},
	 {.have = HAVE_PSI_CPU_FULL, .psi_cpu_ns = 11000, .psi_cpu_full_ns = 7000},
	 SLOW},
	/* In a cgroup 0 is a measurement, at the root the kernel's stopgap. */
	{"no full pressure yet",
	 {{true, "cpu.pressure", "some avg10=0.00\nfull avg10=0.00 total=0\n"}},
	 {.have = HAVE_PSI_CPU_FULL},
	 SLOW},
	{"full pressure of the machine",
	 {{true, "cpu.pressure", "some avg10=0.00\nfull avg10=0.00 total=0\n"}},
	 {0},
	 SLOW_OF_ROOT},
	{"nothing", {{true, "memory.high", ""}, {true, "pids.max", "\n"}}, {0}, SLOW},
};

static void test_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reading reading = {0};
		struct files_target t = {
			.reading = &reading,
			.kind = cases[i].pass == FAST ? PASS_FAST : PASS_SLOW,
			.root = cases[i].pass == SLOW_OF_ROOT,
		};

		for (int f = 0; f < FILES_MAX && cases[i].files[f].name; f++)
			parse(&cases[i].files[f], &t);
		files_finish(&t);
		check(cases[i].what, &reading, &cases[i].want);
	}
}

/*
 * Limits are forgotten before they are read again, so a file that went away takes its limit along.
 */
static void test_begin_limits(void **state)
{
	struct reading reading = {.have = UINT32_MAX, .cpu_burst_ns = 5, .mem_high_bytes = 6};
	struct files_target t = {.reading = &reading, .kind = PASS_SLOW};

	(void)state;
	files_begin_limits(&t);
	assert_int_equal((uint32_t)~reading.have, HAVE_CPU_LIMIT | HAVE_MEMORY_LIMIT |
							  HAVE_MEMORY_HIGH | HAVE_SWAP_LIMIT |
							  HAVE_PIDS_LIMIT | USAGE_PROTECTED);
	assert_int_equal(reading.cpu_burst_ns, 0);
}

static void test_hierarchies(void **state)
{
	static const struct cgroupfs hybrid = {
		.root_fd = {3, 4, 5, 6},
		.cpu_from = HIERARCHY_CPUACCT,
		.throttle_from = HIERARCHY_CPU,
		.memory_from = HIERARCHY_MEMORY,
	};
	static const struct cgroupfs unified = {
		.root_fd = {3, -1, -1, -1},
		.cpu_from = HIERARCHY_UNIFIED,
		.throttle_from = HIERARCHY_UNIFIED,
		.memory_from = -1,
	};
	enum files_cadence last = READ_FAST;

	(void)state;
	for (size_t i = 0; i < FILES_SOURCES; i++) {
		const struct files_source *s = &files_sources[i];
		int on_hybrid = s->v2 ? -1 : HIERARCHY_CPUACCT, on_unified = -1;

		if (s->resource == FILES_THROTTLE && !s->v2)
			on_hybrid = HIERARCHY_CPU;
		if (s->resource == FILES_MEMORY && !s->v2)
			on_hybrid = HIERARCHY_MEMORY;
		if (s->resource == FILES_GENERAL)
			on_hybrid = HIERARCHY_UNIFIED;
		if (s->v2 && s->resource != FILES_MEMORY)
			on_unified = HIERARCHY_UNIFIED;
		assert_int_equal(files_hierarchy(&hybrid, s), on_hybrid);
		assert_int_equal(files_hierarchy(&unified, s), on_unified);
		/* In the order they are read in. */
		assert_true(s->cadence >= last);
		last = s->cadence;
	}
	assert_int_equal(last, READ_LIMITS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_begin_limits),
		cmocka_unit_test(test_hierarchies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
