/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Why: at one pass a second nothing of a cgroup is in a cache any more. A walk goes from the cgroup
 * to its controller's part, to counters, to per-CPU memory, and waits for each in turn: that, and
 * not the work, is what sampling costs. But it meets the same cgroups in the same order as long as
 * none comes or goes. So each place of a walk remembers what was read there, and before a cgroup is
 * recorded, what the one at the next place will need is loaded, all at once, and not used: the
 * processor does not wait for such loads one by one.
 *
 *	place i:    load what place i + 1 remembers     record cgroup i
 *	place i+1:  load what place i + 2 remembers     record cgroup i + 1, from the cache
 *
 * Nothing that is remembered becomes part of a record. It holds as long as the generation of
 * cgroups with which its walk began, so none that is gone is looked at, not even one that went
 * while it was met. A controller that v2 takes off a living cgroup leaves an address behind whose
 * memory may have another use by then: it is read to no effect, and what faults is 0. Beyond
 * PLACES_MAX cgroups, and on kernels where loads are calls, nothing is loaded ahead.
 */
#ifndef EVENKEEL_BPF_PLACE_H
#define EVENKEEL_BPF_PLACE_H

#include "bpf/read.h"

enum { PLACES_MAX = 4096 }; /* of each hierarchy */

/* Addresses, 0: there is none. */
struct place {
	__u64 generation; /* of cgroups, as its walk began; from 1 on, 0: none was met here yet */
	__u64 cgroup;
	__u64 kn; /* its kernfs_node */
	__u64 cpu; /* its CPU time on the first CPU */
	__u64 memory, node; /* its memory controller's part, the lists of pages on node 0 */
	__u64 group; /* its task_group */
	__u64 psi;
};

_Static_assert(sizeof(struct place) == 64, "a place is one cache line");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WALK_HIERARCHIES *PLACES_MAX);
	__type(key, __u32);
	__type(value, struct place);
} places SEC(".maps");

/* Keeps the compiler from leaving out a load of which nothing is used. */
#define place_load(value)                                                                          \
	({                                                                                         \
		__u64 loaded_ = (__u64)(value);                                                    \
		asm volatile("" : : "r"(loaded_));                                                 \
	})
#define place_cast(type, address) kernel_cast(type, (void *)(address))

static __always_inline void load_memory(const struct place *p, __u32 want)
{
	place_load(place_cast(struct mem_cgroup, p->memory)->memory.usage.counter);
	if (!(want & BLOCK_MEMORY_MORE))
		return;
	place_load(place_cast(struct mem_cgroup, p->memory)->memory.max);
	place_load(kernel_read_u64(p->memory + bpf_core_field_offset(struct mem_cgroup, nodeinfo)));
	place_load(kernel_read_u64(p->memory +
				   bpf_core_field_offset(struct mem_cgroup, memory_events)));
	if (p->node)
		place_load(kernel_read_u64(p->node));
}

static __always_inline void load_place(const struct place *p, __u32 want)
{
	place_load(place_cast(struct cgroup, p->cgroup)->self.flags);
	place_load(place_cast(struct cgroup, p->cgroup)->level);
	place_load(kernel_subsys(place_cast(struct cgroup, p->cgroup), memory_cgrp_id));
	place_load(place_cast(struct kernfs_node, p->kn)->id);
	if (p->cpu)
		place_load(kernel_read_u64(p->cpu));
	if (p->memory && (want & BLOCK_MEMORY))
		load_memory(p, want);
	if (p->group && (want & BLOCK_BANDWIDTH))
		place_load(place_cast(struct task_group, p->group)->cfs_bandwidth.throttled_time);
	if (p->psi && (want & BLOCK_PSI))
		place_load(kernel_read_u64(p->psi));
}

static __always_inline __u64 find_cpu(struct cgroup *cgroup)
{
	struct cpuacct *cpuacct = kernel_subsys(cgroup, cpuacct_cgrp_id);
	__u64 address = 0;

	if (state.hierarchy == WALK_UNIFIED)
		address = kernel_cpu_local(cgroup);
	else if (cpuacct)
		address = (__u64)kernel_read(kernel_cast(struct cpuacct, cpuacct), cpuusage);
	return address ? address + state.cpu_offset[0] : 0;
}

static __always_inline __u64 find_node(__u64 memory)
{
	__u64 node = 0;

	if (memory)
		bpf_probe_read_kernel(&node, sizeof(node),
				      (void *)(memory +
					       bpf_core_field_offset(struct mem_cgroup, nodeinfo)));
	return node ? node + kernel_lru_offset() : 0;
}

static __always_inline void remember_place(struct place *p, struct cgroup *cgroup)
{
	p->cgroup = (__u64)cgroup;
	p->kn = (__u64)cgroup->kn;
	p->cpu = find_cpu(cgroup);
	p->memory = (__u64)kernel_subsys(cgroup, memory_cgrp_id);
	p->node = find_node(p->memory);
	p->group = (__u64)kernel_subsys(cgroup, cpu_cgrp_id);
	p->psi = bpf_core_field_exists(cgroup->psi) ? (__u64)cgroup->psi : 0;
}

/* Before the cgroup at the cursor is recorded. */
static __always_inline void look_ahead(struct cgroup *cgroup)
{
	__u32 index = state.hierarchy * PLACES_MAX + state.cursor;
	__u32 next = index + 1;
	__u64 met = state.generation_before + 1;
	struct place *p;

	if (!kernel_casts() || state.cursor >= PLACES_MAX - 1)
		return;
	p = bpf_map_lookup_elem(&places, &next);
	if (p && p->generation == state.generation + 1)
		load_place(p, state.blocks);
	p = bpf_map_lookup_elem(&places, &index);
	if (p && p->generation != met) {
		remember_place(p, cgroup);
		p->generation = met;
	}
}

#endif
