/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/model/pod_load.h"

#include <string.h>

#include "shared/arith.h"

static void add_container(struct pod_bound *bound, const struct container_spec *c,
			  enum resource_id resource)
{
	int64_t limit = resource_list_amount(&c->limits, resource);

	if (limit > 0) {
		bound->limit_running = add_saturating(bound->limit_running, limit);
		return;
	}
	bound->unlimited++;
	bound->unlimited_requests = add_saturating(bound->unlimited_requests,
						   resource_list_amount(&c->requests, resource));
}

struct pod_bound pod_load_bound(const struct pod_spec *pod, enum resource_id resource)
{
	int64_t stated =
		pod->has_pod_resources ? resource_list_amount(&pod->pod_limits, resource) : 0;
	int64_t overhead = resource_list_amount(&pod->overhead, resource);
	struct pod_bound bound = {pod_spec_need(pod, resource, true, false), overhead, 0, 0};

	if (stated > 0) {
		bound.limit_running = bound.limit;
		return bound;
	}
	for (size_t i = 0; i < pod->container_count; i++)
		add_container(&bound, &pod->containers[i], resource);
	for (size_t i = 0; i < pod->init_count; i++)
		if (pod->init[i].sidecar)
			add_container(&bound, &pod->init[i], resource);
	return bound;
}

int64_t pod_load_limit_trimaran(const struct pod_spec *pod, enum resource_id resource)
{
	int64_t request = pod_spec_need(pod, resource, false, true);
	int64_t limit = pod_spec_need(pod, resource, true, true);

	return limit > request ? limit : request;
}

static void add_bound(struct pod_load *load, const struct pod_bound *bound)
{
	load->limits = add_saturating(load->limits, bound->limit);
	load->limits_running = add_saturating(load->limits_running, bound->limit_running);
	load->unlimited_requests =
		add_saturating(load->unlimited_requests, bound->unlimited_requests);
	load->unlimited += bound->unlimited;
}

void pod_load_add(struct pod_load *load, const struct pod_spec *pod, enum resource_id resource)
{
	struct pod_bound bound = pod_load_bound(pod, resource);

	load->requests = add_saturating(load->requests, pod_spec_need(pod, resource, false, false));
	add_bound(load, &bound);
	load->requests_trimaran =
		add_saturating(load->requests_trimaran, pod_spec_need(pod, resource, false, true));
	load->limits_trimaran =
		add_saturating(load->limits_trimaran, pod_load_limit_trimaran(pod, resource));
	for (size_t i = 0; i < pod->container_count; i++)
		load->limits_containers =
			add_saturating(load->limits_containers,
				       resource_list_amount(&pod->containers[i].limits, resource));
}

/* A resize changes amounts; which containers have a limit stays as it is. */
static void add_resize(struct pod_load *load, const struct kube_pod *pod, enum resource_id resource)
{
	const struct pod_template *t = pod->template;
	int64_t requests = kube_pod_requests(pod)->of[resource] - t->sums.requests.of[resource];
	int64_t limits = kube_pod_limits(pod)->of[resource] - t->sums.limits.of[resource];

	load->requests = add_saturating(load->requests, requests);
	load->requests_trimaran = add_saturating(load->requests_trimaran, requests);
	load->limits = add_saturating(load->limits, limits);
	load->limits_running = add_saturating(load->limits_running, limits);
	load->limits_trimaran = add_saturating(load->limits_trimaran, limits);
	load->limits_containers = add_saturating(load->limits_containers, limits);
}

void pod_load_add_record(struct pod_load *load, const struct kube_pod *pod,
			 enum resource_id resource)
{
	pod_load_add(load, &pod->template->spec, resource);
	if (pod->resized)
		add_resize(load, pod, resource);
}

struct pod_bound pod_load_bound_named(const struct pod_sums *sums, const char *resource)
{
	struct pod_bound bound = {0};

	resources_find(&sums->limits, resource, &bound.limit);
	resources_find(sums->running ? sums->running : &sums->limits, resource,
		       &bound.limit_running);
	if (strcmp(resource, resource_name(RESOURCE_EPHEMERAL_STORAGE)) == 0) {
		bound.unlimited = sums->unlimited_storage;
		bound.unlimited_requests = sums->unlimited_storage_requests;
	}
	return bound;
}

void pod_load_add_named(struct pod_load *load, const struct pod_sums *sums, const char *resource)
{
	struct pod_bound bound = pod_load_bound_named(sums, resource);

	add_bound(load, &bound);
	load->limits_containers = add_saturating(load->limits_containers, bound.limit_running);
}
