/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends formatted text in a fixed room: answers have a sentence for every node and plugin, and
 * printf's conversion of doubles would be most of the cost of scoring.
 */
#pragma once

#include <stddef.h>

/*
 * Appends to the terminated text in `size` bytes, above 0, and returns its length; a text that is too
 * long is cut. Of printf's directives there are %s, %ld, %.Nf, %.*f and %%. A fraction has 0..9
 * decimals, is rounded half away from zero, is "?" where it is not finite, and is cut at +-1e18
 * units of the last decimal.
 */
__attribute__((format(printf, 3, 4))) size_t textbuf_add(char *text, size_t size,
							 const char *format, ...);
