/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disruption budgets in Karpenter's language: how many nodes may be away at once, always or within
 * windows of time.
 *
 *     {nodes: "10%", schedule: "0 9 * * mon-fri", duration: 8h, reasons: [Underutilized, Empty]}
 *
 * A percentage is of the nodes there are, rounded up. Without schedule and duration a budget is
 * always active, else while a hit of the schedule, in UTC, lies in (now - duration, now]. Of the
 * active ones that name the reason, or none, the most restrictive counts. One that cannot be read
 * lets nothing go (it fails closed).
 *
 *   upstream   a schedule without a duration is never active, and percentages above 100 are taken
 *              as they are
 *   corrected  both cannot be read: so a budget that somebody meant as a limit is none in silence
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_WINDOW_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_WINDOW_H

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
/*
 * How many of that many nodes may be away by this budget: DRAIN_UNLIMITED while it is not active.
 * 0, or -EINVAL with *out = 0.
 */
int drain_window_allows(const struct drain_window *w, enum drain_variant variant, int64_t nodes,
			int64_t now_sec, int32_t *out, struct error *error);
/*
 * The least that the budgets for the reason allow; which (may be NULL) is the first that allows no
 * more, `count` where none limits.
 */
int32_t drain_windows_allow(const struct drain_window *w, size_t count, enum drain_variant variant,
			    const char *why, int64_t nodes, int64_t now_sec, size_t *which);

/* --- schedules */

/*
 * Schedules as crontab(5) writes them, in UTC, to the minute: when was the last hit?
 *
 *     minute 0-59, hour 0-23, day of the month 1-31, month 1-12 or jan-dec,
 *     day of the week 0-6 or sun-sat
 *     each a list of  *  ?  a  a-b  with /step;  a/step runs to the end of the range
 *     names in any case
 *     @yearly @annually @monthly @weekly @daily @midnight @hourly
 *
 * Where both days are restricted, either will do; where one is "*" or "?" (without a step above 1),
 * the other decides. These are the rules of the library that Karpenter reads its schedules with;
 * its @every is none of a calendar, and is refused.
 */

/* One bit for each value. */
struct drain_cron {
	uint64_t minutes;
	uint32_t hours, days, months, weekdays;
	bool any_day, any_weekday;
};

/* -EINVAL, and the reason quotes the field that cannot be read. */
int drain_cron_parse(const char *text, struct drain_cron *out, struct error *error);
/*
 * Whether a hit lies in (now - duration, now]; Unix time in seconds, also before 1970. Looks back 8
 * years at most: no schedule that hits at all has longer to wait.
 */
bool drain_cron_hit(const struct drain_cron *c, int64_t now_sec, int64_t duration_sec);

#endif
