/* SPDX-License-Identifier: Apache-2.0 */
/* A body that several answers send at once, held by each. */
#ifndef EVENKEEL_AGGREGATOR_API_SHARED_BODY_H
#define EVENKEEL_AGGREGATOR_API_SHARED_BODY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shared/buf.h"

struct shared_body {
	atomic_uint users;
	size_t len;
	char *data; /* owned */
};

/* With one user; takes what is in the buffer. */
struct shared_body *shared_body_new(struct buf *from);
/* The same, compressed as HTTP's "gzip"; NULL where that cannot be done. */
struct shared_body *shared_body_gzip(const struct shared_body *b);
struct shared_body *shared_body_hold(struct shared_body *b);
/* Any thread; the last user frees it. NULL is allowed. */
void shared_body_drop(struct shared_body *b);

/* Whether an Accept-Encoding header allows gzip; NULL: there is none. */
bool shared_body_accepts_gzip(const char *header);

#endif
