/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What readers work out of a view and the next reader needs, too: made by the first who asks, and
 * kept as long as the view. The next view's maker is given the last one made, and may spare himself
 * what did not change.
 */
#ifndef EVENKEEL_AGGREGATOR_STATE_VIEW_KEPT_H
#define EVENKEEL_AGGREGATOR_STATE_VIEW_KEPT_H

#include <stdatomic.h>

#include "aggregator/state/view.h"

enum view_kept_kind {
	VIEW_KEPT_NAMES, /* prefetcher.h */
	VIEW_KEPT_SCORES, /* score_rows.h */
	VIEW_KEPT_PODS, /* quota/preempt.h */
	VIEW_KEPT_KINDS
};

/* The first member of what is kept. Immutable once it is made, but for `users`. */
struct view_kept {
	atomic_uint users;
	void (*free)(struct view_kept *k);
};

void view_kept_init(struct view_kept *k, void (*free)(struct view_kept *k)); /* one user */
struct view_kept *view_kept_hold(const struct view_kept *k);
void view_kept_drop(struct view_kept *k); /* NULL is allowed */

/*
 * Makes it of a view. `before` was made of an earlier view of the same join, or is NULL: what it
 * points to in that view may be gone. May return a hold of `before`. Must not hold the view, which
 * holds what is made.
 */
typedef struct view_kept *view_kept_maker(const struct view *v, const struct view_kept *before);
/* Borrowed from the view. Any thread; who asks while another makes it waits for that one. */
const struct view_kept *view_keep(const struct view *v, enum view_kept_kind kind,
				  view_kept_maker *make);

/* --- for who makes views */

struct view_cache *view_cache_new(void);
void view_cache_free(struct view_cache *s);
/*
 * What was made of the view before is what the makers of this one are given. Before anybody else
 * knows this one; never waits.
 */
void view_cache_inherit(struct view_cache *s, const struct view_cache *before);

#endif
