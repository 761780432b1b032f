/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/usage_view.h"

#include "shared/mem.h"

struct node_stats *const *usage_view_stats(struct usage_state *u, int64_t now_ns, size_t *count)
{
	usage_gather_stats(u, now_ns, count); /* forgets the silent ones */
	usage_build_stats(u, SIZE_MAX);
	return usage_gather_stats(u, now_ns, count);
}

struct view *usage_view(struct usage_state *u, int64_t now_ns)
{
	size_t count;
	struct node_stats *const *node_stats = usage_view_stats(u, now_ns, &count);
	struct view_node **nodes = mem_alloc((count + 1) * sizeof(struct view_node *));

	for (size_t i = 0; i < count; i++)
		nodes[i] = view_node_renew(NULL, node_stats[i], NULL);
	return view_new(1, now_ns, nodes, count, NULL, NULL);
}
