/* SPDX-License-Identifier: Apache-2.0 */
/* Unix nanoseconds as RFC 3339 in UTC, the way Kubernetes writes times, and back. */
#ifndef EVENKEEL_SHARED_TIMEFMT_H
#define EVENKEEL_SHARED_TIMEFMT_H

#include <stdint.h>

enum { TIMEFMT_LEN = 40 };

/* "2026-01-31T12:00:00.123Z", milliseconds cut when zero; out holds TIMEFMT_LEN bytes. */
void timefmt_rfc3339(int64_t unix_ns, char out[TIMEFMT_LEN]);
/* The same with all nanoseconds that there are: timefmt_read() gives the very same time back. */
void timefmt_rfc3339_exact(int64_t unix_ns, char out[TIMEFMT_LEN]);
/*
 * "2026-01-31T12:00:00.123456789Z", also with an offset ("+01:00"), lower case letters, and more digits, which are cut.
 * 0, or -EINVAL for what is no such time or not within the years 1678 to 2261.
 */
int timefmt_read(const char *text, int64_t *unix_ns);

#endif
