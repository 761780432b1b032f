/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many pods a CapacityBuffer (autoscaling.x-k8s.io) stands for, as the cluster autoscaler
 * counts them. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/model/resources.h"
#include "shared/error.h"

/* Fields of its spec, and what they refer to; has_..: the field is there. */
struct buffer_spec {
	bool has_replicas, has_percentage, has_scalable, has_limits;
	int32_t replicas;
	int32_t percentage; /* of scalable_replicas */
	int32_t scalable_replicas; /* of the workload that the buffer names */
	struct resources limits; /* borrowed */
	struct resources requests; /* of one pod; borrowed */
};

/*
 * min(max(replicas, ceil(percentage * N / 100)), min over limits of floor(limit / request)); with
 * limits alone, that bound. What exceeds 32 bits becomes INT32_MAX, and what is negative 0.
 * -EINVAL: nothing says how many, or no limit names what the pod requests.
 */
int buffer_replicas(const struct buffer_spec *b, int32_t *out, struct error *error);
