/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summed once when a node is built, since every score, table and quota asks for it. What the kernel enforces on a pod is
 * the tighter of its own limit and those of its containers together (page_bounds.h); a limit of the node's whole
 * allocatable or more is none.
 */
#include <string.h>

#include "aggregator/state/view_parts.h"

static void add_saturating(int64_t *sum, int64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = INT64_MAX;
}

static void add_bound(const struct page_bound *b, int64_t *limits, uint32_t *unlimited)
{
	if (b->unknown)
		return;
	if (b->unlimited)
		++*unlimited;
	else
		add_saturating(limits, b->limits);
}

static void add_kernel(struct view_node *n, const struct page_pod *use)
{
	struct view_sums *s = &n->sums;
	struct page_bounds b;

	page_bounds_sum(use, 1, n->cpu_allocatable_milli, n->mem_allocatable_bytes, &b);
	add_bound(&b.cpu, &s->kernel_cpu_milli, &s->kernel_unlimited_cpu);
	add_bound(&b.mem, &s->kernel_mem_bytes, &s->kernel_unlimited_mem);
	s->kernel_unknown += b.cpu.unknown || b.mem.unknown;
}

static void add_declared(struct view_sums *s, const struct kube_pod *pod)
{
	s->pods++;
	s->daemon_pods += strcmp(pod->template->owner.kind, "DaemonSet") == 0;
	for (int r = 0; r < POD_LOADS; r++)
		pod_load_add_record(&s->load[r], pod, (enum resource_id)r);
	resources_add(&s->requests, kube_pod_requests(pod));
	resources_add(&s->limits, kube_pod_limits(pod));
}

static void sum_declared(struct view_sums *s, const struct model_node *model)
{
	for (size_t i = 0; i < model->pod_count; i++)
		if (kube_pod_is_active(model->pods[i]))
			add_declared(s, model->pods[i]);
	s->unlimited_cpu = s->load[RESOURCE_CPU].unlimited;
	s->unlimited_mem = s->load[RESOURCE_MEMORY].unlimited;
	s->unlimited_requests_cpu = s->load[RESOURCE_CPU].unlimited_requests;
	s->unlimited_requests_mem = s->load[RESOURCE_MEMORY].unlimited_requests;
}

static void copy_declared(struct view_sums *s, const struct view_sums *from)
{
	*s = *from;
	resources_copy(&s->requests, &from->requests);
	resources_copy(&s->limits, &from->limits);
	s->kernel_cpu_milli = s->kernel_mem_bytes = 0;
	s->kernel_unlimited_cpu = s->kernel_unlimited_mem = s->kernel_unknown = 0;
}

void view_sums_add(struct view_node *n, const struct view_node *before)
{
	if (before && before->model == n->model)
		copy_declared(&n->sums, &before->sums);
	else
		sum_declared(&n->sums, n->model);
	for (size_t i = 0; i < n->pod_count; i++) {
		const struct view_pod *p = &n->pods[i];

		if (p->use && p->use->kind == ENTITY_POD)
			add_kernel(n, p->use);
		else if (p->pod && kube_pod_is_active(p->pod))
			n->sums.kernel_unknown++;
	}
}
