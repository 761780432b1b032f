/* SPDX-License-Identifier: Apache-2.0 */
/* A token bucket of requests for each client address, for a bounded number of addresses. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

enum { RATE_SETS = 4096, RATE_WAYS = 4 };

struct rate_limit;

/* per_second > 0; the burst is twice that, at least 10. */
struct rate_limit *rate_limit_new(double per_second);
void rate_limit_free(struct rate_limit *r); /* NULL is allowed */

/*
 * Any thread. 0: the request of that client (endpoint.h) is admitted; else nanoseconds until the
 * next.
 */
int64_t rate_limit_take(struct rate_limit *r, const struct sockaddr *from, int64_t now_ns);
