/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything comes from one function of time, for how long a pattern has been high since the epoch,
 * which is exact in nanoseconds: what two readings of it differ by is what a counter went on by
 * between them. So readings add up however they are cut, as the kernel's do, and an interval, a
 * window and a test that looks at both agree.
 *
 *	wanted  high ___      ___         used = min(wanted, limit)
 *	            |   |____|   |____    what is wanted above the limit is throttled: the quota is used up in the part
 *	        low  on   off             limit / wanted of each 100 ms, and the rest of it is waited
 *
 * A smooth one is high for the share s(t) = (1 - cos(2 pi t / period)) / 2 of each moment, and the
 * same function of time is the integral of that.
 */
#include "tests/fleet/pattern.h"

#include <math.h>
#include <stdbool.h>

#include "shared/clock.h"

#define CFS_PERIOD_NS (100 * NS_PER_MS)

/*
 * Whole periods before a time, and in *rest_ns how far the one under way is; floors, so times
 * before the epoch work.
 */
static int64_t periods_before(int64_t period_ns, int64_t at_ns, int64_t *rest_ns)
{
	*rest_ns = at_ns % period_ns;
	if (*rest_ns < 0)
		*rest_ns += period_ns;
	return (at_ns - *rest_ns) / period_ns;
}

/* The angle of a smooth pattern, so far into its period. */
static double angle_of(const struct pattern *p, int64_t rest_ns)
{
	return 2 * M_PI * (double)rest_ns / (double)p->period_ns;
}

/* For how long it has been high before a time. */
static int64_t on_time_ns(const struct pattern *p, int64_t at_ns)
{
	int64_t rest, periods;
	double radian;

	if (!p->period_ns)
		return 0;
	periods = periods_before(p->period_ns, at_ns + p->phase_ns, &rest);
	if (!p->smooth)
		return periods * p->on_ns + (rest < p->on_ns ? rest : p->on_ns);
	radian = (double)p->period_ns / (2 * M_PI);
	return periods * (p->period_ns / 2) +
	       (int64_t)llround(((double)rest - radian * sin(angle_of(p, rest))) / 2);
}

static double use_of(const struct pattern *p, double wanted_milli)
{
	return p->limit_milli > 0 ? fmin(wanted_milli, p->limit_milli) : wanted_milli;
}

static double on_share(const struct pattern *p, int64_t begin_ns, int64_t end_ns)
{
	return (double)(on_time_ns(p, end_ns) - on_time_ns(p, begin_ns)) /
	       (double)(end_ns - begin_ns);
}

double pattern_used_milli(const struct pattern *p, int64_t begin_ns, int64_t end_ns)
{
	double low = use_of(p, p->low_milli), high = use_of(p, p->high_milli);

	return low + (high - low) * on_share(p, begin_ns, end_ns);
}

void pattern_fill_milli(const struct pattern *p, int64_t begin_ns, int64_t span_ns, size_t count,
			float *used)
{
	double low = use_of(p, p->low_milli), high = use_of(p, p->high_milli);
	double rise = (high - low) / (double)span_ns;
	int64_t on = on_time_ns(p, begin_ns);

	for (size_t i = 0; i < count; i++) {
		int64_t next = on_time_ns(p, begin_ns + (int64_t)(i + 1) * span_ns);

		used[i] = (float)(low + rise * (double)(next - on));
		on = next;
	}
}

/*
 * The integral of s(t)^2 up to a time, in nanoseconds: 3/8 of each period, and of the rest 3t/8 -
 * sin/2 + sin2/16.
 */
static double square_time_ns(const struct pattern *p, int64_t at_ns)
{
	int64_t rest, periods = periods_before(p->period_ns, at_ns + p->phase_ns, &rest);
	double radian = (double)p->period_ns / (2 * M_PI), angle = angle_of(p, rest);

	return 0.375 * ((double)periods * (double)p->period_ns + (double)rest) -
	       radian * (sin(angle) / 2 - sin(2 * angle) / 16);
}

double pattern_stddev_milli(const struct pattern *p, int64_t begin_ns, int64_t end_ns)
{
	double d = on_share(p, begin_ns, end_ns), squares = d;

	if (p->smooth)
		squares = (square_time_ns(p, end_ns) - square_time_ns(p, begin_ns)) /
			  (double)(end_ns - begin_ns);
	return (use_of(p, p->high_milli) - use_of(p, p->low_milli)) *
	       sqrt(fmax(squares - d * d, 0));
}

double pattern_peak_milli(const struct pattern *p)
{
	return use_of(p, fmax(p->low_milli, p->high_milli));
}

