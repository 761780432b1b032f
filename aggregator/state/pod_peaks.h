/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peak use of pods in each of the last 24 hours, for plans that fit the day's peaks.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "aggregator/state/windows.h"

enum {
	PEAK_HOURS = 24,
	PEAK_HOUR_SECONDS = 3600,
	PEAK_BUCKETS = PEAK_HOUR_SECONDS / POD_BUCKET_SECONDS, /* of an hour */
	/* The 95th percentile of at most 120 is never below the 7th largest. */
	PEAK_LARGEST = 7,
};

/*
 * Hour h (of Unix time) lies in place h % 24; the newest may be running and then stands for its
 * complete buckets.
 */
struct pod_peaks {
	int64_t newest; /* hour */
	float cpu_milli[PEAK_HOURS]; /* 95th percentile of the buckets' means; NaN: not measured */
	float working_set_bytes[PEAK_HOURS]; /* largest sample; NaN: not measured */
};

/*
 * Of all pods of a node, each in a place of its own; immutable while anyone but the usage state
 * holds it.
 */
struct node_peaks {
	atomic_uint users;
	uint32_t room, count;
	/* a place below count that no pod has, plus 1; its `newest` is the next; 0: none */
	uint32_t unused;
	struct pod_peaks pods[];
};

/* The running hour of a pod. All zero: nothing yet. */
struct pod_hours {
	uint32_t place; /* in the node's peaks, plus 1; 0: none yet */
	float largest[PEAK_LARGEST +
		      1]; /* means of the running hour's buckets, falling; the last is spare */
	uint8_t count; /* of its buckets that measured CPU */
};

/*
 * Takes in a complete bucket. Buckets come in order; one of an hour before the newest is ignored.
 * *peaks (held; NULL at first) is replaced where others hold it, or where it has no room.
 */
void pod_hours_add(struct pod_hours *h, struct node_peaks **peaks,
		   const struct pod_bucket_use *bucket);
/* NULL: no complete bucket yet. */
const struct pod_peaks *pod_hours_peaks(const struct pod_hours *h, const struct node_peaks *peaks);
/* Gives its place back; it is as new then. */
void pod_hours_leave(struct pod_hours *h, struct node_peaks **peaks);

struct node_peaks *node_peaks_hold(struct node_peaks *p);
/* Any thread; the last user frees it. NULL is allowed. */
void node_peaks_drop(struct node_peaks *p);
