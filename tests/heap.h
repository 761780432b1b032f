/* SPDX-License-Identifier: Apache-2.0 */
/* What the process has allocated. */
#pragma once

#include <malloc.h>
#include <stddef.h>

/* What the allocator adds to a block at most, for blocks of whole 16 bytes. */
enum { HEAP_BLOCK = 16 };

/*
 * Bytes of all blocks, with what the allocator adds; 0 where a sanitizer replaces it. Each thread keeps
 * a few freed blocks that count, too: compare differences over many.
 */
static inline size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}
