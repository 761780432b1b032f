/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disruption budgets as Karpenter's: how many nodes may be away at once, always or in windows.
 *
 *     {nodes: "10%", schedule: "0 9 * * mon-fri", duration: 8h, reasons: [Underutilized, Empty]}
 *
 * A percentage is of all nodes, rounded up. Without schedule and duration a budget is always active,
 * else while a hit of the schedule, in UTC, lies in (now - duration, now]. The most restrictive active
 * budget for the reason counts. An unreadable budget allows nothing.
 *
 *   upstream   a schedule without a duration is never active; percentages above 100 are taken as is
 *   corrected  both are unreadable
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/policy/drain/drain_options.h"
#include "shared/error.h"

#define DRAIN_UNLIMITED INT32_MAX

/* As it is written; all borrowed. */
struct drain_window {
	const char *nodes; /* "10", "10%" */
	const char *schedule; /* NULL: none */
	int64_t duration_sec; /* -1: none */
	const char *const *reasons; /* "Empty", "Underutilized", "Drifted" */
	size_t reason_count; /* 0: for all */
};

/* -EINVAL for a schedule that cannot be read; *active is then untouched. */
int drain_window_active(const struct drain_window *w, enum drain_variant variant, int64_t now_sec,
			bool *active, struct error *error);
/* How many nodes may be away; DRAIN_UNLIMITED while inactive. 0, or -EINVAL with *out = 0. */
int drain_window_allows(const struct drain_window *w, enum drain_variant variant, int64_t nodes,
			int64_t now_sec, int32_t *out, struct error *error);
/* The least that budgets for the reason allow; *which is the first such budget, else count. */
int32_t drain_windows_allow(const struct drain_window *w, size_t count, enum drain_variant variant,
			    const char *why, int64_t nodes, int64_t now_sec, size_t *which);

/* --- schedules */

/*
 * Schedules of crontab(5), in UTC, to the minute.
 *
 *     minute 0-59, hour 0-23, day of the month 1-31, month 1-12 or jan-dec,
 *     day of the week 0-6 or sun-sat
 *     each a list of  *  ?  a  a-b  with /step;  a/step runs to the end of the range
 *     names in any case
 *     @yearly @annually @monthly @weekly @daily @midnight @hourly
 *
 * If both days are restricted either suffices; if one is "*" or "?" (without a step above 1) the
 * other decides, as in Karpenter's library. @every is refused.
 */

/* One bit for each value. */
struct drain_cron {
	uint64_t minutes;
	uint32_t hours, days, months, weekdays;
	bool any_day, any_weekday;
};

/* -EINVAL, and the reason quotes the unreadable field. */
int drain_cron_parse(const char *text, struct drain_cron *out, struct error *error);
/*
 * Whether a hit lies in (now - duration, now], in Unix seconds, also before 1970. Looks back 8 years,
 * the longest time between two hits.
 */
bool drain_cron_hit(const struct drain_cron *c, int64_t now_sec, int64_t duration_sec);
