/* SPDX-License-Identifier: Apache-2.0 */
/* Unix nanoseconds as RFC 3339 in UTC, as Kubernetes writes times. */
#pragma once

#include <stdint.h>

#include "shared/error.h"

enum { TIMEFMT_LEN = 32 };

/* "2026-01-31T12:00:00.123Z", milliseconds cut when zero; out holds TIMEFMT_LEN bytes. */
void timefmt_rfc3339(int64_t unix_ns, char out[TIMEFMT_LEN]);
/* The same with all nine digits of a fraction: reads back to the same nanosecond. */
void timefmt_rfc3339_exact(int64_t unix_ns, char out[TIMEFMT_LEN]);
/*
 * RFC 3339 with any offset ("2026-01-31T13:00:00.5+01:00"); digits after the ninth of the fraction
 * are cut, a leap second is the next second. 0, or -EINVAL with the reason quoting the text, also
 * for times beyond 64 bits of nanoseconds.
 */
int timefmt_parse(const char *text, int64_t *unix_ns, struct error *error);

/* The date of a day counted from 1970-01-01, in the proleptic Gregorian calendar. */
void timefmt_date(int64_t days, int *year, int *month, int *day);
