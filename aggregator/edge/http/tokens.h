/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bearer tokens: as requests carry them (RFC 6750), those of --token-file, and what a review said
 * of others lately. They are compared and remembered as digests.
 */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_TOKENS_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/api/access_review.h"
#include "shared/reason.h"

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

/* --- the tokens of --token-file: who has which ------------------------------------------------ */

enum { TOKEN_LIST_MAX = 256, TOKEN_NAME_LEN = 64 };

struct token_list;

/*
 * Lines "TOKEN" or "TOKEN,NAME"; empty ones and those that begin with "#" say nothing. A token of
 * 16 characters or more, a name of printable characters, at most TOKEN_LIST_MAX of them. -EINVAL
 * with the reason naming the line, never a token.
 */
int token_list_parse(struct token_list **list, const uint8_t key[BEARER_KEY_LEN], const char *text,
		     size_t len, struct reason *reason);
/*
 * From a file that others can neither read nor write. -ENOENT, -EACCES, -EPERM, -EINVAL with the
 * reason naming the path.
 */
int token_list_read(struct token_list **list, const uint8_t key[BEARER_KEY_LEN], const char *path,
		    struct reason *reason);
void token_list_free(struct token_list *list); /* NULL is allowed */

/* Whether they let in the same; both made with one key. */
bool token_list_same(const struct token_list *a, const struct token_list *b);
/*
 * The name of the digest's token ("token 3" without one), or NULL. It takes the same time whichever
 * token it is.
 */
const char *token_list_find(const struct token_list *list, const uint8_t digest[BEARER_DIGEST_LEN]);

/* --- reviews: for a short time and a bounded number of requests ------------------------------- */

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
