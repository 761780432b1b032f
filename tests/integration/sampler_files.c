/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files tier on this machine's own hierarchies, whichever they are, in cgroups of the test's
 * own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler_tier.h"
#include "shared/mem.h"
#include "tests/files_world.h"

/* --- values ----------------------------------------------------------------------------------- */

/*
 * 256 MiB of memory with 64 MiB of swap beyond, throttled at 192 MiB where the kernel can do that.
 */
static void set_memory_limits(const struct files_world *w, const char *sub)
{
	int h = w->fs.memory_from;
	const struct files_names *n = files_names_of(h);

	if (h < 0)
		return;
	assert_true(cgroup_fixture_write(w->fixture, h, sub, n->limit, "256M"));
	if (files_world_has(w, h, sub, n->swap_limit))
		assert_true(cgroup_fixture_write(w->fixture, h, sub, n->swap_limit,
						 h == HIERARCHY_UNIFIED ? "64M" : "320M"));
	if (h == HIERARCHY_UNIFIED)
		assert_true(cgroup_fixture_write(w->fixture, h, sub, "memory.high", "192M"));
}

static void check_cpu(const struct files_world *w, const struct reading *r, const char *sub)
{
	int h = w->fs.cpu_from;

	assert_int_equal(r->have & (HAVE_CPU | HAVE_CPU_LOCAL), HAVE_CPU);
	assert_true(r->cpu_ns > 0);
	assert_int_equal(r->cpu_ns, files_world_value(w, h, sub, files_names_of(h)->cpu,
						      files_names_of(h)->cpu_key) *
					    files_names_of(h)->cpu_unit);
}

static void check_throttle(const struct files_world *w, const struct reading *r, const char *sub)
{
	int h = w->fs.throttle_from;

	if (h < 0) {
		assert_int_equal(r->have & (HAVE_THROTTLE | HAVE_CPU_LIMIT), 0);
		return;
	}
	assert_int_equal(r->have & (HAVE_THROTTLE | HAVE_CPU_LIMIT),
			 HAVE_THROTTLE | HAVE_CPU_LIMIT);
	assert_int_equal(r->cpu_quota_ns, 20000000);
	assert_int_equal(r->cpu_period_ns, 100000000);
	assert_int_equal(r->cpu_burst_ns,
			 files_world_has(w, h, sub, files_names_of(h)->burst) ? 5000000 : 0);
	assert_true(r->throttled_periods >= 3);
	assert_int_equal(r->periods, files_world_value(w, h, sub, "cpu.stat", "nr_periods "));
	assert_int_equal(r->throttled_periods,
			 files_world_value(w, h, sub, "cpu.stat", "nr_throttled "));
	assert_int_equal(r->throttled_ns,
			 files_world_value(w, h, sub, "cpu.stat", files_names_of(h)->throttled) *
				 files_names_of(h)->throttled_unit);
}

static void check_memory(const struct files_world *w, const struct reading *r, const char *sub)
{
	uint32_t all = HAVE_MEMORY | HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE | HAVE_MEMORY_LIMIT |
		       HAVE_OOM;
	int h = w->fs.memory_from;
	const struct files_names *n = files_names_of(h);

	if (h < 0) {
		assert_int_equal(r->have & all, 0);
		return;
	}
	assert_int_equal(r->have & all, all);
	assert_true(r->mem_bytes >= 4 << 20);
	assert_int_equal(r->mem_bytes, files_world_value(w, h, sub, n->memory, ""));
	assert_true(r->inactive_file_bytes > 0);
	assert_int_equal(r->inactive_file_bytes,
			 files_world_value(w, h, sub, "memory.stat", n->inactive));
	assert_int_equal(r->mem_limit_bytes, 256 << 20);
	assert_int_equal(r->oom_kills, files_world_value(w, h, sub, n->oom, "oom_kill "));
}

