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

char *mem_vprintf(const char *format, va_list args)
{
	char *text;

	return checked(vasprintf(&text, format, args) < 0 ? NULL : text);
}

char *mem_printf(const char *format, ...)
{
	char *text;

	MEM_PRINT(text, format);
	return text;
}
