/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that cannot fail: out of memory aborts with a message, since every daemon is bounded
 * and runs under a memory limit. What was acknowledged is not lost by that: see
 * aggregator/edge/ingest.c and agent/sender.c.
 */
#ifndef EVENKEEL_SHARED_MEM_H
#define EVENKEEL_SHARED_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size);
/* Zeroed; aborts also when count * size overflows. */
void *mem_zalloc(size_t count, size_t size);
void *mem_realloc(void *old, size_t size);
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t len);
/* printf into a new string the caller frees. */
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says so and aborts: when a library has no memory. */
void mem_exhausted(void) __attribute__((noreturn));

#endif
