/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node of a view: its measured stats beside what the API says of it. It holds both, and what it
 * lists points into them, so a node is rebuilt whole when either is another one. Strings stay where
 * they are.
 *
 * Stats are new every few seconds, the API's part hardly ever: what follows from that alone
 * is taken from the node before, which spares the walk over records that lie all over the memory.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/state/view_parts.h"
#include "shared/mem.h"
#include "shared/refs.h"

/* Also for views of different joins, so that nobody has to ask which one a node is of. */
static uint64_t next_serial(void)
{
	static atomic_uint_least64_t last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* The first of them that is known. */
static int64_t amount(const struct resources *first, const struct resources *second,
		      enum resource_id id, int64_t measured)
{
	if (first && resources_has(first, id))
		return first->of[id];
	if (second && resources_has(second, id))
		return second->of[id];
	return measured;
}

static void take_amounts(struct view_node *n)
{
	const struct kube_node *k = n->model ? n->model->node : NULL;
	const struct node_stats *p = n->stats;
	const struct resources *capacity = k ? &k->capacity : NULL;
	const struct resources *allocatable = k ? &k->allocatable : NULL;

	n->cpu_capacity_milli = amount(capacity, NULL, RESOURCE_CPU, p->cpu_capacity_milli);
	n->mem_capacity_bytes = amount(capacity, NULL, RESOURCE_MEMORY, p->mem_capacity_bytes);
	n->cpu_allocatable_milli =
		amount(allocatable, capacity, RESOURCE_CPU, p->cpu_allocatable_milli);
	n->mem_allocatable_bytes =
		amount(allocatable, capacity, RESOURCE_MEMORY, p->mem_allocatable_bytes);
}

/* A node that was never heard has stats that say nothing but its name. */
static struct node_stats *stats_of(struct node_stats *stats, const struct model_node *model)
{
	struct node_stats empty = {0};

	if (stats)
		return node_stats_hold(stats);
	assert(model);
	empty.name = model->name;
	return node_stats_new(&empty);
}

struct view_node *view_node_renew(const struct view_node *before, struct node_stats *stats,
				  struct model_node *model)
{
	struct view_node *n = mem_zalloc(1, sizeof(*n));

	assert(!stats || !model || strcmp(stats->name, model->name) == 0);
	atomic_init(&n->users, 1);
	n->serial = next_serial();
	n->stats = stats_of(stats, model);
	n->model = model ? model_node_hold(model) : NULL;
	n->name = model ? n->model->name : n->stats->name;
	take_amounts(n);
	view_pods_join(n, before);
	if (model) {
		view_sums_add(n, before);
		view_recents_find(n);
	}
	return n;
}

static struct node_stats *stats_without_pods(const struct node_stats *stats)
{
	struct node_stats head = *stats;

	head.names = NULL;
	head.peaks = NULL;
	head.pods = NULL;
	head.pod_count = 0;
	head.layout = 0;
	return node_stats_new_bounded(&head);
}

struct view_node *view_node_without_pods(struct view_node *n)
{
	struct view_node *out;

	if (!n->model)
		return view_node_hold(n);
	out = mem_zalloc(1, sizeof(*out));
	atomic_init(&out->users, 1);
	out->serial = next_serial();
	out->stats = stats_without_pods(n->stats);
	out->model = model_node_hold(n->model);
	out->name = out->model->name;
	take_amounts(out);
	out->sums = n->sums;
	resources_copy(&out->sums.requests, &n->sums.requests);
	resources_copy(&out->sums.limits, &n->sums.limits);
	return out;
}

struct view_node *view_node_hold(struct view_node *n)
{
	refs_hold(&n->users);
	return n;
}

void view_node_drop(struct view_node *n)
{
	if (!n || !refs_drop(&n->users))
		return;
	resources_fini(&n->sums.requests);
	resources_fini(&n->sums.limits);
	free(n->recents);
	free(n->pods);
	model_node_drop(n->model);
	node_stats_drop(n->stats);
	free(n);
}

const char *view_pod_namespace(const struct view_pod *p)
{
	return p->pod ? p->pod->object.namespace : "";
}

const char *view_pod_name(const struct view_pod *p)
{
	return p->pod ? p->pod->object.name : p->use->name;
}

const char *view_pod_uid(const struct view_pod *p)
{
	return p->pod ? p->pod->object.uid : p->use->uid;
}

struct pod_key {
	const char *namespace, *name;
};

static int compare_pod(const void *key, const void *pod)
{
	const struct pod_key *k = key;

	return strcmp(k->namespace, view_pod_namespace(pod)) ?: strcmp(k->name, view_pod_name(pod));
}

const struct view_pod *view_node_find_pod(const struct view_node *n, const char *namespace,
					  const char *name)
{
	const struct pod_key key = {namespace, name};

	return bsearch(&key, n->pods, n->pod_count, sizeof(n->pods[0]), compare_pod);
}
