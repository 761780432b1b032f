/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mem_exhausted(void)
{
	fputs("evenkeel: out of memory\n", stderr);
	abort();
}

static void *checked(void *block)
{
	if (!block)
		mem_exhausted();
	return block;
}

void *mem_alloc(size_t size)
{
	return checked(malloc(size ? size : 1));
}

void *mem_zalloc(size_t count, size_t size)
{
	return checked(calloc(count ? count : 1, size ? size : 1));
}

void *mem_realloc(void *old, size_t size)
{
	return checked(realloc(old, size ? size : 1));
}

char *mem_strdup(const char *text)
{
	return checked(strdup(text));
}

char *mem_strndup(const char *text, size_t len)
{
	return checked(strndup(text, len));
}

char *mem_put_text(char **room, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = memcpy(*room, text, size);

	*room += size;
	return copy;
}

char *mem_printf(const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	return checked(len < 0 ? NULL : text);
}
