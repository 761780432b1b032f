/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Tier T1: an iterator over the cgroups below the attached directory, of v1 or v2. The kernel calls
 * the program for each cgroup, parents first, without removed ones, under cgroup_mutex. 6.1 and
 * later. Fallback: T2.
 */
#ifndef KERNEL_PLAIN
#define KERNEL_CASTS
#endif
#include "bpf/prefetch.h"

SEC("iter/cgroup")
int walk(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgroup = ctx->cgroup;

	if (!cgroup)
		return 0; /* the end of the walk */
	prefetch_next(cgroup);
	record_cgroup(cgroup);
	return 0;
}
