/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods by the node they are bound to. A place keeps its pods in no order, so that one comes and
 * goes at the cost of itself, whatever is on the node; they are sorted when the node is made
 * immutable. A pod knows its index.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/model_state.h"
#include "shared/array.h"

static struct model_place *find_or_add(struct model *m, const char *name)
{
	struct model_place *p;

	HASH_INTERN(m->places, p, name, name);
	return p;
}

static void touch(struct model *m, struct model_place *p)
{
	p->generation = m->generation;
	if (p->changed)
		return;
	p->changed = true;
	ARRAY_ADD(m->changes, m->change_count) = p;
}

void model_place_enter(struct model *m, struct model_entry *e)
{
	struct object *o = e->object;
	struct model_place *p;

	if (o->kind == OBJECT_NODE) {
		p = find_or_add(m, o->name);
		p->node = (struct kube_node *)o;
	} else if (o->kind == OBJECT_POD && *((struct kube_pod *)o)->node) {
		p = find_or_add(m, ((struct kube_pod *)o)->node);
		assert(p->count < UINT32_MAX);
		e->at = (uint32_t)p->count;
		ARRAY_ADD(p->pods, p->count) = e;
	} else {
		return;
	}
	e->place = p;
	touch(m, p);
}

void model_place_leave(struct model *m, struct model_entry *e)
{
	struct model_place *p = e->place;

	if (!p)
		return;
	if (e->object->kind == OBJECT_NODE) {
		p->node = NULL;
	} else {
		p->pods[e->at] = p->pods[--p->count];
		p->pods[e->at]->at = e->at;
	}
	touch(m, p);
	e->place = NULL;
}

bool model_place_is_empty(const struct model_place *p)
{
	return !p->node && !p->count;
}

void model_place_forget(struct model *m, struct model_place *p)
{
	HASH_DEL(m->places, p);
	free(p->pods);
	free(p->name);
	free(p);
}
