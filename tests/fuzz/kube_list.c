/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What answers a list of pods. The first byte is the size of chunks: in whatever chunks it comes,
 * it means the same. Its bytes also are an answer of discovery, and a refusal.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "aggregator/edge/kube/discovery.h"
#include "tests/feed_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void discover(const char *text, size_t len)
{
	struct discovery d;
	char path[DISCOVERY_PATH_MAX];
	int questions = 0;

	discovery_begin(&d, UINT32_MAX);
	while (discovery_next(&d, path)) {
		assert(path[0] == '/' && !strstr(path, ".."));
		questions++;
		assert(questions <= DISCOVERY_VERSIONS_MAX + 1);
		discovery_answer(&d, text, len, NULL);
	}
	for (int kind = 0; kind < OBJECT_KINDS; kind++)
		discovery_find(&d, (enum object_kind)kind, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct buf whole = BUF_INIT, parts = BUF_INIT;
	struct kube_status status;

	if (size < 2)
		return 0;
	feed_world_tell(OBJECT_POD, text, size - 1, "", 0, size, &whole);
	feed_world_tell(OBJECT_POD, text, size - 1, "", 0, (size_t)data[0] + 1, &parts);
	/*
	 * Where a list broke off depends on how much of it was looked at; what was found does not.
	 */
	if (!strstr(whole.data, "of the list:"))
		assert(strcmp(whole.data, parts.data) == 0);
	buf_fini(&whole);
	buf_fini(&parts);
	discover(text, size - 1);
	kube_status_parse(&status, 500, text, size - 1);
	assert(status.retry_after_ns >= 0);
	return 0;
}
