/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files tier keeps open and what it reads only now and then, on this machine's own
 * hierarchies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler_tier.h"
#include "shared/mem.h"
#include "tests/files_world.h"

/* --- limits ----------------------------------------------------------------------------------- */

enum { LIMIT_PASSES = 10 };

static void set_limits(struct files_world *w, const char *text)
{
	int h = w->fs.memory_from;
	char name[16];

	for (int i = 0; i < LIMIT_PASSES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		assert_true(
			cgroup_fixture_write(w->fixture, h, name, files_names_of(h)->limit, text));
	}
}

/* How many of the cgroups have this limit by what was read; they have some limit all the time. */
static int count_limits(struct files_world *w, int64_t limit_bytes)
{
	char path[16];
	int count = 0;

	for (int i = 0; i < LIMIT_PASSES; i++) {
		const struct reading *r;

		snprintf(path, sizeof(path), "/n%d", i);
		r = &files_world_at(w, path)->reading;
		assert_true(r->have & HAVE_MEMORY_LIMIT);
		count += r->mem_limit_bytes == limit_bytes;
	}
	return count;
}

/*
 * Limits are read at once and then now and then, not of all cgroups in one pass; their files are
 * not kept open.
 */
static void test_limits(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} turns[] = {{"32M", 32 << 20}, {"16M", 16 << 20}};
	struct files_world *w = files_world_need(state);
	char name[16];

	if (w->fs.memory_from < 0) {
		printf("SKIP: no memory controller\n");
		skip();
	}
	for (int i = 0; i < LIMIT_PASSES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		cgroup_fixture_make(w->fixture, cgroup_fixture_all(w->fixture), name);
	}
	set_limits(w, "64M");
	files_world_scan(w);
	files_world_pass(w, PASS_SLOW);
	assert_int_equal(count_limits(w, 64 << 20), LIMIT_PASSES);
	assert_int_equal(files_world_fds(files_names_of(w->fs.memory_from)->limit), 0);
	assert_true(files_world_fds("memory.stat") >= LIMIT_PASSES);
	for (int t = 0; t < 2; t++) {
		int seen = 0;

		set_limits(w, turns[t].text);
		for (int passes = 0; passes < LIMIT_PASSES; passes++) {
			int now;

			files_world_pass(w, PASS_SLOW);
			now = count_limits(w, turns[t].bytes);
			assert_in_range(now - seen, 0, 3);
			seen = now;
		}
		assert_int_equal(seen, LIMIT_PASSES);
	}
}

/* --- descriptors ------------------------------------------------------------------------------ */

enum { MANY = 24, LOW_LIMIT = 64 };

/*
 * Whether two readings of one cgroup are the same but for what moves by itself: pressure is brought
 * up to date by reading it, memory.stat every 2 s, and memory usage holds what the kernel keeps in
 * stock for each CPU.
 */
static bool is_same(struct reading a, struct reading b)
{
	const size_t behind = offsetof(struct reading, cpu_ns);
	uint64_t more =
		a.mem_bytes > b.mem_bytes ? a.mem_bytes - b.mem_bytes : b.mem_bytes - a.mem_bytes;

	a.psi_cpu_ns = b.psi_cpu_ns;
	a.psi_mem_ns = b.psi_mem_ns;
	a.psi_cpu_full_ns = b.psi_cpu_full_ns;
	a.psi_mem_full_ns = b.psi_mem_full_ns;
	a.inactive_file_bytes = b.inactive_file_bytes;
	a.mem_bytes = b.mem_bytes;
	/* The members behind `have` are all numbers of 64 bits. */
	return more <= 1 << 20 && a.have == b.have &&
	       memcmp((char *)&a + behind, (char *)&b + behind, sizeof(a) - behind) == 0;
}

/*
 * With few descriptors every value is still read, by opening files for each reading. In a process
 * of its own.
 */
static int read_with_few(const struct files_world *w)
{
	struct rlimit low = {LOW_LIMIT / 2, LOW_LIMIT}, now;
	struct reading *want = mem_zalloc(topology_count(w->topology), sizeof(*want));
	struct pass_result result = {0};
	size_t count = topology_count(w->topology);
	void *tier;

	for (size_t i = 0; i < count; i++) {
		want[i] = topology_at(w->topology, i)->reading;
		topology_at(w->topology, i)->reading = (struct reading){0};
	}
	sampler_files_ops.close(w->tier);
	if (setrlimit(RLIMIT_NOFILE, &low) ||
	    sampler_files_ops.open(&tier, &sampler_files_ops, &w->fs, NULL))
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
	if (files_world_fds("evenkeel-test-files") < LOW_LIMIT / 2)
		return 5;
	for (size_t i = 0; i < count; i++) {
		if (!is_same(topology_at(w->topology, i)->reading, want[i]))
			return 6;
	}
	sampler_files_ops.close(tier);
	free(want);
	return 0;
}

/* With none left at all the tier says so. */
static int read_with_none(const struct files_world *w)
{
	struct pass_result result = {0};
	struct error error = {""};
	struct rlimit low = {LOW_LIMIT, LOW_LIMIT};
	void *tier;

	if (setrlimit(RLIMIT_NOFILE, &low) ||
	    sampler_files_ops.open(&tier, &sampler_files_ops, &w->fs, &error))
		return 1;
	while (open("/dev/null", O_RDONLY) >= 0)
		continue;
	if (sampler_files_ops.pass(tier, w->topology, PASS_FAST, 100, &result, &error) != -EMFILE)
		return 2;
	return strstr(error.text, "Too many open files") ? 0 : 3;
}

/* Once everything is open, a pass opens nothing; in a slow one it would be the limits of some. */
static int read_kept(const struct files_world *w)
{
	struct rlimit none = {0, 0};
	struct pass_result result = {0};

	if (setrlimit(RLIMIT_NOFILE, &none))
		return 1;
	errno = ENODEV; /* of a file before: it is not this one's */
	if (sampler_files_ops.pass(w->tier, w->topology, PASS_FAST, 100, &result, NULL))
		return 2;
	return result.records == topology_count(w->topology) ? 0 : 3;
}

static void in_child(int (*run)(const struct files_world *w), const struct files_world *w)
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
	struct files_world *w = files_world_need(state);
	struct cgroup_child child = {.hold_bytes = 4 << 20, .spin = true};
	char name[16];
	pid_t pid;

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		cgroup_fixture_make(w->fixture, cgroup_fixture_all(w->fixture), name);
	}
	/* The last one by path, so that nothing is left of the budget. */
	files_world_set_quota(w, "n9");
	pid = cgroup_fixture_spawn(w->fixture, "n9", &child);
	files_world_await_use(w, "n9");
	files_world_stop(w, "n9", pid);
	files_world_scan(w);
	assert_int_equal(topology_count(w->topology), 1 + MANY);
	files_world_pass(w, PASS_SLOW);
	assert_true(files_world_fds("evenkeel-test-files") > LOW_LIMIT);
	in_child(read_with_few, w);
	in_child(read_with_none, w);
	in_child(read_kept, w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILES_TEST(test_limits),
		FILES_TEST(test_few_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
