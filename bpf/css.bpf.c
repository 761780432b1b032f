/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Tier T0: the program walks the v2 hierarchy below state.root_id by the kernel's cgroup iterator,
 * parents first, under RCU: without a mutex, new and removed cgroups do not wait. The agent runs it
 * by BPF_PROG_TEST_RUN. It needs the kernel functions below for this program type (about 6.12), and
 * is a separate object, as one missing function fails the load of the whole object.
 *
 * No record at all: the kernel did not find the root, as some search the caller's cgroup namespace
 * only. Fallback: T1.
 */
#define KERNEL_CASTS
#include "bpf/prefetch.h"

extern struct cgroup *bpf_cgroup_from_id(__u64 id) __ksym;
extern void bpf_cgroup_release(struct cgroup *cgroup) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start,
			    unsigned int flags) __ksym;
extern struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it) __ksym;
extern void bpf_iter_css_destroy(struct bpf_iter_css *it) __ksym;

/*
 * A global function, so that the verifier checks it separately: inside of the loop it compares
 * states exactly, and their number would explode. A pointer is only a number to such a function, so
 * it gets its type back here.
 */
__noinline int record_at(__u64 address)
{
	struct cgroup *cgroup =
		bpf_rdonly_cast((void *)address, bpf_core_type_id_kernel(struct cgroup));

	prefetch_next(cgroup);
	record_cgroup(cgroup);
	return 0;
}

SEC("syscall")
int walk(void *ctx)
{
	struct cgroup *root = bpf_cgroup_from_id(state.root_id);
	struct cgroup_subsys_state *css;
	struct bpf_iter_css it;

	(void)ctx;
	if (!root)
		return 0;
	bpf_rcu_read_lock();
	bpf_iter_css_new(&it, &root->self, BPF_CGROUP_ITER_DESCENDANTS_PRE);
	while ((css = bpf_iter_css_next(&it))) {
		struct cgroup *cgroup = css->cgroup;

		if (!cgroup || kernel_cgroup_dead(cgroup))
			continue;
		state.plain = (__u64)cgroup;
		record_at(state.plain);
	}
	bpf_iter_css_destroy(&it);
	bpf_rcu_read_unlock();
	bpf_cgroup_release(root);
	return 0;
}
