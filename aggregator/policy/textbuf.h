/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends formatted text in a fixed room: answers have a sentence for every node and plugin, and
 * printf's conversion of doubles would be most of the cost of scoring.
 */
#pragma once

#include <stddef.h>

/*
 * Appends to the text of `len` bytes in a room of `size`, which is larger, and returns its new
 * length; a text that is too long is cut, and is terminated. Of printf's directives there are %s,
 * %ld, %.Nf, %.*f and %%. A fraction has 0..9 decimals, is rounded half away from zero, is "?" where
 * it is not finite, and is cut at +-1e18 units of the last decimal.
 */
__attribute__((format(printf, 4, 5))) size_t textbuf_add(char *text, size_t size, size_t len,
							 const char *format, ...);
