/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cgroups of a test's own, with children in them that use what they are told to; gone after the
 * test, whatever happens.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "agent/cgroupfs.h"

struct cgroup_fixture;

/*
 * Makes "/evenkeel-test-NAME-PID" in every hierarchy of this machine, with all controllers for what
 * will be below it, after removing what a killed run of the same test left. NULL and the reason
 * where cgroups cannot be made.
 */
struct cgroup_fixture *cgroup_fixture_new(const char *name, struct error *error);
/* Kills and reaps the children, removes the cgroups. NULL is allowed. */
void cgroup_fixture_free(struct cgroup_fixture *f);

/* The whole machine's hierarchies, borrowed. */
const struct cgroupfs *cgroup_fixture_fs(const struct cgroup_fixture *f);
/* A cgroupfs whose roots are the fixture's own cgroup; closed by cgroupfs_close(). */
void cgroup_fixture_open_below(const struct cgroup_fixture *f, struct cgroupfs *below);
/*
 * "/evenkeel-test-NAME-PID" or, with a sub, "/evenkeel-test-NAME-PID/SUB". Static storage, one at a
 * time.
 */
const char *cgroup_fixture_path(const struct cgroup_fixture *f, const char *sub);

/*
 * Bits 1 << h of the hierarchies of `fs`, or of MOUNT_CPUSET: where to make or remove SUB. Abort
 * the test where it fails.
 */
void cgroup_fixture_make(struct cgroup_fixture *f, unsigned int hierarchies, const char *sub);
void cgroup_fixture_remove(struct cgroup_fixture *f, unsigned int hierarchies, const char *sub);
/*
 * Makes SUB in every hierarchy, and the cgroups above it that are not there yet; those get all
 * controllers for what is below them.
 */
void cgroup_fixture_make_tree(struct cgroup_fixture *f, const char *sub);
unsigned int cgroup_fixture_all(const struct cgroup_fixture *f);

/*
 * A file of SUB; false when it is not there or refuses. text gets at most size - 1 bytes and a NUL.
 */
bool cgroup_fixture_read(const struct cgroup_fixture *f, int hierarchy, const char *sub,
			 const char *file, char *text, size_t size);
bool cgroup_fixture_write(const struct cgroup_fixture *f, int hierarchy, const char *sub,
			  const char *file, const char *text);
/* Its tasks get CPU before all else that runs beside it in the cgroup above. */
void cgroup_fixture_prefer(const struct cgroup_fixture *f, const char *sub);

struct cgroup_child {
	size_t hold_bytes; /* anonymous memory, touched */
	size_t cache_bytes; /* of a file, written and read, so that it is in the page cache */
	bool spin; /* else it sleeps */
};

/* Starts a child in SUB of every hierarchy; returns when it holds all it shall (or died of it). */
pid_t cgroup_fixture_spawn(struct cgroup_fixture *f, const char *sub,
			   const struct cgroup_child *child);
/* SIGSTOP, and waits until the kernel says it is stopped. */
void cgroup_fixture_stop(pid_t child);
