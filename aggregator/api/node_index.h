/* SPDX-License-Identifier: Apache-2.0 */
/* Places of many nodes in a view by their names: for questions that name thousands, in any order. */
#ifndef EVENKEEL_AGGREGATOR_API_NODE_INDEX_H
#define EVENKEEL_AGGREGATOR_API_NODE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/view.h"

struct node_slot {
	uint32_t hash;
	uint32_t place; /* + 1; 0: free */
};

/* A hash table; made per question, since that costs less than what it saves, and nothing is shared. */
struct node_index {
	const struct view *view; /* borrowed */
	size_t mask;
	struct node_slot *slots; /* owned; NULL: too few names are asked for */
};

/* For so many questions. */
void node_index_init(struct node_index *x, const struct view *v, size_t questions);
void node_index_fini(struct node_index *x);
/* As view_index(). */
size_t node_index_find(const struct node_index *x, const char *name);

#endif
