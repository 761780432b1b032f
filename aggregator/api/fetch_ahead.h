/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For walks over all nodes of a view. Nodes and their pages lie wherever memory was free when they
 * were made, and a page that came since the last walk is in no cache of this processor: a walk that
 * waits for each of 5000 waits longer than it works. So what comes next is asked for ahead, the
 * node first, since it says where its page is.
 */
#ifndef EVENKEEL_AGGREGATOR_API_FETCH_AHEAD_H
#define EVENKEEL_AGGREGATOR_API_FETCH_AHEAD_H

#include <stddef.h>

#include "aggregator/state/view.h"

enum { FETCH_AHEAD = 8, FETCH_LINE = 64 };

static inline const struct node_page *fetch_node_ahead(const struct view *v, size_t i)
{
	if (i + 2 * FETCH_AHEAD < v->node_count)
		__builtin_prefetch(&v->nodes[i + 2 * FETCH_AHEAD]->page);
	return i + FETCH_AHEAD < v->node_count ? v->nodes[i + FETCH_AHEAD]->page : NULL;
}

/* At the i-th: when each was measured. */
static inline void fetch_ages_ahead(const struct view *v, size_t i)
{
	const struct node_page *page = fetch_node_ahead(v, i);

	if (page)
		__builtin_prefetch(&page->end_ns);
}

/* Also what each uses. */
static inline void fetch_usage_ahead(const struct view *v, size_t i)
{
	const struct node_page *page = fetch_node_ahead(v, i);

	if (!page)
		return;
	__builtin_prefetch(page);
	for (size_t at = 0; at < sizeof(page->usage); at += FETCH_LINE)
		__builtin_prefetch((const char *)&page->usage + at);
}

#endif
