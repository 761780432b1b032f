/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The common part of all objects: maps and variables of bpf/record.h, the record of one cgroup from
 * the kernel's structs (without flushing rstat), the watch for new and removed cgroups, and per-CPU
 * addresses.
 *
 * The agent sets state.blocks, resets state.cursor and lets the program walk once; each cgroup
 * fills the records at the cursor. There is no other writer, so the agent reads the records without
 * a lock after the walk. Cgroups beyond knobs.record_limit count in state.overflow and are lost for
 * this pass.
 *
 * A removed v2 cgroup leaves its counters in a ring, which has its use since the last pass. On v1
 * the counters of the cgroups above include that. The tracepoints run under a kernel lock
 * (trace_cgroup_path_lock), so there is one writer at a time. The agent counts overwritten records.
 *
 * Per-CPU values are at address + __per_cpu_offset[cpu], as in the kernel. An offset is the
 * difference between the address of a per-CPU map element on that CPU and the stored address, which
 * needs no kallsyms. From 5.19 on one run of learn_offsets asks for every possible CPU; before, it
 * learns that of its own CPU, and the agent runs it on each.
 */
#pragma once

#include "bpf/kernel.h"
#include "bpf/record.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct walk_knobs knobs = {
	.record_limit = RECORDS_MAX,
	.cpu_count = 1,
	.node_count = 1,
};
struct walk_state state;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RECORDS_MAX);
	__type(key, __u32);
	__type(value, struct fast_record);
} fast_records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RECORDS_MAX);
	__type(key, __u32);
	__type(value, struct slow_record);
} slow_records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, REMOVALS_MAX);
	__type(key, __u32);
	__type(value, struct removal_record);
} removals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} per_cpu_probe SEC(".maps");

/* --- per-CPU values -------------------------------------------------------------------------- */

/* Run by the agent (BPF_PROG_TEST_RUN), never attached. */
SEC("raw_tp")
int learn_offsets(void *ctx)
{
	const __u32 zero = 0;
	__u64 stored = 0;
	__u32 i;

	(void)ctx;
	state.plain = (__u64)&per_cpu_probe;
	bpf_probe_read_kernel(&stored, sizeof(stored),
			      (void *)(state.plain +
				       bpf_core_field_offset(struct bpf_array, pptrs)));
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_map_lookup_percpu_elem)) {
		i = state.cpus_learned;
		state.plain = (__u64)bpf_map_lookup_elem(&per_cpu_probe, &zero);
		if (i < RECORD_CPUS_MAX && state.plain) {
			state.cpu_offset[i] = state.plain - stored;
			state.cpus_learned = i + 1;
		}
		return 0;
	}
	for (i = 0; i < knobs.cpu_count && i < RECORD_CPUS_MAX; i++) {
		state.plain =
			(__u64)bpf_map_lookup_percpu_elem(&per_cpu_probe, &zero, knobs.cpu_id[i]);
		if (!state.plain)
			break;
		state.cpu_offset[i] = state.plain - stored;
	}
	state.cpus_learned = i;
	return 0;
}

/* A global function, so that the verifier checks its loop once and separately. */
__noinline __u64 sum_over_cpus(__u64 address)
{
	__u32 learned = state.cpus_learned;
	__u64 sum = 0;
	__u32 i;

	for (i = 0; i < knobs.cpu_count && i < RECORD_CPUS_MAX; i++) {
		if (i >= learned)
			break;
		sum += kernel_read_u64(address + state.cpu_offset[i]);
	}
	return sum;
}

/* --- the record of a cgroup ------------------------------------------------------------------ */

/*
 * The readers set bits of `have` in the record: of a local variable the verifier would track every
 * combination of bits.
 */

/* The v2 root has no counter of its own tasks. */
static __always_inline _Bool read_cpu_local(struct cgroup *cgroup, __u64 *cpu_ns)
{
	__u64 address = cgroup->level > 0 ? kernel_cpu_local(cgroup) : 0;

	if (!address)
		return 0;
	*cpu_ns = sum_over_cpus(address);
	return 1;
}

static __always_inline void read_cpuacct(struct cgroup *cgroup, struct fast_record *fast)
{
	void *css = kernel_subsys(cgroup, cpuacct_cgrp_id);
	struct cpuacct *cpuacct;

	if (!css)
		return;
	cpuacct = kernel_cast(struct cpuacct, css);
	state.plain = (__u64)kernel_read(cpuacct, cpuusage);
	fast->cpu_ns = sum_over_cpus(state.plain);
	fast->have |= RECORD_CPU;
}

