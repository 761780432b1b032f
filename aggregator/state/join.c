/* SPDX-License-Identifier: Apache-2.0 */
/* A node of the view is made anew when its page or its model is another one than in the view before. */
#include "aggregator/state/join.h"

#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

struct join {
	uint64_t version; /* of the newest view */
	size_t count, room;
	struct view_node **nodes; /* each held; those of the newest view */
};

struct join *join_new(void)
{
	return mem_zalloc(1, sizeof(struct join));
}

void join_free(struct join *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->count; i++)
		view_node_drop(j->nodes[i]);
	free(j->nodes);
	free(j);
}

static struct view_node *next_node(const struct join *j, size_t *at, struct node_page *page)
{
	while (*at < j->count && strcmp(j->nodes[*at]->name, page->name) < 0)
		++*at;
	if (*at < j->count && j->nodes[*at]->page == page)
		return view_node_hold(j->nodes[*at]);
	return view_node_new(page, NULL);
}

struct view *join_view(struct join *j, struct node_page *const *pages, size_t page_count,
		       struct cluster *cluster, int64_t now_ns)
{
	struct view_node **nodes = mem_alloc((page_count + 1) * sizeof(struct view_node *));
	struct view_node **kept = mem_alloc((page_count + 1) * sizeof(struct view_node *));
	size_t at = 0;

	for (size_t i = 0; i < page_count; i++) {
		nodes[i] = next_node(j, &at, pages[i]);
		kept[i] = view_node_hold(nodes[i]);
	}
	for (size_t i = 0; i < j->count; i++)
		view_node_drop(j->nodes[i]);
	free(j->nodes);
	j->nodes = kept;
	j->count = page_count;
	return view_new(++j->version, now_ns, nodes, page_count, cluster, NULL);
}
