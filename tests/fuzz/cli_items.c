/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a server sends as a list: items are found within its bytes, or not at all. */
#include <assert.h>
#include <stdint.h>

#include "aggregator/cli/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct span items, item;

	if (!document_find_items(text, size, &items))
		return 0;
	assert(items.start > text && items.start + items.len < text + size);
	while (document_next_item(&items, &item))
		assert(item.start > text && item.start + item.len < text + size);
	return 0;
}
