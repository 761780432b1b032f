/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampling of this machine under a budget that is too small, and while files cannot be opened
 * or read: it goes on, and the CPU time of a workload is exact in the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/sampling.h"
#include "shared/clock.h"
#include "shared/mem.h"
#include "tests/cgroup_fixture.h"

struct scene {
	struct cgroup_fixture *cgroups;
	struct sampling *sampling;
	struct sampling_config config;
	uint64_t sequence;
	pid_t child;
	/* Of all intervals: */
	double work; /* CPU of the workload "work", millicore seconds */
	double rate_hz; /* of the newest */
	uint32_t missed_ticks;
	bool pods; /* there are some, so plain cgroups are no workloads */
	uint32_t overflow;
	uint32_t have; /* of the node, in the newest */
};

static int setup(void **state)
{
	struct scene *s = mem_zalloc(1, sizeof(*s));
	struct error error;

	s->cgroups = cgroup_fixture_new("sampling", &error);
	if (!s->cgroups)
		print_message("SKIP: %s\n", error.text);
	s->config = (struct sampling_config){
		.cgroup_root = "/sys/fs/cgroup",
		.rate_hz = 10,
		.tier = -1,
		.cpu_budget_percent = 100,
	};
	*state = s;
	return 0;
}

/* From now on only so many more files can be open. */
static void allow_files(int more)
{
	struct rlimit limit;
	int fds[16], next;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	/* The lowest free numbers are what is given out next. */
	for (int i = 0; i < more; i++)
		fds[i] = open("/", O_PATH | O_CLOEXEC);
	next = open("/", O_PATH | O_CLOEXEC);
	assert_true(next >= 0);
	limit.rlim_cur = (rlim_t)next;
	close(next);
	for (int i = 0; i < more; i++)
		close(fds[i]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void allow_all_files(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int teardown(void **state)
{
	struct scene *s = *state;

	allow_all_files();
	sampling_close(s->sampling);
	cgroup_fixture_free(s->cgroups);
	free(s);
	return 0;
}

static void open_sampling(struct scene *s)
{
	struct error error;
	int rc;

	if (!s->cgroups)
		skip();
	rc = sampling_open(&s->sampling, &s->config, &error);
	if (rc)
		print_error("%s\n", error.text);
	assert_int_equal(rc, 0);
}

/* A workload that begins after the sampling did: all its use counts. */
static void start_work(struct scene *s)
{
	const struct cgroup_child busy = {.spin = true};

	cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), "work");
	s->child = cgroup_fixture_spawn(s->cgroups, "work", &busy);
}

/* What the kernel's own file says the workload used, now that it has stopped. */
static double used_by_work(struct scene *s)
{
	const struct cgroupfs *fs = cgroup_fixture_fs(s->cgroups);
	bool v1 = fs->cpu_from == HIERARCHY_CPUACCT;
	char text[512];
	const char *number = text;

	assert_true(cgroup_fixture_read(s->cgroups, fs->cpu_from, "work",
					v1 ? "cpuacct.usage" : "cpu.stat", text, sizeof(text)));
	if (!v1) {
		number = strstr(text, "usage_usec ");
		assert_non_null(number);
		number += strlen("usage_usec ");
	}
	return strtod(number, NULL) * (v1 ? 1e-6 : 1e-3);
}

static void tick(struct scene *s)
{
	struct error error;
	int rc;

	poll(NULL, 0, (int)(sampling_period_ns(s->sampling) / NS_PER_MS));
	rc = sampling_tick(s->sampling, 0, &error);
	if (rc)
		print_error("%s\n", error.text);
	assert_int_equal(rc, 0);
}

static void ticks(struct scene *s, int count)
{
	while (count--)
		tick(s);
}

/* False when nothing was sampled since the last time. */
static bool take(struct scene *s)
{
	const char *name = cgroup_fixture_path(s->cgroups, "work") + 1;
	struct interval *i = sampling_take(s->sampling, s->sequence + 1, 0, NS_PER_SEC);

	if (!i)
		return false;
	s->sequence++;
	s->rate_hz = (double)i->node.rate_hz;
	s->missed_ticks += i->node.missed_ticks;
	s->overflow += i->node.overflow;
	s->have = i->node.usage.have;
	for (size_t n = 0; n < i->entry_count; n++) {
		const struct usage *u = &i->entries[n].usage;

		s->pods |= i->entries[n].entity->kind == ENTITY_POD;
		if (!strcmp(i->entries[n].entity->name, name))
			s->work += (double)u->cpu_milli.mean * (double)u->cpu_milli.weight;
	}
	interval_free(i);
	return true;
}

/* Stops the workload, samples its last use, and compares. */
static void expect_exact(struct scene *s)
{
	double used;

	cgroup_fixture_stop(s->child);
	ticks(s, 2);
	take(s);
	used = used_by_work(s);
	if (s->overflow || s->pods) {
		print_message("SKIP: %s\n",
			      s->pods ? "there are pods, so plain cgroups do not count"
				      : "more cgroups than are sampled");
		skip();
	}
	assert_true(used > 100);
	if (fabs(s->work - used) > 1e-4 * used)
		print_error("sampled %.3f of %.3f millicore seconds\n", s->work, used);
	assert_true(fabs(s->work - used) <= 1e-4 * used);
}

/* --- the budget ------------------------------------------------------------------------------- */

/*
 * A thousandth of a core, and some hundred cgroups: the rate must fall, is published as it is, and
 * nothing is lost.
 */
static void test_budget(void **state)
{
	enum { CGROUPS = 300 };
	struct scene *s = *state;
	int64_t begin = clock_mono_ns(), opened;
	double ticked_hz; /* however slow this machine is */
	char name[16];

	if (!s->cgroups)
		skip();
	for (int i = 0; i < CGROUPS; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), name);
	}
	s->config.cpu_budget_percent = 0.1;
	open_sampling(s);
	if (sampling_tier(s->sampling) == TIER_T3) {
		print_message("SKIP: at most 1 Hz without eBPF\n");
		skip();
	}
	assert_int_equal(sampling_period_ns(s->sampling), NS_PER_SEC / 10);
	opened = clock_mono_ns();
	start_work(s);
	ticks(s, 20);
	ticked_hz = 20.0 * NS_PER_SEC / (double)(clock_mono_ns() - opened);
	assert_true(take(s));
	assert_true(s->rate_hz > 0.75 * ticked_hz && s->rate_hz < 10.5);
	while (sampling_period_ns(s->sampling) < NS_PER_SEC / 2) {
		tick(s);
		assert_true(clock_mono_ns() - begin < 60 * NS_PER_SEC);
	}
	/*
	 * This interval had several rates: fewer ticks than ten in a second, and none of them
	 * missed.
	 */
	assert_true(take(s));
	assert_true(s->rate_hz > 2 && s->rate_hz < 9.5);
	ticks(s, 4);
	assert_true(take(s));
	assert_true(s->rate_hz > 0.5 && s->rate_hz < 2.2);
	assert_int_equal(s->missed_ticks, 0);
	expect_exact(s);
}

