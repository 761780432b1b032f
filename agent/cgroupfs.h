/* SPDX-License-Identifier: Apache-2.0 */
/* The mount points of the cgroup hierarchies, and the scan of their directories. */
#pragma once

#include <stdio.h>

#include "agent/topology.h"
#include "shared/error.h"

struct cgroupfs {
	int root_fd[MOUNTS]; /* of the hierarchy's root; -1: not mounted */
	char *mount[MOUNTS]; /* owned; NULL: not mounted */
	/* The hierarchy of each resource; -1: none. */
	/* CPU time: CPUACCT on v1, else UNIFIED */
	int cpu_from;
	int throttle_from; /* CPU limits and throttling: CPU on v1, else UNIFIED */
	int memory_from; /* MEMORY on v1, else UNIFIED if the memory controller is there */
	int cpuset_from; /* CPUs: MOUNT_CPUSET on v1, else UNIFIED if the controller is there */
};

/*
 * Picks from a list like /proc/self/mounts the mount point of each hierarchy at or below root
 * (absolute, without a slash at the end unless it is "/"); mount[] gets owned strings, or NULL.
 * Co-mounted v1 controllers have equal ones. Of several mounts of a hierarchy the one nearest to
 * root counts. Malformed lines are ignored.
 */
void cgroupfs_find_mounts(FILE *list, const char *root, char *mount[MOUNTS]);
/* Sets the `from` members. controllers: cgroup.controllers of the v2 root, or "". Pure. */
void cgroupfs_choose(struct cgroupfs *fs, const char *controllers);

/*
 * Finds the hierarchies below root (normally /sys/fs/cgroup, or the mount of the host's tree) in
 * mounts (NULL: /proc/self/mounts) and opens their roots: v1, v2 or hybrid. In a private
 * cgroup namespace, or with a part of a hierarchy mounted, paths are relative to the mount. 0;
 * -ENOENT if no hierarchy is mounted there, with what to do; else the error of the first unreadable
 * file. After a failure nothing is open (closing is allowed).
 */
int cgroupfs_open(struct cgroupfs *fs, const char *root, const char *mounts, struct error *error);
void cgroupfs_close(struct cgroupfs *fs);
/*
 * Reads a file of a cgroup into `size` bytes and ends them with a NUL. Returns the bytes read, which
 * are size - 1 of a longer file, or -errno.
 */
int cgroupfs_read(const struct cgroupfs *fs, int mount, const char *path, const char *file,
		  char *text, size_t size);
/*
 * Scans all hierarchies into the topology, from begin to commit. 0, or -errno of the first
 * unreadable root or of a lack of descriptors or memory; then the topology stays as it was. A
 * directory that vanishes meanwhile, or is unreadable, has no children.
 */
int cgroupfs_scan(const struct cgroupfs *fs, struct topology *t, struct error *error);