/* The root's counter lacks the use of the root's own tasks. */
static __always_inline void read_memory(struct cgroup *cgroup, struct fast_record *fast)
{
	void *css = kernel_subsys(cgroup, memory_cgrp_id);
	struct mem_cgroup *memcg;

	if (!css || cgroup->level == 0)
		return;
	memcg = kernel_cast(struct mem_cgroup, css);
	fast->memory_pages = kernel_read(memcg, memory.usage.counter);
	fast->have |= RECORD_MEMORY;
}

/* The kernel has five of each at most. */
enum { ZONES_MAX = 6, LISTS_MAX = 5 };

static __always_inline __u32 count_zones(void)
{
	const __u32 zones = bpf_core_enum_value(enum zone_type, __MAX_NR_ZONES);

	return zones < ZONES_MAX ? zones : ZONES_MAX;
}

/*
 * The file pages of a node's inactive generations, which lru_zone_size lacks: all but the two
 * youngest (lru_gen_is_active()). Single counts may be negative for a moment.
 */
static __always_inline __u64 sum_inactive_generations(struct mem_cgroup_per_node *node)
{
	const __u32 zones = count_zones();
	__u64 youngest;
	char *counts;
	__s64 sum = 0;
	__u32 g, z;

	if (!bpf_core_field_exists(node->lruvec.lrugen.enabled) ||
	    !kernel_read(node, lruvec.lrugen.enabled))
		return 0;
	counts = (char *)node + kernel_generations_offset();
	youngest = kernel_read(node, lruvec.lrugen.max_seq);
	for (g = 0; g < 2; g++) {
		__u32 row = (youngest + 1 + g) % 4 * 2 + 1;
		long pages[ZONES_MAX] = {0};

		bpf_probe_read_kernel(pages, zones * sizeof(pages[0]),
				      counts + row * zones * sizeof(pages[0]));
		for (z = 0; z < ZONES_MAX; z++)
			sum += pages[z];
	}
	return sum > 0 ? sum : 0;
}

/* The pages of a list in all zones; the kernel has [zones][lists], read at once. */
static __always_inline __u64 sum_list(char *sizes, __u32 list)
{
	const __u32 lists = bpf_core_enum_value(enum lru_list, NR_LRU_LISTS);
	unsigned long pages[ZONES_MAX * LISTS_MAX] = {0};
	__u64 sum = 0;
	__u32 z;

	if (lists > LISTS_MAX || list >= lists)
		return 0;
	bpf_probe_read_kernel(pages, count_zones() * lists * sizeof(pages[0]), sizes);
	for (z = 0; z < ZONES_MAX; z++)
		sum += pages[z * lists + list];
	return sum;
}

/* A global function, too; memcg: address of a struct mem_cgroup. */
__noinline __u64 sum_inactive_file(__u64 memcg)
{
	const __u32 list = bpf_core_enum_value(enum lru_list, LRU_INACTIVE_FILE);
	char *nodes = (char *)(memcg + bpf_core_field_offset(struct mem_cgroup, nodeinfo));
	__u64 sum = 0;
	__u32 n;

	for (n = 0; n < knobs.node_count && n < RECORD_NODES_MAX; n++) {
		__u64 node = 0;

		bpf_probe_read_kernel(&node, sizeof(node), nodes + n * sizeof(node));
		if (!node)
			continue;
		sum += sum_inactive_generations(
			kernel_cast(struct mem_cgroup_per_node, (void *)node));
		sum += sum_list((char *)(node + kernel_lru_offset()), list);
	}
	return sum;
}

static __always_inline void read_memory_more(struct cgroup *cgroup, struct fast_record *fast,
					     struct slow_record *slow)
{
	void *css = kernel_subsys(cgroup, memory_cgrp_id);
	struct mem_cgroup *memcg;
	__u64 kill;

