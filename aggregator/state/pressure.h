/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time that pressure stall information tells was lost, as one table of four over the members of
 * struct usage.
 */
#pragma once

#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "shared/interval.h"

/* To neighbours (contention), or by all of one's tasks at once for whatever reason (stall). */
enum pressure { CONTENTION_CPU, CONTENTION_MEMORY, STALL_CPU, STALL_MEMORY, PRESSURES };

static_assert(USAGE_CONTENTION_CPU << CONTENTION_MEMORY == USAGE_CONTENTION_MEMORY &&
		      USAGE_CONTENTION_CPU << STALL_CPU == USAGE_STALL_CPU &&
		      USAGE_CONTENTION_CPU << STALL_MEMORY == USAGE_STALL_MEMORY,
	      "in the order of their bits in enum usage_have");
static_assert(COUNTER_contention_cpu_ns + (int)STALL_MEMORY == (int)COUNTER_stall_mem_ns,
	      "and of their counters");

#define PRESSURE_BITS                                                                              \
	(USAGE_CONTENTION_CPU | USAGE_CONTENTION_MEMORY | USAGE_STALL_CPU | USAGE_STALL_MEMORY)

/* Its bit of enum usage_have. */
static inline uint32_t pressure_bit(enum pressure p)
{
	return (uint32_t)USAGE_CONTENTION_CPU << p;
}

/* Lost in an interval; 0 where it was not measured. */
static inline uint64_t pressure_ns(const struct usage *u, enum pressure p)
{
	return u->have & pressure_bit(p) ? u->counter[COUNTER_contention_cpu_ns + (int)p] : 0;
}

/* Share of a time, at most 1: PSI is read a moment before or after the clock. NaN of no time. */
static inline double pressure_share(double seconds, double of)
{
	return of > 0 ? fmin(seconds / of, 1) : NAN;
}
