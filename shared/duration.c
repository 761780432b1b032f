/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A duration is one or more numbers with a unit, "1m30s", "0.5s", or a bare "0". Digits below a
 * nanosecond are cut. The arithmetic is of integers, so the result does not depend on rounding.
 */
#include "shared/duration.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "shared/options_internal.h"

static const struct unit {
	const char *name;
	int64_t ns;
} units[] = {
	{"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
	{"ms", 1000000},      {"us", 1000},	  {"ns", 1},
};

enum { UNITS = sizeof(units) / sizeof(units[0]) };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The unit that p begins with, taking the letters up to the next number. */
static const struct unit *unit_at(const char *p, size_t *len)
{
	*len = strcspn(p, "0123456789.");
	for (size_t i = 0; i < UNITS; i++)
		if (strlen(units[i].name) == *len && memcmp(p, units[i].name, *len) == 0)
			return &units[i];
	return NULL;
}

/* number * unit; p has the number: digits, maybe a point and digits. False on overflow. */
static bool scale(const char *p, int64_t unit_ns, int64_t *ns)
{
	int64_t whole = 0;

	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, *p - '0', &whole))
			return false;
	if (__builtin_mul_overflow(whole, unit_ns, &whole))
		return false;
	if (*p == '.')
		for (p++; is_digit(*p); p++) {
			unit_ns /= 10;
			if (__builtin_add_overflow(whole, (*p - '0') * unit_ns, &whole))
				return false;
		}
	return !__builtin_add_overflow(*ns, whole, ns);
}

int duration_parse(const char *text, int64_t *ns, struct error *error)
{
	static const char *const example = "is not a duration such as 300ms, 5s, 1m30s or 2h";
	const char *p = text;
	int64_t sum = 0;

	if (strcmp(text, "0") == 0) {
		*ns = 0;
		return 0;
	}
	if (*p == '\0')
		return options_refuse(text, example, error);
	while (*p) {
		const char *number = p;
		const struct unit *unit;
		size_t digits = strspn(p, "0123456789"), len;

		p += digits;
		if (*p == '.') {
			size_t decimals = strspn(p + 1, "0123456789");

			digits += decimals;
			p += 1 + decimals;
		}
		if (digits == 0)
			return options_refuse(text, example, error);
		if (*p == '\0')
			return options_refuse(text, "needs a unit, as in 300ms, 5s, 1m30s or 2h",
					      error);
		unit = unit_at(p, &len);
		if (!unit)
			return options_refuse(text, example, error);
		if (!scale(number, unit->ns, &sum))
			return options_refuse(text, "is longer than 292 years", error);
		p += len;
	}
	*ns = sum;
	return 0;
}

void duration_format(int64_t ns, char out[DURATION_LEN])
{
	size_t used = 0;

	snprintf(out, DURATION_LEN, "0");
	for (size_t i = 0; i < UNITS; i++) {
		if (ns / units[i].ns == 0)
			continue;
		used += (size_t)snprintf(out + used, DURATION_LEN - used, "%lld%s",
					 (long long)(ns / units[i].ns), units[i].name);
		ns %= units[i].ns;
	}
}
