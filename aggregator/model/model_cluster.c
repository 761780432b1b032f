/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moments of the model. A table is merged out of the one before, sorted, and the entries that
 * changed since, sorted:
 *
 *     before    a b c d e
 *     changes     b'   d-   f+        put again, gone, new
 *     now       a b' c e f
 *
 * and so is the array of nodes. An unchanged record is held once more. A kind
 * without changes keeps its table, a model without any change its cluster.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/model_state.h"
#include "shared/array.h"
#include "shared/refs.h"

/* --- tables of objects ------------------------------------------------------------------------ */

struct object_table *object_table_new(size_t count, uint64_t generation)
{
	struct object_table *t = mem_alloc(sizeof(*t) + count * sizeof(struct object *));

	atomic_init(&t->users, 1);
	t->generation = generation;
	t->count = count;
	return t;
}

void object_table_drop(struct object_table *t)
{
	if (!refs_drop(&t->users))
		return;
	for (size_t i = 0; i < t->count; i++)
		object_drop(t->of[i]);
	free(t);
}

static int compare_entries(const void *a, const void *b)
{
	return object_compare((*(struct model_entry *const *)a)->object,
			      (*(struct model_entry *const *)b)->object);
}

static struct object_table *merge_table(const struct model_kind *k, uint64_t generation)
{
	const struct object_table *old = k->table;
	struct object_table *t = object_table_new(old->count + k->change_count, generation);
	size_t at = 0, count = 0;

	for (size_t i = 0; i < k->change_count; i++) {
		struct model_entry *e = k->changes[i];
		int order = 1;

		while (at < old->count && (order = object_compare(old->of[at], e->object)) < 0)
			t->of[count++] = object_hold(old->of[at++]);
		if (at < old->count && order == 0)
			at++;
		e->in_table = model_entry_is_listed(e);
		if (e->in_table)
			t->of[count++] = object_hold(e->object);
	}
	while (at < old->count)
		t->of[count++] = object_hold(old->of[at++]);
	t->count = count;
	return mem_realloc(t, sizeof(*t) + count * sizeof(struct object *));
}

