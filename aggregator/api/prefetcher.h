/* SPDX-License-Identifier: Apache-2.0 */
/* Makes what schedulers need of a view as soon as it is published, while they ask for scores. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/view.h"
#include "shared/error.h"

struct node_index;

/*
 * The index of node names of a view, for requests that name thousands. Borrowed from the view; made
 * by the first call, and handed from view to view while no node comes or goes.
 */
const struct node_index *node_index_of(const struct view *v);
/* As view_index(). */
size_t node_index_find(const struct node_index *x, const char *name);

struct prefetcher;

/* The views are borrowed. *w is to be stopped in any case; -EAGAIN with the reason: no thread. */
int prefetcher_start(struct prefetcher **w, struct view_slot *views, struct error *error);
/* Ends the thread after a run that is due, and frees. NULL is allowed, as in all below. */
void prefetcher_stop(struct prefetcher *w);
/* Any thread: nodes were scored. */
void prefetcher_asked(struct prefetcher *w, int64_t now_ns);
/*
 * A newer view is published: the thread prefetches for it if nodes were scored within the last
 * minute. Never waits.
 */
void prefetcher_published(struct prefetcher *w, int64_t now_ns);
