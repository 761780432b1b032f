/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/drain/drain_window.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shared/arith.h"
#include "shared/array.h"
#include "shared/timefmt.h"

int drain_window_active(const struct drain_window *w, enum drain_variant variant, int64_t now_sec,
			bool *active, struct error *error)
{
	struct drain_cron cron;

	if (!w->schedule && w->duration_sec < 0) {
		*active = true;
		return 0;
	}
	if (!w->schedule)
		return error_fail(error, -EINVAL, "a duration needs a schedule");
	if (drain_cron_parse(w->schedule, &cron, error))
		return -EINVAL;
	if (w->duration_sec < 0 && variant == DRAIN_CORRECTED)
		return error_fail(error, -EINVAL, "a schedule needs a duration");
	*active = w->duration_sec > 0 && drain_cron_hit(&cron, now_sec, w->duration_sec);
	return 0;
}

/* Digits, and a "%" or not. */
static int read_nodes(const char *text, int64_t *value, bool *percent)
{
	const char *at = text ? text : "";

	*value = 0;
	for (; isdigit((unsigned char)*at) && *value < INT32_MAX; at++)
		*value = *value * 10 + (*at - '0');
	*percent = *at == '%';
	if (at == text || !text || at[*percent] != '\0' || *value > INT32_MAX)
		return -EINVAL;
	return 0;
}

static int count_nodes(const struct drain_window *w, enum drain_variant variant, int64_t nodes,
		       int32_t *out, struct error *error)
{
	bool percent;
	int64_t value;

	if (read_nodes(w->nodes, &value, &percent) ||
	    (percent && value > 100 && variant == DRAIN_CORRECTED))
		return error_fail(error, -EINVAL,
				  "\"%.40s\" must be a number of nodes, or 0%% to 100%%",
				  w->nodes ? w->nodes : "");
	if (percent && __builtin_mul_overflow(value, nodes, &value))
		value = INT64_MAX - 100;
	if (percent)
		value = (value + 99) / 100;
	*out = value < DRAIN_UNLIMITED ? (int32_t)value : DRAIN_UNLIMITED;
	return 0;
}

int drain_window_allows(const struct drain_window *w, enum drain_variant variant, int64_t nodes,
			int64_t now_sec, int32_t *out, struct error *error)
{
	int32_t allowed = 0;
	bool active;

	*out = 0;
	if (drain_window_active(w, variant, now_sec, &active, error) ||
	    count_nodes(w, variant, nodes, &allowed, error))
		return -EINVAL;
	*out = active ? allowed : DRAIN_UNLIMITED;
	return 0;
}

int32_t drain_windows_allow(const struct drain_window *w, size_t count, enum drain_variant variant,
			    const char *why, int64_t nodes, int64_t now_sec, size_t *which)
{
	int32_t least = DRAIN_UNLIMITED;
	size_t first = count;

	for (size_t i = 0; i < count; i++) {
		int32_t allowed;

		if (w[i].reason_count &&
		    !array_find_text(w[i].reasons, w[i].reason_count, sizeof(*w[i].reasons), why))
			continue;
		drain_window_allows(&w[i], variant, nodes, now_sec, &allowed, NULL);
		if (allowed >= least)
			continue;
		least = allowed;
		first = i;
	}
	if (which)
		*which = first;
	return least;
}

/* --- schedules */

/* A hit is searched backwards by day, and within a day by bits. */

enum { MINUTE_SEC = 60, HOUR_SEC = 3600, DAY_SEC = 86400, DAYS_BACK_MAX = 8 * 366, TEXT_MAX = 256 };

/* --- reading */

struct field {
	const char *what;
	unsigned int min, max;
	const char *names; /* of three letters each, from min on; NULL: none */
};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

