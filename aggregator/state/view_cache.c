/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of a full entry read a pointer. The first reader of an empty one takes the entry's lock
 * and makes it, so that no two threads do the same work. The loop thread, which inherits entries
 * from view to view, only reads pointers and never waits for a maker.
 *
 * An entry holds at most what was made of this view and of the last one with an entry.
 */
#include "aggregator/state/view_cache.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "shared/mem.h"
#include "shared/refs.h"

struct cache_entry {
	pthread_mutex_t lock; /* of the thread that makes it */
	_Atomic(struct view_cached *) made; /* held; NULL: not yet */
	struct view_cached *before; /* held; fixed once other threads know the view */
};

struct view_cache {
	struct cache_entry entries[VIEW_CACHE_KINDS];
};

void view_cached_init(struct view_cached *c, void (*free)(struct view_cached *c))
{
	atomic_init(&c->users, 1);
	c->free = free;
}

struct view_cached *view_cached_hold(const struct view_cached *c)
{
	struct view_cached *held = (struct view_cached *)c;
	refs_hold(&held->users);
	return held;
}

static void drop(struct view_cached *c)
{
	if (c && refs_drop(&c->users))
		c->free(c);
}

struct view_cache *view_cache_new(void)
{
	struct view_cache *c = mem_zalloc(1, sizeof(*c));

	for (int i = 0; i < VIEW_CACHE_KINDS; i++)
		pthread_mutex_init(&c->entries[i].lock, NULL);
	return c;
}

void view_cache_free(struct view_cache *c)
{
	if (!c)
		return;
	for (int i = 0; i < VIEW_CACHE_KINDS; i++) {
		struct cache_entry *e = &c->entries[i];

		drop(atomic_load_explicit(&e->made, memory_order_acquire));
		drop(e->before);
		pthread_mutex_destroy(&e->lock);
	}
	free(c);
}

void view_cache_inherit(struct view_cache *c, const struct view_cache *before)
{
	for (int i = 0; i < VIEW_CACHE_KINDS; i++) {
		const struct cache_entry *from = &before->entries[i];
		const struct view_cached *last =
			atomic_load_explicit(&from->made, memory_order_acquire);

		if (!last)
			last = from->before;
		assert(!c->entries[i].before);
		c->entries[i].before = last ? view_cached_hold(last) : NULL;
	}
}

const struct view_cached *view_cache_get(const struct view *v, enum view_cache_kind kind,
					 view_cache_maker *make)
{
	struct cache_entry *e = &v->cache->entries[kind];
	struct view_cached *made = atomic_load_explicit(&e->made, memory_order_acquire);

	if (made)
		return made;
	pthread_mutex_lock(&e->lock);
	made = atomic_load_explicit(&e->made, memory_order_relaxed);
	if (!made) {
		made = make(v, e->before);
		atomic_store_explicit(&e->made, made, memory_order_release);
	}
	pthread_mutex_unlock(&e->lock);
	return made;
}
