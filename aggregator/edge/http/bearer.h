/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bearer tokens as requests carry them (RFC 6750), and the digests by which they are compared and
 * remembered.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_BEARER_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_BEARER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BEARER_DIGEST_LEN = 32, BEARER_KEY_LEN = 32, BEARER_TOKEN_MAX = 8 << 10 };

/* One or more of A-Z a-z 0-9 - . _ ~ + /, then any number of "=": what may stand in the header. */
bool bearer_is_token(const char *text, size_t len);

enum bearer_kind {
	BEARER_NONE, /* there is no header */
	BEARER_TOKEN,
	BEARER_OTHER, /* another scheme, or not what a token may be */
};

/*
 * header: the value of Authorization, or NULL. The token lies in it, of at most BEARER_TOKEN_MAX
 * bytes.
 */
enum bearer_kind bearer_parse(const char *header, const char **token, size_t *len);

/*
 * BLAKE2b-256 under a key of this process, so that the time a comparison takes tells nothing about
 * any token.
 */
void bearer_digest(const uint8_t key[BEARER_KEY_LEN], const char *token, size_t len,
		   uint8_t digest[BEARER_DIGEST_LEN]);

#endif
