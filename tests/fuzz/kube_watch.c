/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes in a watch, of pods or by bit 7 of the first byte of nodes; its other bits are the
 * size of chunks. In whatever chunks it comes, it means the same.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/feed_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char pods[] =
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}";
	static const char nodes[] =
		"{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}";
	bool of_nodes = size && data[0] & 0x80;
	enum object_kind kind = of_nodes ? OBJECT_NODE : OBJECT_POD;
	const char *list = of_nodes ? nodes : pods;
	const char *text = (const char *)data + 1;
	struct buf whole = BUF_INIT, parts = BUF_INIT;

	if (size < 2)
		return 0;
	feed_world_tell(kind, list, strlen(list), text, size - 1, size + 100, &whole);
	feed_world_tell(kind, list, strlen(list), text, size - 1, (size_t)(data[0] & 0x7f) + 1,
			&parts);
	assert(strcmp(whole.data, parts.data) == 0);
	assert(strncmp(whole.data, "begin\nend\n", 10) == 0);
	buf_fini(&whole);
	buf_fini(&parts);
	return 0;
}
