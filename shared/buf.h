/* SPDX-License-Identifier: Apache-2.0 */
/* A byte buffer that grows. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <string.h>

struct buf {
	char *data; /* owned; NULL while empty; then with a NUL behind len */
	size_t len;
	size_t cap;
};

#define BUF_INIT                                                                                   \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}

void buf_init(struct buf *b);
void buf_fini(struct buf *b);
/* Keeps the storage. */
void buf_clear(struct buf *b);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reallocates for len more bytes and a NUL; for buf_reserve(). */
void buf_grow(struct buf *b, size_t len);
/* Gives the storage to the caller, who frees it, and empties the buffer; never NULL. */
char *buf_take(struct buf *b, size_t *len);

/*
 * --- inlined: answers of megabytes are written byte by byte --------------------------------------
 */

/* Returns room for len more bytes. The caller then adds the bytes written to b->len. */
static inline char *buf_reserve(struct buf *b, size_t len)
{
	if (!b->data || b->len + len + 1 > b->cap)
		buf_grow(b, len);
	return b->data + b->len;
}

static inline void buf_add(struct buf *b, const void *data, size_t len)
{
	char *to = buf_reserve(b, len);

	assert(data || !len);
	if (len)
		memcpy(to, data, len);
	to[len] = '\0';
	b->len += len;
}

static inline void buf_add_str(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

static inline void buf_add_char(struct buf *b, char c)
{
	char *to = buf_reserve(b, 1);

	to[0] = c;
	to[1] = '\0';
	b->len++;
}
