/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a node its pods request: the larger of the shares of CPU and memory, or that of its
 * GPUs or devices alone.
 *
 *     share = (sum of requests - those left out) / (allocatable - those left out)
 *
 * Left out of both are DaemonSets' and mirror pods, where the options say so; out of the sum only,
 * pods whose end is overdue.
 *
 *   upstream   pods that ended count, too; a node with a GPU's label and without GPUs is idle; the
 *              denominator may become 0 or negative
 *   corrected  only pods whose requests count (kube_pod_is_active()); without GPUs, CPU and memory
 *              decide; nothing left to divide by is an error
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_UTILIZATION_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_UTILIZATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/object.h"
#include "aggregator/policy/drain/drain_options.h"
#include "shared/error.h"

/* Devices of dynamic resource allocation on one node, by pool. */
struct drain_device_pool {
	const char *name;
	int64_t devices, allocated;
};

struct drain_devices {
	const struct drain_device_pool *pools; /* of the node; none: it has no devices */
	size_t count;
	bool incomplete; /* not all slices of a pool are published */
};

enum drain_gpu {
	DRAIN_GPU_DETECT, /* by label, or by what is allocatable */
	DRAIN_GPU_NONE,
	DRAIN_GPU_EXTENDED, /* a node with GPUs as an extended resource */
};

struct drain_utilization {
	double cpu, memory; /* shares; 0 where GPUs or devices decide */
	double share; /* what decides */
	const char *resource; /* by which; borrowed from the options, the devices, or static */
	bool gpu; /* the threshold is that of GPUs */
};

/*
 * devices may be NULL. -EINVAL, the reason says what cannot be divided: such a node is never
 * drained.
 */
int drain_utilization(const struct drain_options *o, const struct kube_node *node,
		      const struct kube_pod *const *pods, size_t count,
		      const struct drain_devices *devices, enum drain_gpu gpu, int64_t now_ns,
		      struct drain_utilization *out, struct error *error);

#endif
