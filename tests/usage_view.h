/* SPDX-License-Identifier: Apache-2.0 */
/* Views of what is measured alone, for tests that tell stories to the usage state. */
#pragma once

#include "aggregator/state/usage.h"
#include "aggregator/state/view.h"

/* All stats there are, of nodes that changed new ones. */
struct node_stats *const *usage_view_stats(struct usage_state *u, int64_t now_ns, size_t *count);
/* As join_view() makes them, but each for itself and of version 1. */
struct view *usage_view(struct usage_state *u, int64_t now_ns);
