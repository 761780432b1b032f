/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demand for CPU in an interval, as bytes: how many samples lie in which bucket of
 * shared/histogram.h (HISTOGRAM_CPU_X0). Part of the wire format.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"
#include "shared/histogram.h"

/* After the begin of a container its demand is that of a start. */
#define DEMAND_STARTING_NS (120 * 1000000000LL)

/*
 * For each bucket with samples, by rising index, two varints (seven bits per byte, lowest first):
 * its distance to the bucket before (the first: its index), and its samples. Two buckets of a
 * container below 160 cores need four bytes.
 */
void demand_encode(const struct histogram *h, struct buf *out);

struct demand_reader {
	const uint8_t *at, *end; /* borrowed */
	uint32_t index, count; /* of the bucket read last */
	bool begun;
};

struct demand_reader demand_read(const void *bytes, size_t len);
/* The next bucket; false at the end, and at what cannot be read: then at < end. */
bool demand_next(struct demand_reader *r);
/* Whether the bytes can be read to their end. */
bool demand_is_valid(const void *bytes, size_t len);
/* Adds the samples of valid bytes. */
void demand_decode(const void *bytes, size_t len, struct histogram *into);