static void check_swap(const struct files_world *w, const struct reading *r, const char *sub)
{
	int h = w->fs.memory_from;
	const struct files_names *n = files_names_of(h);
	bool swap = files_world_has(w, h, sub, n->swap);
	uint64_t used;

	assert_int_equal(!!(r->have & HAVE_MEMORY_HIGH), h == HIERARCHY_UNIFIED);
	if (r->have & HAVE_MEMORY_HIGH)
		assert_int_equal(r->mem_high_bytes, 192 << 20);
	assert_int_equal(!!(r->have & HAVE_SWAP), swap);
	assert_int_equal(!!(r->have & HAVE_SWAP_LIMIT), swap);
	if (!swap)
		return;
	used = files_world_value(w, h, sub, n->swap, "");
	if (h != HIERARCHY_UNIFIED)
		used -= files_world_value(w, h, sub, n->memory, "");
	assert_int_equal(r->swap_bytes, used);
	assert_int_equal(r->swap_limit_bytes, 64 << 20);
}

static void check_pids(const struct files_world *w, const struct reading *r, const char *sub)
{
	bool there = files_world_has(w, HIERARCHY_UNIFIED, sub, "pids.max");

	assert_int_equal(!!(r->have & HAVE_PIDS), there);
	assert_int_equal(!!(r->have & HAVE_PIDS_LIMIT), there);
	if (there) {
		assert_int_equal(r->pids, 1);
		assert_int_equal(r->pids_limit, 100);
	}
}

/* The total of a line in nanoseconds; -1 where this kernel or cgroup has no such file or line. */
static int64_t kernel_pressure_ns(const struct files_world *w, const char *sub, const char *file,
				  const char *line)
{
	char text[1024];
	const char *at, *total;

	if (w->fs.root_fd[HIERARCHY_UNIFIED] < 0 ||
	    !cgroup_fixture_read(w->fixture, HIERARCHY_UNIFIED, sub, file, text, sizeof(text)))
		return -1;
	at = strstr(text, line);
	total = at ? strstr(at, "total=") : NULL;
	return total ? strtoll(total + strlen("total="), NULL, 10) * 1000 : -1;
}

/* The pressures of a cgroup: each member of a reading, its line, and what it was before. */
static const struct pressure {
	uint32_t have;
	const char *file, *line;
	size_t offset;
} pressures[] = {
	{HAVE_PSI, "cpu.pressure", "some", offsetof(struct reading, psi_cpu_ns)},
	{HAVE_PSI, "memory.pressure", "some", offsetof(struct reading, psi_mem_ns)},
	{HAVE_PSI_CPU_FULL, "cpu.pressure", "full", offsetof(struct reading, psi_cpu_full_ns)},
	{HAVE_PSI_MEMORY_FULL, "memory.pressure", "full",
	 offsetof(struct reading, psi_mem_full_ns)},
};

enum { PRESSURES = sizeof(pressures) / sizeof(pressures[0]) };

static void read_pressures(const struct files_world *w, const char *sub, int64_t ns[PRESSURES])
{
	for (int i = 0; i < PRESSURES; i++)
		ns[i] = kernel_pressure_ns(w, sub, pressures[i].file, pressures[i].line);
}

/* Pressure is brought up to date by reading it, so it lies between two readings. */
static void check_pressures(const struct files_world *w, const struct reading *r, const char *sub,
			    const int64_t before_ns[PRESSURES])
{
	int64_t after_ns[PRESSURES], ns;

	read_pressures(w, sub, after_ns);
	for (int i = 0; i < PRESSURES; i++) {
		assert_int_equal(!!(r->have & pressures[i].have), before_ns[i] >= 0);
		memcpy(&ns, (const char *)r + pressures[i].offset, sizeof(ns));
		if (before_ns[i] >= 0)
			assert_in_range(ns, before_ns[i], after_ns[i]);
	}
}

