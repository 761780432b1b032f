/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Reads the cgroups of one hierarchy out of the kernel's own structs, without a system call or a
 * text file per cgroup and without flushing rstat.
 *
 * The agent attaches sample_cgroup to the root directory of each hierarchy (v1 or v2) and, for
 * every pass, sets `blocks` and resets `cursor`, then makes an iterator and reads it once: the
 * kernel walks the tree under cgroup_mutex, parents first, and calls the program per cgroup, which
 * fills the records at `cursor`. Nothing else writes the records, so the agent reads them without a
 * lock after the walk. Beyond record_limit cgroups are counted in `overflow` and lost for this
 * pass. count_made and count_removed let the agent know when to rescan the names.
 * Fallback when any of it cannot be loaded: the agent's tier T3, which reads the files.
 *
 * Per-CPU values are addressed as the kernel does: address + __per_cpu_offset[cpu]. Those offsets
 * come from learn_offsets, which compares what a per-CPU map element's address is on each CPU with
 * what the map stores, without kallsyms.
 */
#include "bpf/kernel.h"
#include "bpf/record.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Knobs, set before load. */
const volatile __u32 record_limit = RECORDS_MAX;
const volatile __u32 cpu_count = 1; /* possible CPUs, entries of cpu_id */
const volatile __u32 node_count = 1; /* highest possible memory node + 1 */

/* Shared with the agent through the mapped .bss. */
__u64 generation; /* cgroups made and removed so far */
__u32 blocks; /* enum record_block, set by the agent */
__u32 cursor; /* records written by this walk */
__u32 overflow; /* cgroups beyond record_limit in this walk */
__u32 cpus_learned; /* offsets that learn_offsets found */
__u32 cpu_id[RECORD_CPUS_MAX]; /* set by the agent */
__u64 cpu_offset[RECORD_CPUS_MAX];
volatile __u64
	plain; /* an address goes through it to become a number the verifier lets us compute with */

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
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} per_cpu_probe SEC(".maps");

/* Run once by the agent (BPF_PROG_TEST_RUN), never attached. */
SEC("raw_tp")
int learn_offsets(void *ctx)
{
	const __u32 zero = 0;
	__u64 stored = 0;
	__u32 i;

	(void)ctx;
	plain = (__u64)&per_cpu_probe;
	bpf_probe_read_kernel(&stored, sizeof(stored),
			      (void *)(plain + bpf_core_field_offset(struct bpf_array, pptrs)));
	for (i = 0; i < cpu_count && i < RECORD_CPUS_MAX; i++) {
		void *mine = bpf_map_lookup_percpu_elem(&per_cpu_probe, &zero, cpu_id[i]);

		if (!mine)
			break;
		plain = (__u64)mine;
		cpu_offset[i] = plain - stored;
	}
	cpus_learned = i;
	return 0;
}

/* A global function, so that the verifier walks its loop once and alone. */
__noinline __u64 sum_over_cpus(__u64 address)
{
	__u64 sum = 0;
	__u32 i;

	for (i = 0; i < cpu_count && i < RECORD_CPUS_MAX; i++) {
		__u64 value = 0;

		bpf_probe_read_kernel(&value, sizeof(value), (void *)(address + cpu_offset[i]));
		sum += value;
	}
	return sum;
}

static __u64 sum_inactive_file(struct mem_cgroup *memcg)
{
	const __u32 zones = bpf_core_enum_value(enum zone_type, __MAX_NR_ZONES);
	const __u32 lists = bpf_core_enum_value(enum lru_list, NR_LRU_LISTS);
	const __u32 list = bpf_core_enum_value(enum lru_list, LRU_INACTIVE_FILE);
	char *nodes = (char *)memcg + bpf_core_field_offset(struct mem_cgroup, nodeinfo);
	__u64 sum = 0;
	__u32 n, z;

	for (n = 0; n < node_count && n < RECORD_NODES_MAX; n++) {
		__u64 node = 0;

		bpf_probe_read_kernel(&node, sizeof(node), nodes + n * sizeof(node));
		if (!node)
			continue;
		node += kernel_lru_offset();
		for (z = 0; z < zones && z < 16; z++) {
			unsigned long pages = 0;

			bpf_probe_read_kernel(&pages, sizeof(pages),
					      (void *)(node + (z * lists + list) * sizeof(pages)));
			sum += pages;
		}
	}
	return sum;
}

/* The v2 root has no own counter, so it stays absent. */
static __u32 read_cpu_local(struct cgroup *cgroup, struct fast_record *fast)
{
	__u64 address = cgroup->level > 0 ? kernel_cpu_local(cgroup) : 0;

	if (!address)
		return 0;
	fast->cpu_ns = sum_over_cpus(address);
	return RECORD_CPU | RECORD_CPU_LOCAL;
}

static __u32 read_cpuacct(struct cgroup *cgroup, struct fast_record *fast)
{
	struct cpuacct *cpuacct = kernel_subsys(cgroup, cpuacct_cgrp_id);

	if (!cpuacct)
		return 0;
	fast->cpu_ns = sum_over_cpus((__u64)BPF_CORE_READ(cpuacct, cpuusage));
	return RECORD_CPU;
}

