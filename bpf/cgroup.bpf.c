/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Tier T1: an iterator over the cgroups below the directory it was attached to, of v1 or v2. The
 * kernel walks under cgroup_mutex, parents first, passes over removed cgroups, and calls the
 * program for each. 6.1 and later. Fallback: T2.
 */
#ifndef KERNEL_PLAIN
#define KERNEL_CASTS
#endif
#include "bpf/place.h"

SEC("iter/cgroup")
int walk(struct bpf_iter__cgroup *ctx)
{
	struct cgroup *cgroup = ctx->cgroup;

	if (!cgroup)
		return 0; /* the end of the walk */
	look_ahead(cgroup);
	record_cgroup(cgroup);
	return 0;
}
