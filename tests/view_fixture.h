/* SPDX-License-Identifier: Apache-2.0 */
/* A small cluster written down by hand, for tests of everything that reads views. */
#pragma once

#include <stdint.h>

#include "aggregator/state/view.h"

/* 2026-01-31T12:00:00Z */
#define VIEW_FIXTURE_NOW_NS 1769860800000000000LL

/*
 * Nodes as of VIEW_FIXTURE_NOW_NS; each has 4 CPUs and 8 GiB, and its windows end with its newest
 * sample:
 *
 *   alpha  fresh, 2 s old; all windows covered. CPU 5m 1000 +- 100, 10m 1100 +- 200, 15m 1200 +- 300 millicores, memory
 *          2 GiB +- 64 MiB, swap and pids. Pods: a Guaranteed pod with two containers, limits, swap and pids, a slice,
 *          a unit without limits.
 *   bravo  late, 60 s old; 5m covered only (6 minutes of history).
 *   delta  fresh, 1 s old; 90 s of history; CPU but no memory measured for its pod.
 *   gone   expired, 400 s old.
 *   mute   never heard: no windows, no capacity.
 *
 * All but mute know their machine's CPU split and counters, and PSI of CPU but not of memory.
 */
struct view *view_fixture_new(void);

/*
 * The pieces, to build others: `name` with end_ns and so many seconds of history; CPU mean and
 * stddev in millicores are those of all windows. The result is the caller's to change before
 * node_stats_new().
 */
struct node_stats view_fixture_node(const char *name, int64_t end_ns, double history_seconds,
				    double cpu_mean, double cpu_stddev);
/*
 * A node made of nothing but these stats, which it borrows, like everything else: not for
 * view_node_drop().
 */
struct view_node view_fixture_around(struct node_stats *stats);
/* A view of copies of those stats, sorted by name here. */
struct view *view_fixture_of(const struct node_stats *node_stats, size_t count);
/* A view of those stats, sorted by name; takes over the array and one hold of each. */
struct view *view_fixture_of_stats(uint64_t version, int64_t time_ns,
				   struct node_stats **node_stats, size_t count);
/* NULL: the view has no such node, or it is not measured. */
const struct node_stats *view_fixture_stats(const struct view *v, const char *node);
