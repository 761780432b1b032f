/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, and places in sorted ones. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes room for one more element behind the first `count`. Returns the array, which may have moved.
 * The room is 4 elements, and doubles when count reaches it: all elements are added this way.
 */
void *array_grow(void *array, size_t count, size_t size);
/* A new element behind the last, to assign to: ARRAY_ADD(list, count) = value. */
#define ARRAY_ADD(array, count)                                                                    \
	*((array) = array_grow((array), (count), sizeof(*(array))), /* NOLINT: or of pointers */   \
	  &(array)[(count)++])
/* qsort(), also of no array at all. */
static inline void array_sort(void *array, size_t count, size_t size,
			      int (*compare)(const void *a, const void *b))
{
	if (count > 1)
		qsort(array, count, size, compare);
}
/* The index of the first element that is not before the key, or count. compare is as bsearch()'s. */
size_t array_lower_bound(const void *key, const void *array, size_t count, size_t size,
			 int (*compare)(const void *key, const void *element));
/*
 * Finds a name in an array of structures that begin with a char * and are sorted by it. Returns the
 * index of the name, or where it would be.
 */
size_t array_find_name(const void *array, size_t count, size_t size, const char *name, bool *found);
/*
 * Adds the name to such an array where it is missing, with an element of zeros and a copy of the
 * name. Returns the array, which may have moved; *at: the index of the name.
 */
void *array_put_name(void *array, size_t *count, size_t size, const char *name, size_t *at);
/* The structure of that name in such an array; NULL: none. */
void *array_search_name(const void *array, size_t count, size_t size, const char *name);
/* The first structure that begins with this text, or char * that is it; NULL: none. */
void *array_find_text(const void *array, size_t count, size_t size, const char *text);
/* NULL is a text of its own. */
static inline bool array_is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}
/* Whether the text is one of a list, which ends with NULL. */
bool array_has_text(const char *const *texts, const char *text);
/* For qsort() of int64_t. */
int array_compare_int64(const void *a, const void *b);
/* For qsort() of uint32_t, and array_lower_bound() in structures that begin with one. */
int array_compare_uint32(const void *a, const void *b);
/* The same of uint64_t. */
int array_compare_uint64(const void *a, const void *b);
/* For qsort() of char *, and array_lower_bound() in structures that begin with one. */
int array_compare_text(const void *a, const void *b);
