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

/* The limits, and what those without one count as. */
static double sum_of(int64_t limits, uint32_t unlimited, int64_t unlimited_requests, double each,
		     enum limits_unlimited policy)
{
	double sum = (double)limits;

	if (policy == UNLIMITED_ALLOCATABLE)
		sum += (double)unlimited * each;
	if (policy == UNLIMITED_REQUESTS)
		sum += (double)unlimited_requests;
	return sum;
}

void limits_add(struct limits_shares *to, const struct view_node *n, enum limits_unlimited policy)
{
	for (int r = 0; r < LIMITS_RESOURCES; r++) {
		enum resource_id id = (enum resource_id)r;
		const struct pod_load *declared = &n->sums.load[id];
		const struct kernel_sum *kernel = &n->sums.kernel[id];
		double of = (double)allocatable(n, id);

		if (!n->model || of <= 0)
			continue;
		to->declared.sum[id] += sum_of(n->sums.limits.of[id], declared->unlimited,
					       declared->unlimited_requests, of, policy);
		to->declared.of[id] += of;
		/* Anything at all of what the kernel enforces there. */
		if (!n->stats->end_ns ||
		    (!kernel->limits && !kernel->unlimited && n->sums.kernel_unknown))
			continue;
		to->kernel.sum[id] += sum_of(kernel->limits, kernel->unlimited,
					     kernel->unlimited_requests, of, policy);
		to->kernel.of[id] += of;
	}
}

double limits_ratio(const struct limits_share *s, enum resource_id id)
{
	return s->of[id] > 0 ? s->sum[id] / s->of[id] : NAN;
}

static bool all_limited(const struct container_spec *containers, size_t count, enum resource_id id)
{
	for (size_t i = 0; i < count; i++)
		if (!containers[i].limits.has[id])
			return false;
	return true;
}

static int64_t declared_limit(const struct kube_pod *pod, enum resource_id id)
{
	const struct pod_spec *spec = &pod->template->spec;
	const struct resources *limits = kube_pod_limits(pod);
	bool whole = spec->has_pod_resources && spec->pod_limits.has[id];

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
