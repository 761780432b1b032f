/* SPDX-License-Identifier: Apache-2.0 */
/* The join tokens of --join-token-file, and the nodes that each may enrol. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/error.h"
#include "shared/message.h"

enum { ENROLMENT_TOKEN_KEY_LEN = 32, ENROLMENT_TOKEN_LEAST = 16 };

struct enrolment_tokens;

/*
 * Lines "TOKEN PATTERN..": node names or patterns of fnmatch(3), separated by spaces or tabs; empty
 * lines and lines that begin with "#" are ignored. A token has 16 characters or more. key: of this
 * process, for the digests. -EINVAL with the reason, which names the line, never a token.
 */
int enrolment_tokens_parse(struct enrolment_tokens **out,
			   const uint8_t key[ENROLMENT_TOKEN_KEY_LEN], const char *text, size_t len,
			   struct error *error);
void enrolment_tokens_free(struct enrolment_tokens *t); /* NULL is allowed */

enum enrolment_token_verdict { TOKEN_ENROLS, TOKEN_UNKNOWN, TOKEN_OF_OTHER_NODES };

enum enrolment_token_verdict enrolment_tokens_check(const struct enrolment_tokens *t,
						    struct span token, const char *node);

/* Whether it can be a JSON web token: three parts of base64url, separated by dots. */
bool enrolment_token_is_jwt(struct span token);
