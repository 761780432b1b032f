/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workloads of one interval in the order --once prints them, and the shares both formats
 * derive. Pure.
 */
#ifndef EVENKEEL_AGENT_ONCE_ITEMS_H
#define EVENKEEL_AGENT_ONCE_ITEMS_H

#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"

struct once_item {
	const struct entry *entry; /* borrowed */
	const struct entity *pod; /* of a container whose pod is listed too; else NULL */
};

/*
 * Most CPU first, then by name; containers, ordered alike, follow their pod. The array is the
 * caller's to free.
 */
struct once_item *once_items(const struct interval *i, size_t *count);

/*
 * "Pod", "Container", "Unit", "Slice"; the words of Kubernetes for a class, and of runtimes: NULL
 * where unknown.
 */
const char *once_kind_name(enum entity_kind kind);
const char *once_qos_name(enum qos_class qos);
const char *once_runtime_name(enum container_runtime runtime);

/*
 * Share of the CPU periods that hit the quota; NaN where there were none, or it was not measured.
 */
double once_throttled_ratio(const struct usage *u);
/* ns of what `bit` says was measured, as a share 0..1 of the time covered; NaN where it was not. */
double once_share(const struct usage *u, enum usage_have bit, uint64_t ns);
/* CPU time as a rate; NaN over no time. */
double once_milli(uint64_t cpu_ns, double seconds);
/* The 50th percentile or a higher one of the node's CPU use; NaN where it was not measured. */
double once_percentile(const struct node_sample *n, double share);

#endif
