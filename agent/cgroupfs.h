/* SPDX-License-Identifier: Apache-2.0 */
/* Where the cgroup hierarchies are mounted, and the walk over their directories. */
#ifndef EVENKEEL_AGENT_CGROUPFS_H
#define EVENKEEL_AGENT_CGROUPFS_H

#include "agent/topology.h"
#include "shared/reason.h"

struct cgroupfs {
	int root_fd
		[HIERARCHIES]; /* O_DIRECTORY of the hierarchy's root, -1 where it is not mounted */
	char *mount[HIERARCHIES]; /* owned; NULL where it is not mounted */
	/* Which hierarchy each resource is read from; -1: nowhere. */
	/* CPU time: CPUACCT on v1, else UNIFIED if it has cgroup cpu accounting (always) */
	int cpu_from;
	int throttle_from; /* CPU limits and throttling: CPU on v1, else UNIFIED */
	int memory_from; /* MEMORY on v1, else UNIFIED if the memory controller is there */
};

/*
 * Pure: picks from the text of a mountinfo file the mount point of each hierarchy at or below root
 * (absolute, no slash at the end unless it is "/"); mount[] gets owned strings, or NULL. Co-mounted
 * v1 controllers have equal ones. Of several mounts of a hierarchy the one nearest to root is
 * taken. Lines it does not understand are passed over.
 */
void cgroupfs_parse_mountinfo(const char *text, const char *root, char *mount[HIERARCHIES]);
/*
 * Pure: sets the three `from` members by what is mounted; controllers: cgroup.controllers of the v2
 * root, or "".
 */
void cgroupfs_choose(struct cgroupfs *fs, const char *controllers);

/*
 * Finds the hierarchies below root (normally /sys/fs/cgroup, or where the host's tree is mounted)
 * from mountinfo and opens their roots. v1, v2 and hybrid. 0, or -ENOENT when no hierarchy is
 * mounted there, with what to do. mountinfo NULL: /proc/self/mountinfo. In a private cgroup
 * namespace, or where only a part of a hierarchy is mounted, paths are relative to what is mounted.
 * Other errors: the first file that cannot be read. After a failure there is nothing to close
 * (closing is allowed).
 */
int cgroupfs_open(struct cgroupfs *fs, const char *root, const char *mountinfo,
		  struct reason *reason);
void cgroupfs_close(struct cgroupfs *fs);
/*
 * Rescans all hierarchies into the topology, from begin to commit. 0, or -errno of the first root
 * that cannot be read or when descriptors or memory run out; then the topology stays as it was. A
 * directory that vanishes during the walk, or may not be read, has no children.
 */
int cgroupfs_scan(const struct cgroupfs *fs, struct topology *t, struct reason *reason);

#endif
