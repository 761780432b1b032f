/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the pods of a node (model/pod_load.h) for plugins. Pure. */
#pragma once

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/score.h"

/* See pod_load_bound(). */
static inline struct pod_bound score_pod_bound(const struct score_query *q,
					       enum score_resource resource)
{
	return q->sums ? q->sums->of[resource].bound
		       : pod_load_bound(q->pod, score_resource_id(resource));
}

/* Requests and limits of one resource, with and without the new pod. */
struct node_sums {
	int64_t request, limit, request_minus_pod, limit_minus_pod;
};

/* Upstream's LowRiskOverCommitment: limits are at least requests; requests are cut at allocatable. */
struct node_sums score_sums_with_pod(const struct pod_load *on_node, const struct pod_spec *pod,
				     enum score_resource resource, int64_t allocatable);
/* Amount of containers without a limit: `each`, but at least their requests. */
static inline int64_t score_unlimited(uint32_t containers, int64_t requests, int64_t each)
{
	int64_t sum;

	if (__builtin_mul_overflow((int64_t)containers, each, &sum))
		sum = INT64_MAX;
	return sum > requests ? sum : requests;
}

/* `each` by score_args.unlimited. */
static inline int64_t score_unlimited_as(const struct score_args *args, enum score_resource r,
					 int64_t allocatable)
{
	if (args->unlimited[r] < 0)
		return allocatable;
	if (args->unlimited[r] > 0)
		return args->unlimited[r];
	return r == SCORE_CPU ? args->default_requests_cpu_milli : 0;
}

/* Limits of a resource as LimitAware and node_limits.h count them. */
struct score_limits {
	double stated;
	double unlimited; /* of containers without a limit */
};

/* Containers without a limit count as `each`, those of an unreadable one as the whole node. */
static inline struct score_limits score_limits_on_node(const struct score_args *args,
						       const struct pod_load *on_node, int64_t each,
						       int64_t allocatable)
{
	return (struct score_limits){
		(double)(args->init_ignored ? on_node->limits_running : on_node->limits),
		(double)score_unlimited(on_node->unlimited, on_node->unlimited_requests, each) +
			(double)on_node->unknown * (double)allocatable,
	};
}

static inline struct score_limits score_limits_of_pod(const struct score_args *args,
						      const struct pod_bound *pod, int64_t each)
{
	return (struct score_limits){
		(double)(args->init_ignored ? pod->limit_running : pod->limit),
		(double)score_unlimited(pod->unlimited, pod->unlimited_requests, each),
	};
}