	if (!css)
		return;
	state.plain = (__u64)css;
	slow->inactive_file_pages = sum_inactive_file(state.plain);
	fast->have |= RECORD_INACTIVE_FILE;
	if (cgroup->level == 0)
		return;
	memcg = kernel_cast(struct mem_cgroup, css);
	slow->limit_pages = kernel_read(memcg, memory.max);
	kill = bpf_core_enum_value(enum memcg_memory_event, MEMCG_OOM_KILL);
	bpf_probe_read_kernel(&slow->oom_kills, sizeof(slow->oom_kills),
			      (char *)css +
				      bpf_core_field_offset(struct mem_cgroup, memory_events) +
				      kill * sizeof(struct kernel_atomic_long));
	fast->have |= RECORD_MEMORY_LIMIT | RECORD_OOM;
}

static __always_inline void read_memory_v2(struct cgroup *cgroup, struct fast_record *fast,
					   struct slow_record *slow)
{
	void *css = kernel_subsys(cgroup, memory_cgrp_id);
	struct mem_cgroup *memcg;
	__u64 low;

	if (!css || cgroup->level == 0)
		return;
	memcg = kernel_cast(struct mem_cgroup, css);
	slow->high_pages = kernel_read(memcg, memory.high);
	slow->protected_pages = kernel_read(memcg, memory.min);
	low = kernel_read(memcg, memory.low);
	if (low > slow->protected_pages)
		slow->protected_pages = low;
	fast->have |= RECORD_MEMORY_HIGH;
	if (!bpf_core_field_exists(memcg->swap))
		return;
	slow->swap_pages = kernel_read(memcg, swap.usage.counter);
	slow->swap_limit_pages = kernel_read(memcg, swap.max);
	fast->have |= RECORD_SWAP;
}

/* v1 counts and limits memory and swap together; with swapaccount=0 the kernel tells 0 of both. */
static __always_inline void read_memory_v1(struct cgroup *cgroup, struct fast_record *fast,
					   struct slow_record *slow)
{
	void *css = kernel_subsys(cgroup, memory_cgrp_id);
	struct mem_cgroup *memcg = css;
	__u64 memory, both;

	if (!css || cgroup->level == 0 || !bpf_core_field_exists(memcg->memsw))
		return;
	memcg = kernel_cast(struct mem_cgroup, css);
	memory = kernel_read(memcg, memory.usage.counter);
	both = kernel_read(memcg, memsw.usage.counter);
	if (both == 0 && memory != 0)
		return;
	slow->swap_pages = both > memory ? both - memory : 0;
	memory = kernel_read(memcg, memory.max);
	both = kernel_read(memcg, memsw.max);
	if (both < RECORD_PAGES_NONE)
		both = both > memory ? both - memory : 0;
	slow->swap_limit_pages = both;
	fast->have |= RECORD_SWAP;
}

static __always_inline void read_bandwidth(struct cgroup *cgroup, struct fast_record *fast,
					   struct slow_record *slow)
{
	void *css = kernel_subsys(cgroup, cpu_cgrp_id);
	struct task_group *group = css;

	if (!css || !bpf_core_field_exists(group->cfs_bandwidth.quota))
		return;
	group = kernel_cast(struct task_group, css);
	fast->throttled_ns = kernel_read(group, cfs_bandwidth.throttled_time);
	slow->quota_ns = kernel_read(group, cfs_bandwidth.quota);
	slow->period_ns = kernel_read(group, cfs_bandwidth.period);
	slow->burst_ns = 0;
	if (bpf_core_field_exists(group->cfs_bandwidth.burst))
		slow->burst_ns = kernel_read(group, cfs_bandwidth.burst);
	slow->periods = kernel_read(group, cfs_bandwidth.nr_periods);
	slow->throttled_periods = kernel_read(group, cfs_bandwidth.nr_throttled);
	fast->have |= RECORD_BANDWIDTH;
}

static __always_inline void read_pids(struct cgroup *cgroup, struct fast_record *fast,
				      struct slow_record *slow)
{
	void *css = kernel_subsys(cgroup, pids_cgrp_id);
	struct pids_cgroup *pids;

	if (!css || cgroup->level == 0)
		return;
	pids = kernel_cast(struct pids_cgroup, css);
	slow->pids = kernel_read(pids, counter.counter);
	slow->pids_limit = kernel_read(pids, limit.counter);
	fast->have |= RECORD_PIDS;
}

static __always_inline void read_psi(struct cgroup *cgroup, struct fast_record *fast,
				     struct slow_record *slow)
{
	__u64 total[PSI_STATES] = {0};