/* Adds what a level that is wanted between two readings of its own time is throttled by. */
static void add_throttling(const struct pattern *p, double wanted_milli, int64_t begin_ns,
			   int64_t end_ns, struct pattern_cpu *out)
{
	if (wanted_milli <= p->limit_milli)
		return;
	out->throttled_periods += (uint32_t)(end_ns / CFS_PERIOD_NS - begin_ns / CFS_PERIOD_NS);
	out->throttled_ns +=
		(uint64_t)((double)(end_ns - begin_ns) * (1 - p->limit_milli / wanted_milli));
}

void pattern_get_cpu(const struct pattern *p, int64_t begin_ns, int64_t end_ns,
		     struct pattern_cpu *out)
{
	int64_t on_begin = on_time_ns(p, begin_ns), on_end = on_time_ns(p, end_ns);

	*out = (struct pattern_cpu){.used_milli = pattern_used_milli(p, begin_ns, end_ns)};
	if (!(p->limit_milli > 0))
		return;
	out->periods = (uint32_t)(end_ns / CFS_PERIOD_NS - begin_ns / CFS_PERIOD_NS);
	add_throttling(p, p->high_milli, on_begin, on_end, out);
	add_throttling(p, p->low_milli, begin_ns - on_begin, end_ns - on_end, out);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Whole growths before a time, and in *rest_ns how far the one under way is. */
static int64_t growths(const struct pattern *p, int64_t at_ns, int64_t *rest_ns)
{
	return periods_before(p->grow_ns, at_ns + p->grow_phase_ns, rest_ns);
}

/* Whether it is high just before a time, which is when one that dies is alive. */
static bool is_alive(const struct pattern *p, int64_t at_ns)
{
	return on_time_ns(p, at_ns) > on_time_ns(p, at_ns - 1);
}

static double grown(const struct pattern *p, int64_t rest_ns)
{
	return p->grow_bytes * (double)rest_ns / (double)p->grow_ns;
}

double pattern_working_set(const struct pattern *p, int64_t at_ns)
{
	int64_t rest;

	if (p->dies)
		return is_alive(p, at_ns) ? p->mem_bytes : 0;
	if (!p->leaks || !p->grow_ns)
		return p->mem_bytes;
	growths(p, at_ns, &rest);
	return p->mem_bytes + grown(p, rest);
}

double pattern_peak_working_set(const struct pattern *p)
{
	return p->mem_bytes + (p->leaks ? p->grow_bytes : 0);
}

/*
 * Of what grows: mean, maximum and last value in [begin, end), by the areas of the triangles.
 * Returns how often it fell.
 */
static int64_t get_grown(const struct pattern *p, int64_t begin_ns, int64_t end_ns, double *mean,
			 double *max, double *last)
{
	int64_t rest_begin, rest_end;
	int64_t falls = growths(p, end_ns, &rest_end) - growths(p, begin_ns, &rest_begin);
	double area = (double)falls * p->grow_bytes * (double)p->grow_ns / 2 +
		      grown(p, rest_end) * (double)rest_end / 2 -
		      grown(p, rest_begin) * (double)rest_begin / 2;

	*mean = area / (double)(end_ns - begin_ns);
	*last = grown(p, rest_end);
	*max = falls ? p->grow_bytes : *last;
	return falls;
}

void pattern_get_memory(const struct pattern *p, int64_t begin_ns, int64_t end_ns,
			struct pattern_memory *out)
{
	double mean = 0, max = 0, last = 0;
	int64_t falls = 0;

	if (p->dies) {
		double share = on_share(p, begin_ns, end_ns);

		last = pattern_working_set(p, end_ns);
		*out = (struct pattern_memory){
			.set_mean = p->mem_bytes * share,
			.set_max = share > 0 || last > 0 ? p->mem_bytes : 0,
			.set_last = last,
		};
		return;
	}
	if (p->grow_ns)
		falls = get_grown(p, begin_ns, end_ns, &mean, &max, &last);
	*out = (struct pattern_memory){
		.set_mean = p->mem_bytes,
		.set_max = p->mem_bytes,
		.set_last = p->mem_bytes,
	};
	if (p->leaks) {
		out->set_mean += mean;
		out->set_max += max;
		out->set_last += last;
		out->oom_kills = (uint32_t)falls;
	} else {
		out->cache_mean = mean;
		out->cache_max = max;
		out->cache_last = last;
	}
}

struct pattern pattern_share(const struct pattern *p, double share)
{
	struct pattern part = *p;

	part.low_milli *= share;
	part.high_milli *= share;
	part.limit_milli *= share;
	part.mem_bytes *= share;
	part.grow_bytes *= share;
	return part;
}
