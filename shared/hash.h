/* SPDX-License-Identifier: Apache-2.0 */
/* uthash with memory of shared/mem.h, tables by text, the release of a whole table, a hash of bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shared/mem.h"

#define uthash_malloc(size) mem_alloc(size)
#include <uthash.h>

/*
 * Clears the table of `head` (linked by hh) and runs the statement behind it for each element `e`
 * that was in it, which may free it. `after` is scratch.
 */
#define HASH_RELEASE(head, e, after)                                                               \
	for ((e) = (head), __extension__({ HASH_CLEAR(hh, head); });                               \
	     (e) ? ((after) = (e)->hh.next, true) : false; (e) = (after))

/*
 * Makes `e` an element of zeroes, gives it the text as its member `key`, and adds it to the table of
 * `head` (linked by hh).
 */
#define HASH_NEW(head, e, key, text)                                                               \
	do {                                                                                       \
		(e) = mem_zalloc(1, sizeof(*(e)));                                                 \
		(e)->key = (text);                                                                 \
		HASH_ADD_KEYPTR(hh, head, (e)->key, strlen((e)->key), e);                          \
	} while (0)
/* Finds the element of the text; else makes one, which owns a copy of it. */
#define HASH_INTERN(head, e, key, text)                                                            \
	do {                                                                                       \
		HASH_FIND_STR(head, text, e);                                                      \
		if (!(e))                                                                          \
			HASH_NEW(head, e, key, mem_strdup(text));                                  \
	} while (0)

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* FNV-1a. Goes on from the hash of what stands before; HASH_BEGIN: nothing. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	for (; len; len--)
		hash = (hash ^ *at++) * UINT64_C(0x100000001b3);
	return hash;
}
