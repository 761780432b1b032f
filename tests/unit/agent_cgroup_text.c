/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/cgroup_text.h"
#include "shared/interval.h"

#define UNTOUCHED 77

static void test_number(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t value;
	} cases[] = {
		{"0\n", true, 0},
		{"138925204\n", true, 138925204},
		{"18446744073709551615\n", true, UINT64_MAX},
		{"42", true, 42},
		{"18446744073709551616\n", false, UNTOUCHED},
		{"99999999999999999999999\n", false, UNTOUCHED},
		{"", false, UNTOUCHED},
		{"\n", false, UNTOUCHED},
		{"-1\n", false, UNTOUCHED},
		{"+1\n", false, UNTOUCHED},
		{" 1\n", false, UNTOUCHED},
		{"1 2\n", false, UNTOUCHED},
		{"max\n", false, UNTOUCHED},
		{"0x10\n", false, UNTOUCHED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t value = UNTOUCHED;

		if (cgroup_text_number(cases[i].text, &value) != cases[i].ok ||
		    value != cases[i].value)
			fail_msg("\"%s\" -> %llu", cases[i].text, (unsigned long long)value);
	}
}

static void test_limit(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t limit;
	} cases[] = {
		{"max\n", true, LIMIT_NONE},
		{"-1\n", true, LIMIT_NONE},
		{"0\n", true, 0},
		{"1073741824\n", true, 1073741824},
		/*
		 * v1's "no limit" with pages of 4, 16 and 64 KiB, and as kernels before 3.19 had
		 * it.
		 */
		{"9223372036854771712\n", true, LIMIT_NONE},
		{"9223372036854759424\n", true, LIMIT_NONE},
		{"9223372036854710272\n", true, LIMIT_NONE},
		{"9223372036854775807\n", true, LIMIT_NONE},
		{"18446744073709551615\n", true, LIMIT_NONE},
		{"1125899906842624\n", true, 1125899906842624},
		/* More than half of what fits is none. */
		{"4611686018427387902\n", true, 4611686018427387902},
		{"4611686018427387903\n", true, LIMIT_NONE},
		{"maximum\n", false, UNTOUCHED},
		{"ma", false, UNTOUCHED},
		{"-2\n", false, UNTOUCHED},
		{"-10\n", false, UNTOUCHED},
		{"", false, UNTOUCHED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t limit = UNTOUCHED;

		if (cgroup_text_limit(cases[i].text, &limit) != cases[i].ok ||
		    limit != cases[i].limit)
			fail_msg("\"%s\" -> %lld", cases[i].text, (long long)limit);
	}
}

static const char v2_cpu_stat[] = "usage_usec 138925204\n"
				  "user_usec 89876600\n"
				  "system_usec 49048603\n"
				  "nice_usec 0\n"
				  "core_sched.force_idle_usec 0\n"
				  "nr_periods 310\n"
				  "nr_throttled 12\n"
				  "throttled_usec 987654\n"
				  "nr_bursts 0\n"
				  "burst_usec 0\n";
static const char v1_memory_stat[] = "cache 9265152\n"
				     "inactive_file 16384\n"
				     "active_file 249856\n"
				     "hierarchical_memory_limit 9223372036854771712\n"
				     "total_inactive_file 76476416\n"
				     "total_active_file 260751360\n";
static const char v2_memory_events[] =
	"low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 5\n";
static const char v1_oom_control[] = "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n";

