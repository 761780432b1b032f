/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes and their log. A put is undone by a take, and a take by a put. Sums are whole numbers, and
 * every minimum depends on its counts alone, so the state before is restored exactly.
 */
#include <assert.h>

#include "aggregator/policy/place/place_internal.h"

static void add(struct place *p, const struct place_slot *s, place_node n, int by)
{
	const struct place_shape *shape = place_slot_shape(s);
	size_t at = (size_t)n * p->dim_room;

	p->used[at + RESOURCE_PODS] += by;
	for (uint32_t i = 0; i < shape->count; i++)
		p->used[at + shape->of[i].dim] += (place_sum)by * shape->of[i].amount;
	for (uint32_t i = 0; i < s->class->claims.count; i++)
		s->class->claims.of[i]->users += (uint32_t)by;
	for (uint32_t i = 0; i < s->class->device_claims.count; i++)
		s->class->device_claims.of[i]->users += (uint32_t)by;
	if (p->cap)
		place_use_add(&p->use[n], &s->use, by);
	place_count_pod(p, s, n, by);
	place_trees_touch(p, n);
}

void place_do_put(struct place *p, struct place_slot *s, place_node n)
{
	s->node = n;
	DL_PREPEND2(p->first[n], s, previous, next);
	add(p, s, n, 1);
}

void place_do_take(struct place *p, struct place_slot *s)
{
	add(p, s, s->node, -1);
	DL_DELETE2(p->first[s->node], s, previous, next);
	s->node = PLACE_NONE;
}

static void note(struct place *p, enum place_change what, uint32_t id, place_node node, bool before)
{
	struct place_log entry = {.id = id, .node = node, .what = (uint8_t)what, .before = before};

	PLACE_LIST_ADD(&p->log, entry);
}

void place_put(struct place *p, place_pod pod, place_node n)
{
	struct place_slot *s = place_slot(p, pod);

	assert(s->node == PLACE_NONE && n < p->node_count);
	note(p, PLACE_DID_PUT, pod, n, false);
	if (s->class->claims.count)
		place_volumes_bind(p, s->class, n);
	if (s->class->device_claims.count)
		place_allocate(p, s, n);
	place_do_put(p, s, n);
}

void place_take(struct place *p, place_pod pod)
{
	struct place_slot *s = place_slot(p, pod);

	assert(s->node != PLACE_NONE);
	note(p, PLACE_DID_TAKE, pod, s->node, false);
	place_do_take(p, s);
	place_deallocate(p, s);
}

void place_remove_node(struct place *p, place_node n)
{
	note(p, PLACE_DID_REMOVE, n, n, p->gone[n]);
	p->gone[n] = true;
	place_trees_touch(p, n);
}

void place_drain_node(struct place *p, place_node n)
{
	place_remove_node(p, n);
	if (place_ghost_leave(p, n))
		note(p, PLACE_DID_DRAIN, n, n, false);
}

place_mark place_fork(const struct place *p)
{
	return p->log.count;
}

static void undo(struct place *p, const struct place_log *e)
{
	switch ((enum place_change)e->what) {
	case PLACE_DID_PUT:
		place_do_take(p, place_slot(p, e->id));
		break;
	case PLACE_DID_TAKE:
		place_do_put(p, place_slot(p, e->id), e->node);
		break;
	case PLACE_DID_REMOVE:
		p->gone[e->id] = e->before;
		place_trees_touch(p, e->id);
		break;
	case PLACE_DID_DRAIN:
		place_ghost_return(p, e->id);
		break;
	case PLACE_DID_BIND:
		place_volumes_undo(p, e->id);
		break;
	case PLACE_DID_HOLD:
	case PLACE_DID_ALLOCATE:
		place_allocate_undo(p, e);
		break;
	}
}

void place_revert(struct place *p, place_mark m)
{
	assert(m <= p->log.count);
	while (p->log.count > m)
		undo(p, &p->log.of[--p->log.count]);
}
