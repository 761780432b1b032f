/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works out what schedulers will ask of a view as soon as it is published, while they ask, so that
 * no question waits for it.
 */
#ifndef EVENKEEL_AGGREGATOR_API_WARMER_H
#define EVENKEEL_AGGREGATOR_API_WARMER_H

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

struct warmer;

/* Without its thread yet, and then nothing is warmed. The views are borrowed. */
struct warmer *warmer_new(struct view_slot *views);
/* -EAGAIN with the reason: no thread. */
int warmer_start(struct warmer *w, struct error *error);
/* Ends the thread behind what is due. NULL is allowed, as in all below. */
void warmer_stop(struct warmer *w);
void warmer_free(struct warmer *w); /* stopped */
/* Any thread: nodes were scored. */
void warmer_asked(struct warmer *w, int64_t now_ns);
/*
 * There is a newer view. Warms it, on the thread, if nodes were scored within the last minute.
 * Never waits for that.
 */
void warmer_published(struct warmer *w, int64_t now_ns);

#endif
