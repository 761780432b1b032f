/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a client may ask: a bucket of requests for each address, of a bounded number of
 * addresses.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_RATE_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_RATE_H

#include <stdint.h>
#include <sys/socket.h>

enum { RATE_SETS = 4096, RATE_WAYS = 4 };

struct rate_limit;

/* per_second > 0; twice that, and 10 at least, may come at once. */
struct rate_limit *rate_limit_new(double per_second);
void rate_limit_free(struct rate_limit *r); /* NULL is allowed */

/*
 * Any thread. 0: one more request of that client (peer.h) is taken; else after how many nanoseconds
 * it may ask again.
 */
int64_t rate_limit_take(struct rate_limit *r, const struct sockaddr *from, int64_t now_ns);

#endif
