/* SPDX-License-Identifier: Apache-2.0 */
/* A streaming JSON writer: compact, in call order, with portable numbers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/buf.h"

struct jsonw {
	struct buf *out; /* borrowed */
	bool comma; /* a value was written at this level */
};

void jsonw_init(struct jsonw *w, struct buf *out);
void jsonw_object_open(struct jsonw *w);
void jsonw_object_close(struct jsonw *w);
void jsonw_array_open(struct jsonw *w);
void jsonw_array_close(struct jsonw *w);
void jsonw_key(struct jsonw *w, const char *key);
/* Escapes control characters, quotes, backslashes; invalid UTF-8 is U+FFFD. NULL is null. */
void jsonw_string(struct jsonw *w, const char *text);
/* The same for a text of known length with a NUL only behind it. */
void jsonw_text(struct jsonw *w, const char *text, size_t len);
void jsonw_int(struct jsonw *w, int64_t value);
void jsonw_uint(struct jsonw *w, uint64_t value);
/* At most `decimals` (0..9), without trailing zeros, exponent or "-0"; null if not finite. */
void jsonw_fixed(struct jsonw *w, double value, int decimals);
/* %.17g: reads back bit for bit; null if not finite. */
void jsonw_exact(struct jsonw *w, double value);
/* %.9g: reads back bit for bit as a float. */
void jsonw_exact_float(struct jsonw *w, float value);
void jsonw_bool(struct jsonw *w, bool value);
void jsonw_null(struct jsonw *w);

/* Begins a value that the caller appends as JSON to the buffer returned. */
struct buf *jsonw_json(struct jsonw *w);

/* key and value in one call. */
void jsonw_key_string(struct jsonw *w, const char *key, const char *text);
/* The same where the text is neither NULL nor empty; nothing else. */
void jsonw_key_text(struct jsonw *w, const char *key, const char *text);
void jsonw_key_int(struct jsonw *w, const char *key, int64_t value);
void jsonw_key_uint(struct jsonw *w, const char *key, uint64_t value);
void jsonw_key_hex(struct jsonw *w, const char *key, uint64_t value); /* a text of 16 digits */
void jsonw_key_fixed(struct jsonw *w, const char *key, double value, int decimals);
/* The same where it is finite; nothing else. */
void jsonw_key_known(struct jsonw *w, const char *key, double value, int decimals);
void jsonw_key_bool(struct jsonw *w, const char *key, bool value);
/* true where it holds; nothing else. */
void jsonw_key_true(struct jsonw *w, const char *key, bool holds);
void jsonw_key_null(struct jsonw *w, const char *key);
/* RFC 3339; exact: to the nanosecond. */
void jsonw_key_time(struct jsonw *w, const char *key, int64_t unix_ns);
void jsonw_key_time_exact(struct jsonw *w, const char *key, int64_t unix_ns);

/* Begins a text that is one object. */
static inline void jsonw_begin(struct jsonw *w, struct buf *out)
{
	jsonw_init(w, out);
	jsonw_object_open(w);
}

static inline void jsonw_key_object(struct jsonw *w, const char *key)
{
	jsonw_key(w, key);
	jsonw_object_open(w);
}

static inline void jsonw_key_array(struct jsonw *w, const char *key)
{
	jsonw_key(w, key);
	jsonw_array_open(w);
}
