/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/textbuf.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "aggregator/policy/arith.h"

enum { DIGITS = 24 }; /* that any number has, with its point */

_Static_assert(sizeof(long) == sizeof(int64_t), "%ld is PRId64");

struct room {
	char *text;
	size_t size, len;
};

static void add(struct room *r, const char *text, size_t len)
{
	size_t free = r->size - 1 - r->len;

	len = len < free ? len : free;
	memcpy(r->text + r->len, text, len);
	r->len += len;
}

/* value / 10^decimals */
static void add_decimal(struct room *r, bool negative, uint64_t value, unsigned int decimals)
{
	char digits[DIGITS];
	size_t at = DIGITS;

	for (unsigned int i = 0; i < decimals; i++, value /= 10)
		digits[--at] = (char)('0' + value % 10);
	if (decimals)
		digits[--at] = '.';
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	if (negative)
		digits[--at] = '-';
	add(r, digits + at, DIGITS - at);
}

static void add_fraction(struct room *r, double value, int decimals)
{
	static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
	double scaled;

	assert(decimals >= 0 && decimals <= 9);
	if (!isfinite(value)) {
		add(r, "?", 1);
		return;
	}
	scaled = at_most(round_half(fabs(value) * power[decimals]), 1e18);
	add_decimal(r, value < 0 && scaled > 0, (uint64_t)scaled, (unsigned int)decimals);
}

size_t textbuf_add(char *text, size_t size, size_t len, const char *format, ...)
{
	struct room r = {text, size, len};
	const char *at, *part;
	int decimals;
	va_list args;
	long whole;

	va_start(args, format);
	for (; *(at = strchrnul(format, '%')); format = at + 2) {
		add(&r, format, (size_t)(at - format));
		switch (at[1]) {
		case 's':
			part = va_arg(args, const char *);
			add(&r, part, strlen(part));
			break;
		case 'l':
			whole = va_arg(args, long);
			add_decimal(&r, whole < 0,
				    whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole, 0);
			at++;
			break;
		case '.':
			decimals = at[2] == '*' ? va_arg(args, int) : at[2] - '0';
			add_fraction(&r, va_arg(args, double), decimals);
			at += 2;
			break;
		default:
			assert(at[1] == '%');
			add(&r, "%", 1);
		}
	}
	va_end(args);
	add(&r, format, (size_t)(at - format));
	text[r.len] = '\0';
	return r.len;
}
