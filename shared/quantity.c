/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rounding error of binary64 decides whether a pod fits, so the text never becomes a double. It
 * is split into
 *
 *	sign  whole . fraction  x 10^exp10 x 2^exp2	(one of the exponents is 0)
 *
 * and evaluated digit by digit: the digits left of the shifted decimal point are the integer; those
 * right of it give the carry of the power of two, and whether a rest rounds up. The length of the
 * text is unlimited, without a buffer. Failures are of grammar; too large values saturate.
 */
#include "shared/quantity.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct number {
	bool negative;
	const char *whole, *fraction; /* digits, not terminated */
	size_t whole_len, fraction_len;
	int64_t exp10;
	int exp2;
};

static const struct suffix {
	char text[3];
	int exp10, exp2;
} suffixes[] = {
	{"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},  {"", 0, 0},    {"k", 3, 0},   {"M", 6, 0},
	{"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
	{"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
};

/* Exponents beyond this mean 0 or saturation for every text that fits into memory. */
#define EXP10_MAX 1000000000000000000LL

static size_t count_digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* The exponent of "e-3"; p stands behind the e. */
static bool parse_exponent(const char *p, int64_t *exp10)
{
	bool negative = *p == '-';
	int64_t value = 0;

	if (*p == '-' || *p == '+')
		p++;
	if (!count_digits(p) || p[count_digits(p)])
		return false;
	for (; *p; p++)
		if (value < EXP10_MAX / 10)
			value = value * 10 + (*p - '0');
	*exp10 = negative ? -value : value;
	return true;
}

static bool parse_suffix(const char *p, struct number *n)
{
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (strcmp(p, suffixes[i].text) == 0) {
			n->exp10 = suffixes[i].exp10;
			n->exp2 = suffixes[i].exp2;
			return true;
		}
	}
	n->exp2 = 0;
	return (*p == 'e' || *p == 'E') && parse_exponent(p + 1, &n->exp10);
}

static bool parse_number(const char *text, struct number *n)
{
	n->negative = *text == '-';
	if (*text == '-' || *text == '+')
		text++;
	n->whole = text;
	n->whole_len = count_digits(text);
	text += n->whole_len;
	n->fraction = text;
	n->fraction_len = 0;
	if (*text == '.') {
		n->fraction = text + 1;
		n->fraction_len = count_digits(text + 1);
		text += 1 + n->fraction_len;
	}
	return n->whole_len + n->fraction_len > 0 && parse_suffix(text, n);
}

static unsigned int digit_at(const struct number *n, size_t i)
{
	return (unsigned int)((i < n->whole_len ? n->whole[i] : n->fraction[i - n->whole_len]) -
			      '0');
}

/* The digits [0, end) with `zeros` more behind them; above INT64_MAX it stops growing. */
static unsigned __int128 whole_value(const struct number *n, size_t end, int64_t zeros)
{
	unsigned __int128 value = 0;

	for (size_t i = 0; i < end && value <= INT64_MAX; i++)
		value = value * 10 + digit_at(n, i);
	for (; zeros > 0 && value && value <= INT64_MAX; zeros--)
		value *= 10;
	return value;
}

/*
 * 0.DDD x 2^exp2 rounded up, for the digits from `start` on. Multiplying from the last digit, the
 * carry that leaves the first one is the integer part, other digits than 0 stay behind the point.
 */
static unsigned __int128 fraction_value(const struct number *n, size_t start)
{
	uint64_t carry = 0; /* < 2^exp2, so digit * 2^60 + carry < 10 * 2^60 fits */
	bool rest = false;

	for (size_t i = n->whole_len + n->fraction_len; i > start; i--) {
		uint64_t product = ((uint64_t)digit_at(n, i - 1) << n->exp2) + carry;

		rest = rest || product % 10;
		carry = product / 10;
	}
	return (unsigned __int128)carry + rest;
}

/* shift: the power of ten of the wanted unit, 3 for thousandths. */
static int64_t evaluate(const struct number *n, int shift)
{
	int64_t digits = (int64_t)(n->whole_len + n->fraction_len);
	int64_t point = (int64_t)n->whole_len + n->exp10 + shift; /* digits left of it are whole */
	size_t split = (size_t)(point < 0 ? 0 : point > digits ? digits : point);
	unsigned __int128 value;

	/*
	 * Zeros between the point and the first digit do not exist with a binary suffix (point >= 0
	 * then), and without one only the presence of a rest counts.
	 */
	value = whole_value(n, split, point - digits) << n->exp2;
	value += fraction_value(n, split);
	if (value > INT64_MAX)
		value = INT64_MAX;
	return n->negative ? -(int64_t)value : (int64_t)value;
}

static int parse(const char *text, int shift, int64_t *value, struct error *error)
{
	struct number n;

	if (!parse_number(text, &n))
		return error_fail(error, -EINVAL,
				  "\"%.100s\" is not a quantity: a number like 250m, 1.5Gi or 12e6 "
				  "is expected",
				  text);
	*value = evaluate(&n, shift);
	return 0;
}

int quantity_parse_milli(const char *text, int64_t *milli, struct error *error)
{
	return parse(text, 3, milli, error);
}

int quantity_parse_units(const char *text, int64_t *units, struct error *error)
{
	return parse(text, 0, units, error);
}
