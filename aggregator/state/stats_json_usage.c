/* SPDX-License-Identifier: Apache-2.0 */
/* Usage and contention in JSON, of nodes, pods and containers alike. */
#include <math.h>
#include <string.h>

#include "aggregator/state/stats_json_parts.h"
#include "shared/usage_json.h"

/* Of CPU and memory: the shares of the time in which some task waited, and in which none could run. */
static const char *const pressure_keys[PRESSURES] = {
	[CONTENTION_CPU] = "cpu",
	[CONTENTION_MEMORY] = "memory",
	[STALL_CPU] = "cpuStalledRatio",
	[STALL_MEMORY] = "memoryStalledRatio",
};

static void do_latest(struct json_io *io, struct latest *l, int64_t end_ns, int decimals)
{
	int64_t at_ns = end_ns - l->age_seconds * SECOND_NS;
	struct json_io_level level;

	l->known = json_io_enter(io, "latest", l->known, &level);
	if (!l->known)
		return;
	json_io_float(io, "value", &l->value, decimals);
	if (json_io_has(io, "end", io->answer || l->age_seconds))
		json_io_time(io, "end", &at_ns);
	if (at_ns > end_ns || end_ns - at_ns > UINT16_MAX * SECOND_NS)
		json_io_fail(io, "end", "must be that of the stats, or at most %d s before",
			     UINT16_MAX);
	else
		l->age_seconds = (uint16_t)((end_ns - at_ns + SECOND_NS - 1) / SECOND_NS);
	json_io_leave(io, &level);
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

static void do_bound(struct json_io *io, const char *key, double *value, int decimals)
{
	if (json_io_has(io, key, !isnan(*value)))
		json_io_double(io, key, value, decimals);
	else
		*value = NAN;
}

static void do_stats(struct json_io *io, const char *key, struct window_stats *s, int decimals)
{
	struct json_io_level level;

	s->known = json_io_enter(io, key, s->known, &level);
	if (!s->known)
		return;
	json_io_time(io, "start", &s->start_ns);
	json_io_time(io, "end", &s->end_ns);
	if (json_io_has(io, "samples", s->samples))
		json_io_u64(io, "samples", &s->samples, UINT64_MAX);
	json_io_double(io, "mean", &s->mean, decimals);
	json_io_double(io, "stddev", &s->stddev, decimals);
	s->percentiles = json_io_has(io, "p50", s->percentiles);
	if (s->percentiles) {
		json_io_double(io, "p50", &s->p50, decimals);
		json_io_double(io, "p95", &s->p95, decimals);
		json_io_double(io, "p99", &s->p99, decimals);
	}
	do_bound(io, "min", &s->min, decimals);
	do_bound(io, "max", &s->max, decimals);
	if (!io->out && !io->bad)
		put_aside_impossible(io, s);
	json_io_leave(io, &level);
}

/* i: enum usage_latest. windows NULL: there are none. */
static void do_resource(struct json_io *io, struct latest_usage *latest, struct window_set *windows,
			int i, int64_t end_ns)
{
	const struct usage_latest_row *row = &usage_latest[i];
	struct json_io_level level, inner;
	bool known = latest->of[i].known;

	for (int w = 0; windows && w < WINDOWS; w++)
		known |= windows[w].averaged[i].known;
	if (!json_io_enter(io, row->key, known, &level))
		return;
	do_latest(io, &latest->of[i], end_ns, row->decimals);
	if (windows && json_io_into(io, "windows", &inner)) {
		for (int w = 0; w < WINDOWS; w++)
			do_stats(io, window_name[w], &windows[w].averaged[i], row->decimals);
		json_io_leave(io, &inner);
	}
	json_io_leave(io, &level);
}

void stats_json_do_usage(struct json_io *io, struct latest_usage *latest,
			 struct window_set *windows, int64_t end_ns)
{
	struct json_io_level level;

	if (!json_io_into(io, "usage", &level))
		return;
	for (int i = 0; i < USAGE_LATEST_COUNT; i++)
		do_resource(io, latest, i < USAGE_AVERAGED_COUNT ? windows : NULL, i, end_ns);
	json_io_leave(io, &level);
}

void stats_json_do_recent(struct json_io *io, struct window_recent *r)
{
	struct json_io_level level;

	if (!json_io_enter(io, "recent", r->cpu_milli.known || r->mem_bytes.known, &level))
		return;
	do_stats(io, "cpuMillicores", &r->cpu_milli, CPU_DECIMALS);
	do_stats(io, "memoryBytes", &r->mem_bytes, BYTES_DECIMALS);
	json_io_leave(io, &level);
}

/* --- contention ------------------------------------------------------------------------------- */

/* Whether anything was counted in that window or a longer one. */
static bool are_counted(const struct window_set *windows, int from)
{
	bool counted = false;

	for (int w = from; w < WINDOWS; w++)
		counted |= windows[w].counts.seconds > 0;
	return counted;
}

static void do_counts(struct json_io *io, struct window_counts *c)
{
	for (int p = 0; p < PRESSURES; p++)
		json_io_double_or_nan(io, pressure_keys[p], &c->pressure[p], SHARE_DECIMALS);
	json_io_double_or_nan(io, "throttledRatio", &c->throttled_ratio, SHARE_DECIMALS);
	c->throttle_known = json_io_known(io, "throttledSeconds", c->throttle_known);
	if (c->throttle_known)
		json_io_double(io, "throttledSeconds", &c->throttled_seconds, SECONDS_DECIMALS);
	c->oom_known = json_io_known(io, "oomKills", c->oom_known);
	if (c->oom_known)
		json_io_u64(io, "oomKills", &c->oom_kills, UINT64_MAX);
	if (!io->answer)
		json_io_double(io, "seconds", &c->seconds, SECONDS_DECIMALS);
}

/* An answer says null for none. */
static void do_cause(struct json_io *io, struct stats_json_cause *c)
{
	struct json_io_level level;

	if (io->answer && !(c->share > 0))
		jsonw_key_null(io->out, "cause");
	else if (json_io_enter(io, "cause", c->share > 0, &level)) {
		if (json_io_has(io, "namespace", c->namespace))
			json_io_text(io, "namespace", &c->namespace, NODE_NAME_MAX);
		if (json_io_has(io, "name", c->name))
			json_io_text(io, "name", &c->name, ENTITY_NAME_MAX);
		json_io_float(io, "share", &c->share, SHARE_DECIMALS);
		if (c->share < 0 || c->share > 1)
			json_io_fail(io, "share", "must be from 0 to 1");
		json_io_leave(io, &level);
	}
}

void stats_json_do_contention(struct json_io *io, struct window_set *windows,
			      struct stats_json_cause *cause)
{
	struct json_io_level level, inner, window;

	for (int w = 0; w < (io->answer ? 1 : WINDOWS); w++)
		if (!io->out || windows[w].counts.seconds <= 0)
			windows[w].counts = window_counts_none;
	if (!json_io_enter(io, "contention", io->answer || are_counted(windows, WINDOW_5M), &level))
		return;
	do_counts(io, &windows[WINDOW_5M].counts);
	if (cause)
		do_cause(io, cause);
	if (!io->answer && json_io_enter(io, "windows", are_counted(windows, WINDOW_10M), &inner)) {
		for (int w = WINDOW_10M; w < WINDOWS; w++)
			if (json_io_enter(io, window_name[w], windows[w].counts.seconds > 0,
					  &window)) {
				do_counts(io, &windows[w].counts);
				json_io_leave(io, &window);
			}
		json_io_leave(io, &inner);
	}
	json_io_leave(io, &level);
}

void stats_json_do_pressure(struct json_io *io, struct container_stats *c)
{
	struct json_io_level level;

	if (!json_io_enter(io, "contention", c->pressure_have, &level))
		return;
	for (enum pressure p = 0; p < PRESSURES; p++) {
		if (!json_io_known(io, pressure_keys[p], c->pressure_have & pressure_bit(p)))
			continue;
		json_io_float(io, pressure_keys[p], &c->pressure[p], SHARE_DECIMALS);
		c->pressure_have |= (uint16_t)pressure_bit(p);
	}
	json_io_leave(io, &level);
}