static void test_values(void **state)
{
	struct files_world *w = files_world_need(state);
	struct cgroup_child child = {.hold_bytes = 4 << 20, .cache_bytes = 2 << 20, .spin = true};
	int64_t pressure_ns[PRESSURES];
	struct reading slow;
	pid_t pid;

	cgroup_fixture_make(w->fixture, cgroup_fixture_all(w->fixture), "a");
	files_world_set_quota(w, "a");
	set_memory_limits(w, "a");
	if (files_world_has(w, HIERARCHY_UNIFIED, "a", "pids.max"))
		assert_true(cgroup_fixture_write(w->fixture, HIERARCHY_UNIFIED, "a", "pids.max",
						 "100"));
	pid = cgroup_fixture_spawn(w->fixture, "a", &child);
	files_world_await_use(w, "a");
	files_world_stop(w, "a", pid);
	files_world_scan(w);

	for (int i = 0; i < 2; i++) {
		const struct reading *r = &files_world_at(w, "/a")->reading;

		read_pressures(w, "a", pressure_ns);
		files_world_pass(w, PASS_SLOW);
		assert_int_equal(files_world_at(w, "/a")->seen_pass, w->pass);
		assert_int_equal(w->result.records, topology_count(w->topology));
		assert_int_equal(w->result.missing, 0);
		check_cpu(w, r, "a");
		check_throttle(w, r, "a");
		check_memory(w, r, "a");
		check_swap(w, r, "a");
		check_pids(w, r, "a");
		check_pressures(w, r, "a", pressure_ns);
	}
	/* A fast pass renews its own values and leaves the others. */
	files_world_at(w, "/a")->reading.oom_kills = 12345;
	slow = files_world_at(w, "/a")->reading;
	files_world_at(w, "/a")->reading.cpu_ns = 0;
	files_world_at(w, "/a")->reading.mem_bytes = 0;
	files_world_pass(w, PASS_FAST);
	assert_memory_equal(&files_world_at(w, "/a")->reading, &slow, sizeof(slow));
}

/* CPU time, memory and inactive file pages of a parent include its children. */
static void test_parent(void **state)
{
	struct files_world *w = files_world_need(state);
	struct cgroup_child child = {.hold_bytes = 4 << 20, .cache_bytes = 2 << 20, .spin = true};
	const struct reading *parent, *leaf;
	pid_t pid;

	cgroup_fixture_make_tree(w->fixture, "p/c");
	files_world_set_quota(w, "p/c");
	pid = cgroup_fixture_spawn(w->fixture, "p/c", &child);
	files_world_await_use(w, "p/c");
	files_world_stop(w, "p/c", pid);
	files_world_scan(w);
	files_world_pass(w, PASS_SLOW);
	parent = &files_world_at(w, "/p")->reading;
	leaf = &files_world_at(w, "/p/c")->reading;
	assert_int_equal(parent->have & HAVE_CPU_LOCAL, 0);
	assert_true(leaf->cpu_ns > 0);
	assert_int_equal(parent->cpu_ns, leaf->cpu_ns);
	if (w->fs.memory_from >= 0) {
		assert_true(parent->mem_bytes >= leaf->mem_bytes);
		assert_int_equal(parent->mem_limit_bytes, LIMIT_NONE);
		assert_true(leaf->inactive_file_bytes > 0);
		assert_true(parent->inactive_file_bytes >= leaf->inactive_file_bytes);
	}
	if (w->fs.throttle_from >= 0) {
		assert_true(parent->have & HAVE_CPU_LIMIT);
		assert_int_equal(parent->cpu_quota_ns, LIMIT_NONE);
		assert_int_equal(parent->cpu_burst_ns, 0);
	}
	if (parent->have & HAVE_SWAP_LIMIT)
		assert_int_equal(parent->swap_limit_bytes, LIMIT_NONE);
	if (parent->have & HAVE_MEMORY_HIGH)
		assert_int_equal(parent->mem_high_bytes, LIMIT_NONE);
}

