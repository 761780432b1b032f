/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/usage_view.h"

#include "shared/mem.h"

struct node_page *const *usage_view_pages(struct usage_state *u, int64_t now_ns, size_t *count)
{
	usage_gather_pages(u, now_ns, count); /* forgets the silent ones */
	usage_build_pages(u, SIZE_MAX);
	return usage_gather_pages(u, now_ns, count);
}

struct view *usage_view(struct usage_state *u, int64_t now_ns)
{
	size_t count;
	struct node_page *const *pages = usage_view_pages(u, now_ns, &count);
	struct view_node **nodes = mem_alloc((count + 1) * sizeof(struct view_node *));

	for (size_t i = 0; i < count; i++)
		nodes[i] = view_node_renew(NULL, pages[i], NULL);
	return view_new(1, now_ns, nodes, count, NULL, NULL);
}
