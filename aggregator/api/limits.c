/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ratio of a node is the sum of its pods' limits by its allocatable: above 1 the limits are
 * over-subscribed, and the pods cannot all have what they may take. Declared and enforced limits
 * are summed apart, since the kernel may enforce others: a kubelet without CPU quotas, a change
 * behind the API's back, a runtime that did not apply a resize.
 *
 * The limits that the kubelet sets for a pod as a whole, and how exactly the kernel keeps them:
 * - A limit at pod level, else the sum over the containers if every one of them has a limit, init
 *   containers included; else none (kubelet, cm/helpers_linux.go, ResourceConfigForPod).
 * - CPU becomes a quota of at least 1 ms in 100 ms, so 10 millicores; systemd keeps whole percents,
 *   which runtimes round up, so up to the next 10 millicores.
 * - Memory is cut to whole pages, of 64 KiB at most.
 *
 * A pod without a limit still stands below the cgroup of all pods, which the kubelet limits to
 * about the node's allocatable: enforced limits from there on are the node's, not the pod's.
 */
#include "aggregator/api/limits.h"

#include <math.h>

enum { QUOTA_STEP_MILLI = 10, QUOTA_LEAST_MILLI = 10, PAGE_MOST_BYTES = 65536 };

static int64_t allocatable(const struct view_node *n, enum resource_id id)
{
	return id == RESOURCE_CPU ? n->cpu_allocatable_milli : n->mem_allocatable_bytes;
}

static double declared_sum(const struct view_node *n, enum resource_id id,
			   enum limits_unlimited policy)
{
	const struct view_sums *s = &n->sums;
	bool cpu = id == RESOURCE_CPU;
	double sum = (double)s->limits.of[id];

	if (policy == UNLIMITED_ALLOCATABLE)
		sum += (double)(cpu ? s->unlimited_cpu : s->unlimited_mem) *
		       (double)allocatable(n, id);
	if (policy == UNLIMITED_REQUESTS)
		sum += (double)(cpu ? s->unlimited_requests_cpu : s->unlimited_requests_mem);
	return sum;
}

static double kernel_sum(const struct view_node *n, enum resource_id id,
			 enum limits_unlimited policy)
{
	const struct view_sums *s = &n->sums;
	bool cpu = id == RESOURCE_CPU;
	double sum = (double)(cpu ? s->kernel_cpu_milli : s->kernel_mem_bytes);

	if (policy == UNLIMITED_ALLOCATABLE)
		sum += (double)(cpu ? s->kernel_unlimited_cpu : s->kernel_unlimited_mem) *
		       (double)allocatable(n, id);
	if (policy == UNLIMITED_REQUESTS)
		sum += (double)(cpu ? s->kernel_unlimited_requests_cpu
				    : s->kernel_unlimited_requests_mem);
	return sum;
}

/* Anything at all of what the kernel enforces there. */
static bool is_kernel_known(const struct view_node *n, enum resource_id id)
{
	const struct view_sums *s = &n->sums;
	bool some = id == RESOURCE_CPU ? s->kernel_cpu_milli || s->kernel_unlimited_cpu
				       : s->kernel_mem_bytes || s->kernel_unlimited_mem;

	return n->stats->end_ns && (some || !s->kernel_unknown);
}

void limits_add(struct limits_shares *to, const struct view_node *n, enum limits_unlimited policy)
{
	for (int r = 0; r < LIMITS_RESOURCES; r++) {
		enum resource_id id = (enum resource_id)r;
		double of = (double)allocatable(n, id);

		if (!n->model || of <= 0)
			continue;
		to->declared.sum[id] += declared_sum(n, id, policy);
		to->declared.of[id] += of;
		if (!is_kernel_known(n, id))
			continue;
		to->kernel.sum[id] += kernel_sum(n, id, policy);
		to->kernel.of[id] += of;
	}
}

double limits_ratio(const struct limits_share *s, enum resource_id id)
{
	return s->of[id] > 0 ? s->sum[id] / s->of[id] : NAN;
}

static bool has_limit(const struct resource_list *l, enum resource_id id)
{
	return id == RESOURCE_CPU ? l->has_cpu : l->has_mem;
}

static bool all_limited(const struct container_spec *containers, size_t count, enum resource_id id)
{
	for (size_t i = 0; i < count; i++)
		if (!has_limit(&containers[i].limits, id))
			return false;
	return true;
}

static int64_t declared_limit(const struct kube_pod *pod, enum resource_id id)
{
	const struct pod_spec *spec = &pod->template->spec;
	const struct resources *limits = kube_pod_limits(pod);
	bool whole = spec->has_pod_resources && has_limit(&spec->pod_limits, id);

	if (!resources_has(limits, id))
		return LIMIT_NONE;
	if (!whole && !(all_limited(spec->containers, spec->container_count, id) &&
			all_limited(spec->init, spec->init_count, id)))
		return LIMIT_NONE;
	/* As an object writes it, a limit of 0 is none. */
	return limits->of[id] > 0 ? limits->of[id] : LIMIT_NONE;
}

static bool is_rounding(int64_t declared, int64_t kernel, enum resource_id id)
{
	int64_t most = (declared + QUOTA_STEP_MILLI - 1) / QUOTA_STEP_MILLI * QUOTA_STEP_MILLI;

	if (id == RESOURCE_MEMORY)
		return kernel <= declared && kernel > declared - PAGE_MOST_BYTES;
	if (most < QUOTA_LEAST_MILLI)
		most = QUOTA_LEAST_MILLI;
	return kernel >= declared - 1 && kernel <= most;
}

bool limits_find_mismatch(const struct view_node *n, const struct view_pod *p, enum resource_id id,
			  struct limits_mismatch *out)
{
	int64_t declared, kernel, whole = allocatable(n, id);

	if (!p->pod || !p->use || !p->use->limits || p->pod->resize == POD_RESIZE_PROPOSED ||
	    p->pod->resize == POD_RESIZE_IN_PROGRESS)
		return false;
	declared = declared_limit(p->pod, id);
	kernel = id == RESOURCE_CPU ? p->use->limits->cpu_milli : p->use->limits->mem_bytes;
	if (kernel == LIMIT_UNKNOWN || kernel == declared)
		return false;
	if (id == RESOURCE_CPU)
		whole = node_stats_shared_cpu(p->use->limits, whole, n->stats->exclusive_cpu_milli);
	if (declared == LIMIT_NONE && whole > 0 && kernel >= whole)
		return false;
	if (declared >= 0 && kernel >= 0 && is_rounding(declared, kernel, id))
		return false;
	*out = (struct limits_mismatch){declared, kernel};
	return true;
}