/* --- cgroups that come and go ----------------------------------------------------------------- */

/* A removed cgroup is missing, not a failure; what is made in its place is not read as it. */
static void test_vanished(void **state)
{
	struct files_world *w = files_world_need(state);
	unsigned int all = cgroup_fixture_all(w->fixture);
	const char *leaf = "/gone";
	struct reading before;
	uint64_t last_seen, serial;

	cgroup_fixture_make(w->fixture, all, "gone");
	cgroup_fixture_make(w->fixture, all, "stays");
	files_world_scan(w);
	files_world_pass(w, PASS_SLOW);
	assert_int_equal(w->result.records, 3);
	assert_true(files_world_fds("/gone/") > 0);
	before = files_world_at(w, leaf)->reading;
	last_seen = files_world_at(w, leaf)->seen_pass;
	serial = files_world_at(w, leaf)->serial;

	cgroup_fixture_remove(w->fixture, all, "gone");
	for (int kind = PASS_FAST; kind <= PASS_SLOW; kind++) {
		files_world_pass(w, kind);
		assert_int_equal(w->result.records, 2);
		assert_int_equal(w->result.missing, 1);
	}
	assert_int_equal(files_world_fds("/gone/"), 0);

	cgroup_fixture_make(w->fixture, all, "gone");
	for (int kind = PASS_FAST; kind <= PASS_SLOW; kind++) {
		files_world_pass(w, kind);
		assert_int_equal(w->result.missing, 1);
	}
	assert_memory_equal(&files_world_at(w, leaf)->reading, &before, sizeof(before));
	assert_int_equal(files_world_at(w, leaf)->seen_pass, last_seen);

	files_world_scan(w);
	files_world_pass(w, PASS_SLOW);
	assert_int_equal(w->result.records, 3);
	assert_int_equal(w->result.missing, 0);
	assert_true(files_world_at(w, leaf)->serial != serial);
	assert_int_equal(files_world_at(w, leaf)->reading.cpu_ns, 0);
	assert_true(files_world_at(w, leaf)->reading.have & HAVE_CPU);

	/* What the topology does not know any more is closed. */
	cgroup_fixture_remove(w->fixture, all, "gone");
	files_world_scan(w);
	files_world_pass(w, PASS_FAST);
	assert_int_equal(w->result.records, 2);
	assert_int_equal(w->result.missing, 0);
	assert_int_equal(files_world_fds("/gone"), 0);
}

static void assert_have(struct files_world *w, const char *path, uint32_t have)
{
	/* Swap only where the kernel accounts for it. */
	assert_int_equal(files_world_at(w, path)->reading.have & ~(HAVE_SWAP | HAVE_SWAP_LIMIT),
			 have);
	assert_int_equal(files_world_at(w, path)->seen_pass, w->pass);
}

/*
 * v1 directories come and go one by one: what is there is read, the rest is not measured. Two of
 * them, as the limits of two cgroups have their turns in different passes: here neither may wait
 * for its turn.
 */
