/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/score_load.h"

#include "aggregator/policy/arith.h"
#include "aggregator/policy/plugin.h"

static int64_t amount(const struct resource_list *list, enum score_resource resource)
{
	if (resource == SCORE_CPU)
		return list->has_cpu ? list->cpu_milli : 0;
	return list->has_mem ? list->mem_bytes : 0;
}

static void add_container(struct pod_bound *bound, const struct container_spec *c,
			  enum score_resource resource)
{
	int64_t limit = amount(&c->limits, resource);

	if (limit > 0) {
		bound->limit = add_saturating(bound->limit, limit);
		return;
	}
	bound->unlimited++;
	bound->unlimited_requests =
		add_saturating(bound->unlimited_requests, amount(&c->requests, resource));
}

struct pod_bound score_pod_bound(const struct pod_spec *pod, enum score_resource resource)
{
	int64_t stated = pod->has_pod_resources ? amount(&pod->pod_limits, resource) : 0;
	int64_t overhead = amount(&pod->overhead, resource);
	struct pod_bound bound = {overhead, 0, 0};

	if (stated > 0)
		return (struct pod_bound){add_saturating(stated, overhead), 0, 0};
	for (size_t i = 0; i < pod->container_count; i++)
		add_container(&bound, &pod->containers[i], resource);
	for (size_t i = 0; i < pod->init_count; i++)
		if (pod->init[i].sidecar)
			add_container(&bound, &pod->init[i], resource);
	return bound;
}

int64_t score_unlimited(uint32_t containers, int64_t requests, int64_t each)
{
	int64_t sum;

	if (__builtin_mul_overflow((int64_t)containers, each, &sum))
		sum = INT64_MAX;
	return sum > requests ? sum : requests;
}

static int64_t limit_trimaran(const struct pod_spec *pod, enum score_resource resource)
{
	int64_t request = score_pod_need(pod, resource, false, true);
	int64_t limit = score_pod_need(pod, resource, true, true);

	return limit > request ? limit : request;
}

struct node_sums score_sums_with_pod(const struct score_sums *on_node, const struct pod_spec *pod,
				     enum score_resource resource, int64_t allocatable)
{
	int64_t request = add_saturating(on_node->requests_trimaran,
					 score_pod_need(pod, resource, false, true));

	return (struct node_sums){
		.request = request < allocatable ? request : allocatable,
		.limit = add_saturating(on_node->limits_trimaran, limit_trimaran(pod, resource)),
		.request_minus_pod = on_node->requests_trimaran < allocatable
					     ? on_node->requests_trimaran
					     : allocatable,
		.limit_minus_pod = on_node->limits_trimaran,
	};
}

void score_load_add_pod(struct score_load *load, const struct pod_spec *pod)
{
	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++) {
		struct score_sums *s = &load->of[r];
		struct pod_bound bound = score_pod_bound(pod, r);

		s->requests = add_saturating(s->requests, score_pod_need(pod, r, false, false));
		s->limits = add_saturating(s->limits, bound.limit);
		s->unlimited_requests =
			add_saturating(s->unlimited_requests, bound.unlimited_requests);
		s->unlimited += bound.unlimited;
		s->requests_trimaran =
			add_saturating(s->requests_trimaran, score_pod_need(pod, r, false, true));
		s->limits_trimaran = add_saturating(s->limits_trimaran, limit_trimaran(pod, r));
		for (size_t i = 0; i < pod->container_count; i++)
			s->limits_containers =
				add_saturating(s->limits_containers,
					       amount(&pod->containers[i].limits, r));
	}
}
