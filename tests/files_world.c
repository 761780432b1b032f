/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/files_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler_tier.h"
#include "shared/mem.h"

int files_world_setup(void **state)
{
	struct files_world *w = mem_zalloc(1, sizeof(*w));
	struct error error = {""};

	*state = w;
	w->fixture = cgroup_fixture_new("files", &error);
	if (!w->fixture) {
		printf("SKIP: %s\n", error.text);
		return 0;
	}
	cgroup_fixture_open_below(w->fixture, &w->fs);
	w->topology = topology_new();
	return sampler_files_ops.open(&w->tier, &sampler_files_ops, &w->fs, &error);
}

int files_world_teardown(void **state)
{
	struct files_world *w = *state;

	if (w->fixture) {
		sampler_files_ops.close(w->tier);
		topology_free(w->topology);
		cgroupfs_close(&w->fs);
		cgroup_fixture_free(w->fixture);
	}
	free(w);
	return 0;
}

struct files_world *files_world_need(void **state)
{
	struct files_world *w = *state;

	if (!w->fixture)
		skip();
	return w;
}

void files_world_scan(struct files_world *w)
{
	assert_int_equal(cgroupfs_scan(&w->fs, w->topology, NULL), 0);
}

void files_world_pass(struct files_world *w, enum pass_kind kind)
{
	struct error error = {""};

	w->result = (struct pass_result){0};
	if (sampler_files_ops.pass(w->tier, w->topology, kind, ++w->pass, &w->result, &error))
		fail_msg("%s", error.text);
	assert_int_equal(w->result.unknown, 0);
	assert_int_equal(w->result.overflow, 0);
}

struct cgroup *files_world_at(struct files_world *w, const char *path)
{
	for (size_t i = 0; i < topology_count(w->topology); i++) {
		if (strcmp(topology_at(w->topology, i)->path, path) == 0)
			return topology_at(w->topology, i);
	}
	fail_msg("%s is not in the topology", path);
	return NULL;
}

int files_world_fds(const char *text)
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

uint64_t files_world_value(const struct files_world *w, int h, const char *sub, const char *file,
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

bool files_world_has(const struct files_world *w, int h, const char *sub, const char *file)
{
	char text[64];

	return h >= 0 && w->fs.root_fd[h] >= 0 &&
	       cgroup_fixture_read(w->fixture, h, sub, file, text, sizeof(text));
}

static const struct files_names v1_names = {
	.cpu = "cpuacct.usage",
	.cpu_key = "",
	.cpu_unit = 1,
	.memory = "memory.usage_in_bytes",
	.inactive = "total_inactive_file ",
	.throttled = "throttled_time ",
	.throttled_unit = 1,
	.burst = "cpu.cfs_burst_us",
	.limit = "memory.limit_in_bytes",
	.swap = "memory.memsw.usage_in_bytes",
	.swap_limit = "memory.memsw.limit_in_bytes",
	.oom = "memory.oom_control",
};
static const struct files_names v2_names = {
	.cpu = "cpu.stat",
	.cpu_key = "usage_usec ",
	.cpu_unit = 1000,
	.memory = "memory.current",
	.inactive = "inactive_file ",
	.throttled = "throttled_usec ",
	.throttled_unit = 1000,
	.burst = "cpu.max.burst",
	.limit = "memory.max",
	.swap = "memory.swap.current",
	.swap_limit = "memory.swap.max",
	.oom = "memory.events",
};

const struct files_names *files_names_of(int h)
{
	return h == HIERARCHY_UNIFIED ? &v2_names : &v1_names;
}

void files_world_set_quota(const struct files_world *w, const char *sub)
{
	int h = w->fs.throttle_from;

	if (h == HIERARCHY_UNIFIED) {
		cgroup_fixture_write(w->fixture, h, sub, "cpu.max", "20000 100000");
	} else if (h >= 0) {
		cgroup_fixture_write(w->fixture, h, sub, "cpu.cfs_period_us", "100000");
		cgroup_fixture_write(w->fixture, h, sub, "cpu.cfs_quota_us", "20000");
	}
	if (files_world_has(w, h, sub, files_names_of(h)->burst))
		assert_true(
			cgroup_fixture_write(w->fixture, h, sub, files_names_of(h)->burst, "5000"));
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
}

void files_world_await_use(const struct files_world *w, const char *sub)
{
	int h = w->fs.throttle_from;

	if (h >= 0) {
		while (files_world_value(w, h, sub, "cpu.stat", "nr_throttled ") < 3)
			nap();
		return;
	}
	h = w->fs.cpu_from;
	while (files_world_value(w, h, sub, files_names_of(h)->cpu, files_names_of(h)->cpu_key) *
		       files_names_of(h)->cpu_unit <
	       50000000)
		nap();
}

void files_world_stop(const struct files_world *w, const char *sub, pid_t child)
{
	enum { STILL_NAPS = 25 }; /* of 10 ms: more than two periods */
	int h = w->fs.throttle_from;
	uint64_t periods = 0;

	cgroup_fixture_stop(child);
	for (int still = 0; h >= 0 && still < STILL_NAPS; still++) {
		uint64_t now = files_world_value(w, h, sub, "cpu.stat", "nr_periods ");

		if (now != periods)
			still = 0;
		periods = now;
		nap();
	}
}
