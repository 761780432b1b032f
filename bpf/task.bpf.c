/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Tier T2: the cgroups of all processes and their ancestors, for kernels with an iterator over
 * tasks (5.8) but not over cgroups.
 *
 *	for each task:  its cgroup --> not met in this walk? --> record --> the parent --> ..
 *
 * The table `seen` has the cgroups met in this walk, by hash with linear probing; entries of an
 * earlier walk count as free, so nothing is deleted. After PROBES_MAX taken slots the cgroup counts
 * in state.overflow. Of a process only the threads in other cgroups than their leader are checked.
 *
 * Not met: cgroups without a process below them, whose memory may be in use, and ancestors more
 * than DEPTH levels up. Processes outside of the caller's pid namespace are invisible;
 * state.populated then exceeds the number of children met, which the agent checks at the start.
 * Fallback: T3.
 */
#include "bpf/read.h"

enum { SEEN_MAX = 4 * RECORDS_MAX, PROBES_MAX = 32, DEPTH = 32 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SEEN_MAX);
	__type(key, __u32);
	__type(value, struct seen_record);
} seen SEC(".maps");

/* True the first time in this walk. */
static __always_inline _Bool meet(__u64 id)
{
	__u32 slot = (__u32)(id * 0x9e3779b97f4a7c15ULL >> 32); /* Fibonacci hashing */
	__u32 i;

	for (i = 0; i < PROBES_MAX; i++) {
		__u32 index = (slot + i) % SEEN_MAX;
		struct seen_record *record = bpf_map_lookup_elem(&seen, &index);

		if (!record)
			return 0;
		if (record->walk != state.walk) {
			record->id = id;
			record->walk = state.walk;
			return 1;
		}
		if (record->id == id)
			return 0;
	}
	state.overflow++;
	return 0;
}

static __always_inline struct cgroup *parent_of(struct cgroup *cgroup)
{
	return cgroup->self.parent->cgroup;
}

/* Whether it is at or below the root of the walk. The root of a hierarchy has the id 1. */
static __always_inline _Bool is_below_root(struct cgroup *cgroup)
{
	__u32 i;

	if (state.root_id == 1)
		return 1;
	for (i = 0; i < DEPTH; i++) {
		if (cgroup->kn->id == state.root_id)
			return 1;
		if (cgroup->level == 0)
			break;
		cgroup = parent_of(cgroup);
	}
	return 0;
}

#define css_cgroup(cset, id)                                                                       \
	(bpf_core_enum_value_exists(enum cgroup_subsys_id, id)                                     \
		 ? (cset)->subsys[bpf_core_enum_value(enum cgroup_subsys_id, id)]->cgroup          \
		 : (struct cgroup *)0)

static __always_inline struct cgroup *cgroup_of(struct task_struct *task)
{
	struct css_set *set = task->cgroups;

	switch (state.hierarchy) {
	case WALK_UNIFIED:
		return set->dfl_cgrp;
	case WALK_CPUACCT:
		return css_cgroup(set, cpuacct_cgrp_id);
	case WALK_CPU:
		return css_cgroup(set, cpu_cgrp_id);
	case WALK_MEMORY:
		return css_cgroup(set, memory_cgrp_id);
	}
	return NULL;
}

/*
 * Not inlined: clang would move CO-RE constants out of the loop, also those of branches for other
 * kernels, and this kernel would refuse the program.
 */
static __noinline int record_one(struct cgroup *cgroup)
{
	if (kernel_cgroup_dead(cgroup))
		return 0;
	state.populated += kernel_populated_children(cgroup);
	record_cgroup(cgroup);
	return 0;
}

SEC("iter/task")
int walk(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct cgroup *cgroup;
	__u32 i;

	if (!task)
		return 0; /* the end of the walk */
	if (task->group_leader != task && task->group_leader->cgroups == task->cgroups)
		return 0;
	cgroup = cgroup_of(task);
	for (i = 0; i < DEPTH; i++) {
		if (!cgroup || !meet(cgroup->kn->id) || !is_below_root(cgroup))
			break;
		record_one(cgroup);
		if (cgroup->level == 0)
			break;
		cgroup = parent_of(cgroup);
	}
	return 0;
}