/* The root's counter misses what the root's own tasks use, so it stays absent. */
static __u32 read_memory(struct cgroup *cgroup, struct fast_record *fast)
{
	struct mem_cgroup *memcg = kernel_subsys(cgroup, memory_cgrp_id);

	if (!memcg || cgroup->level == 0)
		return 0;
	fast->memory_pages = BPF_CORE_READ(memcg, memory.usage.counter);
	return RECORD_MEMORY;
}

static __u32 read_memory_more(struct cgroup *cgroup, struct slow_record *slow)
{
	struct mem_cgroup *memcg = kernel_subsys(cgroup, memory_cgrp_id);
	__u64 kill;

	if (!memcg)
		return 0;
	slow->inactive_file_pages = sum_inactive_file(memcg);
	if (cgroup->level == 0)
		return RECORD_INACTIVE_FILE;
	slow->limit_pages = BPF_CORE_READ(memcg, memory.max);
	kill = bpf_core_enum_value(enum memcg_memory_event, MEMCG_OOM_KILL);
	bpf_probe_read_kernel(&slow->oom_kills, sizeof(slow->oom_kills),
			      (char *)memcg +
				      bpf_core_field_offset(struct mem_cgroup, memory_events) +
				      kill * sizeof(struct kernel_atomic_long));
	return RECORD_INACTIVE_FILE | RECORD_MEMORY_LIMIT | RECORD_OOM;
}

static __u32 read_bandwidth(struct cgroup *cgroup, struct fast_record *fast,
			    struct slow_record *slow)
{
	struct task_group *group = kernel_subsys(cgroup, cpu_cgrp_id);

	if (!group || !bpf_core_field_exists(group->cfs_bandwidth.quota))
		return 0;
	fast->throttled_ns = BPF_CORE_READ(group, cfs_bandwidth.throttled_time);
	slow->quota_ns = BPF_CORE_READ(group, cfs_bandwidth.quota);
	slow->period_ns = BPF_CORE_READ(group, cfs_bandwidth.period);
	slow->periods = (__u32)BPF_CORE_READ(group, cfs_bandwidth.nr_periods);
	slow->throttled_periods = (__u32)BPF_CORE_READ(group, cfs_bandwidth.nr_throttled);
	return RECORD_BANDWIDTH;
}

static __u32 read_pids(struct cgroup *cgroup, struct slow_record *slow)
{
	struct pids_cgroup *pids = kernel_subsys(cgroup, pids_cgrp_id);

	if (!pids)
		return 0;
	slow->pids = BPF_CORE_READ(pids, counter.counter);
	return RECORD_PIDS;
}

static __u32 read_psi(struct cgroup *cgroup, struct slow_record *slow)
{
	struct psi_group *psi;
	char *totals;

	if (!bpf_core_field_exists(cgroup->psi) ||
	    !bpf_core_field_exists(struct psi_group, enabled))
		return 0;
	psi = cgroup->psi;
	if (!psi || !psi->enabled)
		return 0;
	totals = (char *)psi + kernel_psi_offset();
	bpf_probe_read_kernel(&slow->psi_cpu_ns, sizeof(__u64),
			      totals + 8 * bpf_core_enum_value(enum psi_states, PSI_CPU_SOME));
	bpf_probe_read_kernel(&slow->psi_memory_ns, sizeof(__u64),
			      totals + 8 * bpf_core_enum_value(enum psi_states, PSI_MEM_SOME));
	return RECORD_PSI;
}

static __u32 read_slow(struct cgroup *cgroup, struct fast_record *fast, __u32 index, __u32 want)
{
	struct slow_record *slow = bpf_map_lookup_elem(&slow_records, &index);
	__u32 have = 0;

	if (!slow)
		return 0;
	if (want & BLOCK_MEMORY_MORE)
		have |= read_memory_more(cgroup, slow);
	if (want & BLOCK_BANDWIDTH)
		have |= read_bandwidth(cgroup, fast, slow);
	if (want & BLOCK_PIDS)
		have |= read_pids(cgroup, slow);
	if (want & BLOCK_PSI)
		have |= read_psi(cgroup, slow);
	return have;
}

SEC("iter/cgroup")
int sample_cgroup(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgroup = ctx->cgroup;
	struct fast_record *fast = NULL;
	__u32 index = cursor;
	__u32 want = blocks;
	__u32 have = 0;

	if (!cgroup)
		return 0; /* the end of the walk */
	if (index < record_limit)
		fast = bpf_map_lookup_elem(&fast_records, &index);
	if (!fast) {
		overflow++;
		return 0;
	}
	cursor = index + 1;
	fast->id = cgroup->kn->id;
	if (want & BLOCK_CPU_LOCAL)
		have |= read_cpu_local(cgroup, fast);
	if (want & BLOCK_CPUACCT)
		have |= read_cpuacct(cgroup, fast);
	if (want & BLOCK_MEMORY)
		have |= read_memory(cgroup, fast);
	if (want & BLOCKS_SLOW)
		have |= read_slow(cgroup, fast, index, want);
	fast->have = have;
	return 0;
}

SEC("raw_tp/cgroup_mkdir")
int count_made(void *ctx)
{
	(void)ctx;
	__sync_fetch_and_add(&generation, 1);
	return 0;
}

SEC("raw_tp/cgroup_rmdir")
int count_removed(void *ctx)
{
	(void)ctx;
	__sync_fetch_and_add(&generation, 1);
	return 0;
}
