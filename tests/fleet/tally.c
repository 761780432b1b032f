/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fleet/tally.h"

#include <math.h>
#include <string.h>

#include "shared/jsonw.h"

#define LATENCY_X0_US 1.0

void tally_add_latency(struct tally *t, int64_t latency_ns)
{
	double us = (double)latency_ns / 1e3;

	histogram_add(&t->latency_us, us, LATENCY_X0_US);
	t->latencies++;
	if (us > t->latency_max_us)
		t->latency_max_us = us;
}

static void keep_reason(struct tally *t, const char reason[256])
{
	if (reason[0])
		memcpy(t->last_reason, reason, sizeof(t->last_reason));
}

void tally_add_sender(struct tally *t, const struct sender_stats *stats, uint64_t unanswered)
{
	t->agents++;
	t->heard += stats->acked > 0;
	t->acked += stats->acked;
	t->refused += stats->refused;
	t->skipped += stats->skipped;
	t->unanswered += unanswered;
	t->frames += stats->sent;
	t->bytes += stats->sent_bytes;
	t->timeouts += stats->timeouts;
	t->bad_acks += stats->bad_acks;
	t->resends_ordered += stats->resends_ordered;
	keep_reason(t, stats->last_reason);
}

void tally_merge(struct tally *into, const struct tally *from)
{
	into->agents += from->agents;
	into->heard += from->heard;
	into->restarts += from->restarts;
	into->new_pods += from->new_pods;
	into->lost_acks += from->lost_acks;
	into->delayed_acks += from->delayed_acks;
	into->intervals += from->intervals;
	into->acked += from->acked;
	into->refused += from->refused;
	into->skipped += from->skipped;
	into->unanswered += from->unanswered;
	into->frames += from->frames;
	into->bytes += from->bytes;
	into->timeouts += from->timeouts;
	into->bad_acks += from->bad_acks;
	into->resends_ordered += from->resends_ordered;
	into->entries += from->entries;
	into->latencies += from->latencies;
	into->late_intervals += from->late_intervals;
	into->latency_max_us = fmax(into->latency_max_us, from->latency_max_us);
	histogram_merge(&into->latency_us, &from->latency_us);
	into->cpu_seconds += from->cpu_seconds;
	keep_reason(into, from->last_reason);
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : NAN;
}

static void write_latency(const struct tally *t, struct jsonw *w)
{
	static const struct {
		const char *key;
		double q;
	} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}};

	jsonw_key(w, "ackMilliseconds");
	jsonw_object_open(w);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		double us = histogram_quantile(&t->latency_us, quantiles[i].q, LATENCY_X0_US, 0,
					       t->latency_max_us);

		jsonw_key_fixed(w, quantiles[i].key, t->latencies ? us / 1e3 : NAN, 3);
	}
	jsonw_key_fixed(w, "max", t->latencies ? t->latency_max_us / 1e3 : NAN, 3);
	jsonw_object_close(w);
}

void tally_write(const struct tally *t, double seconds, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_object_open(&w);
	jsonw_key_fixed(&w, "seconds", seconds, 3);
	jsonw_key_int(&w, "agents", (int64_t)t->agents);
	jsonw_key_int(&w, "heard", (int64_t)t->heard);
	jsonw_key_int(&w, "restarts", (int64_t)t->restarts);
	jsonw_key_int(&w, "newPods", (int64_t)t->new_pods);
	jsonw_key_int(&w, "lostAcks", (int64_t)t->lost_acks);
	jsonw_key_int(&w, "delayedAcks", (int64_t)t->delayed_acks);
	jsonw_key(&w, "intervals");
	jsonw_object_open(&w);
	jsonw_key_int(&w, "made", (int64_t)t->intervals);
	jsonw_key_int(&w, "acked", (int64_t)t->acked);
	jsonw_key_int(&w, "refused", (int64_t)t->refused);
	jsonw_key_int(&w, "skipped", (int64_t)t->skipped);
	jsonw_key_int(&w, "unanswered", (int64_t)t->unanswered);
	jsonw_key_int(&w, "late", (int64_t)t->late_intervals);
	jsonw_object_close(&w);
	jsonw_key(&w, "frames");
	jsonw_object_open(&w);
	jsonw_key_int(&w, "sent", (int64_t)t->frames);
	jsonw_key_int(&w, "bytes", (int64_t)t->bytes);
	jsonw_key_int(&w, "timeouts", (int64_t)t->timeouts);
	jsonw_key_int(&w, "badAcks", (int64_t)t->bad_acks);
	jsonw_key_int(&w, "resendsOrdered", (int64_t)t->resends_ordered);
	jsonw_object_close(&w);
	jsonw_key_fixed(&w, "bytesPerInterval", ratio(t->bytes, t->intervals), 1);
	jsonw_key_fixed(&w, "workloadsPerInterval", ratio(t->entries, t->intervals), 1);
	write_latency(t, &w);
	jsonw_key_fixed(&w, "cpuSeconds", t->cpu_seconds, 3);
	if (t->last_reason[0])
		jsonw_key_string(&w, "lastReason", t->last_reason);
	jsonw_object_close(&w);
	buf_add_char(out, '\n');
}