void model_kind_settle(struct model *m, enum object_kind kind)
{
	struct model_kind *k = &m->kinds[kind];
	struct object_table *old = k->table;

	if (!k->change_count)
		return;
	qsort(k->changes, k->change_count, sizeof(struct model_entry *), compare_entries);
	k->table = merge_table(k, m->generation);
	object_table_drop(old);
	for (size_t i = 0; i < k->change_count; i++) {
		k->changes[i]->changed = false;
		if (k->changes[i]->gone)
			model_entry_forget(k, k->changes[i]);
	}
	k->change_count = 0;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static struct model_node *make_node(struct model_place *p)
{
	size_t name_size = strlen(p->name) + 1;
	struct model_node *n =
		mem_alloc(sizeof(*n) + p->count * sizeof(struct kube_pod *) + name_size);
	char *name = (char *)(n + 1) + p->count * sizeof(struct kube_pod *);

	array_sort(p->pods, p->count, sizeof(struct model_entry *), compare_entries);
	atomic_init(&n->users, 1);
	n->generation = p->generation;
	n->name = memcpy(name, p->name, name_size);
	n->node = p->node;
	if (n->node)
		object_hold(&n->node->object);
	n->pod_count = p->count;
	n->pods = (struct kube_pod **)(n + 1);
	for (size_t i = 0; i < p->count; i++) {
		p->pods[i]->at = (uint32_t)i;
		n->pods[i] = (struct kube_pod *)object_hold(p->pods[i]->object);
	}
	return n;
}

struct model_node *model_node_hold(struct model_node *n)
{
	refs_hold(&n->users);
	return n;
}

void model_node_drop(struct model_node *n)
{
	if (!n || !refs_drop(&n->users))
		return;
	for (size_t i = 0; i < n->pod_count; i++)
		object_drop(&n->pods[i]->object);
	if (n->node)
		object_drop(&n->node->object);
	free(n);
}

static int compare_places(const void *a, const void *b)
{
	return strcmp((*(struct model_place *const *)a)->name,
		      (*(struct model_place *const *)b)->name);
}

/* As merge_table(), of the last cluster's nodes and the places that changed. */
static void merge_nodes(const struct model *m, struct cluster *c)
{
	const struct cluster *old = m->cluster;
	size_t old_count = old ? old->node_count : 0, at = 0;

	c->nodes = mem_alloc((old_count + m->change_count + 1) * sizeof(struct model_node *));
	for (size_t i = 0; i < m->change_count; i++) {
		struct model_place *p = m->changes[i];
		int order = 1;

		while (at < old_count && (order = strcmp(old->nodes[at]->name, p->name)) < 0)
			c->nodes[c->node_count++] = model_node_hold(old->nodes[at++]);
		if (at < old_count && order == 0)
			at++;
		if (!model_place_is_empty(p))
			c->nodes[c->node_count++] = make_node(p);
	}
	while (at < old_count)
		c->nodes[c->node_count++] = model_node_hold(old->nodes[at++]);
}

static void settle_places(struct model *m, struct cluster *c)
{
	array_sort(m->changes, m->change_count, sizeof(struct model_place *), compare_places);
	merge_nodes(m, c);
	for (size_t i = 0; i < m->change_count; i++) {
		m->changes[i]->changed = false;
		if (model_place_is_empty(m->changes[i]))
			model_place_forget(m, m->changes[i]);
	}
	m->change_count = 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

struct cluster *model_cluster(struct model *m)
{
	struct cluster *c;

	if (m->cluster && m->cluster->generation == m->generation)
		return cluster_hold(m->cluster);
	c = mem_zalloc(1, sizeof(*c));
	atomic_init(&c->users, 2); /* the model's and the caller's */
	c->generation = m->generation;
	c->pod_count = m->pod_count;
	memcpy(c->sources, m->sources, sizeof(c->sources));
	for (enum object_kind k = 0; k < OBJECT_KINDS; k++) {
		model_kind_settle(m, k);
		c->tables[k] = m->kinds[k].table;
		refs_hold(&c->tables[k]->users);
	}
	settle_places(m, c);
	cluster_drop(m->cluster);
	m->cluster = c;
	return c;
}

struct cluster *cluster_hold(struct cluster *c)
{
	refs_hold(&c->users);
	return c;
}

void cluster_drop(struct cluster *c)
{
	if (!c || !refs_drop(&c->users))
		return;
	for (enum object_kind k = 0; k < OBJECT_KINDS; k++)
		object_table_drop(c->tables[k]);
	for (size_t i = 0; i < c->node_count; i++)
		model_node_drop(c->nodes[i]);
	free(c->nodes);
	free(c);
}

static int compare_pointed(const void *key, const void *object)
{
	return object_compare(key, *(struct object *const *)object);
}

static const struct object *find_pod(const struct cluster *c, const struct object *key)
{
	for (size_t i = 0; i < c->node_count; i++) {
		const struct model_node *n = c->nodes[i];
		struct kube_pod **found = bsearch(key, n->pods, n->pod_count,
						  sizeof(struct kube_pod *), compare_pointed);

		if (found)
			return &(*found)->object;
	}
	return NULL;
}

const struct object *cluster_find_listed(const struct cluster *c, enum object_kind kind,
					 const char *namespace, const char *name)
{
	const struct object key = {.kind = kind, .namespace = namespace, .name = name};
	const struct object_table *t = c->tables[kind];
	struct object *const *found =
		bsearch(&key, t->of, t->count, sizeof(struct object *), compare_pointed);

	return found ? *found : NULL;
}

const struct object *cluster_find(const struct cluster *c, enum object_kind kind,
				  const char *namespace, const char *name)
{
	const struct object key = {.kind = kind, .namespace = namespace, .name = name};
	const struct object *found = cluster_find_listed(c, kind, namespace, name);

	return found || kind != OBJECT_POD ? found : find_pod(c, &key);
}

/* The controller of a controller; its kind is "" where there is none, or it is not known. */
static struct owner_ref owner_of(const struct cluster *c, enum object_kind kind,
				 const char *namespace, const struct owner_ref *o)
{
	const struct object *found = cluster_find(c, kind, namespace, o->name);

	/* One of the same name but another uid is another one. */
	if (!found || strcmp(found->uid, o->uid) != 0)
		return (struct owner_ref){"", "", ""};
	return ((const struct kube_workload *)found)->owner;
}

struct owner_ref cluster_workload_of(const struct cluster *c, const struct kube_pod *pod)
{
	const struct owner_ref *owner = &pod->template->owner;
	struct owner_ref above = {"", "", ""};

	if (!*owner->kind)
		return (struct owner_ref){"Pod", pod->object.name, pod->object.uid};
	if (strcmp(owner->kind, "ReplicaSet") == 0)
		above = owner_of(c, OBJECT_REPLICA_SET, pod->object.namespace, owner);
	else if (strcmp(owner->kind, "Job") == 0)
		above = owner_of(c, OBJECT_JOB, pod->object.namespace, owner);
	return *above.kind ? above : *owner;
}
