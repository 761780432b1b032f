/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/state/shared_body.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "shared/mem.h"
#include "shared/refs.h"

/*
 * Level 1: a document of 5000 nodes is the same words again and again, which the quickest search
 * finds as well (a tenth of the size) at a quarter of the time of the default.
 */
enum { LEVEL = 1, WINDOW_BITS = 15, GZIP_FORMAT = 16, MEMORY_LEVEL = 8 };

struct shared_body *shared_body_new(struct buf *from)
{
	struct shared_body *b = mem_alloc(sizeof(*b));

	atomic_init(&b->users, 1);
	b->data = buf_take(from, &b->len);
	return b;
}

struct shared_body *shared_body_hold(struct shared_body *b)
{
	refs_hold(&b->users);
	return b;
}

void shared_body_drop(struct shared_body *b)
{
	if (!b || !refs_drop(&b->users))
		return;
	free(b->data);
	free(b);
}

/* Compressed as HTTP's "gzip"; NULL where that cannot be done. */
static struct shared_body *compress_gzip(const struct shared_body *b)
{
	z_stream z = {0};
	struct buf out = BUF_INIT;
	struct shared_body *packed = NULL;
	size_t most;

	if (b->len > UINT32_MAX / 2 ||
	    deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW_BITS + GZIP_FORMAT, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	most = deflateBound(&z, b->len);
	z.next_in = (Bytef *)b->data;
	z.avail_in = (uInt)b->len;
	z.next_out = (Bytef *)buf_reserve(&out, most);
	z.avail_out = (uInt)most;
	if (deflate(&z, Z_FINISH) == Z_STREAM_END) {
		out.len = z.total_out;
		out.data[out.len] = '\0';
		packed = shared_body_new(&out);
		packed->data = mem_realloc(packed->data, packed->len + 1);
	}
	deflateEnd(&z);
	buf_fini(&out);
	return packed;
}

/* "gzip", "deflate, gzip;q=0.5", "*": any of it but with a weight of 0. */
bool shared_body_accepts_gzip(const char *header)
{
	while (header && *header) {
		size_t len = strcspn(header, ","), name;

		while (len && (*header == ' ' || *header == '\t'))
			header++, len--;
		name = strcspn(header, ";, \t");
		if ((name == 4 && strncasecmp(header, "gzip", 4) == 0) ||
		    (name == 1 && *header == '*')) {
			const char *weight = memmem(header, len, "q=", 2);

			return !weight || strtod(weight + 2, NULL) > 0;
		}
		header += len;
		header += *header == ',';
	}
	return false;
}

/*
 * --- the answer of /watcher
 *
 * The first request after a view was published, or after a node of it became late or expired, makes
 * the body; the first that wants it compressed compresses it. Both under the lock, so that of many
 * schedulers that come at once one does the work and the others wait for it rather than do it, too.
 * Answers hold the body, so a slow reader costs no copy.
 */

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
		c->packed = compress_gzip(c->plain);
	*packed = gzip && c->packed;
	body = *packed ? c->packed : c->plain;
	if (body)
		shared_body_hold(body);
	pthread_mutex_unlock(&c->lock);
	return body;
}
