/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the view's pods, so that a question about victims costs by those who may be some.
 * Namespaces are numbered, in the order of their names: what depends on a pod's quota alone is then
 * worked out once per namespace and not once per pod.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "shared/mem.h"

#define uthash_malloc(size) mem_alloc(size)
#include <uthash.h>

struct met {
	UT_hash_handle hh;
	const char *name; /* key; borrowed */
	uint32_t number;
};

static struct met *meet(struct met **all, const char *name)
{
	struct met *m;

	HASH_FIND_STR(*all, name, m);
	if (m)
		return m;
	m = mem_zalloc(1, sizeof(*m));
	m->name = name;
	HASH_ADD_KEYPTR(hh, *all, m->name, strlen(m->name), m);
	return m;
}

static int by_name(const struct met *a, const struct met *b)
{
	return strcmp(a->name, b->name);
}

/* Where a run of pods has one namespace it is looked up once. */
static void meet_all(const struct view *v, struct met **all, uint32_t *pods)
{
	const char *last = NULL;

	for (size_t n = 0; n < v->node_count; n++) {
		const struct view_node *node = v->nodes[n];

		for (size_t i = 0; i < node->pod_count; i++) {
			const struct kube_pod *pod = node->pods[i].pod;

			if (!pod || !kube_pod_is_active(pod))
				continue;
			++*pods;
			if (!last || strcmp(last, pod->object.namespace) != 0)
				meet(all, pod->object.namespace);
			last = pod->object.namespace;
		}
	}
	HASH_SORT(*all, by_name);
}

static void number(struct preempt *x, struct met *all)
{
	x->space_count = HASH_COUNT(all);
	x->spaces = mem_zalloc((size_t)x->space_count + 1, sizeof(*x->spaces));
	x->space_count = 0;
	for (struct met *m = all; m; m = m->hh.next) {
		m->number = x->space_count++;
		x->spaces[m->number].name = m->name;
	}
}

static void fill_node(struct preempt *x, struct met *all, place_node n)
{
	const struct view_node *node = x->view->nodes[n];
	const struct met *last = NULL;

	x->first[n] = x->pod_count;
	for (size_t i = 0; i < node->pod_count; i++) {
		const struct kube_pod *pod = node->pods[i].pod;

		if (!pod || !kube_pod_is_active(pod))
			continue;
		if (!last || strcmp(last->name, pod->object.namespace) != 0)
			last = meet(&all, pod->object.namespace);
		x->pods[x->pod_count++] = (struct preempt_pod){
			.pod = pod, .use = node->pods[i].use, .node = n, .space = last->number};
	}
}

static void sort_by_space(struct preempt *x)
{
	uint32_t first = 0;

	x->by_space = mem_zalloc((size_t)x->pod_count + 1, sizeof(*x->by_space));
	for (uint32_t i = 0; i < x->pod_count; i++)
		x->spaces[x->pods[i].space].pod_count++;
	for (uint32_t s = 0; s < x->space_count; s++) {
		x->spaces[s].first_pod = first;
		first += x->spaces[s].pod_count;
		x->spaces[s].pod_count = 0;
	}
	for (uint32_t i = 0; i < x->pod_count; i++) {
		struct preempt_space *s = &x->spaces[x->pods[i].space];

		x->by_space[s->first_pod + s->pod_count++] = i;
	}
}

static void fill_pods(struct preempt *x)
{
	struct met *all = NULL, *m, *next;
	uint32_t pods = 0;

	meet_all(x->view, &all, &pods);
	number(x, all);
	x->pods = mem_zalloc((size_t)pods + 1, sizeof(*x->pods));
	x->first = mem_zalloc(x->view->node_count + 1, sizeof(*x->first));
	for (place_node n = 0; n < x->view->node_count; n++)
		fill_node(x, all, n);
	x->first[x->view->node_count] = x->pod_count;
	sort_by_space(x);
	m = all;
	HASH_CLEAR(hh, all);
	for (; m; m = next) {
		next = m->hh.next;
		free(m);
	}
}

static void fill_budgets(struct preempt *x)
{
	const struct cluster *c = x->view->cluster;
	const struct object_table *t = c ? c->tables[OBJECT_POD_DISRUPTION_BUDGET] : NULL;
	uint32_t at = 0;

	x->budgets = mem_zalloc(t ? t->count + 1 : 1, sizeof(*x->budgets));
	for (size_t i = 0; t && i < t->count; i++) {
		struct preempt_budget *b = &x->budgets[x->budget_count++];
		cJSON *tree;

		b->pdb = (const struct kube_pdb *)t->of[i];
		if (!strstr(t->of[i]->text, "\"disruptedPods\""))
			continue;
		tree = cJSON_Parse(t->of[i]->text);
		b->disrupted =
			cJSON_DetachItemFromObject(cJSON_GetObjectItemCaseSensitive(tree, "status"),
						   "disruptedPods");
		cJSON_Delete(tree);
	}
	for (uint32_t s = 0; s < x->space_count; s++) {
		while (at < x->budget_count &&
		       strcmp(x->budgets[at].pdb->object.namespace, x->spaces[s].name) < 0)
			at++;
		x->spaces[s].first_budget = at;
		while (at < x->budget_count &&
		       strcmp(x->budgets[at].pdb->object.namespace, x->spaces[s].name) == 0)
			at++;
		x->spaces[s].budget_count = at - x->spaces[s].first_budget;
	}
}

static void fill_nominees(struct preempt *x)
{
	const struct cluster *c = x->view->cluster;
	const struct object_table *t = c ? c->tables[OBJECT_POD] : NULL;
	uint32_t room = 0;

	for (size_t i = 0; t && i < t->count; i++) {
		const struct kube_pod *pod = (const struct kube_pod *)t->of[i];
		size_t n = *pod->nominated_node ? view_index(x->view, pod->nominated_node) : 0;

		if (!*pod->nominated_node || pod->deletion_ns || !kube_pod_is_active(pod))
			continue;
		x->nominees =
			preempt_grow(x->nominees, x->nominee_count, &room, sizeof(*x->nominees));
		x->nominees[x->nominee_count++] = (struct preempt_nominee){
			.pod = pod, .node = n < x->view->node_count ? (place_node)n : PLACE_NONE};
	}
}

static struct preempt *make_index(const struct view *v)
{
	struct preempt *x = mem_zalloc(1, sizeof(*x));

	x->view = v;
	fill_pods(x);
	fill_budgets(x);
	fill_nominees(x);
	return x;
}

static void free_index(struct preempt *x)
{
	for (uint32_t i = 0; i < x->budget_count; i++)
		cJSON_Delete(x->budgets[i].disrupted);
	free(x->budgets);
	free(x->nominees);
	free(x->spaces);
	free(x->first);
	free(x->pods);
	free(x->by_space);
	free(x);
}

static void free_cached(struct view_cached *cached)
{
	free_index((struct preempt *)cached);
}

/* Pods, budgets and names are the view's: nothing of an earlier one can be used. */
static struct view_cached *make_cached(const struct view *v, const struct view_cached *before)
{
	struct preempt *x = make_index(v);

	(void)before;
	view_cached_init(&x->cached, free_cached);
	return &x->cached;
}

const struct preempt *preempt_of(const struct view *v)
{
	return (const struct preempt *)view_cache_get(v, VIEW_CACHE_PODS, make_cached);
}

bool preempt_is_disrupted(const struct preempt_budget *b, const struct kube_pod *pod)
{
	return b->disrupted && cJSON_GetObjectItemCaseSensitive(b->disrupted, pod->object.name);
}
