/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/textbuf.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "aggregator/policy/arith.h"

enum { DIGITS = 24 }; /* that any number has, with its point */

/*
 * value / 10^decimals. All of the room behind the first digit is copied where there is as much: that
 * takes no call.
 */
static void add_decimal(struct textbuf *s, uint64_t value, unsigned int decimals)
{
	char digits[2 * DIGITS] = {0};
	size_t at = DIGITS;

	for (unsigned int i = 0; i < decimals; i++, value /= 10)
		digits[--at] = (char)('0' + value % 10);
	if (decimals)
		digits[--at] = '.';
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	if (s->size - s->len <= DIGITS) {
		textbuf_add_bytes(s, digits + at, DIGITS - at);
		return;
	}
	memcpy(s->text + s->len, digits + at, DIGITS);
	s->len += DIGITS - at;
	s->text[s->len] = '\0';
}

void textbuf_add_int(struct textbuf *s, int64_t value)
{
	if (value < 0)
		textbuf_add(s, "-");
	add_decimal(s, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 0);
}

void textbuf_add_fixed(struct textbuf *s, double value, unsigned int decimals)
{
	static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
	double scaled;

	assert(decimals < sizeof(power) / sizeof(power[0]));
	if (!isfinite(value)) {
		textbuf_add(s, "?");
		return;
	}
	scaled = at_most(round_half(fabs(value) * power[decimals]), 1e18);
	if (value < 0 && scaled > 0)
		textbuf_add(s, "-");
	add_decimal(s, (uint64_t)scaled, decimals);
}
