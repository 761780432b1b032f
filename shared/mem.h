/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that aborts with a message when out of memory: every daemon is bounded and runs under
 * a memory limit. Acknowledged intervals survive: see aggregator/edge/ingest.c and agent/sender.c.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

void *mem_alloc(size_t size);
/* Zeroed; aborts also when count * size overflows. */
void *mem_zalloc(size_t count, size_t size);
void *mem_realloc(void *old, size_t size);
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t len);
/* Copies the text to *room, moves that behind it, and returns the copy. */
char *mem_put_text(char **room, const char *text);
/* printf into a new string the caller frees. */
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *mem_vprintf(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* In a function of (.., const char *format, ...): prints its arguments into a new string. */
#define MEM_PRINT(text, format)                                                                    \
	do {                                                                                       \
		va_list args_;                                                                     \
		va_start(args_, format);                                                           \
		(text) = mem_vprintf(format, args_);                                               \
		va_end(args_);                                                                     \
	} while (0)
/* The same into `size` bytes at text. */
#define MEM_FORMAT(text, size, format)                                                             \
	do {                                                                                       \
		va_list args_;                                                                     \
		va_start(args_, format);                                                           \
		vsnprintf(text, size, format, args_);                                              \
		va_end(args_);                                                                     \
	} while (0)
/* Aborts with the message, for libraries. */
void mem_exhausted(void) __attribute__((noreturn));
