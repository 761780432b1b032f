/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/account_stats.h"

#include <math.h>

#define NS_PER_S 1e9

/*
 * How much unexplained throttling the next interval may still owe: PSI lags by at most this much.
 */
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
	if (use->have & USAGE_THROTTLE)
		stats_add_throttle(s, use->throttled_ns, use->periods, use->throttled_periods);
	if (use->have & USAGE_OOM)
		s->oom_kills += use->oom_kills;
	if (use->have & USAGE_CONTENTION_CPU)
		s->contention_cpu_ns += (int64_t)use->psi_cpu_ns - (int64_t)use->throttled_ns;
	if (use->have & USAGE_CONTENTION_MEMORY)
		s->contention_mem_ns += use->psi_mem_ns;
	if (use->have & USAGE_STALL_CPU)
		s->stall_cpu_ns += use->stall_cpu_ns;
	if (use->have & USAGE_STALL_MEMORY)
		s->stall_mem_ns += use->stall_mem_ns;
	if (use->have & USAGE_SWAP)
		s->swap_bytes = use->swap_bytes;
	if (use->have & USAGE_PIDS)
		s->pids = use->pids;
}

/* Without a sample in this interval the last one still holds. */
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

static uint32_t clamp32(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

void stats_pack(const struct stats *s, struct usage *usage)
{
	*usage = (struct usage){
		.have = s->have,
		.oom_kills = clamp32(s->oom_kills),
		.seconds = (float)s->seconds,
		.cpu_milli = moments_pack(&s->cpu_milli),
		.throttled_ns = s->throttled_ns,
		.throttled_periods = clamp32(s->throttled_periods),
		.periods = clamp32(s->periods),
		.contention_mem_ns = s->contention_mem_ns,
		.stall_cpu_ns = s->stall_cpu_ns,
		.stall_mem_ns = s->stall_mem_ns,
	};
	if (s->have & USAGE_MEMORY)
		usage->mem_bytes = pack_gauge(&s->mem_bytes);
	if (s->have & USAGE_WORKING_SET)
		usage->working_set_bytes = pack_gauge(&s->working_set_bytes);
	if (s->contention_cpu_ns > 0)
		usage->contention_cpu_ns = (uint64_t)s->contention_cpu_ns;
	if (s->have & USAGE_SWAP)
		usage->swap_bytes = s->swap_bytes;
	if (s->have & USAGE_PIDS)
		usage->pids = s->pids;
}

void stats_next(struct stats *s)
{
	struct stats next = {
		.have = s->slow_have,
		.slow_have = s->slow_have,
		.unsettled_ns = s->unsettled_ns,
		.mem_bytes.last = s->mem_bytes.last,
		.working_set_bytes.last = s->working_set_bytes.last,
		.swap_bytes = s->swap_bytes,
		.pids = s->pids,
	};

	if (s->contention_cpu_ns < 0)
		next.contention_cpu_ns =
			s->contention_cpu_ns > -PSI_LAG_NS ? s->contention_cpu_ns : -PSI_LAG_NS;
	*s = next;
}
