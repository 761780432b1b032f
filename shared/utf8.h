/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of foreign UTF-8, and the characters that are safe for terminals. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shared/buf.h"

/*
 * Length of the well-formed sequence at p (RFC 3629: no surrogates, no overlong forms, at most
 * U+10FFFF), or 0. Reads nothing behind a NUL.
 */
size_t utf8_length(const char *p);
/* Whether all bytes are well-formed. */
bool utf8_is_valid(const char *text, size_t len);

/*
 * Safe for terminals: valid UTF-8 without characters that move the cursor, break lines, or turn or
 * hide text: controls (C0, DEL, C1), line and paragraph separators, and Unicode's default
 * ignorables (zero-width, bidirectional, tags).
 */
bool utf8_is_clean(const char *text);
/* Replaces unsafe characters by "?", in place. */
void utf8_clean(char *text);
/* Replaces ASCII controls (C0, DEL), in place: the text becomes one line of a log. */
void utf8_replace_controls(char *text, char by);
/*
 * Appends equivalent JSON: unsafe characters become escapes in strings (\u202e, \ufffd for invalid
 * UTF-8) and blanks elsewhere, except line breaks. A NUL follows.
 */
void utf8_add_json(struct buf *out, const char *json, size_t len);
