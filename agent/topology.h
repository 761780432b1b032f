/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of cgroups as a table: paths joined over the hierarchies, with the newest reading. Pure.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/identity.h"
#include "shared/interval.h"

/*
 * v2 has one hierarchy, v1 one per controller, with the same path for the same workload. Each
 * resource is read from one of them.
 */
enum hierarchy {
	HIERARCHY_UNIFIED, /* v2 */
	HIERARCHY_CPUACCT, /* v1 */
	HIERARCHY_CPU, /* v1 */
	HIERARCHY_MEMORY, /* v1 */
	HIERARCHIES,
	MOUNT_CPUSET = HIERARCHIES, /* v1: no cgroups are listed from it */
	MOUNTS,
};

enum { CGROUP_NONE = -1, CGROUPS_MAX = 16384 };

enum reading_have {
	HAVE_CPU = USAGE_CPU,
	HAVE_MEMORY = USAGE_MEMORY,
	HAVE_WORKING_SET = USAGE_WORKING_SET, /* inactive_file_bytes, local: sum the subtree */
	HAVE_THROTTLE = USAGE_THROTTLE,
	HAVE_OOM = USAGE_OOM,
	HAVE_PSI = USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY, /* some, of CPU and memory */
	HAVE_PSI_CPU_FULL = USAGE_STALL_CPU, /* 5.13 */
	HAVE_PSI_MEMORY_FULL = USAGE_STALL_MEMORY,
	HAVE_SWAP = USAGE_SWAP, /* usage */
	HAVE_PIDS = USAGE_PIDS,
	HAVE_PROTECTED = USAGE_PROTECTED,
	/* cpu_ns is the cgroup's own tasks only; without it descendants are included */
	HAVE_CPU_LOCAL = 1 << 24,
	HAVE_INACTIVE_SUBTREE = 1 << 25, /* inactive_file_bytes covers the descendants */
	HAVE_CPU_LIMIT = 1 << 26,
	HAVE_MEMORY_LIMIT = 1 << 27,
	HAVE_MEMORY_HIGH = 1 << 28,
	HAVE_SWAP_LIMIT = 1 << 29,
	HAVE_PIDS_LIMIT = 1 << 30,
};

static_assert((int)USAGE_ALL < (int)HAVE_CPU_LOCAL, "the bits of both are apart");

/* The newest values of a cgroup; counters since the cgroup's creation. */
struct reading {
	/* enum reading_have: known values; each pass clears what it renews */
	uint32_t have;
	uint64_t cpu_ns;
	uint64_t mem_bytes; /* includes descendants, as page counters do */
	uint64_t inactive_file_bytes;
	/* PSI: total of some and full. Newest values include descendants. */
#define X(member, bit, number, type, from) uint64_t from;
#define USAGE_FROM(member, ...)		   uint64_t member;
	union {
		uint64_t counter[COUNTERS];
		struct {
			USAGE_COUNTED(X)
			USAGE_NEWEST(USAGE_FROM)
		};
	};
#undef USAGE_FROM
#undef X
	int64_t cpu_quota_ns; /* LIMIT_NONE: no quota */
	int64_t cpu_period_ns;
	/* with HAVE_CPU_LIMIT; 0 before 5.14, too */
	int64_t cpu_burst_ns;
	int64_t mem_limit_bytes; /* LIMIT_NONE: no limit, as for those below */
	int64_t mem_high_bytes;
	int64_t swap_limit_bytes;
	int64_t pids_limit;
};

struct cgroup {
	char *path; /* owned; "/" is the root, always index 0 */
	int parent; /* index, smaller than the cgroup's own; CGROUP_NONE for the root */
	uint32_t children;
	uint64_t id[HIERARCHIES]; /* kernfs id (= inode number), 0: not in that hierarchy */
	uint64_t serial; /* new for each cgroup, also at a reused path */
	bool at_start; /* counters may be older than the cgroup here: no baseline of 0 */
	struct identity identity;
	char *cpus; /* owned; its list of effective CPUs (cpusets.h); "": none; NULL: not read */
	struct reading reading;
	uint64_t seen_pass; /* last pass that read it */
};

struct topology; /* the table and an index by (hierarchy, id) */

struct topology *topology_new(void);
void topology_free(struct topology *t);

/*
 * A rescan: begin, add every cgroup of every hierarchy (parents before children, hierarchies in any
 * order), commit. Cgroups with the same path and ids keep serial and reading; all others are new. A
 * hierarchy that joins or leaves a path changes nothing as long as another one keeps its id.
 * Indices change at commit only; the order is by path, parents first (bytewise, '/' lowest).
 * at_start is set in the first commit, and later for a new cgroup with an id known before (renamed,
 * or recreated in some hierarchies only) or after a rescan that left cgroups out. begin cancels an
 * uncommitted rescan.
 */
void topology_begin(struct topology *t);
/*
 * path with leading slash. -EINVAL: no parent, no id, or a path longer than ENTITY_NAME_MAX;
 * -ENOSPC beyond CGROUPS_MAX.
 */
int topology_add(struct topology *t, enum hierarchy h, const char *path, uint64_t id);
/* Whether anything changed. */
bool topology_commit(struct topology *t);

size_t topology_count(const struct topology *t);
/* Changes with every commit that changed anything; 0 before the first. */
uint64_t topology_generation(const struct topology *t);
/* Valid until the next commit. */
struct cgroup *topology_at(struct topology *t, size_t index);
/* Index of a cgroup by its id, or CGROUP_NONE. hint: tried first; any value is safe. */
int topology_find(const struct topology *t, enum hierarchy h, uint64_t id, int hint);
/* Cgroups left out by the last rescan: too many, or paths too long. */
uint32_t topology_overflow(const struct topology *t);
/* Whether any pod is in the tree. */
bool topology_has_pods(const struct topology *t);
