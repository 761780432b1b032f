/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals kept for resending, bounded in bytes; when full the oldest merge in pairs. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"

/* The agent with a full ring stays below 16 MiB. */
enum { RING_BYTES_DEFAULT = 7 * 1024 * 1024 };

struct ring;

struct ring *ring_new(size_t max_bytes, int64_t span_ns);
void ring_free(struct ring *r);
/*
 * Takes the interval (newer than all others) and drops intervals that ended more than span before
 * its end. Over max_bytes, merges the neighbours that stand for the fewest intervals, oldest first,
 * into pieces of up to a quarter of the span; if none may merge, drops the oldest. One interval
 * always stays.
 */
void ring_push(struct ring *r, struct interval *interval);
/*
 * Sets the next sequence of each reader. The ring merges no interval that a reader has with one that
 * it lacks, nor the reader's next interval, whose ack may be lost: so none counts twice. Valid until
 * the next call.
 */
void ring_set_cursors(struct ring *r, const uint64_t *cursors, size_t count);
/* The oldest interval with this sequence or a later one, or NULL. Borrowed until the next push. */
const struct interval *ring_find(const struct ring *r, uint64_t sequence);
uint64_t ring_newest(const struct ring *r);
