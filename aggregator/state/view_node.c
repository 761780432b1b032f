/* SPDX-License-Identifier: Apache-2.0 */
/* One node of a view: its measured page beside what the API says of it. */
#include <assert.h>
#include <stdlib.h>

#include "aggregator/state/view.h"
#include "shared/mem.h"

static void list_measured(struct view_node *n)
{
	n->pod_count = n->page->pod_count;
	n->pods = mem_zalloc(n->pod_count + 1, sizeof(*n->pods));
	for (size_t i = 0; i < n->pod_count; i++)
		n->pods[i].use = &n->page->pods[i];
}

struct view_node *view_node_new(struct node_page *page, struct model_node *model)
{
	struct view_node *n = mem_zalloc(1, sizeof(*n));

	atomic_init(&n->users, 1);
	n->page = page_hold(page);
	n->model = model;
	n->name = page->name;
	n->cpu_capacity_milli = page->cpu_capacity_milli;
	n->mem_capacity_bytes = page->mem_capacity_bytes;
	n->cpu_allocatable_milli = page->cpu_allocatable_milli;
	n->mem_allocatable_bytes = page->mem_allocatable_bytes;
	list_measured(n);
	return n;
}

struct view_node *view_node_hold(struct view_node *n)
{
	unsigned int users = atomic_fetch_add_explicit(&n->users, 1, memory_order_relaxed);

	assert(users > 0);
	return n;
}

void view_node_drop(struct view_node *n)
{
	unsigned int users;

	if (!n)
		return;
	users = atomic_fetch_sub_explicit(&n->users, 1, memory_order_acq_rel);
	assert(users > 0);
	if (users > 1)
		return;
	page_drop(n->page);
	free(n->pods);
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
