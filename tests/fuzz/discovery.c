/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an API server says it serves: whatever it answers, the questions come to an end, none is
 * longer than a path may be, and a kind that is served is so in one of the versions that were asked
 * for. Input: the answers, a line each.
 */
#include <assert.h>
#include <string.h>

#include "aggregator/edge/kube/discovery.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_known(const struct discovery *d, const char *version)
{
	for (size_t i = 0; i < d->count; i++)
		if (strcmp(d->versions[i].name, version) == 0)
			return true;
	return false;
}

static void check_kinds(const struct discovery *d)
{
	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		struct kube_status why = {0};
		const char *version = NULL;

		if (discovery_find(d, (enum object_kind)kind, &version, &why) == DISCOVERY_SERVED)
			assert(version && (is_known(d, version) || strcmp(version, "v1") == 0));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	char path[DISCOVERY_PATH_MAX];
	struct discovery d;
	int asked = 0;

	discovery_begin(&d, UINT32_MAX);
	while (discovery_next(&d, path)) {
		const char *end = size ? memchr(text, '\n', size) : NULL;
		size_t len = end ? (size_t)(end - text) : size;

		asked++;
		assert(asked <= DISCOVERY_VERSIONS_MAX + 1);
		assert(memchr(path, '\0', sizeof(path)) && strncmp(path, "/api", 4) == 0);
		discovery_answer(&d, size ? text : "", len, NULL);
		text += len + (end != NULL);
		size -= len + (end != NULL);
	}
	assert(d.count <= DISCOVERY_VERSIONS_MAX);
	check_kinds(&d);
	return 0;
}