static void test_one_hierarchy(void **state)
{
	static const uint32_t cpu_have = HAVE_CPU | HAVE_THROTTLE | HAVE_CPU_LIMIT;
	static const uint32_t memory_have = HAVE_MEMORY | HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE |
					    HAVE_MEMORY_LIMIT | HAVE_OOM;
	static const char *const paths[] = {"/x", "/y"};
	struct files_world *w = files_world_need(state);
	unsigned int cpu, memory;
	uint64_t serial;

	if (w->fs.cpu_from != HIERARCHY_CPUACCT || w->fs.memory_from != HIERARCHY_MEMORY ||
	    w->fs.throttle_from != HIERARCHY_CPU) {
		printf("SKIP: not a v1 machine\n");
		skip();
	}
	cpu = 1U << HIERARCHY_CPUACCT | 1U << HIERARCHY_CPU;
	memory = 1U << HIERARCHY_MEMORY;
	for (int i = 0; i < 2; i++)
		cgroup_fixture_make(w->fixture, memory, paths[i] + 1);
	files_world_scan(w);
	files_world_pass(w, PASS_SLOW);
	serial = files_world_at(w, "/x")->serial;
	for (int i = 0; i < 2; i++) {
		assert_have(w, paths[i], memory_have);
		assert_int_equal(files_world_at(w, paths[i])->reading.mem_limit_bytes, LIMIT_NONE);
		cgroup_fixture_make(w->fixture, cpu, paths[i] + 1);
	}
	files_world_scan(w);
	files_world_pass(w, PASS_FAST);
	assert_int_equal(files_world_at(w, "/x")->serial, serial);
	for (int i = 0; i < 2; i++)
		assert_have(w, paths[i], memory_have | HAVE_CPU);
	files_world_pass(w, PASS_SLOW);
	for (int i = 0; i < 2; i++) {
		assert_have(w, paths[i], memory_have | cpu_have);
		cgroup_fixture_remove(w->fixture, memory, paths[i] + 1);
	}
	files_world_pass(w, PASS_SLOW);
	assert_int_equal(w->result.missing, 2);
	assert_int_equal(w->result.records, 3);
	for (int i = 0; i < 2; i++)
		assert_have(w, paths[i], cpu_have);
	files_world_scan(w);
	files_world_pass(w, PASS_SLOW);
	assert_int_equal(w->result.missing, 0);
	for (int i = 0; i < 2; i++)
		assert_have(w, paths[i], cpu_have);
}

/* A file that goes and comes with the cgroup staying: not measured meanwhile, found again later. */
static void test_file_comes_back(void **state)
{
	struct files_world *w = files_world_need(state);
	int passes = 0;

	if (w->fs.root_fd[HIERARCHY_UNIFIED] < 0) {
		printf("SKIP: no v2 hierarchy\n");
		skip();
	}
	cgroup_fixture_make(w->fixture, 1U << HIERARCHY_UNIFIED, "psi");
	files_world_scan(w);
	files_world_pass(w, PASS_SLOW);
	if (!(files_world_at(w, "/psi")->reading.have & HAVE_PSI) ||
	    !cgroup_fixture_write(w->fixture, HIERARCHY_UNIFIED, "psi", "cgroup.pressure", "0")) {
		printf("SKIP: pressure of a cgroup cannot be switched off here\n");
		skip();
	}
	files_world_pass(w, PASS_SLOW);
	assert_int_equal(files_world_at(w, "/psi")->reading.have & HAVE_PSI, 0);
	assert_int_equal(w->result.missing, 0);
	assert_int_equal(w->result.records, 2);

	assert_true(
		cgroup_fixture_write(w->fixture, HIERARCHY_UNIFIED, "psi", "cgroup.pressure", "1"));
	while (!(files_world_at(w, "/psi")->reading.have & HAVE_PSI)) {
		assert_true(passes++ < 20);
		files_world_pass(w, PASS_SLOW);
	}
}

static void test_nothing_to_read(void **state)
{
	struct cgroupfs none = {.root_fd = {-1, -1, -1, -1, -1},
				.cpu_from = -1,
				.throttle_from = -1,
				.memory_from = -1};
	struct error error = {""};
	void *tier = NULL;

	(void)state;
	assert_int_equal(sampler_files_ops.open(&tier, &sampler_files_ops, &none, &error), -ENOENT);
	assert_true(strlen(error.text) > 0);
	assert_null(tier);
	sampler_files_ops.close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILES_TEST(test_values),	  FILES_TEST(test_parent),
		FILES_TEST(test_vanished),	  FILES_TEST(test_one_hierarchy),
		FILES_TEST(test_file_comes_back), cmocka_unit_test(test_nothing_to_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
