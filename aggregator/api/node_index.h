/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places of many nodes in a view by their names: for questions that name thousands, in any order.
 */
#ifndef EVENKEEL_AGGREGATOR_API_NODE_INDEX_H
#define EVENKEEL_AGGREGATOR_API_NODE_INDEX_H

#include <stddef.h>

#include "aggregator/state/view.h"

struct node_index;

/*
 * Borrowed from the view: made by the first who asks, and handed from view to view while no node
 * comes or goes.
 */
const struct node_index *node_index_of(const struct view *v);
/* As view_index(). */
size_t node_index_find(const struct node_index *x, const char *name);

#endif
