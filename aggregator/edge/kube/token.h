/* SPDX-License-Identifier: Apache-2.0 */
/* A bearer token: one word of printable ASCII, as every source of tokens must give it. */
#ifndef EVENKEEL_AGGREGATOR_EDGE_KUBE_TOKEN_H
#define EVENKEEL_AGGREGATOR_EDGE_KUBE_TOKEN_H

#include <stddef.h>

#include "shared/reason.h"

enum { TOKEN_MAX = 16 << 10 };

/*
 * The word in text, without the blanks and line ends around it; *token is the caller's, who gives
 * it up with kube_text_wipe(). -EINVAL with the reason when there is none, when it is longer than
 * TOKEN_MAX, or when it holds what could end or split a header.
 */
int token_take(const char *text, size_t len, char **token, struct reason *reason);
/* The same from a file, opened anew. Errors of kube_file_read(); the reason names the path. */
int token_read(const char *path, char **token, struct reason *reason);

#endif
