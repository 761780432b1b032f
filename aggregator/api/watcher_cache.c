/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first request after a view was published, or after a node of it became late or expired, makes
 * the body; the first that wants it compressed compresses it. Both under the lock, so that of many
 * schedulers that come at once one does the work and the others wait for it rather than do it, too.
 * Answers hold the body, so a slow reader costs no copy.
 */
#include "aggregator/api/watcher_cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "shared/mem.h"

struct watcher_cache {
	pthread_mutex_t lock;
	/* under lock */
	uint64_t tag;
	struct shared_body *plain; /* held; NULL: nothing yet */
	struct shared_body *packed; /* held; NULL: nobody wanted it yet */
};

struct watcher_cache *watcher_cache_new(void)
{
	struct watcher_cache *c = mem_zalloc(1, sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	return c;
}

static void forget(struct watcher_cache *c)
{
	shared_body_drop(c->plain);
	shared_body_drop(c->packed);
	c->plain = c->packed = NULL;
}

void watcher_cache_free(struct watcher_cache *c)
{
	if (!c)
		return;
	forget(c);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Under lock. */
static void refresh(struct watcher_cache *c, uint64_t tag, void (*make)(void *ctx, struct buf *out),
		    void *ctx)
{
	struct buf body = BUF_INIT;

	if (c->plain && c->tag == tag)
		return;
	forget(c);
	make(ctx, &body);
	if (body.len) {
		c->plain = shared_body_new(&body);
		c->tag = tag;
	}
	buf_fini(&body);
}

struct shared_body *watcher_cache_take(struct watcher_cache *c, uint64_t tag, bool gzip,
				       bool *packed, void (*make)(void *ctx, struct buf *out),
				       void *ctx)
{
	struct shared_body *body;

	pthread_mutex_lock(&c->lock);
	refresh(c, tag, make, ctx);
	if (c->plain && gzip && !c->packed)
		c->packed = shared_body_gzip(c->plain);
	*packed = gzip && c->packed;
	body = *packed ? c->packed : c->plain;
	if (body)
		shared_body_hold(body);
	pthread_mutex_unlock(&c->lock);
	return body;
}
