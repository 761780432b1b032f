/* SPDX-License-Identifier: Apache-2.0 */
/* How far a node's clock is from ours, and what is added to the times of its intervals. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/interval.h"

#define NODE_CLOCK_RIGHT_NS   (2 * 1000000000LL) /* within this nothing is corrected */
#define NODE_CLOCK_FLAGGED_NS (30 * 1000000000LL)

enum { NODE_CLOCK_SAMPLES = 8 };

/* All zero: nothing is known, nothing is corrected. */
struct node_clock {
	int64_t correction_ns; /* to be added; whole seconds */
	int64_t sample_ns[NODE_CLOCK_SAMPLES]; /* our clock less the node's, and the delay */
	int64_t sure_ns[NODE_CLOCK_SAMPLES]; /* the same without what may have been our own queue */
	uint8_t count, next;
	int64_t end_ns; /* of the interval heard last, by the node's clock */
};

/*
 * Learns from an interval that arrives now. follows: it is the next of the same run, so that a
 * start elsewhere than at the last end means that the node's clock was set. Nothing is learned
 * where the agent did not say how old it is.
 */
void node_clock_hear(struct node_clock *c, const struct interval *i, bool follows, int64_t now_ns);
/* How far the node's clock is ahead of ours; false: not known. */
bool node_clock_skew(const struct node_clock *c, int64_t *ahead_ns);
