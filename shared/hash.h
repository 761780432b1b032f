/* SPDX-License-Identifier: Apache-2.0 */
/* uthash with memory of shared/mem.h, and the release of a whole table. */
#ifndef EVENKEEL_SHARED_HASH_H
#define EVENKEEL_SHARED_HASH_H

#include <stdbool.h>

#include "shared/mem.h"

#define uthash_malloc(size) mem_alloc(size)
#include <uthash.h>

/*
 * Clears the table of `head` (linked by hh) and runs the statement behind it for each element `e`
 * that was in it, which may free it. `after` is scratch.
 */
#define HASH_RELEASE(head, e, after)                                                               \
	for ((e) = (head), __extension__({ HASH_CLEAR(hh, head); });                               \
	     (e) && ((after) = (e)->hh.next, true); (e) = (after))

#endif
