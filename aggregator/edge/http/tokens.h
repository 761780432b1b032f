/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bearer tokens: parsing (RFC 6750), the tokens of --token-file, and the cache of reviews. Tokens
 * are compared and kept as digests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/api/access_review.h"
#include "shared/error.h"

enum { BEARER_DIGEST_LEN = 32, BEARER_KEY_LEN = 32, BEARER_TOKEN_MAX = 8 << 10 };

/* b64token of RFC 6750: one or more of A-Z a-z 0-9 - . _ ~ + /, then any number of "=". */
bool bearer_is_token(const char *text, size_t len);

enum bearer_kind {
	BEARER_NONE, /* no header */
	BEARER_TOKEN,
	BEARER_OTHER, /* another scheme, or no b64token */
};

/*
 * header: the value of Authorization, or NULL. The token lies in it, of at most BEARER_TOKEN_MAX
 * bytes.
 */
enum bearer_kind bearer_parse(const char *header, const char **token, size_t *len);

/*
 * BLAKE2b-256 under a key of this process: the time of a comparison reveals nothing about a token.
 */
void bearer_digest(const uint8_t key[BEARER_KEY_LEN], const char *token, size_t len,
		   uint8_t digest[BEARER_DIGEST_LEN]);

/* --- tokens of --token-file ------------------------------------------------------------------- */

enum { TOKEN_LIST_MAX = 256, TOKEN_NAME_LEN = 64 };

struct token_list;

/*
 * Lines "TOKEN", "TOKEN,NAME" or "TOKEN,NAME,act"; empty lines and lines that begin with "#" are
 * ignored. A token has 16 characters or more, a name printable ones; at most TOKEN_LIST_MAX.
 * -EINVAL with the reason, which names the line, never a token.
 */
int token_list_parse(struct token_list **list, const uint8_t key[BEARER_KEY_LEN], const char *text,
		     size_t len, struct error *error);
/*
 * From a file that others can neither read nor write. -ENOENT, -EACCES, -EPERM, -EINVAL with the
 * reason naming the path.
 */
int token_list_read(struct token_list **list, const uint8_t key[BEARER_KEY_LEN], const char *path,
		    struct error *error);
void token_list_free(struct token_list *list); /* NULL is allowed */

/* Whether they have the same tokens; both made with one key. */
bool token_list_same(const struct token_list *a, const struct token_list *b);
/*
 * The name of the digest's token ("token 3" without one), or NULL. In constant time. *acts: its line
 * ends in ",act".
 */
const char *token_list_find(const struct token_list *list, const uint8_t digest[BEARER_DIGEST_LEN],
			    bool *acts);

/* --- cache of reviews ------------------------------------------------------------------------- */

enum { REVIEW_SETS = 1024, REVIEW_WAYS = 4 };

struct review_cache;

struct review_cache *review_cache_new(void);
void review_cache_free(struct review_cache *c); /* NULL is allowed */

/* Any thread. digest: keyed, of token or user, verb and path. False: nothing valid is cached. */
bool review_cache_find(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN],
		       int64_t now_ns, struct access_answer *a);
/* Approvals are cached for 60 s, denials for 10 s. An unanswered review is not cached. */
void review_cache_put(struct review_cache *c, const uint8_t digest[BEARER_DIGEST_LEN],
		      int64_t now_ns, const struct access_answer *a);
