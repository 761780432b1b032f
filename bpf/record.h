/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the BPF programs write and the agent reads, byte for byte: two arrays indexed by the
 * position in the walk.
 *
 * A fast pass writes fast records only; a slow pass writes both, the same cgroup at the same
 * position. A member is valid only with its bit in `have`: what the kernel or the cgroup does not
 * offer is absent, never 0.
 */
#ifndef EVENKEEL_BPF_RECORD_H
#define EVENKEEL_BPF_RECORD_H

#ifndef __bpf__ /* there bpf/kernel.h has the types */
#include <linux/types.h>
#endif

enum { RECORDS_MAX = 16384, RECORD_CPUS_MAX = 1024, RECORD_NODES_MAX = 64 };

/* What a walk is asked to read: set by the agent before it. */
enum record_block {
	BLOCK_CPU_LOCAL = 1 << 0, /* v2: the cgroup's own tasks */
	BLOCK_CPUACCT = 1 << 1, /* v1: with its descendants */
	BLOCK_MEMORY = 1 << 2, /* usage */
	BLOCK_MEMORY_MORE = 1 << 3, /* limit, inactive file pages, OOM kills */
	BLOCK_BANDWIDTH = 1 << 4, /* quota and throttling */
	BLOCK_PIDS = 1 << 5,
	BLOCK_PSI = 1 << 6,
	BLOCKS_SLOW = BLOCK_MEMORY_MORE | BLOCK_BANDWIDTH | BLOCK_PIDS | BLOCK_PSI,
};

enum record_have {
	RECORD_CPU = 1 << 0,
	RECORD_CPU_LOCAL = 1 << 1, /* cpu_ns leaves the descendants out */
	RECORD_MEMORY = 1 << 2,
	RECORD_INACTIVE_FILE = 1 << 3, /* own pages only */
	RECORD_MEMORY_LIMIT = 1 << 4,
	RECORD_OOM = 1 << 5,
	RECORD_BANDWIDTH = 1 << 6, /* all of quota and throttling, throttled_ns too */
	RECORD_PIDS = 1 << 7,
	RECORD_PSI = 1 << 8,
};

#define RECORD_QUOTA_NONE (~0ULL) /* the kernel's RUNTIME_INF */

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
	__u64 periods;
	__u64 throttled_periods;
	__u64 limit_pages; /* at least PAGE_COUNTER_MAX of the kernel: unlimited */
	__u64 inactive_file_pages;
	__u64 oom_kills;
	__u64 pids;
	__u64 psi_cpu_ns; /* some, total; refreshed by the kernel every 2 s */
	__u64 psi_memory_ns;
	__u64 reserved[6];
};

_Static_assert(sizeof(struct fast_record) == 64, "the fast record is one cache line");
_Static_assert(sizeof(struct slow_record) == 128, "the slow record is two cache lines");

#endif
