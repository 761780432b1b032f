/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU and memory that a pod requests and its limits, read from a Pod object of the API or of a
 * manifest.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/resources.h"
#include "shared/error.h"

enum { POD_LOADS = RESOURCE_MEMORY + 1 }; /* by RESOURCE_CPU and RESOURCE_MEMORY */

/* A key that is absent differs from an explicit 0. */
struct resource_list {
	union {
		bool has[POD_LOADS];
		struct {
			bool has_cpu, has_mem;
		};
	};
	union {
		int64_t of[POD_LOADS];
		struct {
			int64_t cpu_milli, mem_bytes;
		};
	};
};

static inline int64_t resource_list_amount(const struct resource_list *list, enum resource_id id)
{
	return list->has[id] ? list->of[id] : 0;
}

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

/*
 * Reads and checks kind, metadata.name, spec.containers, spec.initContainers, spec.overhead and
 * spec.resources, of these cpu and memory. null is absent. A request that is absent is the limit,
 * which is the API server's default. 0, or -EINVAL: field (of OBJECT_FIELD_MAX) then is a path
 * ("spec.containers[0].resources.requests.cpu") and error says why. The spec borrows its name from
 * the tree.
 */
int pod_spec_read(const cJSON *pod, struct pod_spec *spec, char *field, struct error *error);
void pod_spec_free_members(struct pod_spec *p);
/*
 * Effective request (limits when `limits`): upstream as Trimaran's helper counts (max of the
 * container sum and each init container, plus overhead; sidecars and pod level unknown to it), else
 * as the kube-scheduler does today (sidecars added to both sides, pod level first, overhead).
 */
int64_t pod_spec_need(const struct pod_spec *p, enum resource_id id, bool limits, bool upstream);
