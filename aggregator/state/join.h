/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins measured stats with the cluster model into views, touching only nodes of which either
 * changed. Loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/model.h"
#include "aggregator/state/usage.h"
#include "aggregator/state/view.h"

struct join;

struct join *join_new(void);
void join_free(struct join *j); /* NULL is allowed; one that is under way needs its stats still */
/* Where views have demand from, which sees them in turn; borrowed. Without it they have none. */
void join_set_demand(struct join *j, struct demand *d);
/* Restores saved use of workloads (workload_memory_read()) into the next view. */
int join_recall(struct join *j, const char *text, size_t len, struct error *error);
/*
 * The next view. Stats are sorted by name and borrowed; cluster is taken over (NULL: standalone). A
 * node of either is in it. Versions grow by one.
 */
struct view *join_view(struct join *j, struct node_stats *const *node_stats, size_t stats_count,
		       struct cluster *cluster, int64_t now_ns);
/*
 * The same in steps: begin, step until false, end. Stats, and what lies in them, stay borrowed
 * until the end, and no other view is begun before it. A step goes over at most that many nodes;
 * join_end() over those that are left.
 */
void join_begin(struct join *j, struct node_stats *const *node_stats, size_t stats_count,
		struct cluster *cluster, int64_t now_ns);
bool join_step(struct join *j, size_t most);
struct view *join_end(struct join *j);
