/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of everything the simulated agents measured and sent, by worker, added up at the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/sender.h"
#include "shared/buf.h"
#include "shared/histogram.h"

/*
 * Whoever starts the fleet says when the next phase begins (fleet_begin_phase); the last one stays.
 */
enum { TALLY_PHASES = 4 };

struct tally_acks {
	uint64_t count;
	double max_us;
	struct histogram us; /* from the end of an interval to its ack */
};

/*
 * Apart: what was answered while nothing had to be sent again, and what waited for a frame that
 * was, its own or that of one before it.
 */
struct tally_phase {
	struct tally_acks first_try, again;
};

/*
 * Each interval that was made is in one of acked, refused, skipped and unanswered, as long as
 * nothing was asked for again (resends_ordered: acked once more) nor merged in a ring too small.
 * What was sent and not answered, when an agent died or the fleet ended, may have been applied all
 * the same. A frame is a part of an interval; it is sent again when its answer is late (timeouts)
 * or the connection was replaced.
 */
struct tally {
	uint64_t agents, heard; /* lives of agents; those with at least one ack */
	uint64_t restarts, new_pods; /* agents started anew, pods that took another's place */
	uint64_t lost_acks, delayed_acks;
	uint64_t intervals, acked, refused, skipped, unanswered;
	uint64_t in_doubt; /* of the unanswered those that were sent: they may have been applied */
	uint64_t merged; /* intervals that became a part of another in a ring that was full */
	uint64_t frames, bytes, frames_again, timeouts, bad_acks, resends_ordered;
	uint64_t entries; /* workloads told, over all intervals */
	uint64_t late_intervals; /* the worker itself was behind by over 100 ms */
	struct tally_phase phases[TALLY_PHASES];
	double cpu_seconds; /* of the worker */
	char last_reason[256];
};

void tally_add_latency(struct tally *t, uint32_t phase, bool again, int64_t latency_ns);
/* What one sender did. */
void tally_add_sender(struct tally *t, const struct sender_stats *stats);
void tally_merge(struct tally *into, const struct tally *from);
/* One JSON object. seconds: how long the fleet ran. */
void tally_write(const struct tally *t, double seconds, struct buf *out);
