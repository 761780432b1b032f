/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/score/score_load.h"

#include "aggregator/policy/arith.h"
#include "aggregator/policy/expected_use.h"
#include "aggregator/policy/score/plugin.h"

_Static_assert((int)SCORE_CPU == RESOURCE_CPU && (int)SCORE_MEMORY == RESOURCE_MEMORY &&
		       (int)SCORE_RESOURCES == POD_LOADS,
	       "struct score_load is filled by copying a node's sums");

void score_pod_read(const struct score_query *q, struct score_pod *sums)
{
	struct score_query plain = *q;

	plain.sums = NULL;
	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++) {
		sums->of[r].request = score_request(&plain, r);
		sums->of[r].bound = score_pod_bound(&plain, r);
	}
	if (q->variant == SCORE_UPSTREAM)
		sums->expected = (struct expected_use){
			.cpu_milli = target_load_packing_predict(q->pod, q->args)};
	else
		expected_use_read(q->pod, q->args, &q->owner, &sums->expected);
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
