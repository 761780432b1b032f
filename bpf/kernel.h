/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel's types, with the members the programs read, found by name at load time (CO-RE), and
 * accessors that hide differences between releases. A flavour (name___flavour) is guarded by
 * bpf_core_field_exists(), so the loader removes code for types the kernel does not have.
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* linux/bpf.h */
enum bpf_map_type { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6 };
enum bpf_func_id { BPF_FUNC_map_lookup_percpu_elem = 195 }; /* 5.19 */
enum bpf_cgroup_iter_order { BPF_CGROUP_ITER_DESCENDANTS_PRE = 2 };
#define BPF_F_MMAPABLE (1U << 10)

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	unsigned int flags;
	struct cgroup_subsys_state *parent;
};

struct task_cputime {
	unsigned long long sum_exec_runtime;
};

struct cgroup_base_stat {
	struct task_cputime cputime;
};

/*
 * Until 6.15 one per-CPU struct for all of rstat; from 6.16 a separate one for the base statistics.
 */
struct cgroup_rstat_cpu {
	struct cgroup_base_stat bstat;
};
struct cgroup_rstat_base_cpu {
	struct cgroup_base_stat bstat;
};

/*
 * Until 5.19 a member of struct cgroup, with pcpu NULL while PSI is off; from 6.1 with `enabled`.
 */
struct psi_group {
	_Bool enabled;
	void *pcpu;
	__u64 total[12];
};
/* The same memory, described as two rows by the BTF of 7.2. */
struct psi_group___rows {
	__u64 total[2][6];
};

struct cgroup_root {
	int hierarchy_id; /* 0: v2 */
};

struct cgroup {
	struct cgroup_subsys_state self;
	int level;
	int nr_populated_domain_children; /* with processes in or below them */
	int nr_populated_threaded_children;
	struct kernfs_node *kn;
	struct cgroup_subsys_state *subsys[12];
	struct cgroup_root *root;
	struct cgroup_rstat_base_cpu *rstat_base_cpu;
	struct psi_group *psi;
};
struct cgroup___rstat_cpu {
	struct cgroup_rstat_cpu *rstat_cpu;
};
struct cgroup___psi_inside {
	struct psi_group psi;
};

struct css_set {
	struct cgroup_subsys_state *subsys[12];
	struct cgroup *dfl_cgrp; /* v2 */
};

struct task_struct {
	struct task_struct *group_leader;
	struct css_set *cgroups;
};

struct kernel_atomic_long {
	long counter;
};

struct page_counter {
	struct kernel_atomic_long usage;
	unsigned long min;
	unsigned long low;
	unsigned long high;
	unsigned long max;
};

/*
 * Pages by generation, anonymous or file, and zone: [4][2][zones]. 6.1 has another name for it;
 * older kernels have none.
 */
struct lru_gen_folio {
	unsigned long max_seq;
	long nr_pages[40];
	_Bool enabled;
};
struct lruvec {
	struct lru_gen_folio lrugen;
};

struct mem_cgroup_per_node {
	unsigned long lru_zone_size[25];
	struct lruvec lruvec;
};
/* The same memory, described as zones of lists by the BTF of 7.2. */
struct lru_gen_folio___rows {
	long nr_pages[4][2][5];
};
struct lruvec___rows {
	struct lru_gen_folio___rows lrugen;
};
struct mem_cgroup_per_node___rows {
	unsigned long lru_zone_size[5][5];
	struct lruvec___rows lruvec;
};

struct mem_cgroup {
	struct page_counter memory;
	struct page_counter swap; /* v2 */
	struct page_counter memsw; /* v1: memory and swap together */
	struct kernel_atomic_long memory_events[8];
	struct mem_cgroup_per_node *nodeinfo[];
};

struct cfs_bandwidth {
	__s64 period;
	__u64 quota;
	__u64 burst; /* 5.14 */
	int nr_periods;
	int nr_throttled;
	__u64 throttled_time;
};

struct task_group {
	struct cfs_bandwidth cfs_bandwidth;
};

struct cpuacct {
	__u64 *cpuusage;
};

struct pids_cgroup {
	struct kernel_atomic_long counter;
	struct kernel_atomic_long limit;
};

struct bpf_array {
	void *pptrs[1];
};

struct bpf_iter__cgroup {
	struct cgroup *cgroup;
};

struct bpf_iter__task {
	struct task_struct *task;
};

struct bpf_iter_css {
	__u64 opaque[3];
};

/* 6.4 */
struct bpf_iter_num {
	__u64 opaque[1];
};

#pragma clang attribute pop

/* Values depend on configuration and release; CO-RE resolves them by name. */
enum cgroup_subsys_id {
	cpu_cgrp_id = 1,
	cpuacct_cgrp_id = 2,
	memory_cgrp_id = 4,
	pids_cgrp_id = 11,
};
enum memcg_memory_event { MEMCG_OOM_KILL = 4 };
enum lru_list { LRU_INACTIVE_FILE = 2, NR_LRU_LISTS = 5 };
enum zone_type { __MAX_NR_ZONES = 5 };
enum psi_states {
	PSI_MEM_SOME = 2,
	PSI_MEM_FULL = 3,
	PSI_CPU_SOME = 4,
	PSI_CPU_FULL = 5, /* 5.13 */
};

/* Of an anonymous enum, so without CO-RE; equal in all releases. */
enum { KERNEL_CSS_ONLINE = 1 << 1 };

