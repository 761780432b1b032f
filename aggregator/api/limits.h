/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far limits are over-subscribed, and where the kernel enforces others than a pod declares.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/state/view.h"

/*
 * What a container without a limit counts as in the sums: nothing, its node's allocatable, or what
 * it requests.
 */
enum limits_unlimited { UNLIMITED_IGNORE, UNLIMITED_ALLOCATABLE, UNLIMITED_REQUESTS };

/* CPU in millicores and memory in bytes, by enum resource_id. */
enum { LIMITS_RESOURCES = RESOURCE_MEMORY + 1 };

/* A sum of limits and the allocatable it is to be divided by. */
struct limits_share {
	double sum[LIMITS_RESOURCES], of[LIMITS_RESOURCES];
};

struct limits_shares {
	struct limits_share declared; /* by the pods' specs */
	struct limits_share kernel; /* of measured pods, as enforced */
};

/*
 * Adds one node. What is not known adds nothing to either part: no allocatable, no pods of the API,
 * for the kernel's no agent, or one that tells the limits of none of the pods.
 */
void limits_add(struct limits_shares *to, const struct view_node *n, enum limits_unlimited policy);
/* NaN where nothing is known. */
double limits_ratio(const struct limits_share *s, enum resource_id id);

struct limits_mismatch {
	int64_t declared, kernel; /* LIMIT_NONE: no limit */
};

/*
 * True when the kernel enforces another limit of CPU or memory on the pod than its spec has the
 * kubelet set: none where any container has none. Equal are what differs by rounding only
 * (limits.c), and no limit and one that is the node's own. A pod that is not measured, whose limit
 * cannot be read, or that is being resized has none.
 */
bool limits_find_mismatch(const struct view_node *n, const struct view_pod *p, enum resource_id id,
			  struct limits_mismatch *out);
