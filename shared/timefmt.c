/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conversions of the C library depend on the time zone or on static storage, and an int64 of
 * nanoseconds spans the years 1677 to 2262 only, so the calendar takes a few lines. Lists write
 * thousands of times, hence digit by digit. Writing cannot fail; reading checks every field.
 */
#include "shared/timefmt.h"

#include <errno.h>
#include <stdbool.h>

#include "shared/arith.h"

#define NS_PER_MS   1000000LL
#define NS_PER_SEC  1000000000LL
#define SEC_PER_DAY 86400LL

/*
 * Proleptic Gregorian calendar. Years are counted from 1 March, which puts the leap day last:
 * months then start on day (153 m + 2) / 5, and 400 years are always 146097 days. 719468 days lie
 * between 0000-03-01 and 1970-01-01.
 */
void timefmt_date(int64_t days, int *year, int *month, int *day)
{
	int64_t since = days + 719468;
	int64_t era = floor_div(since, 146097);
	int64_t of_era = since - era * 146097;
	int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t from_march = (5 * of_year + 2) / 153;

	*day = (int)(of_year - (153 * from_march + 2) / 5 + 1);
	*month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
	*year = (int)(year_of_era + era * 400 + (*month <= 2));
}

/* Writes value with that many digits and the character behind; returns the end. */
static char *put(char *at, int value, int digits, char behind)
{
	for (int i = digits; i-- > 0; value /= 10)
		at[i] = (char)('0' + value % 10);
	at[digits] = behind;
	return at + digits + 1;
}

/* Everything up to the seconds, with `behind` after them; returns the end. */
static char *put_seconds(char *at, int64_t days, int second_of_day, char behind)
{
	int year, month, day;

	timefmt_date(days, &year, &month, &day);
	at = put(at, year, 4, '-');
	at = put(at, month, 2, '-');
	at = put(at, day, 2, 'T');
	at = put(at, second_of_day / 3600, 2, ':');
	at = put(at, second_of_day / 60 % 60, 2, ':');
	return put(at, second_of_day % 60, 2, behind);
}

/* unit: ns of the last digit of the fraction, which is left out if it is 0. */
static void write_time(char *out, int64_t unix_ns, int digits, int unit)
{
	int64_t seconds = floor_div(unix_ns, NS_PER_SEC);
	int64_t days = floor_div(seconds, SEC_PER_DAY);
	int fraction = (int)(unix_ns - (__int128)seconds * NS_PER_SEC) / unit;

	out = put_seconds(out, days, (int)(seconds - days * SEC_PER_DAY), fraction ? '.' : 'Z');
	if (fraction)
		out = put(out, fraction, digits, 'Z');
	*out = '\0';
}

void timefmt_rfc3339(int64_t unix_ns, char out[TIMEFMT_LEN])
{
	write_time(out, unix_ns, 3, NS_PER_MS);
}

void timefmt_rfc3339_exact(int64_t unix_ns, char out[TIMEFMT_LEN])
{
	write_time(out, unix_ns, 9, 1);
}

/* Days from 1970-01-01, the inverse of timefmt_date(). */
static int64_t days_from_civil(int year, int month, int day)
{
	int from_march = month > 2 ? month - 3 : month + 9;
	int64_t y = year - (month <= 2);
	int64_t era = floor_div(y, 400);
	int64_t year_of_era = y - era * 400;

	return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
	       (153 * from_march + 2) / 5 + day - 1 - 719468;
}

/* Exactly that many digits, at most `max`, and `behind` after them unless it is 0; *at moves on. */
static bool take(const char **at, int digits, int max, char behind, int *value)
{
	*value = 0;
	for (int i = 0; i < digits; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		*value = *value * 10 + (**at - '0');
	}
	if (behind && *(*at)++ != behind)
		return false;
	return *value <= max;
}

static int days_of_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

/* Seconds since 1970, without the fraction. */
static bool take_seconds(const char **at, int64_t *seconds)
{
	int year, month, day, hour, minute, second;

	if (!take(at, 4, 9999, '-', &year) || !take(at, 2, 12, '-', &month) || month < 1 ||
	    !take(at, 2, days_of_month(year, month), 0, &day) || day < 1)
		return false;
	if ((**at | 0x20) != 't' && **at != ' ')
		return false;
	(*at)++;
	if (!take(at, 2, 23, ':', &hour) || !take(at, 2, 59, ':', &minute) ||
	    !take(at, 2, 60, 0, &second))
		return false;
	*seconds = days_from_civil(year, month, day) * SEC_PER_DAY + hour * 3600 + minute * 60 +
		   second;
	return true;
}

static bool take_fraction(const char **at, int64_t *ns)
{
	int64_t unit = NS_PER_SEC / 10;

	*ns = 0;
	if (**at != '.')
		return true;
	(*at)++;
	if (**at < '0' || **at > '9')
		return false;
	for (; **at >= '0' && **at <= '9'; (*at)++, unit /= 10)
		*ns += unit * (**at - '0');
	return true;
}

/* "Z" or "+01:00" at the end. */
static bool take_offset(const char *at, int64_t *seconds)
{
	int sign = *at == '-' ? -1 : 1, hours, minutes;

	*seconds = 0;
	if ((*at | 0x20) == 'z')
		return !at[1];
	if (*at != '+' && *at != '-')
		return false;
	at++;
	if (!take(&at, 2, 23, ':', &hours) || !take(&at, 2, 59, 0, &minutes))
		return false;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return !*at;
}

int timefmt_parse(const char *text, int64_t *unix_ns, struct error *error)
{
	int64_t seconds, ns, offset;
	const char *at = text;
	__int128 value;

	if (!take_seconds(&at, &seconds) || !take_fraction(&at, &ns) || !take_offset(at, &offset))
		return error_fail(
			error, -EINVAL,
			"\"%.60s\" is not a time: one like 2026-01-31T12:00:00Z is expected", text);
	value = (__int128)(seconds - offset) * NS_PER_SEC + ns;
	if (value < INT64_MIN || value > INT64_MAX)
		return error_fail(error, -EINVAL,
				  "\"%.60s\" lies outside of the years 1678 to 2261", text);
	*unix_ns = (int64_t)value;
	return 0;
}
