/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod needs as much as it needs at its worst moment. Init containers run one after the other
 * before the containers, which run together:
 *
 *     need = max(sum of containers, each init container) + overhead                            (Trimaran)
 *     need = max(sum of containers + all sidecars,
 *                each init container + the sidecars started before it) + overhead              (kube-scheduler)
 *
 * where a value stated for the whole pod replaces the max(). The second follows component-helpers
 * resource.PodRequests and PodLimits: overhead is added to any request, but only to a limit that is
 * not 0, since a limit of 0 means no limit. Sums saturate, so no pod however absurd can wrap around
 * to a small one.
 */
#include "aggregator/model/pod_spec.h"

#include <stdlib.h>

struct amount {
	bool has;
	int64_t value;
};

typedef struct amount amount_of(const struct resource_list *list);

static struct amount cpu_of(const struct resource_list *list)
{
	return (struct amount){list->has_cpu, list->has_cpu ? list->cpu_milli : 0};
}

static struct amount mem_of(const struct resource_list *list)
{
	return (struct amount){list->has_mem, list->has_mem ? list->mem_bytes : 0};
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t of_container(const struct container_spec *c, bool limits, amount_of *of)
{
	return of(limits ? &c->limits : &c->requests).value;
}

static int64_t container_sum(const struct pod_spec *p, bool limits, amount_of *of)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->container_count; i++)
		sum = add(sum, of_container(&p->containers[i], limits, of));
	return sum;
}

static int64_t need_upstream(const struct pod_spec *p, bool limits, amount_of *of)
{
	int64_t need = container_sum(p, limits, of);

	for (size_t i = 0; i < p->init_count; i++)
		need = larger(need, of_container(&p->init[i], limits, of));
	return add(need, of(&p->overhead).value);
}

static int64_t need_of_containers(const struct pod_spec *p, bool limits, amount_of *of)
{
	int64_t sidecars = 0, start = 0;

	for (size_t i = 0; i < p->init_count; i++) {
		int64_t own = of_container(&p->init[i], limits, of);

		if (p->init[i].sidecar) {
			sidecars = add(sidecars, own);
			start = larger(start, sidecars);
		} else {
			start = larger(start, add(own, sidecars));
		}
	}
	return larger(add(container_sum(p, limits, of), sidecars), start);
}

static int64_t need(const struct pod_spec *p, bool limits, amount_of *of)
{
	const struct resource_list *stated = limits ? &p->pod_limits : &p->pod_requests;
	int64_t value;

	if (p->has_pod_resources && of(stated).has)
		value = of(stated).value;
	else
		value = need_of_containers(p, limits, of);
	if (limits && value == 0)
		return 0;
	return add(value, of(&p->overhead).value);
}

int64_t pod_spec_cpu_milli(const struct pod_spec *p, bool limits, bool upstream)
{
	return upstream ? need_upstream(p, limits, cpu_of) : need(p, limits, cpu_of);
}

int64_t pod_spec_mem_bytes(const struct pod_spec *p, bool limits, bool upstream)
{
	return upstream ? need_upstream(p, limits, mem_of) : need(p, limits, mem_of);
}

void pod_spec_free_members(struct pod_spec *p)
{
	free(p->containers);
	free(p->init);
	p->containers = NULL;
	p->init = NULL;
	p->container_count = p->init_count = 0;
}
