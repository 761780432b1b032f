/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/gangs.h"

#include <stdlib.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"

static int compare_groups(const struct kube_pod *a, const struct kube_pod *b)
{
	const struct pod_gang *l = &a->template->gang, *k = &b->template->gang;

	return strcmp(a->object.namespace, b->object.namespace)
		?: COMPARE(l->kind, k->kind)
		?: strcmp(l->name, k->name)
		?: strcmp(l->part, k->part)
		?: strcmp(l->replica, k->replica);
}

static int compare_members(const void *left, const void *right)
{
	const struct gang_member *a = left, *b = right;

	return compare_groups(a->pod, b->pod) ?: object_compare(&a->pod->object, &b->pod->object);
}

/* 0: unknown. */
static uint32_t find_min(const struct cluster *c, const struct kube_pod *pod)
{
	const struct pod_gang *id = &pod->template->gang;
	const struct kube_gang *g =
		(const void *)cluster_find(c, id->kind, pod->object.namespace, id->name);

	for (size_t i = 0; g && i < g->count; i++)
		if (strcmp(g->of[i].part, id->part) == 0)
			return g->of[i].pods > 0 ? (uint32_t)g->of[i].pods : 0;
	return 0;
}

static void collect(struct gangs *g, const struct view *v,
		    bool (*is_terminating)(const void *ctx, const struct kube_pod *pod),
		    const void *ctx)
{
	for (size_t n = 0; n < v->node_count; n++) {
		const struct view_node *node = v->nodes[n];

		for (size_t i = 0; i < node->pod_count; i++) {
			const struct kube_pod *pod = node->pods[i].pod;

			if (!pod || !*pod->template->gang.name || !kube_pod_is_active(pod) ||
			    pod->deletion_ns || (is_terminating && is_terminating(ctx, pod)))
				continue;
			ARRAY_ADD(g->members, g->member_count) =
				(struct gang_member){.pod = pod, .number = UINT32_MAX};
		}
	}
}

static void group(struct gangs *g, const struct cluster *c)
{
	g->of = mem_zalloc(g->member_count + 1, sizeof(*g->of));
	for (size_t i = 0; i < g->member_count; i++) {
		const struct kube_pod *pod = g->members[i].pod;

		if (!g->count || compare_groups(g->of[g->count - 1].members[0].pod, pod) != 0)
			g->of[g->count++] = (struct gang){.namespace = pod->object.namespace,
							  .id = &pod->template->gang,
							  .min = find_min(c, pod),
							  .members = &g->members[i]};
		g->of[g->count - 1].count++;
	}
}

struct gangs *gangs_new(const struct view *v,
			bool (*is_terminating)(const void *ctx, const struct kube_pod *pod),
			const void *ctx)
{
	static const enum object_kind kinds[] = {OBJECT_POD_GROUP, OBJECT_COSCHEDULING_GROUP,
						 OBJECT_WORKLOAD};
	struct gangs *g = mem_zalloc(1, sizeof(*g));
	size_t known = 0;

	for (size_t i = 0; v->cluster && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		known += v->cluster->tables[kinds[i]]->count;
	if (!known)
		return g;
	collect(g, v, is_terminating, ctx);
	array_sort(g->members, g->member_count, sizeof(*g->members), compare_members);
	group(g, v->cluster);
	return g;
}

void gangs_free(struct gangs *g)
{
	if (!g)
		return;
	free(g->of);
	free(g->members);
	free(g);
}

static int compare_gang(const void *pod, const void *gang)
{
	return compare_groups(pod, ((const struct gang *)gang)->members[0].pod);
}

struct gang_member *gangs_member(const struct gangs *g, const struct kube_pod *pod,
				 struct gang **gang)
{
	const struct gang_member key = {.pod = pod};
	struct gang_member *found;

	*gang = NULL;
	if (!g || !g->count || !*pod->template->gang.name)
		return NULL;
	*gang = bsearch(pod, g->of, g->count, sizeof(*g->of), compare_gang);
	if (!*gang)
		return NULL;
	found = bsearch(&key, (*gang)->members, (*gang)->count, sizeof(key), compare_members);
	return found && found->pod == pod ? found : NULL;
}

static bool falls(const struct gang *g)
{
	return g->count >= g->min && g->count - g->gone < g->min;
}

const struct gang *gangs_fallen(const struct gangs *g, const struct kube_pod *pod)
{
	struct gang *gang;

	return gangs_member(g, pod, &gang) && falls(gang) ? gang : NULL;
}

uint32_t gang_spare(const struct gang *g)
{
	return g->count >= g->min ? g->count - g->min : g->count;
}

/* False: it left before. */
static bool leave(struct gangs *g, const struct kube_pod *pod)
{
	struct gang *gang;
	struct gang_member *m = gangs_member(g, pod, &gang);

	if (!m)
		return true;
	if (m->gone)
		return false;
	m->gone = true;
	gang->gone++;
	gang->left = gang->count - gang->gone;
	return true;
}

/* Appends members that fall with the pod, which left, at `count` of *out. Returns the new count. */
static size_t fall(struct gangs *g, const struct kube_pod *pod, size_t count,
		   const struct kube_pod ***out)
{
	struct gang *gang;

	if (!gangs_member(g, pod, &gang) || !falls(gang) || gang->gone == gang->count)
		return count;
	*out = mem_realloc(*out, (count + gang->count) * sizeof(struct kube_pod *));
	for (uint32_t i = 0; i < gang->count; i++) {
		struct gang_member *m = &gang->members[i];

		if (m->gone)
			continue;
		m->gone = true;
		gang->gone++;
		(*out)[count++] = m->pod;
	}
	return count;
}

size_t gangs_close(struct gangs *g, const struct kube_pod *const *pods, size_t count,
		   const struct kube_pod ***out)
{
	const struct kube_pod **of = mem_zalloc(count + 1, sizeof(struct kube_pod *));
	size_t own = 0, all;

	for (size_t i = 0; i < count; i++)
		if (leave(g, pods[i]))
			of[own++] = pods[i];
	all = own;
	for (size_t i = 0; i < own; i++)
		all = fall(g, of[i], all, &of);
	*out = of;
	return all;
}

void gangs_release(struct gangs *g, const struct kube_pod *const *pods, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct gang *gang;
		struct gang_member *m = gangs_member(g, pods[i], &gang);

		if (!m || !m->gone)
			continue;
		m->gone = false;
		gang->gone--;
	}
}

void gang_tell(const struct gang *g, uint32_t left, struct buf *out)
{
	buf_printf(out, "group %s/%s", g->namespace, g->id->name);
	if (*g->id->part)
		buf_printf(out, "/%s", g->id->part);
	if (*g->id->replica)
		buf_printf(out, "/%s", g->id->replica);
	buf_printf(out, " needs %u, would have %u", g->min, left);
}
