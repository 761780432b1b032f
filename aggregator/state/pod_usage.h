/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod's use, packed: with 150,000 pods twice the size would be another 200 MiB.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/state/windows.h"

/*
 * The newest good value: of the interval that ended at the stats' end_ns, or age_seconds before
 * that where a newer one could not be (usage_check.h). Of CPU the mean, of the others the last
 * value. A float is what an interval carries of use; it holds every number of tasks, and of pages
 * swapped up to 64 GiB.
 */
struct latest {
	float value;
	uint16_t age_seconds; /* at most */
	bool known;
};

#define X(member, ...) struct latest member;
struct latest_usage {
	union {
		struct latest of[USAGE_LATEST_COUNT];
		struct {
			USAGE_AVERAGED(X)
			USAGE_NEWEST(X)
		};
	};
};
#undef X

struct usage_summary {
	struct latest_usage latest;
	struct window_set windows[WINDOWS];
};

/* samples 0: not known. */
struct pod_window_stats {
	int32_t start, end; /* in steps of half a millisecond from the packed usage's base */
	uint32_t samples;
	float mean, stddev, min, max;
};

/* The longest window with samples; NULL: none. It contains the others. */
static inline const struct pod_window_stats *
pod_stats_longest(const struct pod_window_stats stats[WINDOWS])
{
	for (int w = WINDOW_15M; w >= WINDOW_5M; w--)
		if (stats[w].samples)
			return &stats[w];
	return NULL;
}

/*
 * Counts are kept of the shortest window only: what has been lost to neighbours and limits is a
 * question about now.
 */
struct pod_counts {
	float seconds, throttled_seconds, throttled_ratio, pressure[PRESSURES];
	uint32_t oom_kills;
};

struct pod_usage {
	struct latest_usage latest;
	struct pod_window_stats cpu_milli[WINDOWS], mem_bytes[WINDOWS], working_set_bytes[WINDOWS];
	struct pod_counts counts;
	bool throttle_known, oom_known;
};

/* end_ns is the stats', for both. Times are rounded away from each other. */
void pod_usage_pack(const struct usage_summary *u, int64_t end_ns, struct pod_usage *out);
/* One of its windows. */
void pod_window_stats_unpack(const struct pod_window_stats *s, int64_t end_ns,
			     struct window_stats *out);
/*
 * Whether CPU and working set were measured over the whole of that window, give or take two
 * buckets.
 */
bool pod_usage_covers(const struct pod_usage *u, enum window window);
/* The counts of the longer windows say not measured. */
void pod_usage_unpack(const struct pod_usage *u, int64_t end_ns, struct usage_summary *out);
