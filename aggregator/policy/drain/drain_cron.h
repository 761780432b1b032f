/* SPDX-License-Identifier: Apache-2.0 */
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
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_CRON_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/error.h"

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