static void test_key(void **state)
{
	static const struct {
		const char *text, *key;
		bool ok;
		uint64_t value;
	} cases[] = {
		{v2_cpu_stat, "usage_usec", true, 138925204},
		{v2_cpu_stat, "nr_periods", true, 310},
		{v2_cpu_stat, "throttled_usec", true, 987654},
		{v2_cpu_stat, "burst_usec", true, 0},
		{v2_cpu_stat, "throttled_time", false, UNTOUCHED},
		{v1_memory_stat, "inactive_file", true, 16384},
		{v1_memory_stat, "total_inactive_file", true, 76476416},
		{v1_memory_stat, "active_fil", false, UNTOUCHED},
		{v2_memory_events, "oom", true, 3},
		{v2_memory_events, "oom_kill", true, 4},
		{v1_oom_control, "oom_kill", true, 7},
		/* Kernels before 4.13 do not count kills: the longer key is not it. */
		{"oom_kill_disable 0\nunder_oom 0\n", "oom_kill", false, UNTOUCHED},
		{"oom_kill", "oom_kill", false, UNTOUCHED},
		{"oom_kill \n", "oom_kill", false, UNTOUCHED},
		{"oom_kill 1x\n", "oom_kill", false, UNTOUCHED},
		{"oom_kill 5", "oom_kill", true, 5},
		{"\n\noom_kill 6\n", "oom_kill", true, 6},
		{"", "oom_kill", false, UNTOUCHED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t value = UNTOUCHED;

		if (cgroup_text_key(cases[i].text, cases[i].key, &value) != cases[i].ok ||
		    value != cases[i].value)
			fail_msg("%s in \"%s\" -> %llu", cases[i].key, cases[i].text,
				 (unsigned long long)value);
	}
}

static void test_cpu_max(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t quota_ns, period_ns;
	} cases[] = {
		{"max 100000\n", true, LIMIT_NONE, 100000000},
		{"20000 100000\n", true, 20000000, 100000000},
		{"1000 1000", true, 1000000, 1000000},
		{"max 1\n", true, LIMIT_NONE, 1000},
		{"4611686018427387 4611686018427387\n", true, 4611686018427387000,
		 4611686018427387000},
		{"4611686018427388 1000\n", true, LIMIT_NONE, 1000000},
		{"20000\0"
		 "1000\n",
		 false, UNTOUCHED, UNTOUCHED},
		{"17592186044416 100000\n", true, 17592186044416000, 100000000},
		{"4000000000000000000 100000\n", true, LIMIT_NONE, 100000000},
		{"max\n", false, UNTOUCHED, UNTOUCHED},
		{"20000\n", false, UNTOUCHED, UNTOUCHED},
		{"20000 \n", false, UNTOUCHED, UNTOUCHED},
		{"20000 max\n", false, UNTOUCHED, UNTOUCHED},
		{"20000 0\n", false, UNTOUCHED, UNTOUCHED},
		{"20000 4000000000000000000\n", false, UNTOUCHED, UNTOUCHED},
		{"20000 100000 1\n", false, UNTOUCHED, UNTOUCHED},
		{"", false, UNTOUCHED, UNTOUCHED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t quota = UNTOUCHED, period = UNTOUCHED;

		if (cgroup_text_cpu_max(cases[i].text, &quota, &period) != cases[i].ok ||
		    quota != cases[i].quota_ns || period != cases[i].period_ns)
			fail_msg("\"%s\" -> %lld %lld", cases[i].text, (long long)quota,
				 (long long)period);
	}
}

static void test_pressure(void **state)
{
	static const char both[] = "some avg10=0.01 avg60=1.57 avg300=1.12 total=11165496\n"
				   "full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n";
	/* Kernels before 5.13 have no full line for CPU. */
	static const char no_full[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
	static const char no_total[] = "some avg10=0.00 avg60=0.00 avg300=0.00\n"
				       "full avg10=0.00 total=9\n";
	static const struct {
		const char *text, *line;
		bool ok;
		uint64_t total_ns;
	} cases[] = {
		{both, "some", true, 11165496000},
		{both, "full", true, 17000},
		{both, "", false, UNTOUCHED},
		{no_full, "some", true, 5000},
		{no_full, "full", false, UNTOUCHED},
		{no_total, "some", false, UNTOUCHED},
		{no_total, "full", true, 9000},
		{"some avg10=0.00 total=18446744073709551615\n", "some", false, UNTOUCHED},
		{"some avg10=0.00 total=\n", "some", false, UNTOUCHED},
		{"full avg10=0.00 total=1x\n", "full", false, UNTOUCHED},
		{"", "some", false, UNTOUCHED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t total = UNTOUCHED;

		if (cgroup_text_pressure(cases[i].text, cases[i].line, &total) != cases[i].ok ||
		    total != cases[i].total_ns)
			fail_msg("%s of \"%s\" -> %llu", cases[i].line, cases[i].text,
				 (unsigned long long)total);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number),	 cmocka_unit_test(test_limit),
		cmocka_unit_test(test_key),	 cmocka_unit_test(test_cpu_max),
		cmocka_unit_test(test_pressure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
