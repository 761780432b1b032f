/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Kubernetes API tells of nodes and pods, in JSON: labels, amounts of resources, limits
 * and their ratios.
 */
#ifndef EVENKEEL_AGGREGATOR_API_CLUSTER_JSON_H
#define EVENKEEL_AGGREGATOR_API_CLUSTER_JSON_H

#include "aggregator/api/limits.h"
#include "aggregator/model/labels.h"
#include "aggregator/model/resources.h"
#include "shared/jsonw.h"

/* What becomes of CPU and memory that have no key; other resources are then always left out. */
enum cluster_absent { ABSENT_LEFT_OUT, ABSENT_ZERO, ABSENT_NULL };

/* Each writes a key and its object. */

/* "labels":{..} */
void cluster_json_write_labels(struct jsonw *w, const struct labels *labels);
/*
 * key:{"cpuMillicores","memoryBytes","ephemeralStorageBytes","pods", and others by their own names}
 */
void cluster_json_write_resources(struct jsonw *w, const char *key, const struct resources *r,
				  enum cluster_absent absent);
/* "unlimitedContainers":{"cpu","memory"} */
void cluster_json_write_unlimited(struct jsonw *w, uint32_t cpu, uint32_t memory);
/*
 * What the pods of a node, or of several, have for limits:
 * "limits":{..},"unlimitedContainers":{"cpu","memory"},"kernelLimits":{"cpuMillicores","memoryBytes",
 * "unlimitedContainers":{"cpu","memory"},"unknownPods"}
 */
void cluster_json_write_limits(struct jsonw *w, const struct view_sums *sums);
/* "limitRatio":{"declared":{"cpu","memory"},"kernel":{..}}, without what is not known. */
void cluster_json_write_ratio(struct jsonw *w, const struct limits_shares *shares);
/*
 * "limitMismatch":{"cpuMillicores":{"declared","kernel"},"memoryBytes":{..}}, null is no limit;
 * nothing where both agree.
 */
void cluster_json_write_mismatch(struct jsonw *w, const struct view_node *n,
				 const struct view_pod *p);

#endif
