/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the view's pods, so that a search for victims costs by its candidates. Namespaces
 * have the numbers of the view's namespace table: the quota of a pod is read once per namespace.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/quota/preempt_internal.h"
#include "shared/array.h"
#include "shared/mem.h"

static void fill_node(struct preempt *x, place_node n)
{
	const struct view_node *node = x->view->nodes[n];
	const struct namespace_sums *last = NULL;

	x->first[n] = x->pod_count;
	for (size_t i = 0; i < node->pod_count; i++) {
		const struct kube_pod *pod = node->pods[i].pod;
		uint32_t space;

		if (!pod || !kube_pod_is_active(pod))
			continue;
		if (!last || strcmp(last->name, pod->object.namespace) != 0)
			last = view_namespace(x->view, pod->object.namespace);
		assert(last);
		space = (uint32_t)(last - x->view->namespaces->of);
		ARRAY_ADD(x->pods, x->pod_count) =
			(struct preempt_pod){pod, node->pods[i].use, n, space,
					     x->spaces[space].first_pod};
		x->spaces[space].first_pod = x->pod_count - 1;
	}
}

static void fill_pods(struct preempt *x)
{
	const struct namespace_table *t = x->view->namespaces;

	x->space_count = t ? (uint32_t)t->count : 0;
	x->spaces = mem_zalloc((size_t)x->space_count + 1, sizeof(*x->spaces));
	for (uint32_t s = 0; s < x->space_count; s++)
		x->spaces[s] =
			(struct preempt_space){.name = t->of[s].name, .first_pod = UINT32_MAX};
	x->first = mem_zalloc(x->view->node_count + 1, sizeof(*x->first));
	for (place_node n = 0; n < x->view->node_count; n++)
		fill_node(x, n);
	x->first[x->view->node_count] = x->pod_count;
}

static void fill_budgets(struct preempt *x)
{
	const struct object_table *t = view_table(x->view, OBJECT_POD_DISRUPTION_BUDGET);
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
	const struct object_table *t = view_table(x->view, OBJECT_POD);

	for (size_t i = 0; t && i < t->count; i++) {
		const struct kube_pod *pod = (const struct kube_pod *)t->of[i];
		size_t n = *pod->nominated_node ? view_index(x->view, pod->nominated_node) : 0;

		if (!*pod->nominated_node || pod->deletion_ns || !kube_pod_is_active(pod))
			continue;
		ARRAY_ADD(x->nominees, x->nominee_count) = (struct preempt_nominee){
			.pod = pod, .node = n < x->view->node_count ? (place_node)n : PLACE_NONE};
	}
}

static void free_cached(struct view_cached *kept)
{
	struct preempt *x = (struct preempt *)kept;

	for (uint32_t i = 0; i < x->budget_count; i++)
		cJSON_Delete(x->budgets[i].disrupted);
	free(x->budgets);
	free(x->nominees);
	free(x->spaces);
	free(x->first);
	free(x->pods);
	free(x);
}

/* Pods, budgets and names are the view's: nothing of an earlier view can be used again. */
static struct view_cached *make_cached(const struct view *v, const struct view_cached *before)
{
	struct preempt *x = mem_zalloc(1, sizeof(*x));

	(void)before;
	view_cached_init(&x->cached, free_cached);
	x->view = v;
	fill_pods(x);
	fill_budgets(x);
	fill_nominees(x);
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
