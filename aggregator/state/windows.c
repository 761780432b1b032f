/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of windows. A ring (window_pod.c, window_node.c) keeps packed float32 buckets;
 * whatever is done to one is done here on its unpacked form in double precision: adding an
 * interval, and summing buckets into windows. Sums are merges of moments, so their order matters
 * only for rounding, and a window equals one pass over the intervals in it to about 1e-7.
 */
#include <float.h>
#include <math.h>

#include "aggregator/state/window_sums.h"

const char *const window_name[WINDOWS] = {"5m", "10m", "15m"};
const struct window_counts window_counts_none = {
	.throttled_ratio = NAN,
	.pressure = {[CONTENTION_CPU] = NAN,
		     [CONTENTION_MEMORY] = NAN,
		     [STALL_CPU] = NAN,
		     [STALL_MEMORY] = NAN},
};

bool window_is_covered(const struct window_set *set, enum window window)
{
	static const double length[WINDOWS] = {300, 600, 900};
	const struct window_stats *s = set->cpu_milli.known ? &set->cpu_milli : &set->mem_bytes;
	double reach = (double)(s->end_ns - s->start_ns) / 1e9;

	return s->known && reach >= length[window] - 2 * NODE_BUCKET_SECONDS &&
	       set->counts.seconds >= length[window] / 2;
}

static bool holds(const struct window_set *set, bool both)
{
	return both ? set->cpu_milli.known && set->mem_bytes.known
		    : set->cpu_milli.known || set->mem_bytes.known;
}

const struct window_set *window_longest_within(const struct window_set windows[WINDOWS],
					       enum window most, int *window)
{
	const struct window_set *known = NULL;
	bool both = false;
	int w;

	for (w = WINDOW_5M; w <= (int)most; w++)
		both |= holds(&windows[w], true);
	for (w = (int)most; w >= WINDOW_5M; w--) {
		if (!holds(&windows[w], both))
			continue;
		known = &windows[w];
		if (window_is_covered(known, (enum window)w))
			break;
	}
	if (window)
		*window = w;
	return known;
}

const struct window_set *window_longest(const struct window_set windows[WINDOWS], int *window)
{
	return window_longest_within(windows, WINDOW_15M, window);
}

float window_float(double value)
{
	return value > (double)FLT_MAX ? FLT_MAX : (float)value;
}

static struct window_part part_of_moments(const struct moments32 *m)
{
	return (struct window_part){
		.samples = m->samples,
		.weight = (double)m->weight,
		.mean = (double)m->mean,
		.m2 = (double)m->m2,
		.min = (double)m->min,
		.max = (double)m->max,
	};
}

/* One value: the interval's mean. Its maximum is the true one. */
static struct window_part part_of_gauge(const struct gauge *g, float seconds)
{
	return (struct window_part){
		.samples = 1,
		.weight = (double)seconds,
		.mean = (double)g->mean,
		.min = (double)g->mean,
		.max = (double)g->max,
	};
}

/* The measures that can be counted: a weight of 0 stands for no time at all. */
static uint32_t usable(const struct usage *u)
{
	uint32_t have = u->have & USAGE_WINDOWED;

	if (!u->cpu_milli.samples || !(u->cpu_milli.weight > 0))
		have &= ~(uint32_t)USAGE_CPU;
	if (!(u->seconds > 0))
		have &= ~(uint32_t)(USAGE_MEMORY | USAGE_WORKING_SET | PRESSURE_BITS);
	return have;
}

