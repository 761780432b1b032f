/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summed once when a node is built, since every score, table and quota needs it. The kernel
 * enforces on a pod the tighter of its own limit and those of its containers together
 * (node_stats.h); a limit of the node's whole allocatable or more is none.
 *
 * Declared and enforced limits count alike, so that their sums differ only where the kernel
 * enforces others: limits of the containers that have one, and how many have none. Cgroups do not
 * tell which container of the spec they are, so
 * - those beyond the containers of the spec are the sandbox and ephemeral ones, which no spec gives
 *   a limit,
 * - where as many are unlimited as declared, these are the same; what more or fewer of them request
 *   is their share of
 *   what containers of their sort request.
 */
#include <string.h>

#include "aggregator/state/view_parts.h"
#include "shared/arith.h"

/* Containers of a spec that have a limit of their own while the pod runs. */
static uint32_t count_running(const struct pod_spec *spec)
{
	uint32_t count = (uint32_t)spec->container_count;

	for (size_t i = 0; i < spec->init_count; i++)
		count += spec->init[i].sidecar;
	return count;
}

static int64_t part_of(int64_t amount, uint32_t part, uint32_t whole)
{
	return part == whole ? amount : (int64_t)((double)amount * part / whole);
}

/* Requests of `unlimited` of the containers that a pod runs. */
static int64_t unlimited_requests(const struct kube_pod *pod, enum resource_id id,
				  uint32_t unlimited, uint32_t running)
{
	struct pod_bound declared = pod_load_bound(&pod->template->spec, id);
	int64_t others = kube_pod_requests(pod)->of[id] - declared.unlimited_requests;

	if (unlimited > running)
		unlimited = running;
	if (!unlimited)
		return 0;
	if (unlimited <= declared.unlimited)
		return part_of(declared.unlimited_requests, unlimited, declared.unlimited);
	if (others < 0)
		others = 0;
	return declared.unlimited_requests +
	       part_of(others, unlimited - declared.unlimited, running - declared.unlimited);
}

static void add_bound(struct kernel_sum *to, const struct kernel_bound *b, const struct view_pod *p,
		      enum resource_id id)
{
	uint32_t unlimited = b->unlimited, seen = p->use->container_count;

	to->limits = add_saturating(to->limits, b->limits);
	if (p->pod && unlimited) {
		uint32_t running = count_running(&p->pod->template->spec);
		uint32_t beyond = seen > running ? seen - running : 0;

		unlimited -= beyond < unlimited ? beyond : unlimited;
		/* A pod whose containers are not seen is unlimited with all of them. */
		if (kube_pod_is_active(p->pod))
			to->unlimited_requests =
				add_saturating(to->unlimited_requests,
					       unlimited_requests(p->pod, id,
								  seen ? unlimited : running,
								  running));
	}
	to->unlimited += unlimited;
}

static void add_kernel(struct view_node *n, const struct view_pod *p)
{
	struct view_sums *s = &n->sums;
	struct kernel_bounds b;

	kernel_bounds_sum(p->use, 1, n->cpu_allocatable_milli, n->stats->exclusive_cpu_milli,
			  n->mem_allocatable_bytes, &b);
	add_bound(&s->kernel[RESOURCE_CPU], &b.cpu, p, RESOURCE_CPU);
	add_bound(&s->kernel[RESOURCE_MEMORY], &b.mem, p, RESOURCE_MEMORY);
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

static void copy_sums(struct view_sums *s, const struct view_sums *from)
{
	*s = *from;
	resources_copy(&s->requests, &from->requests);
	resources_copy(&s->limits, &from->limits);
}

void view_sums_add(struct view_node *n, const struct view_node *before)
{
	/* Enforced sums follow from limits, objects and the node's allocatable. */
	if (view_pods_same(n, before) &&
	    n->cpu_allocatable_milli == before->cpu_allocatable_milli &&
	    n->mem_allocatable_bytes == before->mem_allocatable_bytes) {
		copy_sums(&n->sums, &before->sums);
		return;
	}
	if (before && before->model == n->model) {
		copy_sums(&n->sums, &before->sums);
		memset(n->sums.kernel, 0, sizeof(n->sums.kernel));
		n->sums.kernel_unknown = 0;
	} else {
		for (size_t i = 0; i < n->model->pod_count; i++)
			if (kube_pod_is_active(n->model->pods[i]))
				add_declared(&n->sums, n->model->pods[i]);
	}
	for (size_t i = 0; i < n->pod_count; i++) {
		const struct view_pod *p = &n->pods[i];

		if (p->use && p->use->kind == ENTITY_POD)
			add_kernel(n, p);
		else if (p->pod && kube_pod_is_active(p->pod))
			n->sums.kernel_unknown++;
	}
}
