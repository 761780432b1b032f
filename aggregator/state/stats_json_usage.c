/* SPDX-License-Identifier: Apache-2.0 */
/* Newest values and windows in JSON, of nodes and pods alike. */
#include <math.h>
#include <string.h>

#include "aggregator/state/stats_json_parts.h"

const char *const stats_json_pressures[PRESSURES] = {
	[CONTENTION_CPU] = "cpu",
	[CONTENTION_MEMORY] = "memory",
	[STALL_CPU] = "cpuStalled",
	[STALL_MEMORY] = "memoryStalled",
};

static void do_value(struct json_io *io, const char *key, struct latest *l)
{
	struct json_io_level level;
	uint32_t age = l->age_seconds;

	l->known = json_io_enter(io, key, l->known, &level);
	if (!l->known)
		return;
	json_io_float(io, "value", &l->value);
	json_io_u32(io, "ageSeconds", &age, UINT16_MAX);
	json_io_leave(io, &level);
	l->age_seconds = (uint16_t)age;
}

void stats_json_do_latest(struct json_io *io, struct latest_usage *l)
{
	for (int i = 0; i < USAGE_LATEST_COUNT; i++)
		do_value(io, usage_latest[i].key, &l->of[i]);
}

/* With rounding; whatever is not known is not compared. */
static bool is_outside(const struct window_stats *s, double value)
{
	double slack = 1e-3 * fabs(s->max) + 1;

	return value < s->min - slack || value > s->max + slack;
}

/* Contradictory values count as unknown, as in an agent's interval (usage_check.h). */
static void put_aside_impossible(struct json_io *io, struct window_stats *s)
{
	const char *why = NULL;

	if (is_outside(s, s->min))
		why = "min is above max";
	else if (is_outside(s, s->mean))
		why = "the mean is not between min and max";
	else if (s->percentiles &&
		 (is_outside(s, s->p50) || is_outside(s, s->p95) || is_outside(s, s->p99)))
		why = "a percentile is not between min and max";
	if (!why)
		return;
	json_io_note_aside(io, why);
	*s = (struct window_stats){0};
}

static void do_stats(struct json_io *io, const char *key, struct window_stats *s)
{
	struct json_io_level level;

	s->known = json_io_enter(io, key, s->known, &level);
	if (!s->known)
		return;
	json_io_time(io, "start", &s->start_ns);
	json_io_time(io, "end", &s->end_ns);
	json_io_u64(io, "samples", &s->samples, UINT64_MAX);
	json_io_double(io, "mean", &s->mean);
	json_io_double(io, "stddev", &s->stddev);
	s->percentiles = json_io_has(io, "p50", s->percentiles);
	if (s->percentiles) {
		json_io_double(io, "p50", &s->p50);
		json_io_double(io, "p95", &s->p95);
		json_io_double(io, "p99", &s->p99);
	}
	json_io_double_or_nan(io, "min", &s->min);
	json_io_double_or_nan(io, "max", &s->max);
	if (!io->out && !io->bad)
		put_aside_impossible(io, s);
	json_io_leave(io, &level);
}

static bool are_counted(const struct window_counts *c)
{
	bool counted = c->seconds != 0 || c->throttled_seconds != 0 || c->oom_kills ||
		       c->throttle_known || c->oom_known || !isnan(c->throttled_ratio);

	for (int p = 0; p < PRESSURES; p++)
		counted |= !isnan(c->pressure[p]);
	return counted;
}

static void do_counts(struct json_io *io, struct window_counts *c)
{
	struct json_io_level level, inner;

	if (!json_io_enter(io, "counts", are_counted(c), &level))
		return;
	json_io_double(io, "seconds", &c->seconds);
	c->throttle_known = json_io_has(io, "throttledSeconds", c->throttle_known);
	if (c->throttle_known)
		json_io_double(io, "throttledSeconds", &c->throttled_seconds);
	json_io_double_or_nan(io, "throttledRatio", &c->throttled_ratio);
	c->oom_known = json_io_has(io, "oomKills", c->oom_known);
	if (c->oom_known)
		json_io_u64(io, "oomKills", &c->oom_kills, UINT64_MAX);
	if (json_io_into(io, "pressure", &inner)) {
		for (int p = 0; p < PRESSURES; p++)
			json_io_double_or_nan(io, stats_json_pressures[p], &c->pressure[p]);
		json_io_leave(io, &inner);
	}
	json_io_leave(io, &level);
}

static void do_window(struct json_io *io, const char *key, struct window_set *set)
{
	bool known = set->cpu_milli.known || set->mem_bytes.known || set->working_set_bytes.known ||
		     are_counted(&set->counts);
	struct json_io_level level;

	if (!json_io_enter(io, key, known, &level))
		return;
	for (int i = 0; i < USAGE_AVERAGED_COUNT; i++)
		do_stats(io, usage_latest[i].key, &set->averaged[i]);
	do_counts(io, &set->counts);
	json_io_leave(io, &level);
}

void stats_json_do_usage(struct json_io *io, struct usage_summary *u)
{
	struct json_io_level level, inner;

	if (!io->out)
		for (int w = 0; w < WINDOWS; w++)
			u->windows[w].counts = window_counts_none;
	if (!json_io_into(io, "usage", &level))
		return;
	stats_json_do_latest(io, &u->latest);
	if (json_io_into(io, "windows", &inner)) {
		for (int w = 0; w < WINDOWS; w++)
			do_window(io, window_name[w], &u->windows[w]);
		json_io_leave(io, &inner);
	}
	json_io_leave(io, &level);
}

void stats_json_do_recent(struct json_io *io, struct window_recent *r)
{
	struct json_io_level level;

	if (!json_io_enter(io, "recent", r->cpu_milli.known || r->mem_bytes.known, &level))
		return;
	do_stats(io, "cpuMillicores", &r->cpu_milli);
	do_stats(io, "memoryBytes", &r->mem_bytes);
	json_io_leave(io, &level);
}
