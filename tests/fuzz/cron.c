/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is a schedule, or refused with a reason; a schedule hits in a minute if and only if the
 * calendar's numbers of that minute are in it, and what hit lately hit within any longer time.
 */
#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "aggregator/policy/drain/drain_window.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has(uint64_t bits, int value)
{
	return bits >> value & 1;
}

static bool names(const struct drain_cron *c, int64_t now_sec)
{
	time_t now = (time_t)now_sec;
	struct tm t;
	bool day, weekday;

	gmtime_r(&now, &t);
	day = has(c->days, t.tm_mday);
	weekday = has(c->weekdays, t.tm_wday);
	if (!has(c->minutes, t.tm_min) || !has(c->hours, t.tm_hour) ||
	    !has(c->months, t.tm_mon + 1))
		return false;
	if (c->any_day)
		return weekday;
	return c->any_weekday ? day : day || weekday;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Leap day, the turn of a year, before 1970, a century that has no leap day. */
	static const int64_t times[] = {1709164800, 1735689599, -1, 4107542400, 1769861640};
	char *text = mem_strndup((const char *)data, size);
	struct error error = {""};
	struct drain_cron c;

	if (drain_cron_parse(text, &c, &error)) {
		assert(error.text[0]);
		free(text);
		return 0;
	}
	assert(c.minutes >> 60 == 0 && c.hours >> 24 == 0 && c.weekdays >> 7 == 0);
	assert(!has(c.days, 0) && !has(c.months, 0) && c.months >> 13 == 0);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		bool hit = drain_cron_hit(&c, times[i], 60);

		assert(hit == names(&c, times[i]));
		assert(!hit || drain_cron_hit(&c, times[i], 86400));
	}
	free(text);
	return 0;
}
