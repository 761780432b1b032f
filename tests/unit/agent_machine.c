/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/machine.h"

#define TICK_NS 10000000ULL

static const char two_cpus[] = "cpu  1646 7 1808 306078 1150 3 33 38 500 5\n"
			       "cpu0 428 0 701 154086 35 0 7 16 0 0\n"
			       "cpu1 1217 0 1107 151991 1114 0 25 22 0 0\n"
			       "intr 140809 0 0 0 1 14 311 42 37 38733\n"
			       "ctxt 280613\n"
			       "btime 1700000000\n"
			       "processes 1500\n"
			       "procs_running 1\n"
			       "softirq 100 1 2 3\n";

static void test_stat(void **state)
{
	static const struct {
		const char *what, *text;
		long hz;
		int64_t capacity_milli;
		uint64_t busy_ns;
		struct cpu_split cpu; /* user, system, iowait, steal */
	} cases[] = {
		{"two CPUs",
		 two_cpus,
		 100,
		 2000,
		 (1646 + 7 + 1808 + 3 + 33) * TICK_NS,
		 {(1646 + 7) * TICK_NS, (1808 + 3 + 33) * TICK_NS, 1150 * TICK_NS, 38 * TICK_NS}},
		{"other ticks",
		 two_cpus,
		 1000,
		 2000,
		 (1646 + 7 + 1808 + 3 + 33) * TICK_NS / 10,
		 {1653 * TICK_NS / 10, 1844 * TICK_NS / 10, 115 * TICK_NS, 38 * TICK_NS / 10}},
		/* CPU 1 is offline: its time stays in the sum, its line is gone. */
		{"one of three offline",
		 "cpu  9 0 1 5 0 0 0 0\ncpu0 1 0 0 0 0 0 0\ncpu2 1 0 0 0 0 0 0\n",
		 100,
		 2000,
		 10 * TICK_NS,
		 {9 * TICK_NS, TICK_NS, 0, 0}},
		{"no steal nor guest, no end of line",
		 "cpu 1 2 4 8 16 32 64\ncpu0 1 2 4 8 16 32 64",
		 100,
		 1000,
		 (1 + 2 + 4 + 32 + 64) * TICK_NS,
		 {3 * TICK_NS, (4 + 32 + 64) * TICK_NS, 16 * TICK_NS, 0}},
		{"a word like cpu",
		 "cpufreq 1\ncpu  1 0 0 0 0 0 0\ncpu10 1 0 0 0 0 0 0\ncpux 1\n",
		 100,
		 1000,
		 TICK_NS,
		 {TICK_NS, 0, 0, 0}},
		{"idle for long",
		 "cpu  1 0 0 18446744073709551615 0 0 0\ncpu0 1\n",
		 100,
		 1000,
		 TICK_NS,
		 {TICK_NS, 0, 0, 0}},
		{"waiting and steal below 0",
		 "cpu  1 0 2 0 18446744073709551615 0 0 18446744073709551000 0 0\ncpu0 1\n",
		 100,
		 1000,
		 3 * TICK_NS,
		 {TICK_NS, 2 * TICK_NS, 0, 0}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine m = {.mem_total_bytes = 5, .boot_id = "kept"};
		struct error error = {""};

		if (machine_parse_stat(cases[i].text, cases[i].hz, &m, &error))
			fail_msg("%s: %s", cases[i].what, error.text);
		assert_int_equal(m.cpu_capacity_milli, cases[i].capacity_milli);
		assert_int_equal(m.cpu_busy_ns, cases[i].busy_ns);
		if (memcmp(&m.cpu, &cases[i].cpu, sizeof(m.cpu)) != 0)
			fail_msg("%s: user %" PRIu64 ", system %" PRIu64 ", iowait %" PRIu64
				 ", steal %" PRIu64,
				 cases[i].what, m.cpu.user_ns, m.cpu.system_ns, m.cpu.iowait_ns,
				 m.cpu.steal_ns);
		assert_int_equal(m.mem_total_bytes, 5);
		assert_string_equal(m.boot_id, "kept");
	}
}

static void test_bad_stat(void **state)
{
	static const struct {
		const char *text, *field;
	} cases[] = {
		{"", " cpu"},
		{"intr 1 2 3\ncpu0 1 2 3 4 5 6 7\n", " cpu"},
		{"cpu  1 2 3 4 5 6 7\n", " cpu0"},
		{"cpu \ncpu0 1 2 3 4 5 6 7\n", " user"},
		{"cpu  1 2 3 4 5 6\ncpu0 1 2 3 4 5 6 7\n", " softirq"},
		{"cpu  1 2 -3 4 5 6 7\ncpu0 1\n", " system"},
		{"cpu  1 2x 3 4 5 6 7\ncpu0 1\n", " nice"},
		{"cpu  1 2 3 4 5 6 7 x\ncpu0 1\n", " steal"},
		{"cpu  18446744073709551616 2 3 4 5 6 7\ncpu0 1\n", " user"},
		{"cpu  18446744073709551615 1 3 4 5 6 7\ncpu0 1\n", " nice"},
		{"cpu  18446744073709551 0 0 0 0 0 0\ncpu0 1\n", " cpu"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine m = {.cpu_busy_ns = 5};
		struct error error = {""};
		const char *field;

		assert_int_equal(machine_parse_stat(cases[i].text, 100, &m, &error), -EBADMSG);
		field = strstr(error.text, cases[i].field);
		if (!field || strlen(field) != strlen(cases[i].field))
			fail_msg("\"%s\" -> \"%s\"", cases[i].text, error.text);
		assert_int_equal(m.cpu_busy_ns, 5);
		assert_int_equal(m.cpu.user_ns, 0);
		assert_int_equal(m.cpu_capacity_milli, 0);
	}
}

static void test_meminfo(void **state)
{
	static const char text[] = "MemTotal:       24684096 kB\n"
				   "MemFree:        20195336 kB\n"
				   "MemAvailable:   24077576 kB\n"
				   "Buffers:           37832 kB\n"
				   "HugePages_Total:       0\n";
	struct machine m = {.cpu_busy_ns = 7};

	(void)state;
	assert_int_equal(machine_parse_meminfo(text, &m, NULL), 0);
	assert_int_equal(m.mem_total_bytes, 24684096ULL * 1024);
	assert_int_equal(m.mem_available_bytes, 24077576ULL * 1024);
	assert_int_equal(m.cpu_busy_ns, 7);
}

static void test_bad_meminfo(void **state)
{
	static const struct {
		const char *text, *field;
	} cases[] = {
		{"", "MemTotal"},
		{"MemTotal: 5 kB\n", "MemAvailable"},
		{"MemAvailable: 5 kB\n", "MemTotal"},
		{"MemTotal: kB\nMemAvailable: 5 kB\n", "MemTotal"},
		{"MemTotal 5 kB\nMemAvailable: 5 kB\n", "MemTotal"},
		{"MemTotal: 5 kB\nXMemAvailable: 5 kB\n", "MemAvailable"},
		{"MemTotal: 5 kB\nMemAvailable: 18014398509481984 kB\n", "MemAvailable"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine m = {.mem_total_bytes = 5};
		struct error error = {""};

		assert_int_equal(machine_parse_meminfo(cases[i].text, &m, &error), -EBADMSG);
		if (!strstr(error.text, cases[i].field))
			fail_msg("\"%s\" -> \"%s\"", cases[i].text, error.text);
		assert_int_equal(m.mem_total_bytes, 5);
	}
}

#define SOME(n)	   "some avg10=0.01 avg60=1.57 avg300=1.12 total=" #n "\n"
#define FULL(n)	   "full avg10=0.00 avg60=0.00 avg300=0.00 total=" #n "\n"
#define UNKNOWN_NS 77

static void test_pressure(void **state)
{
	static const struct {
		const char *what, *cpu, *memory;
		bool known, full_known;
		uint64_t cpu_ns, cpu_full_ns, mem_ns, mem_full_ns;
	} cases[] = {
		{"5.13", SOME(11) FULL(3), SOME(5) FULL(4), true, true, 11000, 3000, 5000, 4000},
		/* The line is there, what it shall tell is not. */
		{"5.19", SOME(11) FULL(0), SOME(5) FULL(4), true, false, 11000, 0, 5000, 4000},
		{"5.10", SOME(11), SOME(5) FULL(4), true, false, 11000, 0, 5000, 4000},
		{"nothing yet", SOME(0) FULL(0), SOME(0) FULL(0), true, false, 0, 0, 0, 0},
		{"no PSI", "", "", false, false, 0, 0, 0, 0},
		{"CPU only", SOME(11) FULL(3), "", false, false, 0, 0, 0, 0},
		{"memory only", "", SOME(5) FULL(4), false, false, 0, 0, 0, 0},
		{"memory without full", SOME(11) FULL(3), SOME(5), false, false, 0, 0, 0, 0},
		{"cut", SOME(11) "full avg10=0.00", SOME(5) FULL(4), true, false, 11000, 0, 5000,
		 4000},
		{"out of range", SOME(18446744073709551615) FULL(3), SOME(5) FULL(4), false, false,
		 0, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine m = {
			.psi_known = true,
			.psi_cpu_full_known = true,
			.psi_cpu_ns = UNKNOWN_NS,
			.psi_cpu_full_ns = UNKNOWN_NS,
			.psi_mem_ns = UNKNOWN_NS,
			.psi_mem_full_ns = UNKNOWN_NS,
			.cpu_busy_ns = 5,
		};

		machine_parse_pressure(cases[i].cpu, cases[i].memory, &m);
		if (m.psi_known != cases[i].known || m.psi_cpu_full_known != cases[i].full_known ||
		    m.psi_cpu_ns != cases[i].cpu_ns || m.psi_cpu_full_ns != cases[i].cpu_full_ns ||
		    m.psi_mem_ns != cases[i].mem_ns || m.psi_mem_full_ns != cases[i].mem_full_ns)
			fail_msg("%s: %d %d, %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
				 cases[i].what, m.psi_known, m.psi_cpu_full_known, m.psi_cpu_ns,
				 m.psi_cpu_full_ns, m.psi_mem_ns, m.psi_mem_full_ns);
		assert_int_equal(m.cpu_busy_ns, 5);
	}
}

/*
 * The some total of a pressure file as nanoseconds, read here by other means; -1 where this kernel
 * has none.
 */
static int64_t read_pressure_ns(const char *path)
{
	FILE *file = fopen(path, "re");
	char text[256] = "";
	const char *total;

	if (!file)
		return -1;
	total = fgets(text, sizeof(text), file) ? strstr(text, "total=") : NULL;
	fclose(file);
	return total ? strtoll(total + strlen("total="), NULL, 10) * 1000 : -1;
}

static void test_this_pressure(void **state)
{
	static const char path[] = "/proc/pressure/memory";
	int64_t before_ns = read_pressure_ns(path);
	struct machine_files *files;
	struct machine m = {0};

	(void)state;
	assert_int_equal(machine_open(&files, NULL), 0);
	assert_int_equal(machine_read(files, &m, NULL), 0);
	assert_int_equal(m.psi_known, before_ns >= 0);
	if (before_ns >= 0) {
		assert_in_range(m.psi_mem_ns, before_ns, read_pressure_ns(path));
		assert_true(m.psi_mem_full_ns <= m.psi_mem_ns);
	}
	machine_close(files);
}

/*
 * This machine: its CPU time grows by what this process uses between two readings of the kept
 * files.
 */
static void test_this_machine(void **state)
{
	struct machine_files *files;
	struct machine first = {0}, now;
	struct error error = {""};

	(void)state;
	if (machine_open(&files, &error))
		fail_msg("%s", error.text);
	assert_int_equal(machine_read(files, &first, &error), 0);
	assert_int_equal(first.cpu_capacity_milli, sysconf(_SC_NPROCESSORS_ONLN) * 1000);
	assert_int_equal(first.mem_total_bytes,
			 (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
	assert_in_range(first.mem_available_bytes, 1, first.mem_total_bytes);
	assert_int_equal(strlen(first.boot_id), BOOT_ID_LEN);
	do {
		assert_int_equal(machine_read(files, &now, &error), 0);
		assert_true(now.cpu_busy_ns >= first.cpu_busy_ns);
		assert_int_equal(now.cpu_busy_ns, now.cpu.user_ns + now.cpu.system_ns);
	} while (now.cpu_busy_ns < first.cpu_busy_ns + 2 * TICK_NS);
	assert_string_equal(now.boot_id, first.boot_id);
	machine_close(files);
	machine_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),	     cmocka_unit_test(test_bad_stat),
		cmocka_unit_test(test_meminfo),	     cmocka_unit_test(test_bad_meminfo),
		cmocka_unit_test(test_pressure),     cmocka_unit_test(test_this_pressure),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
