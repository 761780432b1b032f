/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals kept for resending: bounded in bytes, the oldest merged pairwise when full. Pure. */
#ifndef EVENKEEL_AGENT_RING_H
#define EVENKEEL_AGENT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"

/* With a full ring the whole agent stays below 16 MiB. */
enum { RING_BYTES_DEFAULT = 7 * 1024 * 1024 };

struct ring;

struct ring *ring_new(size_t max_bytes, int64_t span_ns);
void ring_free(struct ring *r);
/*
 * Takes the interval (newer than all others). Intervals that ended more than span before its end
 * are dropped; then, while over max_bytes, the neighbours that stand for the fewest intervals,
 * oldest first, are merged, so the span stays covered, more coarsely (by pieces of up to a quarter
 * of it); where none may be merged, the oldest is dropped. One interval alone is always kept.
 */
void ring_push(struct ring *r, struct interval *interval);
/*
 * Where each reader stands (the next sequence it will ask for): a merge never joins what a reader
 * already has with what it has not, nor touches the interval it will ask for next, which it may
 * have received already: so nothing is counted twice. Kept until the next call.
 */
void ring_set_cursors(struct ring *r, const uint64_t *cursors, size_t count);
/*
 * The oldest interval with sequence >= sequence; NULL when there is none. Borrowed until the next
 * push.
 */
const struct interval *ring_find(const struct ring *r, uint64_t sequence);
uint64_t ring_newest(const struct ring *r);

#endif
