/* SPDX-License-Identifier: Apache-2.0 */
/* What became of everything the simulated agents measured and sent, by worker, added up at the end. */
#ifndef EVENKEEL_TESTS_FLEET_TALLY_H
#define EVENKEEL_TESTS_FLEET_TALLY_H

#include <stdint.h>

#include "agent/sender.h"
#include "shared/buf.h"
#include "shared/histogram.h"

/*
 * Each interval that was made is in one of acked, refused, skipped and unanswered, as long as nothing was asked for
 * again (resends_ordered: acked once more) nor merged in a ring too small; what an agent that died had not been
 * answered may have been applied all the same. A frame is a part of an interval; it is sent again when its answer is
 * late (timeouts) or the connection was replaced.
 */
struct tally {
	uint64_t agents, heard; /* lives of agents; those with at least one ack */
	uint64_t restarts, new_pods; /* agents started anew, pods that took another's place */
	uint64_t lost_acks, delayed_acks;
	uint64_t intervals, acked, refused, skipped, unanswered;
	uint64_t frames, bytes, timeouts, bad_acks, resends_ordered;
	uint64_t entries; /* workloads told, over all intervals */
	uint64_t latencies, late_intervals; /* late: the worker itself was behind by over 100 ms */
	double latency_max_us;
	struct histogram latency_us; /* from an interval's first frame to its ack */
	double cpu_seconds; /* of the worker */
	char last_reason[256];
};

void tally_add_latency(struct tally *t, int64_t latency_ns);
/* What one sender did, and what its ring still has for it. */
void tally_add_sender(struct tally *t, const struct sender_stats *stats, uint64_t unanswered);
void tally_merge(struct tally *into, const struct tally *from);
/* One JSON object. seconds: how long the fleet ran. */
void tally_write(const struct tally *t, double seconds, struct buf *out);

#endif
