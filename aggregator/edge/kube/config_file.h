/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of credentials: tokens, and texts that are wiped before they are freed. */
#pragma once

#include <stddef.h>

#include "shared/error.h"

/* Of a kubeconfig, and of a file of certificates. */
enum { KUBE_FILE_MAX = 1 << 20 };

/* text as one line, cut with ".." if out is full; returns out. NULL: "". */
const char *kube_text_line(const char *text, char *out, size_t size);

/* Wipe and free; NULL is allowed. */
void kube_text_wipe(char *text);
void kube_bytes_wipe(char *bytes, size_t len);

enum { TOKEN_MAX = 16 << 10 };

/*
 * The word in text, without blanks and line ends around it; the caller frees *token with
 * kube_text_wipe(). -EINVAL with the reason: no word, longer than TOKEN_MAX, or a byte that could
 * end or split a header.
 */
int token_take(const char *text, size_t len, char **token, struct error *error);
/* The same from a file. Errors of secret_read(); the reason names the path. */
int token_read(const char *path, char **token, struct error *error);
