/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/score_load.h"

#include "aggregator/policy/arith.h"
#include "aggregator/policy/plugin.h"
#include "aggregator/policy/target_load_packing.h"

_Static_assert((int)SCORE_CPU == RESOURCE_CPU && (int)SCORE_MEMORY == RESOURCE_MEMORY &&
		       (int)SCORE_RESOURCES == POD_LOADS,
	       "struct score_load is filled by copying a node's sums");

struct pod_bound score_pod_bound(const struct score_query *q, enum score_resource resource)
{
	return q->sums ? q->sums->of[resource].bound
		       : pod_load_bound(q->pod, score_resource_id(resource));
}

void score_pod_read(const struct score_query *q, struct score_pod *sums)
{
	struct score_query plain = *q;

	plain.sums = NULL;
	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++) {
		sums->of[r].request = score_request(&plain, r);
		sums->of[r].bound = score_pod_bound(&plain, r);
	}
	sums->expected_cpu_milli = target_load_packing_expect(&plain);
}

int64_t score_unlimited(uint32_t containers, int64_t requests, int64_t each)
{
	int64_t sum;

	if (__builtin_mul_overflow((int64_t)containers, each, &sum))
		sum = INT64_MAX;
	return sum > requests ? sum : requests;
}

struct node_sums score_sums_with_pod(const struct pod_load *on_node, const struct pod_spec *pod,
				     enum score_resource resource, int64_t allocatable)
{
	int64_t request = add_saturating(on_node->requests_trimaran,
					 score_pod_need(pod, resource, false, true));
	int64_t limit = pod_load_limit_trimaran(pod, score_resource_id(resource));

	return (struct node_sums){
		.request = request < allocatable ? request : allocatable,
		.limit = add_saturating(on_node->limits_trimaran, limit),
		.request_minus_pod = on_node->requests_trimaran < allocatable
					     ? on_node->requests_trimaran
					     : allocatable,
		.limit_minus_pod = on_node->limits_trimaran,
	};
}

double score_limits_on_node(const struct pod_load *on_node, int64_t each, int64_t allocatable)
{
	return (double)on_node->limits +
	       (double)score_unlimited(on_node->unlimited, on_node->unlimited_requests, each) +
	       (double)on_node->unknown * (double)allocatable;
}

double score_limits_of_pod(const struct pod_bound *pod, int64_t each)
{
	return (double)pod->limit +
	       (double)score_unlimited(pod->unlimited, pod->unlimited_requests, each);
}

void score_load_add_pod(struct score_load *load, const struct pod_spec *pod)
{
	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++)
		pod_load_add(&load->of[r], pod, score_resource_id(r));
}
