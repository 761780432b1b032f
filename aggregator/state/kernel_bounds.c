/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/state/kernel_bounds.h"

#include "aggregator/state/node_stats.h"

static void add(struct kernel_bound *b, int64_t limit, int64_t whole)
{
	if (limit == LIMIT_UNKNOWN)
		b->unknown++;
	else if (limit < 0 || (whole > 0 && limit >= whole))
		b->unlimited++;
	else if (__builtin_add_overflow(b->limits, limit, &b->limits))
		b->limits = INT64_MAX;
}

/* Whether the pod's own bound is what counts, rather than those of its containers. */
static bool is_tighter(const struct kernel_bound *own, const struct kernel_bound *inside)
{
	if (own->unlimited || own->unknown)
		return false;
	return inside->unlimited || inside->unknown || own->limits < inside->limits;
}

static void add_pod(struct kernel_bound *sum, const struct pod_stats *p, int64_t whole,
		    int64_t (*of)(const struct kernel_limits *))
{
	struct kernel_bound own = {0, 0, 0}, inside = {0, 0, 0};
	const struct kernel_bound *pod = &inside;

	add(&own, of(p->limits), whole);
	for (size_t i = 0; i < p->container_count; i++)
		add(&inside, of(p->containers[i].limits), whole);
	if (!p->container_count || is_tighter(&own, &inside))
		pod = &own;
	if (__builtin_add_overflow(sum->limits, pod->limits, &sum->limits))
		sum->limits = INT64_MAX;
	sum->unlimited += pod->unlimited;
	sum->unknown += pod->unknown;
}

static int64_t cpu_of(const struct kernel_limits *limits)
{
	return limits->cpu_milli;
}

static int64_t mem_of(const struct kernel_limits *limits)
{
	return limits->mem_bytes;
}

void kernel_bounds_sum(const struct pod_stats *pods, size_t count, int64_t whole_cpu_milli,
		       int64_t whole_mem_bytes, struct kernel_bounds *bounds)
{
	*bounds = (struct kernel_bounds){{0, 0, 0}, {0, 0, 0}};
	for (size_t i = 0; i < count; i++) {
		if (pods[i].kind != ENTITY_POD && pods[i].kind != ENTITY_CONTAINER)
			continue;
		add_pod(&bounds->cpu, &pods[i], whole_cpu_milli, cpu_of);
		add_pod(&bounds->mem, &pods[i], whole_mem_bytes, mem_of);
	}
}