/*
 * A load through a typed pointer is one instruction; BPF_CORE_READ calls a function, at ten times
 * the cost. bpf_rdonly_cast gives a pointer its type; it is of 6.2, used from 6.4 on, which
 * bpf_iter_num identifies. Objects for kernels without kernel functions (before 5.13) leave
 * KERNEL_CASTS out.
 */
#ifdef KERNEL_CASTS
extern void *bpf_rdonly_cast(void *object, __u32 type) __ksym __weak;
#define kernel_casts() bpf_core_type_exists(struct bpf_iter_num)
#define kernel_cast(type, object)                                                                  \
	(kernel_casts() ? (type *)bpf_rdonly_cast(object, bpf_core_type_id_kernel(type))           \
			: (type *)(object))
#else
#define kernel_casts()		  0
#define kernel_cast(type, object) ((type *)(object))
#endif
/* A member of a result of kernel_cast(). */
#define kernel_read(object, member)                                                                \
	(kernel_casts() ? (object)->member : BPF_CORE_READ(object, member))

/* The number at an address, read through a type with such a member. */
static inline __u64 kernel_read_u64(__u64 address)
{
	__u64 value = 0;

	if (kernel_casts())
		return kernel_cast(struct task_cputime,
				   (void *)(address - bpf_core_field_offset(struct task_cputime,
									    sum_exec_runtime)))
			->sum_exec_runtime;
	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

/*
 * The controller's state of a cgroup; NULL: not managed by it, or not in the kernel. Each of these
 * structs begins with its cgroup_subsys_state.
 */
#define kernel_subsys(cgroup, id)                                                                  \
	(bpf_core_enum_value_exists(enum cgroup_subsys_id, id)                                     \
		 ? (void *)(cgroup)->subsys[bpf_core_enum_value(enum cgroup_subsys_id, id)]        \
		 : (void *)0)

/* The per-CPU address of the CPU time of the cgroup's own tasks; 0: none. */
static inline __u64 kernel_cpu_local(struct cgroup *cgroup)
{
	struct cgroup___rstat_cpu *old = (void *)cgroup;

	if (bpf_core_field_exists(cgroup->rstat_base_cpu))
		return (__u64)BPF_CORE_READ(cgroup, rstat_base_cpu) +
		       bpf_core_field_offset(struct cgroup_rstat_base_cpu,
					     bstat.cputime.sum_exec_runtime);
	if (bpf_core_field_exists(old->rstat_cpu))
		return (__u64)BPF_CORE_READ(old, rstat_cpu) +
		       bpf_core_field_offset(struct cgroup_rstat_cpu,
					     bstat.cputime.sum_exec_runtime);
	return 0;
}

static inline __u32 kernel_lru_offset(void)
{
	if (bpf_core_field_exists(struct mem_cgroup_per_node___rows, lru_zone_size))
		return bpf_core_field_offset(struct mem_cgroup_per_node___rows, lru_zone_size);
	return bpf_core_field_offset(struct mem_cgroup_per_node, lru_zone_size);
}

static inline __u32 kernel_generations_offset(void)
{
	if (bpf_core_field_exists(struct mem_cgroup_per_node___rows, lruvec.lrugen.nr_pages))
		return bpf_core_field_offset(struct mem_cgroup_per_node___rows,
					     lruvec.lrugen.nr_pages);
	return bpf_core_field_offset(struct mem_cgroup_per_node, lruvec.lrugen.nr_pages);
}

/* Every kernel has 6 totals or more. The array has 8: a mask bounds an index for the verifier. */
enum { PSI_READ = 6, PSI_STATES = 8 };
#define kernel_psi_state(state) (bpf_core_enum_value(enum psi_states, state) & (PSI_STATES - 1))

/* Totals since the cgroup's creation; false: PSI is off. */
static inline _Bool kernel_psi_totals(struct cgroup *cgroup, __u64 total[PSI_STATES])
{
	struct cgroup___psi_inside *old = (void *)cgroup;
	struct psi_group *psi;
	__u32 offset;

	if (bpf_core_field_exists(old->psi)) {
		psi = (void *)((char *)cgroup +
			       bpf_core_field_offset(struct cgroup___psi_inside, psi));
		if (!BPF_CORE_READ(psi, pcpu))
			return 0;
	} else if (bpf_core_field_exists(cgroup->psi)) {
		psi = cgroup->psi;
		if (!psi || (bpf_core_field_exists(psi->enabled) && !psi->enabled))
			return 0;
	} else {
		return 0;
	}
	/* Each offset stays in its branch: the verifier refuses one the kernel does not have. */
	if (bpf_core_field_exists(struct psi_group___rows, total)) {
		offset = bpf_core_field_offset(struct psi_group___rows, total);
		barrier_var(offset);
	} else {
		offset = bpf_core_field_offset(struct psi_group, total);
		barrier_var(offset);
	}
	return !bpf_probe_read_kernel(total, PSI_READ * sizeof(total[0]), (char *)psi + offset);
}

/* Children with processes in or below them; 0 also if the kernel does not count them. */
static inline __u32 kernel_populated_children(struct cgroup *cgroup)
{
	if (!bpf_core_field_exists(cgroup->nr_populated_domain_children))
		return 0;
	return cgroup->nr_populated_domain_children + cgroup->nr_populated_threaded_children;
}

/* Removed, but still in use. */
static inline _Bool kernel_cgroup_dead(struct cgroup *cgroup)
{
	return !(cgroup->self.flags & KERNEL_CSS_ONLINE);
}
