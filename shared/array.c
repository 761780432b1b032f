/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/array.h"

#include <search.h>
#include <string.h>

#include "shared/arith.h"
#include "shared/mem.h"

enum { ROOM_LEAST = 4 };

void *array_grow(void *array, size_t count, size_t size)
{
	/* An emptied array has at least the least room. */
	if (count ? count < ROOM_LEAST || count & (count - 1) : array != NULL)
		return array;
	return mem_realloc(array, (count ? 2 * count : ROOM_LEAST) * size);
}

size_t array_lower_bound(const void *key, const void *array, size_t count, size_t size,
			 int (*compare)(const void *key, const void *element))
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(key, (const char *)array + middle * size) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t array_find_name(const void *array, size_t count, size_t size, const char *name, bool *found)
{
	size_t low = 0, high = count;
	int order = 1;

	*found = false;
	while (low < high && !*found) {
		size_t middle = low + (high - low) / 2;

		order = strcmp(*(const char *const *)((const char *)array + middle * size), name);
		*found = order == 0;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return *found ? high : low;
}

void *array_search_name(const void *array, size_t count, size_t size, const char *name)
{
	bool found;
	size_t at = array_find_name(array, count, size, name, &found);

	return found ? (char *)array + at * size : NULL;
}

void *array_put_name(void *array, size_t *count, size_t size, const char *name, size_t *at)
{
	bool found;
	char *of, *place, *copy;

	*at = array_find_name(array, *count, size, name, &found);
	if (found)
		return array;
	of = array_grow(array, *count, size);
	place = of + *at * size;
	memmove(place + size, place, ((*count)++ - *at) * size);
	memset(place, 0, size);
	copy = mem_strdup(name);
	memcpy(place, &copy, sizeof(copy));
	return of;
}

void *array_find_text(const void *array, size_t count, size_t size, const char *text)
{
	return lfind(&text, array, &count, size, array_compare_text);
}

bool array_has_text(const char *const *texts, const char *text)
{
	while (*texts && strcmp(*texts, text) != 0)
		texts++;
	return *texts;
}

int array_compare_int64(const void *a, const void *b)
{
	return COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

int array_compare_uint32(const void *a, const void *b)
{
	return COMPARE(*(const uint32_t *)a, *(const uint32_t *)b);
}

int array_compare_uint64(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

int array_compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}
