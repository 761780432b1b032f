/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fleet/tally.h"

#include <math.h>
#include <string.h>

#include "shared/jsonw.h"

#define LATENCY_X0_US 1.0

void tally_add_latency(struct tally *t, uint32_t phase, bool again, int64_t latency_ns)
{
	struct tally_phase *p = &t->phases[phase < TALLY_PHASES ? phase : TALLY_PHASES - 1];
	struct tally_acks *a = again ? &p->again : &p->first_try;
	double us = (double)latency_ns / 1e3;

	histogram_add(&a->us, us, LATENCY_X0_US);
	a->count++;
	a->max_us = fmax(a->max_us, us);
}

static void keep_reason(struct tally *t, const char reason[256])
{
	if (reason[0])
		memcpy(t->last_reason, reason, sizeof(t->last_reason));
}

void tally_add_sender(struct tally *t, const struct sender_stats *stats)
{
	t->agents++;
	t->heard += stats->acked > 0;
	t->acked += stats->acked;
	t->refused += stats->refused;
	t->skipped += stats->skipped;
	t->frames += stats->sent;
	t->frames_again += stats->sent_again;
	t->bytes += stats->sent_bytes;
	t->timeouts += stats->timeouts;
	t->bad_acks += stats->bad_acks;
	t->resends_ordered += stats->resends_ordered;
	keep_reason(t, stats->last_reason);
}

static void merge_acks(struct tally_acks *into, const struct tally_acks *from)
{
	into->count += from->count;
	into->max_us = fmax(into->max_us, from->max_us);
	histogram_merge(&into->us, &from->us);
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
	into->in_doubt += from->in_doubt;
	into->merged += from->merged;
	into->frames += from->frames;
	into->frames_again += from->frames_again;
	into->bytes += from->bytes;
	into->timeouts += from->timeouts;
	into->bad_acks += from->bad_acks;
	into->resends_ordered += from->resends_ordered;
	into->entries += from->entries;
	into->late_intervals += from->late_intervals;
	for (size_t i = 0; i < TALLY_PHASES; i++) {
		merge_acks(&into->phases[i].first_try, &from->phases[i].first_try);
		merge_acks(&into->phases[i].again, &from->phases[i].again);
	}
	into->cpu_seconds += from->cpu_seconds;
	keep_reason(into, from->last_reason);
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : NAN;
}

/* The members of an object that is open. */
static void write_acks(const struct tally_acks *a, struct jsonw *w)
{
	static const struct {
		const char *key;
		double q;
	} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}};

	jsonw_key_int(w, "count", (int64_t)a->count);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		double us = histogram_quantile(&a->us, quantiles[i].q, LATENCY_X0_US, 0, a->max_us);

		jsonw_key_fixed(w, quantiles[i].key, a->count ? us / 1e3 : NAN, 3);
	}
	jsonw_key_fixed(w, "max", a->count ? a->max_us / 1e3 : NAN, 3);
}

static void write_part(const char *key, const struct tally_acks *a, struct jsonw *w)
{
	jsonw_key(w, key);
	jsonw_object_open(w);
	write_acks(a, w);
	jsonw_object_close(w);
}

/* All acks, and both kinds apart. */
static void write_phase(const struct tally_phase *p, struct jsonw *w)
{
	struct tally_acks all = p->first_try;

	merge_acks(&all, &p->again);
	jsonw_object_open(w);
	write_acks(&all, w);
	write_part("firstTry", &p->first_try, w);
	write_part("again", &p->again, w);
	jsonw_object_close(w);
}

/* Of all phases together, and of each. */
static void write_latencies(const struct tally *t, struct jsonw *w)
{
	struct tally_phase all = {0};

	for (size_t i = 0; i < TALLY_PHASES; i++) {
		merge_acks(&all.first_try, &t->phases[i].first_try);
		merge_acks(&all.again, &t->phases[i].again);
	}
	jsonw_key(w, "ackMilliseconds");
	write_phase(&all, w);
	jsonw_key(w, "phases");
	jsonw_array_open(w);
	for (size_t i = 0; i < TALLY_PHASES; i++)
		write_phase(&t->phases[i], w);
	jsonw_array_close(w);
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
	jsonw_key_int(&w, "inDoubt", (int64_t)t->in_doubt);
	jsonw_key_int(&w, "merged", (int64_t)t->merged);
	jsonw_key_int(&w, "late", (int64_t)t->late_intervals);
	jsonw_object_close(&w);
	jsonw_key(&w, "frames");
	jsonw_object_open(&w);
	jsonw_key_int(&w, "sent", (int64_t)t->frames);
	jsonw_key_int(&w, "bytes", (int64_t)t->bytes);
	jsonw_key_int(&w, "again", (int64_t)t->frames_again);
	jsonw_key_int(&w, "timeouts", (int64_t)t->timeouts);
	jsonw_key_int(&w, "badAcks", (int64_t)t->bad_acks);
	jsonw_key_int(&w, "resendsOrdered", (int64_t)t->resends_ordered);
	jsonw_object_close(&w);
	jsonw_key_fixed(&w, "bytesPerInterval", ratio(t->bytes, t->intervals), 1);
	jsonw_key_fixed(&w, "workloadsPerInterval", ratio(t->entries, t->intervals), 1);
	write_latencies(t, &w);
	jsonw_key_fixed(&w, "cpuSeconds", t->cpu_seconds, 3);
	if (t->last_reason[0])
		jsonw_key_string(&w, "lastReason", t->last_reason);
	jsonw_object_close(&w);
	buf_add_char(out, '\n');
}
