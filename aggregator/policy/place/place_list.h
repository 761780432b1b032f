/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow and hashes in the order of insertion, for the files of the placement core. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* An array that grows; T *of. */
#define PLACE_LIST(T)                                                                              \
	struct {                                                                                   \
		T *of;                                                                             \
		uint32_t count, room;                                                              \
	}
#define PLACE_LIST_ADD(list, value)                                                                \
	do {                                                                                       \
		(list)->of =                                                                       \
			place_grow((list)->of, (list)->count, &(list)->room, sizeof(*(list)->of)); \
		(list)->of[(list)->count++] = (value);                                             \
	} while (0)
/* The newest element of a hash that is not empty. */
#define PLACE_NEWEST(head) ELMT_FROM_HH((head)->hh.tbl, (head)->hh.tbl->tail)
void *place_grow(void *array, uint32_t count, uint32_t *room, size_t size);
