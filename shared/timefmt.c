/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why not the C library: its conversions depend on the time zone or on static storage, and an int64 of nanoseconds
 * only spans the years 1677 to 2262, so the calendar fits into a few lines. Lists write thousands of times, hence digits
 * one by one. Nothing here can fail.
 */
#include "shared/timefmt.h"

#define NS_PER_MS  1000000LL
#define MS_PER_DAY 86400000LL

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

void timefmt_rfc3339(int64_t unix_ns, char out[TIMEFMT_LEN])
{
	int64_t unix_ms = floor_div(unix_ns, NS_PER_MS);
	int64_t days = floor_div(unix_ms, MS_PER_DAY);
	int of_day = (int)(unix_ms - days * MS_PER_DAY);
	int year, month, day, ms = of_day % 1000;

	civil_from_days(days, &year, &month, &day);
	out = put(out, year, 4, '-');
	out = put(out, month, 2, '-');
	out = put(out, day, 2, 'T');
	out = put(out, of_day / 3600000, 2, ':');
	out = put(out, of_day / 60000 % 60, 2, ':');
	out = put(out, of_day / 1000 % 60, 2, ms ? '.' : 'Z');
	if (ms)
		out = put(out, ms, 3, 'Z');
	*out = '\0';
}
