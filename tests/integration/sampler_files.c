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
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler_tier.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"

struct world {
	struct cgroup_fixture *fixture;
	struct cgroupfs fs; /* the fixture's own part of the hierarchies */
	struct topology *topology;
	void *tier;
	uint64_t pass;
	struct pass_result result;
};

static int setup(void **state)
{
	struct world *w = mem_zalloc(1, sizeof(*w));
	struct reason reason = {""};

	*state = w;
	w->fixture = cgroup_fixture_new("files", &reason);
	if (!w->fixture) {
		printf("SKIP: %s\n", reason.text);
		return 0;
	}
	cgroup_fixture_open_below(w->fixture, &w->fs);
	w->topology = topology_new();
	return sampler_files_ops.open(&w->tier, &w->fs, &reason);
}

static int teardown(void **state)
{
	struct world *w = *state;

	if (w->fixture) {
		sampler_files_ops.close(w->tier);
		topology_free(w->topology);
		cgroupfs_close(&w->fs);
		cgroup_fixture_free(w->fixture);
	}
	free(w);
	return 0;
}

static struct world *world_or_skip(void **state)
{
	struct world *w = *state;

	if (!w->fixture)
		skip();
	return w;
}

static void scan(struct world *w)
{
	assert_int_equal(cgroupfs_scan(&w->fs, w->topology, NULL), 0);
}

static void pass(struct world *w, enum pass_kind kind)
{
	struct reason reason = {""};

	w->result = (struct pass_result){0};
	if (sampler_files_ops.pass(w->tier, w->topology, kind, ++w->pass, &w->result, &reason))
		fail_msg("%s", reason.text);
	assert_int_equal(w->result.unknown, 0);
	assert_int_equal(w->result.overflow, 0);
}

static struct cgroup *at_path(struct world *w, const char *path)
{
	for (size_t i = 0; i < topology_count(w->topology); i++) {
		if (strcmp(topology_at(w->topology, i)->path, path) == 0)
			return topology_at(w->topology, i);
	}
	fail_msg("%s is not in the topology", path);
	return NULL;
}

/* Open descriptors of this process that lead to a path holding the text. */
static int count_fds(const char *text)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		char target[1024];
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		if (n > 0) {
			target[n] = '\0';
			count += strstr(target, text) != NULL;
		}
	}
	closedir(dir);
	return count;
}

/* --- values ----------------------------------------------------------------------------------- */

/*
 * What the kernel says, read here by other means than the tier's: the number after `key` in a
 * file.
 */
static uint64_t kernel_value(const struct world *w, int h, const char *sub, const char *file,
			     const char *key)
{
	char text[16384];
	const char *at = text;

	if (!cgroup_fixture_read(w->fixture, h, sub, file, text, sizeof(text)))
		fail_msg("cannot read %s", file);
	if (*key) {
		char *line = mem_printf("\n%s", key);

		at = strncmp(text, key, strlen(key)) == 0 ? text : strstr(text, line) + 1;
		at += strlen(key);
		free(line);
	}
	return strtoull(at, NULL, 10);
}

struct names {
	const char *cpu, *cpu_key, *memory, *inactive, *throttled, *limit, *oom;
	uint64_t cpu_unit, throttled_unit;
};

static const struct names v1_names = {
	.cpu = "cpuacct.usage",
	.cpu_key = "",
	.cpu_unit = 1,
	.memory = "memory.usage_in_bytes",
	.inactive = "total_inactive_file ",
	.throttled = "throttled_time ",
	.throttled_unit = 1,
	.limit = "memory.limit_in_bytes",
	.oom = "memory.oom_control",
};
static const struct names v2_names = {
	.cpu = "cpu.stat",
	.cpu_key = "usage_usec ",
	.cpu_unit = 1000,
	.memory = "memory.current",
	.inactive = "inactive_file ",
	.throttled = "throttled_usec ",
	.throttled_unit = 1000,
	.limit = "memory.max",
	.oom = "memory.events",
};

static const struct names *names_of(int h)
{
	return h == HIERARCHY_UNIFIED ? &v2_names : &v1_names;
}

