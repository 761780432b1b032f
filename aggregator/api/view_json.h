/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that nodes, pods and plans share in answers: labels, amounts of resources, limits and
 * their ratios as the Kubernetes API tells them. Each function writes a key and its object. Usage as
 * measured: aggregator/state/stats_json.h.
 */
#pragma once

#include <stdint.h>

#include "aggregator/api/limits.h"
#include "aggregator/model/labels.h"
#include "aggregator/model/resources.h"
#include "aggregator/policy/place/place.h"
#include "shared/jsonw.h"
#include "shared/usage_json.h"

/* key:{"cpuMillicores","memoryBytes"} */
void view_json_write_amounts(struct jsonw *w, const char *key, int64_t cpu_milli,
			     int64_t mem_bytes);

/* key:{"cpuMillicores","memoryBytes"} of a node; 0 is unknown, and absent. */
void view_json_write_capacity(struct jsonw *w, const char *key, int64_t cpu_milli,
			      int64_t mem_bytes);

/* --- what the Kubernetes API tells */

/* CPU and memory without an amount; other resources are always left out then. */
enum cluster_absent { ABSENT_LEFT_OUT, ABSENT_ZERO, ABSENT_NULL };

/* "labels":{..} */
void view_json_write_labels(struct jsonw *w, const struct labels *labels);
/*
 * key:{"cpuMillicores","memoryBytes","ephemeralStorageBytes","pods", and others by their own names}
 */
void view_json_write_resources(struct jsonw *w, const char *key, const struct resources *r,
			       enum cluster_absent absent);
/* "unlimitedContainers":{"cpu","memory"} */
void view_json_write_unlimited(struct jsonw *w, uint32_t cpu, uint32_t memory);
/*
 * What the pods of a node, or of several, have for limits:
 * "limits":{..},"unlimitedContainers":{"cpu","memory"},"kernelLimits":{"cpuMillicores","memoryBytes",
 * "unlimitedContainers":{"cpu","memory"},"unknownPods"}
 */
void view_json_write_limits(struct jsonw *w, const struct view_sums *sums);
/* "limitRatio":{"declared":{"cpu","memory"},"kernel":{..}}, without what is not known. */
void view_json_write_ratio(struct jsonw *w, const struct limits_shares *shares);
/*
 * "limitMismatch":{"cpuMillicores":{"declared","kernel"},"memoryBytes":{..}}, null is no limit;
 * nothing where both agree.
 */
void view_json_write_mismatch(struct jsonw *w, const struct view_node *n, const struct view_pod *p);
