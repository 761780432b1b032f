/* SPDX-License-Identifier: Apache-2.0 */
/* Measured pods, for tests of what joins them with the API's. */
#pragma once

#include "aggregator/state/node_stats.h"

/*
 * As of end_ns measured for so many seconds, always at the same use; 0: not at all. Limits are
 * unknown.
 */
struct pod_stats join_fixture_pod(const char *name, const char *uid, int64_t end_ns, double seconds,
				  double cpu_milli, double working_set_bytes);
/*
 * Stats of 4 CPUs and 8 GiB, measured for an hour at 1 CPU, with these pods, sorted by name. Its
 * strings can be shared.
 */
struct node_stats *join_fixture_stats(const char *node, int64_t end_ns,
				      const struct pod_stats *pods, size_t count);
/* The next stats of a node on which nothing started or ended: the same pods, used like these. */
struct node_stats *join_fixture_stats_after(const struct node_stats *before,
					    const struct pod_stats *pods);
