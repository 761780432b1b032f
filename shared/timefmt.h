/* SPDX-License-Identifier: Apache-2.0 */
/* Unix nanoseconds as RFC 3339 in UTC, the way Kubernetes writes times. */
#ifndef EVENKEEL_SHARED_TIMEFMT_H
#define EVENKEEL_SHARED_TIMEFMT_H

#include <stdint.h>

enum { TIMEFMT_LEN = 32 };

/* "2026-01-31T12:00:00.123Z", milliseconds cut when zero; out holds TIMEFMT_LEN bytes. */
void timefmt_rfc3339(int64_t unix_ns, char out[TIMEFMT_LEN]);

#endif