static void set_quota(const struct world *w, const char *sub)
{
	int h = w->fs.throttle_from;

	if (h == HIERARCHY_UNIFIED) {
		cgroup_fixture_write(w->fixture, h, sub, "cpu.max", "20000 100000");
	} else if (h >= 0) {
		cgroup_fixture_write(w->fixture, h, sub, "cpu.cfs_period_us", "100000");
		cgroup_fixture_write(w->fixture, h, sub, "cpu.cfs_quota_us", "20000");
	}
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
}

/* Lets it run until the kernel throttled it a few times, or without quotas until it used 50 ms. */
static void await_use(const struct world *w, const char *sub)
{
	int h = w->fs.throttle_from;

	if (h >= 0) {
		while (kernel_value(w, h, sub, "cpu.stat", "nr_throttled ") < 3)
			nap();
		return;
	}
	h = w->fs.cpu_from;
	while (kernel_value(w, h, sub, names_of(h)->cpu, names_of(h)->cpu_key) *
		       names_of(h)->cpu_unit <
	       50000000)
		nap();
}

static void check_cpu(const struct world *w, const struct reading *r, const char *sub)
{
	int h = w->fs.cpu_from;

	assert_int_equal(r->have & (HAVE_CPU | HAVE_CPU_LOCAL), HAVE_CPU);
	assert_true(r->cpu_ns > 0);
	assert_int_equal(r->cpu_ns,
			 kernel_value(w, h, sub, names_of(h)->cpu, names_of(h)->cpu_key) *
				 names_of(h)->cpu_unit);
}

static void check_throttle(const struct world *w, const struct reading *r, const char *sub)
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
	assert_true(r->throttled_periods >= 3);
	assert_int_equal(r->periods, kernel_value(w, h, sub, "cpu.stat", "nr_periods "));
	assert_int_equal(r->throttled_periods,
			 kernel_value(w, h, sub, "cpu.stat", "nr_throttled "));
	assert_int_equal(r->throttled_ns,
			 kernel_value(w, h, sub, "cpu.stat", names_of(h)->throttled) *
				 names_of(h)->throttled_unit);
}

static void check_memory(const struct world *w, const struct reading *r, const char *sub)
{
	uint32_t all = HAVE_MEMORY | HAVE_WORKING_SET | HAVE_INACTIVE_SUBTREE | HAVE_MEMORY_LIMIT |
		       HAVE_OOM;
	int h = w->fs.memory_from;
	const struct names *n = names_of(h);

	if (h < 0) {
		assert_int_equal(r->have & all, 0);
		return;
	}
	assert_int_equal(r->have & all, all);
	assert_true(r->mem_bytes >= 4 << 20);
	assert_int_equal(r->mem_bytes, kernel_value(w, h, sub, n->memory, ""));
	assert_true(r->inactive_file_bytes > 0);
	assert_int_equal(r->inactive_file_bytes,
			 kernel_value(w, h, sub, "memory.stat", n->inactive));
	assert_int_equal(r->mem_limit_bytes, 256 << 20);
	assert_int_equal(r->oom_kills, kernel_value(w, h, sub, n->oom, "oom_kill "));
}

/* The "some" total in nanoseconds; -1 where this kernel or cgroup has no pressure files. */
static int64_t kernel_pressure_ns(const struct world *w, const char *sub, const char *file)
{
	char text[1024];
	const char *total;

	if (w->fs.root_fd[HIERARCHY_UNIFIED] < 0 ||
	    !cgroup_fixture_read(w->fixture, HIERARCHY_UNIFIED, sub, file, text, sizeof(text)))
		return -1;
	total = strstr(text, "total=");
	return total ? strtoll(total + strlen("total="), NULL, 10) * 1000 : -1;
}

