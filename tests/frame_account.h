/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of every frame and every interval, by what an aggregator counts and, of a fleet, by
 * what its agents do. Each function asserts.
 */
#pragma once

#include "aggregator/state/counters.h"
#include "tests/stack.h"

struct frame_account {
	double frames[FRAME_RESULT_COUNT];
	/* Intervals: within others, gone past by their run, not told apart from saved ones. */
	double merged, missing, lost;
};

/* All at one moment; the counts of an aggregator that does not run are 0. */
struct frame_account frame_account_of(const struct stack *s, int aggregator);
/* Frames that were in order, whatever became of them. */
double frame_account_heard(const struct frame_account *a);
/* All were in order. */
void frame_account_expect_none_refused(const struct stack *s, int aggregator);
/* And of no interval anything is missing, nor coarser than it was measured. */
void frame_account_expect_whole(const struct stack *s, int aggregator);
/*
 * A frame that a fleet sent and nobody heard is one that was sent again. `heard` by all lives of
 * the aggregator; up to `uncounted` more either came to one that was killed, or were on their way
 * when their agents died.
 */
void frame_account_expect_frames(const cJSON *report, double heard, double uncounted);
