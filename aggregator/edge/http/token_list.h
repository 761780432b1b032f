/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of --token-file, kept as digests: who has which. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_HTTP_TOKEN_LIST_H
#define EVENKEEL_AGGREGATOR_EDGE_HTTP_TOKEN_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/edge/http/bearer.h"
#include "shared/reason.h"

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

size_t token_list_count(const struct token_list *list);
/* Whether they let in the same; both made with one key. */
bool token_list_same(const struct token_list *a, const struct token_list *b);
/*
 * The name of the digest's token ("token 3" without one), or NULL. It takes the same time whichever
 * token it is.
 */
const char *token_list_find(const struct token_list *list, const uint8_t digest[BEARER_DIGEST_LEN]);

#endif
