/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/account_stats.h"

#include <math.h>

#define NS_PER_S 1e9

/* PSI lags by at most this much, so the next interval subtracts at most so much throttled time. */
#define PSI_LAG_NS 2000000000LL

/* Millicore seconds per nanosecond of CPU time. */
#define MILLI_S_PER_NS 1e-6

double stats_add_cpu(struct stats *s, double used_ns, int64_t dt_ns, int64_t capacity_milli)
{
	double seconds = (double)dt_ns / NS_PER_S;
	double milli = used_ns * MILLI_S_PER_NS / seconds;

	if (capacity_milli > 0 && milli > (double)capacity_milli) {
		s->unsettled_ns += (milli - (double)capacity_milli) * seconds / MILLI_S_PER_NS;
		milli = (double)capacity_milli;
	}
	moments_add(&s->cpu_milli, milli, seconds);
	s->have |= USAGE_CPU;
	return milli;
}

void stats_settle(struct stats *s, int64_t capacity_milli)
{
	struct moments *m = &s->cpu_milli;
	double capacity = (double)capacity_milli, shift;

	if (!(m->weight > 0) || s->unsettled_ns == 0)
		return;
	shift = s->unsettled_ns * MILLI_S_PER_NS / m->weight;
	if (capacity > 0 && shift > 0)
		shift = fmax(fmin(shift, capacity - m->mean), 0);
	if (shift < -m->min)
		shift = -m->min;
	s->unsettled_ns -= shift * m->weight / MILLI_S_PER_NS;
	m->mean += shift;
	m->min += shift;
	m->last += shift;
	m->max += shift;
	if (capacity > 0 && shift > 0) {
		m->max = fmin(m->max, capacity);
		m->last = fmin(m->last, capacity);
	}
}

static void add_gauge(struct gauge_sum *g, double value, int64_t dt_ns)
{
	double seconds = (double)dt_ns / NS_PER_S;

	if (g->weight <= 0 || value > g->max)
		g->max = value;
	g->sum += value * seconds;
	g->weight += seconds;
	g->last = value;
}

void stats_add_memory(struct stats *s, uint64_t bytes, int64_t dt_ns)
{
	add_gauge(&s->mem_bytes, (double)bytes, dt_ns);
	s->have |= USAGE_MEMORY;
}

void stats_add_throttle(struct stats *s, uint64_t throttled_ns, uint64_t periods,
			uint64_t throttled_periods)
{
	s->have |= USAGE_THROTTLE;
	s->throttled_ns += throttled_ns;
	s->periods += periods;
	s->throttled_periods += throttled_periods;
}

void stats_add_slow(struct stats *s, const struct slow_use *use, int64_t dt_ns)
{
	s->slow_have = use->have;
	s->have |= use->have;
	if (use->have & USAGE_WORKING_SET)
		add_gauge(&s->working_set_bytes, (double)use->working_set_bytes, dt_ns);
	for (int c = 0; c < COUNTERS; c++) {
		if (!(use->have & usage_counters[c].have))
			continue;
		s->counter[c] = use->counter[c] + (c < COUNTERS_COUNTED ? s->counter[c] : 0);
	}
	if (use->have & USAGE_CONTENTION_CPU)
		s->contention_cpu_ns -= use->throttled_ns;
}

/* Without a sample in this interval the last one holds. */
static struct gauge pack_gauge(const struct gauge_sum *g)
{
	if (g->weight <= 0)
		return (struct gauge){(float)g->last, (float)g->last, (float)g->last};
	return (struct gauge){
		.mean = (float)(g->sum / g->weight),
		.max = (float)g->max,
		.last = (float)g->last,
	};
}

void stats_pack(const struct stats *s, struct usage *usage)
{
	*usage = (struct usage){
		.have = s->have,
		.seconds = (float)s->seconds,
		.cpu_milli = moments_pack(&s->cpu_milli),
	};
	if (s->have & USAGE_MEMORY)
		usage->mem_bytes = pack_gauge(&s->mem_bytes);
	if (s->have & USAGE_WORKING_SET)
		usage->working_set_bytes = pack_gauge(&s->working_set_bytes);
	for (int c = 0; c < COUNTERS; c++)
		if (s->have & usage_counters[c].have)
			usage->counter[c] = s->counter[c];
	if ((int64_t)s->contention_cpu_ns < 0)
		usage->contention_cpu_ns = 0;
}

void stats_next(struct stats *s)
{
	struct stats next = {
		.have = s->slow_have,
		.slow_have = s->slow_have,
		.unsettled_ns = s->unsettled_ns,
		.mem_bytes.last = s->mem_bytes.last,
		.working_set_bytes.last = s->working_set_bytes.last,
	};
	int64_t owed = (int64_t)s->contention_cpu_ns;

	for (int c = COUNTERS_COUNTED; c < COUNTERS; c++)
		next.counter[c] = s->counter[c];
	if (owed < 0)
		next.contention_cpu_ns = (uint64_t)(owed > -PSI_LAG_NS ? owed : -PSI_LAG_NS);
	*s = next;
}
