/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 of strangers: which bytes are any, and which characters a person's terminal may get. */
#ifndef EVENKEEL_SHARED_UTF8_H
#define EVENKEEL_SHARED_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "shared/buf.h"

/*
 * Length of the well-formed sequence at p (RFC 3629: no surrogates, no overlong forms, at most
 * U+10FFFF), or 0. A NUL ends the text and is no continuation byte, so nothing behind it is read.
 */
size_t utf8_length(const char *p);
/* Whether bytes are well-formed, so that JSON has them as they are. */
bool utf8_is_valid(const char *text, size_t len);

/*
 * A terminal may get neither bytes that are not UTF-8 nor characters that move its cursor, break
 * its lines, or turn or hide the text beside them: controls (C0, DEL, C1), line and paragraph
 * separators, and all that Unicode calls default ignorable (zero-width, bidirectional, tags).
 */
bool utf8_is_clean(const char *text);
/* Each of them becomes "?", in place. */
void utf8_clean(char *text);
/*
 * Appends JSON, which means the same: in its strings they are escapes (\u202e, \ufffd for what is
 * not UTF-8), and elsewhere blanks, but for line breaks. A NUL follows the text.
 */
void utf8_add_json(struct buf *out, const char *json, size_t len);

#endif
