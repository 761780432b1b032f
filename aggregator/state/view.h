/* SPDX-License-Identifier: Apache-2.0 */
/* The whole cluster at one moment: an immutable array of node pages that any thread may hold. */
#ifndef EVENKEEL_AGGREGATOR_STATE_VIEW_H
#define EVENKEEL_AGGREGATOR_STATE_VIEW_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/page.h"

struct view {
	atomic_uint users;
	uint64_t version; /* +1 per publication */
	int64_t time_ns; /* Unix time of publication */
	size_t page_count;
	struct node_page **pages; /* each held; sorted by name */
};

/* Takes over the array and one hold of every page in it. */
struct view *view_new(uint64_t version, int64_t time_ns, struct node_page **pages, size_t count);
struct view *view_hold(struct view *v);
void view_drop(struct view *v);
/* The place of the node's page in v->pages, or page_count. */
size_t view_index(const struct view *v, const char *node);
/* The node's page, or NULL. */
const struct node_page *view_find(const struct view *v, const char *node);

/* Where the loop thread puts the newest view and readers take it: one mutex, held for a pointer and a count. */
struct view_slot;
struct view_slot *view_slot_new(void); /* holds an empty view of version 0 */
void view_slot_free(struct view_slot *s);
void view_slot_publish(struct view_slot *s, struct view *v); /* takes over v */
struct view *view_slot_take(struct view_slot *s); /* the caller drops it; never NULL */

#endif
