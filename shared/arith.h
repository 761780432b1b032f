/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic that C has no function for. */
#pragma once

#include <stdint.h>

/* < 0, 0 or > 0, as qsort() wants it. Chained by ?: the first difference decides. */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static inline int64_t int_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t int_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Cut at +-INT64_MAX. */
static inline int64_t int_clamp(__int128 a)
{
	if (a > INT64_MAX)
		return INT64_MAX;
	return a < -INT64_MAX ? -INT64_MAX : (int64_t)a;
}

static inline int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

static inline uint32_t add_saturating_u32(uint32_t a, uint32_t b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/* Rounds down, so that times before 1970 keep their order; b > 0. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}
