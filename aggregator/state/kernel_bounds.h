/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel lets the pods of a node use together: summed once per node, since every score
 * asks for it. Pure.
 */
#ifndef EVENKEEL_AGGREGATOR_STATE_KERNEL_BOUNDS_H
#define EVENKEEL_AGGREGATOR_STATE_KERNEL_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

struct pod_stats;

struct kernel_bound {
	int64_t limits; /* sum of those there are: millicores, bytes */
	uint32_t unlimited; /* containers without one */
	uint32_t unknown; /* containers whose limit could not be read */
};

struct kernel_bounds {
	struct kernel_bound cpu, mem;
};

/*
 * Of pods and of containers that run outside of pods; units and slices are the machine's own. A pod
 * counts as its containers do together, and where it is bounded itself, as no more than that. A
 * limit of `whole` or more (what the node can give away) is none: the kubelet bounds all pods
 * together so, and the kernel shows that to each.
 */
void kernel_bounds_sum(const struct pod_stats *pods, size_t count, int64_t whole_cpu_milli,
		       int64_t whole_mem_bytes, struct kernel_bounds *bounds);

#endif