/* --- files that cannot be opened or read ------------------------------------------------------ */

static bool knows_more(const struct scene *s, size_t than)
{
	return sampling_cgroups(s->sampling) > than;
}

/*
 * Neither directories nor a pass can be opened: new cgroups are not seen, nothing is published, the
 * tier stays. What was used meanwhile comes afterwards.
 */
static void test_no_descriptors(void **state)
{
	struct scene *s = *state;
	enum sampler_tier tier;
	size_t known;

	open_sampling(s);
	tier = sampling_tier(s->sampling);
	if (tier == TIER_T3) {
		print_message("SKIP: needs a tier that opens a file in every pass\n");
		skip();
	}
	start_work(s);
	ticks(s, 3);
	assert_true(take(s));
	known = sampling_cgroups(s->sampling);
	cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), "late");
	allow_files(0);
	ticks(s, 5);
	allow_all_files();
	assert_int_equal(sampling_cgroups(s->sampling), known);
	assert_false(take(s));
	/* The directories are tried again a second after they failed. */
	for (int i = 0; i < 15 && !knows_more(s, known); i++)
		tick(s);
	assert_true(knows_more(s, known));
	assert_true(take(s));
	assert_int_equal(s->missed_ticks, 5);
	assert_int_equal(sampling_tier(s->sampling), tier);
	expect_exact(s);
}

/* Tier T3 keeps its files open, but has none for a cgroup that is new. */
static void test_no_descriptors_in_t3(void **state)
{
	struct scene *s = *state;
	size_t known;

	if (!s->cgroups)
		skip();
	cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), "gone");
	cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), "gone-too");
	s->config.tier = TIER_T3;
	open_sampling(s);
	/* It scans again when something it knew is gone. */
	start_work(s);
	cgroup_fixture_remove(s->cgroups, cgroup_fixture_all(s->cgroups), "gone");
	ticks(s, 2);
	assert_true(take(s));
	known = sampling_cgroups(s->sampling);
	cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), "late");
	cgroup_fixture_make(s->cgroups, cgroup_fixture_all(s->cgroups), "late-too");
	cgroup_fixture_remove(s->cgroups, cgroup_fixture_all(s->cgroups), "gone-too");
	allow_files(6);
	ticks(s, 3);
	allow_all_files();
	for (int i = 0; i < 12 && !knows_more(s, known); i++)
		tick(s);
	assert_true(knows_more(s, known));
	tick(s);
	assert_true(take(s));
	assert_true(s->missed_ticks >= 1);
	expect_exact(s);
}

/* The descriptor that is open on a path. */
static int descriptor_of(const char *path)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	char name[64], target[256];
	int found = -1;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		ssize_t len;

		snprintf(name, sizeof(name), "/proc/self/fd/%.20s", e->d_name);
		len = readlink(name, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		if (!strcmp(target, path))
			found = (int)strtol(e->d_name, NULL, 10);
	}
	closedir(dir);
	return found;
}

/* The machine's own numbers cannot be read for a while: the workloads' can. */
static void test_machine_cannot_be_read(void **state)
{
	struct scene *s = *state;
	int fd, kept, directory;

	open_sampling(s);
	start_work(s);
	ticks(s, 12);
	assert_true(take(s));
	assert_true(s->have & USAGE_MEMORY);
	fd = descriptor_of("/proc/meminfo");
	assert_true(fd >= 0);
	kept = dup(fd);
	directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(dup2(directory, fd), fd);
	ticks(s, 12);
	assert_true(take(s));
	ticks(s, 12);
	assert_true(take(s));
	/* Not an old value passed off as new. */
	assert_false(s->have & USAGE_MEMORY);
	assert_true(s->have & USAGE_CPU);
	assert_int_equal(dup2(kept, fd), fd);
	close(kept);
	close(directory);
	ticks(s, 12);
	assert_true(take(s));
	assert_true(s->have & USAGE_MEMORY);
	expect_exact(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_descriptors_in_t3, setup, teardown),
		cmocka_unit_test_setup_teardown(test_machine_cannot_be_read, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
