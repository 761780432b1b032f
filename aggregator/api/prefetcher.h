/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works out what schedulers will ask of a view as soon as it is published, while they ask, so that
 * no question waits for it.
 */
#ifndef EVENKEEL_AGGREGATOR_API_PREFETCHER_H
#define EVENKEEL_AGGREGATOR_API_PREFETCHER_H

#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/view.h"
#include "shared/error.h"

struct node_index;

/*
 * Places of many nodes in a view by their names: for questions that name thousands, in any order.
 * Borrowed from the view: made by the first who asks, and handed from view to view while no node
 * comes or goes.
 */
const struct node_index *node_index_of(const struct view *v);
/* As view_index(). */
size_t node_index_find(const struct node_index *x, const char *name);

struct prefetcher;

/* Without its thread yet, and then nothing is warmed. The views are borrowed. */
struct prefetcher *prefetcher_new(struct view_slot *views);
/* -EAGAIN with the reason: no thread. */
int prefetcher_start(struct prefetcher *w, struct error *error);
/* Ends the thread behind what is due. NULL is allowed, as in all below. */
void prefetcher_stop(struct prefetcher *w);
void prefetcher_free(struct prefetcher *w); /* stopped */
/* Any thread: nodes were scored. */
void prefetcher_asked(struct prefetcher *w, int64_t now_ns);
/*
 * There is a newer view. Warms it, on the thread, if nodes were scored within the last minute.
 * Never waits for that.
 */
void prefetcher_published(struct prefetcher *w, int64_t now_ns);

#endif
