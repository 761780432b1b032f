/* SPDX-License-Identifier: Apache-2.0 */
/* What was said of tokens lately, for a short time and a bounded number of requests. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_REVIEW_CACHE_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_REVIEW_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/api/access_review.h"
#include "aggregator/edge/http/bearer.h"

enum { REVIEW_SETS = 1024, REVIEW_WAYS = 4 };

struct review_cache;

struct review_cache *review_cache_new(void);
void review_cache_free(struct review_cache *c); /* NULL is allowed */

/*
 * Any thread. digest: of the token and what is asked with it, keyed. False: nothing is known that
 * is still good.
 */
bool review_cache_find(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN],
		       int64_t now_ns, struct access_answer *a);
/* Good for a minute if it allows, else for ten seconds. What was not answered is not remembered. */
void review_cache_put(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN],
		      int64_t now_ns, const struct access_answer *a);

#endif
