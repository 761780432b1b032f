/* SPDX-License-Identifier: Apache-2.0 */
/* The few numeric conventions all score plugins share. */
#pragma once

#include <math.h>
#include <stdint.h>

#include "shared/arith.h"

/*
 * fmin(), fmax() and round() of the library are calls, which cost more than what they do, and
 * scores make dozens of them for each node. NaN is passed over where the limit is none.
 */
static inline double at_most(double x, double limit)
{
	return x < limit ? x : limit;
}

static inline double at_least(double x, double limit)
{
	return x > limit ? x : limit;
}

static inline double clamp(double x, double low, double high)
{
	return at_least(at_most(x, high), low);
}

/*
 * As round(): to the nearest integer, halves away from zero. Below 2^52 the fraction that is cut
 * off is exact, beyond there is none.
 */
static inline double round_half(double x)
{
	double magnitude = fabs(x), whole;

	if (!(magnitude < 0x1p52))
		return x;
	whole = (double)(int64_t)magnitude;
	/* Added either way: no processor foresees which. */
	whole += magnitude - whole >= 0.5 ? 1.0 : 0.0;
	return copysign(whole, x);
}

/*
 * To the nearest integer, halves away from zero. Values out of range become INT64_MIN, as the
 * conversion of the Go programs gives on amd64; the language leaves it open.
 */
static inline int64_t round_away(double x)
{
	x = round_half(x);
	return fabs(x) < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

/* The same, saturating. Not for NaN. */
static inline int64_t round_saturating(double x)
{
	if (fabs(x) < 9223372036854775808.0)
		return round_away(x);
	return x > 0 ? INT64_MAX : INT64_MIN;
}
