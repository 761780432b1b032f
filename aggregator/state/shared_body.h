/* SPDX-License-Identifier: Apache-2.0 */
/* A body that several answers send at once, held by each. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"

struct shared_body {
	atomic_uint users;
	size_t len;
	char *data; /* owned */
};

/* With one user; takes what is in the buffer. */
struct shared_body *shared_body_new(struct buf *from);
struct shared_body *shared_body_hold(struct shared_body *b);
/* Any thread; the last user frees it. NULL is allowed. */
void shared_body_drop(struct shared_body *b);

/* Whether an Accept-Encoding header allows gzip; NULL: there is none. */
bool shared_body_accepts_gzip(const char *header);

/* The whole answer of /watcher, made once per view whatever the number of schedulers. */
struct watcher_cache;

struct watcher_cache *watcher_cache_new(void);
void watcher_cache_free(struct watcher_cache *c);

/*
 * The body made for that tag, held for the caller; make() fills one where there is none yet, while
 * other callers wait. A body that make() leaves empty is not kept, and NULL returned. With gzip the
 * compressed form if there is one; *packed says so. Any thread.
 */
struct shared_body *watcher_cache_take(struct watcher_cache *c, uint64_t tag, bool gzip,
				       bool *packed, void (*make)(void *ctx, struct buf *out),
				       void *ctx);
