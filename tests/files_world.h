/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files tier over cgroups of a test's own, and the kernel's files read by other means than the
 * tier's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler.h"
#include "tests/cgroup_fixture.h"

struct files_world {
	struct cgroup_fixture *fixture;
	struct cgroupfs fs; /* the fixture's own part of the hierarchies */
	struct topology *topology;
	void *tier;
	uint64_t pass;
	struct pass_result result;
};

/* Where a version of cgroups tells what; the units of numbers in ns. */
struct files_names {
	const char *cpu, *cpu_key, *memory, *inactive, *throttled, *burst, *limit, *oom, *swap,
		*swap_limit;
	uint64_t cpu_unit, throttled_unit;
};

const struct files_names *files_names_of(int h);

/* A cmocka test whose state is a world of its own. */
#define FILES_TEST(name)                                                                           \
	cmocka_unit_test_setup_teardown(name, files_world_setup, files_world_teardown)
int files_world_setup(void **state);
int files_world_teardown(void **state);
/* The test's world; skips the test where no cgroups can be made. */
struct files_world *files_world_need(void **state);

void files_world_scan(struct files_world *w);
/* One pass that must not fail; what it met is in w->result. */
void files_world_pass(struct files_world *w, enum pass_kind kind);
/* The cgroup at this path of the topology; fails the test when it is not there. */
struct cgroup *files_world_at(struct files_world *w, const char *path);
/* Open descriptors of this process that lead to a path holding the text. */
int files_world_fds(const char *text);

/* The number after `key` in a file of the cgroup. */
uint64_t files_world_value(const struct files_world *w, int h, const char *sub, const char *file,
			   const char *key);
/* Whether the kernel has this file in the cgroup. */
bool files_world_has(const struct files_world *w, int h, const char *sub, const char *file);

/* 20 ms in 100 ms, with a burst of 5 ms where the kernel can do that. */
void files_world_set_quota(const struct files_world *w, const char *sub);
/*
 * Lets what is in it run until the kernel throttled it a few times, or without quotas until it used
 * 50 ms.
 */
void files_world_await_use(const struct files_world *w, const char *sub);
/* Stops the child in it and waits until the kernel has counted its last period. */
void files_world_stop(const struct files_world *w, const char *sub, pid_t child);
