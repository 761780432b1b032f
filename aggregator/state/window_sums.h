/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pod and node windows share: one bucket in full precision, and the sums of buckets that a
 * window is. window_part_merge() is the formula; windows.c makes statistics of the sums.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/windows.h"

/* One measure in a bucket or a window; samples 0: not measured, and all else is 0. */
struct window_part {
	uint64_t samples;
	double weight; /* seconds */
	double mean, m2, min, max;
};

/* A bucket, unpacked from whatever form its ring keeps. have 0: empty. */
struct window_bucket {
	uint32_t have; /* enum usage_have: what at least one of its intervals measured */
	int64_t start_ns, end_ns; /* of the intervals in it */
	struct window_part cpu_milli, mem_bytes, working_set_bytes;
	double seconds; /* covered by its intervals */
	double throttled_seconds, pressure_seconds[PRESSURES];
	uint64_t periods, throttled_periods, oom_kills;
};

/*
 * The parallel form of Welford's formula: moments_merge() (shared/moments.h) without `last`, inline
 * as it runs for each bucket of each node.
 */
static inline void window_part_merge(struct window_part *into, const struct window_part *from)
{
	double delta = from->mean - into->mean, share;

	if (!from->samples)
		return;
	if (!into->samples) {
		*into = *from;
		return;
	}
	share = from->weight / (into->weight + from->weight);
	into->m2 += from->m2 + delta * delta * into->weight * share;
	into->mean += delta * share;
	into->weight += from->weight;
	into->samples += from->samples;
	into->min = from->min < into->min ? from->min : into->min;
	into->max = from->max > into->max ? from->max : into->max;
}

/* Adds one interval, whole. Nothing happens for one in which nothing was measured. */
void window_bucket_add(struct window_bucket *b, const struct usage *u, int64_t start_ns,
		       int64_t end_ns);

struct window_span {
	struct window_part part;
	int64_t start_ns, end_ns;
};

/* A window in the making: buckets are added newest first. */
struct window_sums {
	struct window_span cpu_milli, mem_bytes, working_set_bytes;
	uint32_t have;
	double seconds, throttled_seconds;
	double pressure_seconds[PRESSURES], pressure_of[PRESSURES]; /* lost, and of which time */
	uint64_t periods, throttled_periods, oom_kills;
};

void window_sums_add(struct window_sums *s, const struct window_bucket *b);
/* The same without counts, which need not be set in b. */
void window_sums_add_spans(struct window_sums *s, const struct window_bucket *b);
/* The window as of now; more buckets may be added after. Percentiles are the caller's. */
void window_sums_read(const struct window_sums *s, struct window_set *out);
/* The same without counts, which are left as they are. */
void window_sums_read_stats(const struct window_sums *s, struct window_set *out);

/* The buckets of a ring in which something was measured, oldest first. */
struct window_buckets {
	int seconds; /* length of a bucket */
	size_t count;
	struct window_bucket of[NODE_BUCKETS];
};

static_assert(NODE_BUCKETS >= POD_BUCKETS, "there is room for those of a pod");

void node_windows_buckets(const struct node_windows *w, struct window_buckets *out);
/* Of the newest 11 what was counted, too; all measure memory by its mean and maximum only. */
void pod_windows_buckets(const struct pod_windows *w, struct window_buckets *out);

/* For packing: the nearest float, never infinite. */
float window_float(double value);
