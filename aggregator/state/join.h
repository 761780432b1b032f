/* SPDX-License-Identifier: Apache-2.0 */
/* Joins measured pages with the cluster model into views, touching only nodes of which either changed. Loop thread. */
#ifndef EVENKEEL_AGGREGATOR_STATE_JOIN_H
#define EVENKEEL_AGGREGATOR_STATE_JOIN_H

#include "aggregator/model/model.h"
#include "aggregator/state/usage.h"
#include "aggregator/state/view.h"

struct join;

struct join *join_new(void);
void join_free(struct join *j);
/*
 * The next view. pages are sorted by name and borrowed; cluster is taken over (NULL: standalone). A node of either is
 * in it. Versions grow by one.
 */
struct view *join_view(struct join *j, struct node_page *const *pages, size_t page_count,
		       struct cluster *cluster, int64_t now_ns);

#endif
