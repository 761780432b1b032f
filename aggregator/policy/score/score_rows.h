/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of all nodes of a view, read once and stored side by side, for all queries of the view. */
#pragma once

#include "aggregator/policy/score/score.h"
#include "aggregator/state/view_cache.h"

struct score_row {
	uint64_t serial; /* of the view_node */
	int64_t end_ns, aside_ns; /* what its age goes by */
	bool heard; /* false: never, and so it has no age */
	bool reusable; /* node holds while it is fresh, or if it was never heard */
	bool recent; /* what is pending follows from pods just placed, and so from arguments */
	struct score_node node; /* by the corrected variant with its default arguments, of age 0 */
};

struct score_rows {
	struct view_cached cached; /* first */
	bool knows_pods; /* the view does */
	struct score_args usual; /* what pending pods are kept for */
	size_t count;
	struct score_row of[]; /* in the order of the view */
};

/* Borrowed from the view. Made at the first call, from the last view's rows of unchanged nodes. */
const struct score_rows *score_rows_of(const struct view *v);
/* score_node_from_view() of the i-th node of that view, to the last bit. */
void score_rows_read(const struct score_rows *rows, const struct view *v, size_t i, int64_t now_ns,
		     const struct score_query *q, struct score_node *node);