static void test_values(void **state)
{
	struct world *w = world_or_skip(state);
	struct cgroup_child child = {.hold_bytes = 4 << 20, .cache_bytes = 2 << 20, .spin = true};
	struct reading slow;
	int64_t pressure_ns;
	pid_t pid;

	cgroup_fixture_make(w->fixture, cgroup_fixture_all(w->fixture), "a");
	set_quota(w, "a");
	if (w->fs.memory_from >= 0)
		assert_true(cgroup_fixture_write(w->fixture, w->fs.memory_from, "a",
						 names_of(w->fs.memory_from)->limit, "256M"));
	pid = cgroup_fixture_spawn(w->fixture, "a", &child);
	await_use(w, "a");
	cgroup_fixture_stop(pid);
	scan(w);

	for (int i = 0; i < 2; i++) {
		const struct reading *r = &at_path(w, "/a")->reading;

		pressure_ns = kernel_pressure_ns(w, "a", "cpu.pressure");
		pass(w, PASS_SLOW);
		assert_int_equal(at_path(w, "/a")->seen_pass, w->pass);
		assert_int_equal(w->result.records, topology_count(w->topology));
		assert_int_equal(w->result.missing, 0);
		check_cpu(w, r, "a");
		check_throttle(w, r, "a");
		check_memory(w, r, "a");
		/* Pressure is brought up to date by reading it, so it lies between two readings. */
		assert_int_equal(!!(r->have & HAVE_PSI), pressure_ns >= 0);
		if (pressure_ns >= 0)
			assert_in_range(r->psi_cpu_ns, pressure_ns,
					kernel_pressure_ns(w, "a", "cpu.pressure"));
	}
	/* A fast pass renews its own values and leaves the others. */
	at_path(w, "/a")->reading.oom_kills = 12345;
	slow = at_path(w, "/a")->reading;
	at_path(w, "/a")->reading.cpu_ns = 0;
	at_path(w, "/a")->reading.mem_bytes = 0;
	pass(w, PASS_FAST);
	assert_memory_equal(&at_path(w, "/a")->reading, &slow, sizeof(slow));
}

/* CPU time, memory and inactive file pages of a parent include its children. */
static void test_parent(void **state)
{
	struct world *w = world_or_skip(state);
	struct cgroup_child child = {.hold_bytes = 4 << 20, .cache_bytes = 2 << 20, .spin = true};
	const struct reading *parent, *leaf;
	pid_t pid;

	cgroup_fixture_make(w->fixture, cgroup_fixture_all(w->fixture), "p");
	cgroup_fixture_make(w->fixture, cgroup_fixture_all(w->fixture), "p/c");
	set_quota(w, "p/c");
	pid = cgroup_fixture_spawn(w->fixture, "p/c", &child);
	await_use(w, "p/c");
	cgroup_fixture_stop(pid);
	scan(w);
	pass(w, PASS_SLOW);
	parent = &at_path(w, "/p")->reading;
	leaf = &at_path(w, "/p/c")->reading;
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
	}
}

/* --- cgroups that come and go ----------------------------------------------------------------- */

/* A removed cgroup is missing, not a failure; what is made in its place is not read as it. */
static void test_vanished(void **state)
{
	struct world *w = world_or_skip(state);
	unsigned int all = cgroup_fixture_all(w->fixture);
	const char *leaf = "/gone";
	struct reading before;
	uint64_t last_seen, serial;

	cgroup_fixture_make(w->fixture, all, "gone");
	cgroup_fixture_make(w->fixture, all, "stays");
	scan(w);
	pass(w, PASS_SLOW);
	assert_int_equal(w->result.records, 3);
	assert_true(count_fds("/gone/") > 0);
	before = at_path(w, leaf)->reading;
	last_seen = at_path(w, leaf)->seen_pass;
	serial = at_path(w, leaf)->serial;

	cgroup_fixture_remove(w->fixture, all, "gone");
	for (int kind = PASS_FAST; kind <= PASS_SLOW; kind++) {
		pass(w, kind);
		assert_int_equal(w->result.records, 2);
		assert_int_equal(w->result.missing, 1);
	}
	assert_int_equal(count_fds("/gone/"), 0);

	cgroup_fixture_make(w->fixture, all, "gone");
	for (int kind = PASS_FAST; kind <= PASS_SLOW; kind++) {
		pass(w, kind);
		assert_int_equal(w->result.missing, 1);
	}
	assert_memory_equal(&at_path(w, leaf)->reading, &before, sizeof(before));
	assert_int_equal(at_path(w, leaf)->seen_pass, last_seen);

	scan(w);
	pass(w, PASS_SLOW);
	assert_int_equal(w->result.records, 3);
	assert_int_equal(w->result.missing, 0);
	assert_true(at_path(w, leaf)->serial != serial);
	assert_int_equal(at_path(w, leaf)->reading.cpu_ns, 0);
	assert_true(at_path(w, leaf)->reading.have & HAVE_CPU);

	/* What the topology does not know any more is closed. */
	cgroup_fixture_remove(w->fixture, all, "gone");
	scan(w);
	pass(w, PASS_FAST);
	assert_int_equal(w->result.records, 2);
	assert_int_equal(w->result.missing, 0);
	assert_int_equal(count_fds("/gone"), 0);
}

