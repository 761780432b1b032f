/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The data shared by the BPF programs and the agent: two arrays indexed by the position in the
 * walk, a ring of removed cgroups, and the variables of a walk. Every object has all of them under
 * the same names.
 *
 * A fast pass writes fast records; a slow pass writes both, the same cgroup at the same position. A
 * member is valid only if its bit is in `have`, else undefined.
 */
#pragma once

#ifndef __bpf__ /* bpf/kernel.h has the types */
#include <linux/types.h>
#endif

enum {
	RECORDS_MAX = 16384,
	RECORD_CPUS_MAX = 1024,
	RECORD_NODES_MAX = 64,
	REMOVALS_MAX = 4096, /* a power of two */
};

/* The hierarchy of a walk. */
enum walk_hierarchy {
	WALK_UNIFIED,
	WALK_CPUACCT, /* v1, as those below */
	WALK_CPU,
	WALK_MEMORY,
	WALK_HIERARCHIES,
};

/* The values to read, set by the agent before a walk. */
enum record_block {
	BLOCK_CPU_LOCAL = 1 << 0, /* v2: the cgroup's own tasks */
	BLOCK_CPUACCT = 1 << 1, /* v1: with its descendants */
	BLOCK_MEMORY = 1 << 2, /* usage */
	BLOCK_MEMORY_MORE = 1 << 3, /* limit, inactive file pages, OOM kills */
	BLOCK_MEMORY_V2 = 1 << 4, /* memory.high, memory.min, memory.low, swap */
	BLOCK_MEMORY_V1 = 1 << 5, /* swap as what memory and swap are more than memory */
	BLOCK_BANDWIDTH = 1 << 6, /* quota and throttling */
	BLOCK_PIDS = 1 << 7,
	BLOCK_PSI = 1 << 8,
	BLOCKS_SLOW = BLOCK_MEMORY_MORE | BLOCK_MEMORY_V2 | BLOCK_MEMORY_V1 | BLOCK_BANDWIDTH |
		      BLOCK_PIDS | BLOCK_PSI,
};

enum record_have {
	RECORD_CPU = 1 << 0,
	RECORD_CPU_LOCAL = 1 << 1, /* cpu_ns leaves the descendants out */
	RECORD_MEMORY = 1 << 2,
	RECORD_INACTIVE_FILE = 1 << 3, /* own pages only */
	RECORD_MEMORY_LIMIT = 1 << 4,
	RECORD_OOM = 1 << 5,
	RECORD_BANDWIDTH = 1 << 6, /* quota and throttling, with throttled_ns */
	RECORD_PIDS = 1 << 7, /* count and limit */
	RECORD_PSI = 1 << 8, /* some */
	RECORD_PSI_CPU_FULL = 1 << 9,
	RECORD_PSI_MEMORY_FULL = 1 << 10,
	RECORD_MEMORY_HIGH = 1 << 11, /* and protection */
	RECORD_SWAP = 1 << 12, /* usage and limit */
};

#define RECORD_QUOTA_NONE (~0ULL) /* the kernel's RUNTIME_INF */
/*
 * From here on a memory limit is none: PAGE_COUNTER_MAX is LONG_MAX / PAGE_SIZE, and pages are 64
 * KiB at most.
 */
#define RECORD_PAGES_NONE (0x7fffffffffffffffULL / 65536)

/* Memory is in pages of the kernel's page size. */
struct fast_record {
	__u64 id; /* kernfs id, the directory's inode number */
	__u64 cpu_ns;
	__u64 memory_pages;
	__u64 throttled_ns; /* slow passes only */
	__u32 have; /* enum record_have, of both records */
	__u32 pad;
	__u64 reserved[3];
};

struct slow_record {
	__u64 quota_ns; /* per period; RECORD_QUOTA_NONE: unlimited */
	__u64 period_ns;
	__u64 burst_ns; /* 0 where the kernel has none */
	__u32 periods; /* int to the kernel, so they wrap */
	__u32 throttled_periods;
	__u64 limit_pages;
	__u64 high_pages;
	__u64 swap_pages;
	__u64 swap_limit_pages;
	__u64 inactive_file_pages;
	__u64 oom_kills;
	__u32 pids;
	__u32 pids_limit; /* above the greatest pid: none */
	__u64 psi_cpu_ns; /* some, total; refreshed by the kernel every 2 s, as those below */
	__u64 psi_memory_ns;
	__u64 psi_cpu_full_ns;
	__u64 psi_memory_full_ns;
	__u64 protected_pages; /* the greater of memory.min and memory.low */
};

/*
 * The last values of a removed v2 cgroup. BPF has no barrier that all kernels know, and arm64 makes
 * stores visible in any order: a record is whole if its check is right.
 */
struct removal_record {
	__u64 check; /* removal_check() */
	__u64 id;
	__u64 parent_id;
	__u64 cpu_ns; /* own tasks */
	__u64 throttled_ns;
	__u32 periods;
	__u32 throttled_periods;
	__u32 have; /* RECORD_CPU, RECORD_BANDWIDTH */
	__u32 pad;
	__u64 reserved[1];
};

/* Over the members of the removal with this number, from 1 on; it differs if any of them does. */
static inline __u64 removal_check(const struct removal_record *r, __u64 number)
{
	const __u64 factor = 0x9e3779b97f4a7c15; /* odd */
	__u64 check = (number ^ r->id) * factor;

	check = (check ^ r->parent_id) * factor;
	check = (check ^ r->cpu_ns) * factor;
	check = (check ^ r->throttled_ns) * factor;
	check = (check ^ ((__u64)r->periods << 32 | r->throttled_periods)) * factor;
	return (check ^ r->have) * factor;
}

/* A slot in the table of cgroups met by a walk over tasks. */
struct seen_record {
	__u64 id;
	__u64 walk; /* its number; of another walk: the slot is free */
};

/* Set before load, constant after. */
struct walk_knobs {
	__u32 record_limit;
	__u32 cpu_count; /* possible CPUs, entries of cpu_id */
	__u32 node_count; /* highest possible memory node + 1 */
	__u32 keep_removals; /* bool */
	__u32 cpu_id[RECORD_CPUS_MAX];
};

/* Mapped by the agent. */
struct walk_state {
	__u64 generation; /* cgroups made and removed so far */
	__u64 removals; /* written so far */

	/* Set by the agent before a walk. */
	__u64 root_id; /* root of the walk; iter/cgroup has its own */
	__u64 walk; /* the number of this walk, from 1 on */
	__u64 generation_before; /* generation before it */
	__u32 blocks; /* enum record_block */
	__u32 hierarchy; /* enum walk_hierarchy */

	/* The result of a walk. */
	__u32 cursor; /* records written */
	__u32 overflow; /* cgroups beyond the records */
	__u32 populated; /* walks over tasks: children with processes of the cgroups met */

	__u32 cpus_learned; /* entries of cpu_offset, in no order */
	/* An address becomes a plain number for the verifier through it. */
	volatile __u64 plain;
	__u64 cpu_offset[RECORD_CPUS_MAX];
};

_Static_assert(sizeof(struct fast_record) == 64, "the fast record is one cache line");
_Static_assert(sizeof(struct slow_record) == 128, "the slow record is two cache lines");
_Static_assert(sizeof(struct removal_record) == 64, "a removal is one cache line");
_Static_assert(sizeof(struct seen_record) == 16, "four slots to a cache line");
_Static_assert(sizeof(struct walk_knobs) == 16 + 4 * RECORD_CPUS_MAX, "knobs without gaps");
_Static_assert(sizeof(struct walk_state) == 72 + 8 * RECORD_CPUS_MAX, "state without gaps");
