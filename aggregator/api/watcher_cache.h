/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole answer of /watcher, made once per view whatever the number of schedulers that poll it.
 */
#ifndef EVENKEEL_AGGREGATOR_API_WATCHER_CACHE_H
#define EVENKEEL_AGGREGATOR_API_WATCHER_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/api/shared_body.h"

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

#endif
