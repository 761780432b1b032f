/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One place per kind. Who finds it full reads a pointer; who finds it empty takes the place's lock
 * and makes it, so that no two do the same work at once. The loop thread, which hands places on
 * from view to view, only reads pointers: a maker never holds it up.
 *
 * A place holds at most what was made of this view and of the last one that was asked, however many
 * views nobody asks.
 */
#include "aggregator/state/view_kept.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "shared/mem.h"

struct place {
	pthread_mutex_t lock; /* held by who makes it */
	_Atomic(struct view_kept *) made; /* held; NULL: nobody asked yet */
	struct view_kept *before; /* held; fixed once others know the view */
};

struct view_cache {
	struct place places[VIEW_KEPT_KINDS];
};

void view_kept_init(struct view_kept *k, void (*free)(struct view_kept *k))
{
	atomic_init(&k->users, 1);
	k->free = free;
}

struct view_kept *view_kept_hold(const struct view_kept *k)
{
	struct view_kept *held = (struct view_kept *)k;
	unsigned int users = atomic_fetch_add_explicit(&held->users, 1, memory_order_relaxed);

	assert(users > 0);
	return held;
}

void view_kept_drop(struct view_kept *k)
{
	if (k && atomic_fetch_sub_explicit(&k->users, 1, memory_order_acq_rel) == 1)
		k->free(k);
}

struct view_cache *view_cache_new(void)
{
	struct view_cache *s = mem_zalloc(1, sizeof(*s));

	for (int i = 0; i < VIEW_KEPT_KINDS; i++)
		pthread_mutex_init(&s->places[i].lock, NULL);
	return s;
}

void view_cache_free(struct view_cache *s)
{
	if (!s)
		return;
	for (int i = 0; i < VIEW_KEPT_KINDS; i++) {
		struct place *p = &s->places[i];

		view_kept_drop(atomic_load_explicit(&p->made, memory_order_acquire));
		view_kept_drop(p->before);
		pthread_mutex_destroy(&p->lock);
	}
	free(s);
}

void view_cache_inherit(struct view_cache *s, const struct view_cache *before)
{
	for (int i = 0; i < VIEW_KEPT_KINDS; i++) {
		const struct place *from = &before->places[i];
		const struct view_kept *last =
			atomic_load_explicit(&from->made, memory_order_acquire);

		if (!last)
			last = from->before;
		assert(!s->places[i].before);
		s->places[i].before = last ? view_kept_hold(last) : NULL;
	}
}

const struct view_kept *view_keep(const struct view *v, enum view_kept_kind kind,
				  view_kept_maker *make)
{
	struct place *p = &v->cache->places[kind];
	struct view_kept *made = atomic_load_explicit(&p->made, memory_order_acquire);

	if (made)
		return made;
	pthread_mutex_lock(&p->lock);
	made = atomic_load_explicit(&p->made, memory_order_relaxed);
	if (!made) {
		made = make(v, p->before);
		atomic_store_explicit(&p->made, made, memory_order_release);
	}
	pthread_mutex_unlock(&p->lock);
	return made;
}
