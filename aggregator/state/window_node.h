/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a node's windows lie in memory: for the two files that fill and read them, and that pack
 * them.
 */
#ifndef EVENKEEL_AGGREGATOR_STATE_WINDOW_NODE_H
#define EVENKEEL_AGGREGATOR_STATE_WINDOW_NODE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/state/windows.h"

#define NODE_BUCKET_NS (NODE_BUCKET_SECONDS * 1000000000LL)

struct node_part {
	uint32_t samples;
	float weight, mean, m2, min, max;
};

/* CPU's histogram buckets first, then memory's. */
struct node_bin {
	uint16_t which;
	uint16_t count; /* saturating */
};

enum { NODE_BIN_STEP = 8 };

struct node_bucket {
	int64_t start_ns, end_ns;
	struct node_part cpu_milli, mem_bytes, working_set_bytes;
	float seconds;
	float throttled_seconds, pressure_seconds[PRESSURES];
	uint32_t periods, throttled_periods;
	uint32_t oom_kills;
	uint16_t have; /* 0: empty */
	uint16_t bin_count;
	/* owned; sorted by which; room for bin_count rounded up to NODE_BIN_STEP */
	struct node_bin *bins;
};

static_assert(sizeof(struct node_bucket) <= 136, "61 of them and their bins fit in 16 KiB");
static_assert((NODE_BUCKETS - 1) * NODE_BUCKET_SECONDS == 15 * 60, "15 minutes and a bucket");

struct node_windows {
	int64_t newest; /* index of the newest bucket; meaningless while all are empty */
	struct node_bucket ring[NODE_BUCKETS];
};

static inline size_t node_bin_room(size_t count)
{
	return (count + NODE_BIN_STEP - 1) / NODE_BIN_STEP * NODE_BIN_STEP;
}

#endif
