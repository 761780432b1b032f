/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few slots under one lock. The lock is held for choosing a slot only: a core is built, brought
 * up to date and asked by the one who took it. The core that was taken last is taken first, so that
 * it has the least to catch up with, and the second is only built when two ask at once. Whoever
 * comes third waits; answers take milliseconds.
 *
 * Nothing can fail. At shutdown nobody asks any more, and place_pool_free() finds all cores given
 * back.
 */
#include "aggregator/api/place_pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "shared/clock.h"
#include "shared/mem.h"

#define IDLE_NS (600 * NS_PER_SEC)

struct slot {
	struct place *place; /* owned; NULL: none, or it is being built */
	bool taken;
	int64_t taken_ns; /* when it was taken last */
};

struct place_pool {
	struct place_options options; /* fixed after start */
	pthread_mutex_t lock;
	pthread_cond_t given;
	/* under lock */
	struct slot slots[PLACE_POOL_MAX];
};

struct place_pool *place_pool_new(const struct place_options *o)
{
	struct place_pool *pool = mem_zalloc(1, sizeof(*pool));

	pool->options = *o;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->given, NULL);
	return pool;
}

void place_pool_free(struct place_pool *pool)
{
	if (!pool)
		return;
	for (size_t i = 0; i < PLACE_POOL_MAX; i++) {
		assert(!pool->slots[i].taken);
		place_free(pool->slots[i].place);
	}
	pthread_cond_destroy(&pool->given);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* Under lock. The one that was taken last, of those that are free; NULL: none is. */
static struct slot *find_free(struct place_pool *pool)
{
	struct slot *best = NULL;

	for (size_t i = 0; i < PLACE_POOL_MAX; i++) {
		struct slot *s = &pool->slots[i];

		if (!s->taken && (!best || (s->place && !best->place) ||
				  (s->place && s->taken_ns > best->taken_ns)))
			best = s;
	}
	return best;
}

static struct place *build(const struct place_options *options, struct view *v, int64_t now_ns)
{
	struct place_options o = *options;

	o.now_ns = now_ns;
	return place_new(v, &o);
}

static struct place *build_default(struct view *v, int64_t now_ns)
{
	struct place_options o;

	place_options_default(&o);
	return build(&o, v, now_ns);
}

struct place *place_pool_take(struct place_pool *pool, struct view *v, int64_t now_ns)
{
	struct place *p;
	struct slot *s;

	if (!pool)
		return build_default(v, now_ns);
	place_pool_tidy(pool, now_ns);
	pthread_mutex_lock(&pool->lock);
	for (s = find_free(pool); !s; s = find_free(pool))
		pthread_cond_wait(&pool->given, &pool->lock);
	s->taken = true;
	s->taken_ns = now_ns;
	p = s->place;
	pthread_mutex_unlock(&pool->lock);
	if (p) {
		place_update(p, v, now_ns);
		return p;
	}
	p = build(&pool->options, v, now_ns);
	pthread_mutex_lock(&pool->lock);
	s->place = p;
	pthread_mutex_unlock(&pool->lock);
	return p;
}

void place_pool_give(struct place_pool *pool, struct place *p)
{
	size_t i = 0;

	if (!pool) {
		place_free(p);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	while (i < PLACE_POOL_MAX && !(pool->slots[i].taken && pool->slots[i].place == p))
		i++;
	assert(i < PLACE_POOL_MAX);
	pool->slots[i].taken = false;
	pthread_cond_signal(&pool->given);
	pthread_mutex_unlock(&pool->lock);
}

void place_pool_tidy(struct place_pool *pool, int64_t now_ns)
{
	struct place *idle[PLACE_POOL_MAX] = {NULL};

	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	for (size_t i = 0; i < PLACE_POOL_MAX; i++) {
		struct slot *s = &pool->slots[i];

		if (s->taken || now_ns - s->taken_ns <= IDLE_NS)
			continue;
		idle[i] = s->place;
		s->place = NULL;
	}
	pthread_mutex_unlock(&pool->lock);
	for (size_t i = 0; i < PLACE_POOL_MAX; i++)
		place_free(idle[i]);
}