	if (!kernel_psi_totals(cgroup, total))
		return;
	slow->psi_cpu_ns = total[kernel_psi_state(PSI_CPU_SOME)];
	slow->psi_memory_ns = total[kernel_psi_state(PSI_MEM_SOME)];
	slow->psi_memory_full_ns = total[kernel_psi_state(PSI_MEM_FULL)];
	fast->have |= RECORD_PSI | RECORD_PSI_MEMORY_FULL;
	if (!bpf_core_enum_value_exists(enum psi_states, PSI_CPU_FULL))
		return;
	slow->psi_cpu_full_ns = total[kernel_psi_state(PSI_CPU_FULL)];
	fast->have |= RECORD_PSI_CPU_FULL;
}

static __always_inline void read_slow(struct cgroup *cgroup, struct fast_record *fast, __u32 index,
				      __u32 want)
{
	struct slow_record *slow = bpf_map_lookup_elem(&slow_records, &index);

	if (!slow)
		return;
	if (want & BLOCK_MEMORY_MORE)
		read_memory_more(cgroup, fast, slow);
	if (want & BLOCK_MEMORY_V2)
		read_memory_v2(cgroup, fast, slow);
	if (want & BLOCK_MEMORY_V1)
		read_memory_v1(cgroup, fast, slow);
	if (want & BLOCK_BANDWIDTH)
		read_bandwidth(cgroup, fast, slow);
	if (want & BLOCK_PIDS)
		read_pids(cgroup, fast, slow);
	if (want & BLOCK_PSI)
		read_psi(cgroup, fast, slow);
}

/* Records one cgroup of a walk. */
static __always_inline void record_cgroup(struct cgroup *cgroup)
{
	struct fast_record *fast = NULL;
	__u32 index = state.cursor;
	__u32 want = state.blocks;

	if (index < knobs.record_limit)
		fast = bpf_map_lookup_elem(&fast_records, &index);
	if (!fast) {
		state.overflow++;
		return;
	}
	state.cursor = index + 1;
	fast->id = cgroup->kn->id;
	fast->have = 0;
	if ((want & BLOCK_CPU_LOCAL) && read_cpu_local(cgroup, &fast->cpu_ns))
		fast->have |= RECORD_CPU | RECORD_CPU_LOCAL;
	if (want & BLOCK_CPUACCT)
		read_cpuacct(cgroup, fast);
	if (want & BLOCK_MEMORY)
		read_memory(cgroup, fast);
	if (want & BLOCKS_SLOW)
		read_slow(cgroup, fast, index, want);
}

/* --- made and removed cgroups ---------------------------------------------------------------- */

SEC("tp_btf/cgroup_mkdir")
int count_made(void *ctx)
{
	(void)ctx;
	__sync_fetch_and_add(&state.generation, 1);
	return 0;
}

static __always_inline void record_removal(struct cgroup *cgroup)
{
	__u64 number = state.removals + 1;
	__u32 index = (number - 1) % REMOVALS_MAX;
	struct removal_record *gone = bpf_map_lookup_elem(&removals, &index);
	struct task_group *group = kernel_subsys(cgroup, cpu_cgrp_id);

	if (!gone)
		return;
	gone->id = cgroup->kn->id;
	gone->parent_id = cgroup->self.parent->cgroup->kn->id;
	gone->have = read_cpu_local(cgroup, &gone->cpu_ns) ? RECORD_CPU : 0;
	if (group && bpf_core_field_exists(group->cfs_bandwidth.quota)) {
		gone->throttled_ns = BPF_CORE_READ(group, cfs_bandwidth.throttled_time);
		gone->periods = BPF_CORE_READ(group, cfs_bandwidth.nr_periods);
		gone->throttled_periods = BPF_CORE_READ(group, cfs_bandwidth.nr_throttled);
		gone->have |= RECORD_BANDWIDTH;
	}
	gone->check = removal_check(gone, number);
	state.removals = number;
}

/* Runs before the cgroup loses its controllers. */
SEC("tp_btf/cgroup_rmdir")
int record_removed(__u64 *ctx)
{
	struct cgroup *cgroup = (struct cgroup *)ctx[0];

	__sync_fetch_and_add(&state.generation, 1);
	if (knobs.keep_removals && cgroup->root->hierarchy_id == 0)
		record_removal(cgroup);
	return 0;
}
