/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod asks for, in integers: the part of a Pod object that scores look at. */
#ifndef EVENKEEL_AGGREGATOR_MODEL_POD_SPEC_H
#define EVENKEEL_AGGREGATOR_MODEL_POD_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key that is absent differs from an explicit 0. */
struct resource_list {
	bool has_cpu, has_mem;
	int64_t cpu_milli, mem_bytes;
};

struct container_spec {
	struct resource_list requests, limits;
	bool sidecar; /* init container with restartPolicy Always */
};

struct pod_spec {
	const char *name; /* borrowed or NULL */
	size_t container_count, init_count;
	struct container_spec *containers, *init; /* owned */
	struct resource_list overhead;
	bool has_pod_resources; /* spec.resources: pod level, wins over the container sums */
	struct resource_list pod_requests, pod_limits;
};

void pod_spec_free_members(struct pod_spec *p);
/*
 * Effective request (limits when `limits`): upstream as Trimaran's helper counts (max of the
 * container sum and each init container, plus overhead; sidecars and pod level unknown to it), else
 * as the kube-scheduler does today (sidecars added to both sides, pod level first, overhead).
 */
int64_t pod_spec_cpu_milli(const struct pod_spec *p, bool limits, bool upstream);
int64_t pod_spec_mem_bytes(const struct pod_spec *p, bool limits, bool upstream);

#endif
