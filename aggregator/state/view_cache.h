/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of what readers derive from a view: one entry per kind, made by the first reader that
 * needs it and freed with the view. The maker of the next view's entry gets the last entry made,
 * and may take over what did not change.
 */
#pragma once

#include <stdatomic.h>

#include "aggregator/state/view.h"

enum view_cache_kind {
	VIEW_CACHE_NAMES, /* prefetcher.h */
	VIEW_CACHE_SCORES, /* score_rows.h */
	VIEW_CACHE_PODS, /* quota/preempt.h */
	VIEW_CACHE_KINDS
};

/* The first member of an entry. Immutable once it is made, but for `users`. */
struct view_cached {
	atomic_uint users;
	void (*free)(struct view_cached *c);
};

void view_cached_init(struct view_cached *c, void (*free)(struct view_cached *c)); /* one user */
struct view_cached *view_cached_hold(const struct view_cached *c);

/*
 * Makes the entry of a view. `before` was made of an earlier view of the same join, or is NULL: its
 * pointers into that view may dangle. May return a hold of `before`. Must not hold the view, which
 * holds the entry.
 */
typedef struct view_cached *view_cache_maker(const struct view *v,
					     const struct view_cached *before);
/* Borrowed from the view. Any thread; waits while another thread makes the entry. */
const struct view_cached *view_cache_get(const struct view *v, enum view_cache_kind kind,
					 view_cache_maker *make);

/* --- for makers of views */

struct view_cache *view_cache_new(void);
void view_cache_free(struct view_cache *c); /* NULL is allowed */
/*
 * The newest entries of `before` become those that the makers of c get. Never waits. Only while no
 * other thread knows c.
 */
void view_cache_inherit(struct view_cache *c, const struct view_cache *before);
