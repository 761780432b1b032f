/* SPDX-License-Identifier: Apache-2.0 */
/* One resource of one node as the risk plugins see it, and sums over the pods of a node. Pure. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_RESOURCE_STATS_H
#define EVENKEEL_AGGREGATOR_POLICY_RESOURCE_STATS_H

#include "aggregator/policy/score.h"

/* All in the unit of the resource: millicores, bytes. */
struct resource_stats {
	double capacity;
	double request; /* of the pod to be placed */
	double used_mean, used_stddev;
};

/* percent_of: what the metric is a percentage of; upstream takes the allocatable, as for capacity. */
void resource_stats_init(struct resource_stats *s, const struct score_metric *metric,
			 double percent_of, double capacity, double request);
/* mu = (mean + request) / capacity and sigma = stddev / capacity, each within 0..1; both 0 without a capacity. */
void resource_stats_mu_sigma(const struct resource_stats *s, double *mu, double *sigma);

struct resource_sums {
	int64_t cpu_milli, mem_bytes;
};

/* What the pods of a node ask for, with and without the pod to be placed. */
struct node_sums {
	struct resource_sums request, limit;
	struct resource_sums request_minus_pod, limit_minus_pod;
};

/* As LowRiskOverCommitment counts: each pod's limit is at least its request; requests, not limits, are cut at what is
 * allocatable. */
void node_sums_upstream(const struct pod_spec *pods, size_t count, const struct pod_spec *pod,
			const struct resource_sums *allocatable, struct node_sums *sums);

#endif
