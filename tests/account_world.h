/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up machine for tests of the account: cgroups, their counters and a clock, moved by hand.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/account.h"
#include "agent/machine.h"
#include "agent/topology.h"
#include "shared/interval.h"

enum { WORLD_PATHS_MAX = 2048 };

#define WORLD_MS	   1000000LL
#define WORLD_S		   1000000000LL
#define WORLD_CPU_MILLI	   4000
#define WORLD_POD(n)	   "/kubepods/burstable/pod00000000-0000-0000-0000-00000000000" #n
#define WORLD_CONTAINER(n) "/000000000000000000000000000000000000000000000000000000000000000" #n
/* Container n of the pod, where a runtime puts it that does not know systemd's slices. */
#define WORLD_APART(pod, n)                                                                        \
	"/containerd.service/kubepods-burstable-pod00000000_0000_0000_0000_00000000000" #pod       \
	".slice:cri-containerd:"                                                                   \
	"000000000000000000000000000000000000000000000000000000000000000" #n

struct world {
	struct topology *topology;
	struct account *account;
	struct machine machine;
	int64_t now_ns; /* monotonic */
	uint64_t sequence;
	/* The directories that exist, each with its id. */
	struct {
		char *path; /* owned */
		uint64_t id;
	} paths[WORLD_PATHS_MAX];
	size_t path_count;
	uint64_t last_id;
};

/* Four CPUs, 8 GiB of which 6 are available, one hierarchy with "/" alone; not committed yet. */
struct world *world_new(void);
void world_free(struct world *w);

/* A cmocka test whose state is a world of its own. */
#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
int world_setup(void **state);
int world_teardown(void **state);

/* Makes the directory and those above it; nothing sees it before the next world_scan(). */
void world_mkdir(struct world *w, const char *path);
/* Removes it and all below. */
void world_rmdir(struct world *w, const char *path);
void world_scan(struct world *w);
/* mkdir of all and one scan; ends with NULL. */
void world_start(struct world *w, const char *const *paths);
/* The reading of a cgroup that was scanned; fails the test when it is not there. */
struct reading *world_reading(struct world *w, const char *path);
/* Adds to cpu_ns and says it was read. */
void world_use(struct world *w, const char *path, uint64_t cpu_ns);
/* The same of its own tasks only. */
void world_use_local(struct world *w, const char *path, uint64_t cpu_ns);
/* The id of a directory that exists. */
uint64_t world_id(const struct world *w, const char *path);
/*
 * What is told when this directory, which exists yet, is removed with so much on its CPU counter.
 */
struct removal world_removal(const struct world *w, const char *path, uint64_t cpu_ns);
/* Tells of them so long after the last tick. */
void world_remove(struct world *w, int64_t after_ns, const struct removal *list, size_t count);
/* Time passes, then a tick. */
void world_tick(struct world *w, int64_t dt_ns, bool slow);
/* NULL when there is nothing to publish; the caller frees it. */
struct interval *world_publish(struct world *w);
/* By path, with or without its slash; NULL when it is not there. */
const struct entry *world_entry(const struct interval *interval, const char *path);
/* Millicore seconds of a usage. */
double world_total(const struct usage *usage);
