/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/mem.h"

void buf_init(struct buf *b)
{
	*b = (struct buf)BUF_INIT;
}

void buf_fini(struct buf *b)
{
	if (!b)
		return;
	free(b->data);
	buf_init(b);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

void buf_grow(struct buf *b, size_t len)
{
	size_t need = b->len + len + 1;

	b->cap = need < 2 * b->cap ? 2 * b->cap : need < 64 ? 64 : need;
	b->data = mem_realloc(b->data, b->cap);
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0)
		return;
	va_start(args, format);
	vsnprintf(buf_reserve(b, (size_t)len), (size_t)len + 1, format, args);
	va_end(args);
	b->len += (size_t)len;
}

char *buf_take(struct buf *b, size_t *len)
{
	char *data;

	buf_reserve(b, 0);
	b->data[b->len] = '\0';
	data = b->data;
	if (len)
		*len = b->len;
	buf_init(b);
	return data;
}