static const struct field fields[FIELDS] = {
	[MINUTE] = {"minute", 0, 59, NULL},
	[HOUR] = {"hour", 0, 23, NULL},
	[DAY] = {"day of the month", 1, 31, NULL},
	[MONTH] = {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
	[WEEKDAY] = {"day of the week", 0, 6, "sunmontuewedthufrisat"},
};

/* A number or a name at *at, which is moved behind it. */
static bool read_value(const char **at, const struct field *f, unsigned int *out)
{
	unsigned long value = 0;
	const char *start = *at;

	for (size_t i = 0; f->names && f->names[i]; i += 3) {
		if (strncasecmp(start, f->names + i, 3) == 0 && !isalpha((unsigned char)start[3])) {
			*out = f->min + (unsigned int)(i / 3);
			*at = start + 3;
			return true;
		}
	}
	for (; isdigit((unsigned char)**at) && value < 1000; (*at)++)
		value = value * 10 + (unsigned long)(**at - '0');
	*out = (unsigned int)value;
	return *at != start;
}

static bool read_range(const char **at, const struct field *f, unsigned int *low,
		       unsigned int *high, bool *any)
{
	if (**at == '*' || **at == '?') {
		(*at)++;
		*low = f->min;
		*high = f->max;
		*any = true;
		return true;
	}
	*any = false;
	if (!read_value(at, f, low))
		return false;
	*high = *low;
	if (**at != '-')
		return true;
	(*at)++;
	return read_value(at, f, high);
}

/* One element of a list, which ends at a comma or at the end. */
static bool read_element(const char **at, const struct field *f, uint64_t *bits, bool *any)
{
	static const struct field number = {"step", 0, 0, NULL};
	unsigned int low, high, step = 1;
	const char *start = *at;
	bool star, single;

	if (!read_range(at, f, &low, &high, &star))
		return false;
	single = !star && !memchr(start, '-', (size_t)(*at - start));
	if (**at == '/') {
		(*at)++;
		if (!read_value(at, &number, &step) || step == 0)
			return false;
		if (single)
			high = f->max;
	}
	if (low < f->min || high > f->max || low > high || (**at && **at != ','))
		return false;
	for (unsigned int i = low; i <= high; i += step)
		*bits |= UINT64_C(1) << i;
	*any |= star && step == 1;
	return true;
}

static bool read_field(const char *text, const struct field *f, uint64_t *bits, bool *any)
{
	*bits = 0;
	*any = false;
	for (;;) {
		if (!read_element(&text, f, bits, any))
			return false;
		if (!*text)
			return true;
		text++;
	}
}

static const char *expand(const char *text)
{
	static const struct {
		const char *name, *fields;
	} words[] = {
		{"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
		{"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
		{"@hourly", "0 * * * *"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, text) == 0)
			return words[i].fields;
	return text;
}

/* Cuts the copy into words; FIELDS + 1 where there are more. */
static size_t split(char *copy, char *words[FIELDS])
{
	size_t count = 0;
	char *rest = NULL;

	for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
		if (count == FIELDS)
			return FIELDS + 1;
		words[count++] = word;
	}
	return count;
}

int drain_cron_parse(const char *text, struct drain_cron *out, struct error *error)
{
	uint64_t bits[FIELDS];
	bool any[FIELDS];
	char copy[TEXT_MAX], *words[FIELDS];

	if (strlen(text) >= sizeof(copy))
		return error_fail(error, -EINVAL, "a schedule of more than %d letters",
				  TEXT_MAX - 1);
	strncpy(copy, expand(text), sizeof(copy) - 1);
	copy[sizeof(copy) - 1] = '\0';
	if (split(copy, words) != FIELDS)
		return error_fail(error, -EINVAL,
				  "\"%.60s\" must be five fields, or a word like @daily", text);
	for (size_t i = 0; i < FIELDS; i++) {
		if (!read_field(words[i], &fields[i], &bits[i], &any[i]))
			return error_fail(error, -EINVAL,
					  "\"%.60s\": \"%.40s\" is no %s (%u to %u)", text,
					  words[i], fields[i].what, fields[i].min, fields[i].max);
	}
	*out = (struct drain_cron){
		.minutes = bits[MINUTE],
		.hours = (uint32_t)bits[HOUR],
		.days = (uint32_t)bits[DAY],
		.months = (uint32_t)bits[MONTH],
		.weekdays = (uint32_t)bits[WEEKDAY],
		.any_day = any[DAY],
		.any_weekday = any[WEEKDAY],
	};
	return 0;
}

/* days: since 1970-01-01, a Thursday. */
static bool matches_day(const struct drain_cron *c, int64_t days)
{
	int64_t weekday_number = days + 4 - 7 * floor_div(days + 4, 7);
	bool day, weekday = c->weekdays >> weekday_number & 1;
	int year, month, day_number;

	timefmt_date(days, &year, &month, &day_number);
	if (!(c->months >> month & 1))
		return false;
	day = c->days >> day_number & 1;
	return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

/* The last hit of a day at or before that second of it; -1 where there is none. */
static int64_t last_of_day(const struct drain_cron *c, int64_t second)
{
	int64_t last = second / MINUTE_SEC;

	for (int64_t hour = last / 60; hour >= 0; hour--) {
		int64_t minute = hour == last / 60 ? last % 60 : 59;

		if (!(c->hours >> hour & 1))
			continue;
		for (; minute >= 0; minute--)
			if (c->minutes >> minute & 1)
				return hour * HOUR_SEC + minute * MINUTE_SEC;
	}
	return -1;
}

bool drain_cron_hit(const struct drain_cron *c, int64_t now_sec, int64_t duration_sec)
{
	int64_t today = floor_div(now_sec, DAY_SEC), second = now_sec - today * DAY_SEC;

	for (int64_t back = 0; back < DAYS_BACK_MAX; back++) {
		int64_t hit = -1;

		if (back * DAY_SEC - (DAY_SEC - 1) > duration_sec)
			return false;
		if (matches_day(c, today - back))
			hit = last_of_day(c, back == 0 ? second : DAY_SEC - 1);
		if (hit >= 0)
			return now_sec - ((today - back) * DAY_SEC + hit) < duration_sec;
	}
	return false;
}