/* v1 directories come and go one by one: what is there is read, the rest is not measured. */
static void test_one_hierarchy(void **state)
{
	struct world *w = world_or_skip(state);
	unsigned int cpu, memory;
	uint64_t serial;

	if (w->fs.cpu_from != HIERARCHY_CPUACCT || w->fs.memory_from != HIERARCHY_MEMORY) {
		printf("SKIP: not a v1 machine\n");
		skip();
	}
	cpu = 1U << HIERARCHY_CPUACCT;
	memory = 1U << HIERARCHY_MEMORY;
	cgroup_fixture_make(w->fixture, memory, "x");
	scan(w);
	pass(w, PASS_SLOW);
	serial = at_path(w, "/x")->serial;
	assert_int_equal(at_path(w, "/x")->reading.have, HAVE_MEMORY | HAVE_WORKING_SET |
								 HAVE_INACTIVE_SUBTREE |
								 HAVE_MEMORY_LIMIT | HAVE_OOM);
	assert_int_equal(at_path(w, "/x")->reading.mem_limit_bytes, LIMIT_NONE);

	cgroup_fixture_make(w->fixture, cpu, "x");
	scan(w);
	pass(w, PASS_FAST);
	assert_int_equal(at_path(w, "/x")->serial, serial);
	assert_true(at_path(w, "/x")->reading.have & HAVE_CPU);
	assert_true(at_path(w, "/x")->reading.have & HAVE_MEMORY);

	cgroup_fixture_remove(w->fixture, memory, "x");
	pass(w, PASS_SLOW);
	assert_int_equal(w->result.missing, 1);
	assert_int_equal(w->result.records, 2);
	assert_int_equal(at_path(w, "/x")->seen_pass, w->pass);
	assert_int_equal(at_path(w, "/x")->reading.have, HAVE_CPU);
	scan(w);
	pass(w, PASS_SLOW);
	assert_int_equal(w->result.missing, 0);
	assert_int_equal(at_path(w, "/x")->reading.have, HAVE_CPU);
}

/* A file that goes and comes with the cgroup staying: not measured meanwhile, found again later. */
static void test_file_comes_back(void **state)
{
	struct world *w = world_or_skip(state);
	int passes = 0;

	if (w->fs.root_fd[HIERARCHY_UNIFIED] < 0) {
		printf("SKIP: no v2 hierarchy\n");
		skip();
	}
	cgroup_fixture_make(w->fixture, 1U << HIERARCHY_UNIFIED, "psi");
	scan(w);
	pass(w, PASS_SLOW);
	if (!(at_path(w, "/psi")->reading.have & HAVE_PSI) ||
	    !cgroup_fixture_write(w->fixture, HIERARCHY_UNIFIED, "psi", "cgroup.pressure", "0")) {
		printf("SKIP: pressure of a cgroup cannot be switched off here\n");
		skip();
	}
	pass(w, PASS_SLOW);
	assert_int_equal(at_path(w, "/psi")->reading.have & HAVE_PSI, 0);
	assert_int_equal(w->result.missing, 0);
	assert_int_equal(w->result.records, 2);

	assert_true(
		cgroup_fixture_write(w->fixture, HIERARCHY_UNIFIED, "psi", "cgroup.pressure", "1"));
	while (!(at_path(w, "/psi")->reading.have & HAVE_PSI)) {
		assert_true(passes++ < 20);
		pass(w, PASS_SLOW);
	}
}

/* --- descriptors ------------------------------------------------------------------------------ */

enum { MANY = 24, LOW_LIMIT = 64 };

/*
 * With few descriptors every value is still read, by opening files for each reading. In a process
 * of its own.
 */
