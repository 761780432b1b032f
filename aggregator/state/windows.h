/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sliding windows of 5, 10 and 15 minutes over rings of buckets, for one node or one pod. Pure.
 * The formula of means and deviations is window_part_merge() in window_sums.h; the rings are in
 * window_node.c and window_pod.c, the sums over buckets in windows.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/state/pressure.h"
#include "shared/interval.h"

/*
 * An interval belongs whole to the bucket that contains its end. A window is the newest k whole
 * buckets before the bucket of `as_of`, plus that one: k = 10, 20, 30 of 30 s (pod), 20, 40, 60 of
 * 15 s (node). It reports the start of its first and the end of its last interval as they really
 * were (pods: start to 1/16 s and end to 1 ms, rounded away from each other). Intervals may come in
 * any order; one older than the ring is ignored, and so is one without any measure. Buckets after
 * that of `as_of` are not read.
 */
enum window { WINDOW_5M, WINDOW_10M, WINDOW_15M, WINDOWS };

extern const char *const window_name[WINDOWS]; /* "5m", "10m", "15m" */

enum {
	POD_BUCKETS = 31,
	POD_BUCKET_SECONDS = 30,
	NODE_BUCKETS = 61,
	NODE_BUCKET_SECONDS = 15,
};

/*
 * CPU: of all samples. Memory and working set travel as mean and maximum per interval, so:
 *   mean    weighted with time, exact
 *   max     the largest sample
 *   stddev, min, samples
 *           nodes: of the intervals' means; pods: of the 30 s buckets' means
 * Percentiles (CPU and memory of nodes) come from histograms of all samples and are clamped to
 * [min, max]. Pressure of pods is kept in steps of 1/65534 of a bucket's time.
 */
struct window_stats {
	bool known; /* false: nothing of this was measured in the window; all else is 0 */
	bool percentiles; /* p50, p95, p99 are valid (nodes only) */
	int64_t start_ns, end_ns; /* Unix time */
	uint64_t samples; /* 0: how many is not known, of a load watcher's answer */
	double mean, stddev;
	double min, max; /* NaN: not known, of such */
	double p50, p95, p99;
};

/* Sums over one window of what is counted rather than averaged. */
struct window_counts {
	double seconds; /* covered */
	double throttled_seconds;
	double throttled_ratio; /* throttled periods / periods; NaN without periods */
	double pressure[PRESSURES]; /* share of the time, 0..1; NaN: not measured */
	uint64_t oom_kills; /* pods: counted up to 255 per bucket */
	bool throttle_known, oom_known;
};

extern const struct window_counts window_counts_none; /* of a window in which nothing was counted */

#define X(member, ...) struct window_stats member;
struct window_set {
	union {
		struct window_stats averaged[USAGE_AVERAGED_COUNT];
		struct {
			USAGE_AVERAGED(X)
		};
	};
	struct window_counts counts;
};
#undef X

/*
 * A node's most recent use: a bucket of 15 s weighs half as much as the next newer one, so a load
 * that ended is below 1 % after 7 buckets. min, max and samples are not weighted.
 */
struct window_recent {
	struct window_stats cpu_milli, mem_bytes;
};

/*
 * Whether a node's window may stand for its length: it reaches back over all of it, give or take
 * two buckets, and at least half of it was measured.
 */
bool window_is_covered(const struct window_set *set, enum window window);

/*
 * The window that speaks for a node, for every reader the same: the longest that is covered, 15m,
 * 10m or 5m; else, with *window -1, what there is since it was first measured, or again: the
 * shortest that holds anything. Windows without both CPU and memory count only where none has both.
 * NULL: nothing is known. window may be NULL.
 */
const struct window_set *window_longest(const struct window_set windows[WINDOWS], int *window);
/* The same among those up to `most`. */
const struct window_set *window_longest_within(const struct window_set windows[WINDOWS],
					       enum window most, int *window);

struct pod_windows; /* opaque; <= 1728 bytes, and 768 for a pod of 5 minutes */
struct node_windows; /* opaque; <= 16 KiB while its histograms are as sparse as real ones */

struct pod_windows *pod_windows_new(void);
void pod_windows_free(struct pod_windows *w);
void pod_windows_add(struct pod_windows *w, const struct usage *u, int64_t start_ns,
		     int64_t end_ns);
/*
 * Counts of the shortest window only, and of no bucket that was 11 or more before the newest one;
 * those of the longer windows are left as they are.
 */
void pod_windows_read(const struct pod_windows *w, int64_t as_of_ns,
		      struct window_set out[WINDOWS]);
/* Fetch what pod_windows_read() reads: the block itself, and later what that points to. */
void pod_windows_prefetch(const struct pod_windows *w);
void pod_windows_prefetch_more(const struct pod_windows *w);

/* A pod's use in one 30 s bucket. */
struct pod_bucket_use {
	int64_t start_ns; /* of the bucket */
	float cpu_milli; /* mean */
	float working_set_bytes; /* largest sample */
	bool cpu_known, working_set_known;
};

/*
 * True when an interval that ends at end_ns begins a new bucket: the newest so far is complete
 * then, and *out.
 */
bool pod_windows_completes(const struct pod_windows *w, int64_t end_ns, struct pod_bucket_use *out);

struct node_windows *node_windows_new(void);
void node_windows_free(struct node_windows *w);
void node_windows_add(struct node_windows *w, const struct node_sample *n, int64_t start_ns,
		      int64_t end_ns);
void node_windows_read(const struct node_windows *w, int64_t as_of_ns,
		       struct window_set out[WINDOWS]);
void node_windows_read_recent(const struct node_windows *w, int64_t as_of_ns,
			      struct window_recent *out);
