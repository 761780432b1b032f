/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a node's page from what is current. Entries of one name are one pod: a unit that was restarted within
 * the interval has two references, and both count; what can have but one value is the newest one's. A container goes to
 * the pod its parent reference became; one whose parent is not in the interval is not shown.
 */
#include "aggregator/state/usage_node.h"

#include <stdlib.h>

#include "shared/mem.h"

void page_scratch_free_members(struct page_scratch *s)
{
	free(s->pods);
	free(s->containers);
	free(s->page_pods);
	free(s->page_containers);
	*s = (struct page_scratch){0};
}

static void reserve(struct page_scratch *s, size_t room)
{
	if (s->room >= room)
		return;
	s->room = room;
	s->pods = mem_realloc(s->pods, room * sizeof(struct usage_ref *));
	s->containers = mem_realloc(s->containers, room * sizeof(struct usage_ref *));
	s->page_pods = mem_realloc(s->page_pods, room * sizeof(*s->page_pods));
	s->page_containers = mem_realloc(s->page_containers, room * sizeof(*s->page_containers));
}

static int compare_name(const struct usage_ref *a, const struct usage_ref *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->ref > b->ref) - (a->ref < b->ref);
}

static int compare_pod(const void *a, const void *b)
{
	return compare_name(*(struct usage_ref *const *)a, *(struct usage_ref *const *)b);
}

static int compare_container(const void *a, const void *b)
{
	const struct usage_ref *ra = *(struct usage_ref *const *)a;
	const struct usage_ref *rb = *(struct usage_ref *const *)b;

	if (ra->place != rb->place)
		return ra->place < rb->place ? -1 : 1;
	return compare_name(ra, rb);
}

static struct latest latest_cpu(const struct usage *u, int64_t end_ns)
{
	if (!(u->have & USAGE_CPU) || !u->cpu_milli.samples)
		return (struct latest){0};
	return (struct latest){true, (double)u->cpu_milli.mean, end_ns};
}

static struct latest latest_gauge(const struct usage *u, enum usage_have bit, const struct gauge *g,
				  int64_t end_ns)
{
	if (!(u->have & bit))
		return (struct latest){0};
	return (struct latest){true, (double)g->last, end_ns};
}

static void set_latest(struct page_usage *p, const struct usage *u, int64_t end_ns)
{
	p->cpu_milli = latest_cpu(u, end_ns);
	p->mem_bytes = latest_gauge(u, USAGE_MEMORY, &u->mem_bytes, end_ns);
	p->working_set_bytes = latest_gauge(u, USAGE_WORKING_SET, &u->working_set_bytes, end_ns);
}

/* One pod out of the references [first, first + count), all of one name, oldest first. */
static void fill_pod(struct page_pod *p, struct usage_ref *const *first, size_t count,
		     int64_t end_ns)
{
	const struct usage_ref *newest = first[count - 1];
	struct usage usage = first[0]->usage;

	for (size_t i = 1; i < count; i++)
		usage_merge(&usage, &first[i]->usage);
	p->name = newest->name;
	p->uid = newest->uid;
	p->kind = newest->kind;
	p->qos = newest->qos;
	p->limits = newest->limits;
	p->container_count = 0;
	p->containers = NULL;
	set_latest(&p->usage, &usage, end_ns);
	pod_windows_read(newest->pod->windows, end_ns, p->usage.windows);
}

/* Sorts and joins the references; returns the number of pods. Each reference learns its pod's place. */
static size_t fill_pods(struct page_scratch *s, size_t count, int64_t end_ns)
{
	size_t pods = 0;

	qsort(s->pods, count, sizeof(struct usage_ref *), compare_pod);
	for (size_t i = 0, run; i < count; i += run, pods++) {
		for (run = 0; i + run < count && s->pods[i]->rank == s->pods[i + run]->rank; run++)
			s->pods[i + run]->place = (uint32_t)pods;
		fill_pod(&s->page_pods[pods], &s->pods[i], run, end_ns);
	}
	return pods;
}

static const struct usage_ref *find_ref(const struct usage_node *n, uint32_t ref)
{
	size_t low = 0, high = n->ref_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (n->refs[middle].ref < ref)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n->ref_count && n->refs[low].ref == ref ? &n->refs[low] : NULL;
}

static void fill_container(struct page_container *c, const struct usage_ref *r, int64_t end_ns)
{
	const struct usage *u = &r->usage;

	*c = (struct page_container){
		.name = r->name,
		.id = r->id,
		.runtime = r->runtime,
		.limits = r->limits,
		.cpu_milli = latest_cpu(u, end_ns),
		.mem_bytes = latest_gauge(u, USAGE_MEMORY, &u->mem_bytes, end_ns),
		.working_set_bytes =
			latest_gauge(u, USAGE_WORKING_SET, &u->working_set_bytes, end_ns),
		.throttle_known = u->have & USAGE_THROTTLE,
		.throttled_seconds = u->have & USAGE_THROTTLE ? (double)u->throttled_ns / 1e9 : 0,
	};
}

static void fill_containers(struct page_scratch *s, size_t count, int64_t end_ns)
{
	qsort(s->containers, count, sizeof(struct usage_ref *), compare_container);
	for (size_t i = 0; i < count; i++) {
		struct page_pod *pod = &s->page_pods[s->containers[i]->place];

		fill_container(&s->page_containers[i], s->containers[i], end_ns);
		if (!pod->container_count++)
			pod->containers = &s->page_containers[i];
	}
}

/* Splits what is current into pods and containers; the latter only if their pod is there. */
static size_t collect_pods(struct usage_node *n, struct page_scratch *s)
{
	size_t count = 0;

	for (size_t i = 0; i < n->ref_count; i++)
		if (n->refs[i].current && n->refs[i].pod)
			s->pods[count++] = &n->refs[i];
	return count;
}

static size_t collect_containers(struct usage_node *n, struct page_scratch *s)
{
	size_t count = 0;

	for (size_t i = 0; i < n->ref_count; i++) {
		struct usage_ref *r = &n->refs[i];
		const struct usage_ref *pod;

		if (!r->current || r->pod)
			continue;
		pod = find_ref(n, r->parent);
		if (!pod || !pod->current || !pod->pod)
			continue;
		r->place = pod->place;
		s->containers[count++] = r;
	}
	return count;
}

struct node_page *usage_node_page(struct usage_node *n, struct page_scratch *s)
{
	int64_t end_ns = n->head.end_ns;
	struct node_page page = n->head;

	reserve(s, n->ref_count + 1);
	page.pod_count = fill_pods(s, collect_pods(n, s), end_ns);
	page.pods = s->page_pods;
	fill_containers(s, collect_containers(n, s), end_ns);
	set_latest(&page.usage, &n->node_usage, end_ns);
	node_windows_read(n->windows, end_ns, page.usage.windows);
	return page_new(&page);
}