static int read_with_few(const struct world *w)
{
	struct rlimit low = {LOW_LIMIT / 2, LOW_LIMIT}, now;
	struct reading *want = mem_zalloc(topology_count(w->topology), sizeof(*want));
	struct pass_result result = {0};
	size_t count = topology_count(w->topology);
	void *tier;

	for (size_t i = 0; i < count; i++) {
		want[i] = topology_at(w->topology, i)->reading;
		want[i].psi_cpu_ns = want[i].psi_mem_ns = 0;
		topology_at(w->topology, i)->reading = (struct reading){0};
	}
	sampler_files_ops.close(w->tier);
	if (setrlimit(RLIMIT_NOFILE, &low) || sampler_files_ops.open(&tier, &w->fs, NULL))
		return 1;
	if (getrlimit(RLIMIT_NOFILE, &now) || now.rlim_cur != LOW_LIMIT)
		return 2;
	for (uint64_t pass = 100; pass < 103; pass++) {
		result = (struct pass_result){0};
		if (sampler_files_ops.pass(tier, w->topology, PASS_SLOW, pass, &result, NULL))
			return 3;
		if (result.records != count || result.missing)
			return 4;
	}
	/* Half of them are kept open, for the other half is everybody else's. */
	if (count_fds("evenkeel-test-files") < LOW_LIMIT / 2)
		return 5;
	for (size_t i = 0; i < count; i++) {
		struct reading got = topology_at(w->topology, i)->reading;

		got.psi_cpu_ns = got.psi_mem_ns = 0;
		if (memcmp(&got, &want[i], sizeof(got)) != 0)
			return 6;
	}
	sampler_files_ops.close(tier);
	free(want);
	return 0;
}

/* With none left at all the tier says so. */
static int read_with_none(const struct world *w)
{
	struct pass_result result = {0};
	struct reason reason = {""};
	struct rlimit low = {LOW_LIMIT, LOW_LIMIT};
	void *tier;

	if (setrlimit(RLIMIT_NOFILE, &low) || sampler_files_ops.open(&tier, &w->fs, &reason))
		return 1;
	while (open("/dev/null", O_RDONLY) >= 0)
		continue;
	if (sampler_files_ops.pass(tier, w->topology, PASS_FAST, 100, &result, &reason) != -EMFILE)
		return 2;
	return strstr(reason.text, "Too many open files") ? 0 : 3;
}

/* Once everything is open, a pass opens nothing. */
static int read_kept(const struct world *w)
{
	struct rlimit none = {0, 0};
	struct pass_result result = {0};

	if (setrlimit(RLIMIT_NOFILE, &none))
		return 1;
	if (sampler_files_ops.pass(w->tier, w->topology, PASS_SLOW, 100, &result, NULL))
		return 2;
	return result.records == topology_count(w->topology) ? 0 : 3;
}

static void in_child(int (*run)(const struct world *w), const struct world *w)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(run(w));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_few_descriptors(void **state)
{
	struct world *w = world_or_skip(state);
	struct cgroup_child child = {.hold_bytes = 4 << 20, .spin = true};
	char name[16];
	pid_t pid;

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		cgroup_fixture_make(w->fixture, cgroup_fixture_all(w->fixture), name);
	}
	/* The last one by path, so that nothing is left of the budget. */
	set_quota(w, "n9");
	pid = cgroup_fixture_spawn(w->fixture, "n9", &child);
	await_use(w, "n9");
	cgroup_fixture_stop(pid);
	scan(w);
	assert_int_equal(topology_count(w->topology), 1 + MANY);
	pass(w, PASS_SLOW);
	assert_true(count_fds("evenkeel-test-files") > LOW_LIMIT);
	in_child(read_with_few, w);
	in_child(read_with_none, w);
	in_child(read_kept, w);
}

static void test_nothing_to_read(void **state)
{
	struct cgroupfs none = {.root_fd = {-1, -1, -1, -1},
				.cpu_from = -1,
				.throttle_from = -1,
				.memory_from = -1};
	struct reason reason = {""};
	void *tier = NULL;

	(void)state;
	assert_int_equal(sampler_files_ops.open(&tier, &none, &reason), -ENOENT);
	assert_true(strlen(reason.text) > 0);
	assert_null(tier);
	sampler_files_ops.close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vanished, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_hierarchy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_few_descriptors, setup, teardown),
		cmocka_unit_test(test_nothing_to_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