void window_bucket_add(struct window_bucket *b, const struct usage *u, int64_t start_ns,
		       int64_t end_ns)
{
	uint32_t have = usable(u);
	struct window_part cpu = part_of_moments(&u->cpu_milli);
	struct window_part mem = part_of_gauge(&u->mem_bytes, u->seconds);
	struct window_part working_set = part_of_gauge(&u->working_set_bytes, u->seconds);

	if (!have)
		return;
	if (!b->have || start_ns < b->start_ns)
		b->start_ns = start_ns;
	if (!b->have || end_ns > b->end_ns)
		b->end_ns = end_ns;
	b->have |= have;
	if (have & USAGE_CPU)
		window_part_merge(&b->cpu_milli, &cpu);
	if (have & USAGE_MEMORY)
		window_part_merge(&b->mem_bytes, &mem);
	if (have & USAGE_WORKING_SET)
		window_part_merge(&b->working_set_bytes, &working_set);
	b->seconds += (double)u->seconds;
	if (have & USAGE_THROTTLE) {
		b->throttled_seconds += (double)u->throttled_ns / 1e9;
		b->periods += u->periods;
		b->throttled_periods += u->throttled_periods;
	}
	if (have & USAGE_OOM)
		b->oom_kills += u->oom_kills;
	for (enum pressure p = 0; p < PRESSURES; p++)
		if (have & pressure_bit(p))
			b->pressure_seconds[p] += (double)pressure_ns(u, p) / 1e9;
}

/* Adds one measure of a bucket whose intervals reach from start_ns to end_ns. */
static void window_span_add(struct window_span *s, const struct window_part *part, int64_t start_ns,
			    int64_t end_ns)
{
	if (!part->samples)
		return;
	if (!s->part.samples || start_ns < s->start_ns)
		s->start_ns = start_ns;
	if (!s->part.samples || end_ns > s->end_ns)
		s->end_ns = end_ns;
	window_part_merge(&s->part, part);
}

void window_sums_add_spans(struct window_sums *s, const struct window_bucket *b)
{
	window_span_add(&s->cpu_milli, &b->cpu_milli, b->start_ns, b->end_ns);
	window_span_add(&s->mem_bytes, &b->mem_bytes, b->start_ns, b->end_ns);
	window_span_add(&s->working_set_bytes, &b->working_set_bytes, b->start_ns, b->end_ns);
}

void window_sums_add(struct window_sums *s, const struct window_bucket *b)
{
	window_sums_add_spans(s, b);
	s->have |= b->have;
	s->seconds += b->seconds;
	s->throttled_seconds += b->throttled_seconds;
	s->periods += b->periods;
	s->throttled_periods += b->throttled_periods;
	s->oom_kills += b->oom_kills;
	for (enum pressure p = 0; p < PRESSURES; p++) {
		if (!(b->have & pressure_bit(p)))
			continue;
		s->pressure_seconds[p] += b->pressure_seconds[p];
		s->pressure_of[p] += b->seconds;
	}
}

static struct window_stats read_span(const struct window_span *s)
{
	const struct window_part *p = &s->part;

	if (!p->samples)
		return (struct window_stats){0};
	return (struct window_stats){
		.known = true,
		.start_ns = s->start_ns,
		.end_ns = s->end_ns,
		.samples = p->samples,
		.mean = p->mean,
		.stddev = sqrt(fmax(p->m2, 0) / p->weight),
		.min = p->min,
		.max = p->max,
	};
}

void window_sums_read_stats(const struct window_sums *s, struct window_set *out)
{
	out->cpu_milli = read_span(&s->cpu_milli);
	out->mem_bytes = read_span(&s->mem_bytes);
	out->working_set_bytes = read_span(&s->working_set_bytes);
}

void window_sums_read(const struct window_sums *s, struct window_set *out)
{
	window_sums_read_stats(s, out);
	out->counts = (struct window_counts){
		.seconds = s->seconds,
		.throttled_seconds = s->throttled_seconds,
		.throttled_ratio =
			s->periods ? (double)s->throttled_periods / (double)s->periods : NAN,
		.oom_kills = s->oom_kills,
		.throttle_known = s->have & USAGE_THROTTLE,
		.oom_known = s->have & USAGE_OOM,
	};
	for (enum pressure p = 0; p < PRESSURES; p++)
		out->counts.pressure[p] = pressure_share(s->pressure_seconds[p], s->pressure_of[p]);
}
