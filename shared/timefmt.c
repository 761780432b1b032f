/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why not the C library: its conversions depend on the time zone or on static storage, and an int64 of nanoseconds
 * only spans the years 1677 to 2262, so the calendar fits into a few lines. Lists write thousands of times, hence digits
 * one by one. Nothing here can fail.
 */
#include "shared/timefmt.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define NS_PER_MS  1000000LL
#define NS_PER_SEC 1000000000LL

enum { SECONDS_PER_DAY = 86400, YEAR_LEAST = 1678, YEAR_MOST = 2261 };

/* Division that rounds down, so that times before 1970 keep their order. */
static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/*
 * Proleptic Gregorian calendar. Years are counted from 1 March, which puts the leap day last: months then start on
 * day (153 m + 2) / 5, and 400 years are always 146097 days. 719468 days lie between 0000-03-01 and 1970-01-01.
 */
static void civil_from_days(int64_t days, int *year, int *month, int *day)
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

/* Writes value with that many digits and the character behind them; returns what follows. */
static char *put(char *at, int value, int digits, char behind)
{
	for (int i = digits; i-- > 0; value /= 10)
		at[i] = (char)('0' + value % 10);
	at[digits] = behind;
	return at + digits + 1;
}

/* The fraction is a whole number of that many digits; none when it is 0. */
static void write_time(int64_t seconds, int fraction, int digits, char *out)
{
	int64_t days = floor_div(seconds, SECONDS_PER_DAY);
	int of_day = (int)(seconds - days * SECONDS_PER_DAY);
	int year, month, day;

	civil_from_days(days, &year, &month, &day);
	out = put(out, year, 4, '-');
	out = put(out, month, 2, '-');
	out = put(out, day, 2, 'T');
	out = put(out, of_day / 3600, 2, ':');
	out = put(out, of_day / 60 % 60, 2, ':');
	out = put(out, of_day % 60, 2, fraction ? '.' : 'Z');
	if (fraction)
		out = put(out, fraction, digits, 'Z');
	*out = '\0';
}

void timefmt_rfc3339(int64_t unix_ns, char out[TIMEFMT_LEN])
{
	int64_t seconds = floor_div(unix_ns, NS_PER_SEC);
	int64_t ns = unix_ns - seconds * NS_PER_SEC;

	write_time(seconds, (int)(ns / NS_PER_MS), 3, out);
}

void timefmt_rfc3339_exact(int64_t unix_ns, char out[TIMEFMT_LEN])
{
	int64_t seconds = floor_div(unix_ns, NS_PER_SEC);
	int fraction = (int)(unix_ns - seconds * NS_PER_SEC), digits = 9;

	for (; digits > 3 && fraction % 1000 == 0; digits -= 3)
		fraction /= 1000;
	write_time(seconds, fraction, digits, out);
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* The inverse of civil_from_days(). */
static int64_t days_from_civil(int year, int month, int day)
{
	int64_t since_march = month > 2 ? year : year - 1;
	int64_t era = floor_div(since_march, 400), of_era = since_march - era * 400;
	int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* That many digits and the character behind them, unless 0; false: something else is there. */
static bool take(const char **at, int digits, char behind, int *value)
{
	*value = 0;
	for (int i = 0; i < digits; i++) {
		char c = (*at)[i];

		if (c < '0' || c > '9')
			return false;
		*value = *value * 10 + (c - '0');
	}
	*at += digits;
	if (!behind)
		return true;
	if (**at != behind && !(behind == 'T' && **at == 't'))
		return false;
	++*at;
	return true;
}

/* ".5" as 500000000; 0 where there is none. */
static bool take_fraction(const char **at, int64_t *ns)
{
	int64_t unit = NS_PER_SEC / 10;

	*ns = 0;
	if (**at != '.')
		return true;
	for (++*at; **at >= '0' && **at <= '9'; ++*at, unit /= 10)
		*ns += (**at - '0') * unit;
	return (*at)[-1] != '.';
}

/* "Z" or "+01:30", in seconds, and the end. */
static bool take_offset(const char **at, int *offset)
{
	int sign = **at == '-' ? -1 : 1, hours, minutes;

	*offset = 0;
	if (**at == 'Z' || **at == 'z')
		return *++*at == '\0';
	if (**at != '+' && **at != '-')
		return false;
	++*at;
	if (!take(at, 2, ':', &hours) || !take(at, 2, 0, &minutes) || **at)
		return false;
	*offset = sign * (hours * 3600 + minutes * 60);
	return hours < 24 && minutes < 60;
}

static bool is_day(int year, int month, int day)
{
	int y, m, d;

	if (year < YEAR_LEAST || year > YEAR_MOST || month < 1 || month > 12 || day < 1)
		return false;
	civil_from_days(days_from_civil(year, month, day), &y, &m, &d);
	return m == month && d == day;
}

int timefmt_read(const char *text, int64_t *unix_ns)
{
	int year, month, day, hour, minute, second, offset;
	int64_t ns;

	if (!take(&text, 4, '-', &year) || !take(&text, 2, '-', &month) ||
	    !take(&text, 2, 'T', &day) || !take(&text, 2, ':', &hour) ||
	    !take(&text, 2, ':', &minute) || !take(&text, 2, 0, &second) ||
	    !take_fraction(&text, &ns) || !take_offset(&text, &offset))
		return -EINVAL;
	/* A leap second is the one after it, as everywhere in POSIX. */
	if (!is_day(year, month, day) || hour > 23 || minute > 59 || second > 60)
		return -EINVAL;
	*unix_ns = (days_from_civil(year, month, day) * SECONDS_PER_DAY + hour * 3600 +
		    minute * 60 + second - offset) *
			   NS_PER_SEC +
		   ns;
	return 0;
}
