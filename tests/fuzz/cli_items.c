/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a server sends as a list: items are found within its bytes, or not at all; and a page of
 * them is refused with a reason, or printed again without every second item.
 */
#include <assert.h>
#include <stdint.h>

#include "aggregator/cli/pages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool take_every_second(const struct list *l, const cJSON *item)
{
	size_t *seen = l->context;

	(void)item;
	return ++*seen % 2;
}

static void read_page(const char *text, size_t len)
{
	struct buf out = BUF_INIT;
	struct error error = {""};
	size_t seen = 0;
	struct list list;

	list_init(&list, take_every_second, &seen);
	buf_add(&list.page, text, len);
	if (list_read_page(&list, &error)) {
		assert(error.text[0] && !seen);
	} else {
		list_print_json(&list, &out);
		assert(list.dropped == seen / 2 && out.data[out.len - 1] == '\n');
	}
	buf_fini(&out);
	list_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct span items, item;

	read_page(text, size);
	if (!document_find_items(text, size, &items))
		return 0;
	assert(items.start > text && items.start + items.len < text + size);
	while (document_next_item(&items, &item))
		assert(item.start > text && item.start + item.len < text + size);
	return 0;
}
