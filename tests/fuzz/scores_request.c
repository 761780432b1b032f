/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any body of POST /v1/scores, and any Pod object in it: read or refused with a field, never both,
 * nothing leaked.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/api/scores_request.h"
#include "aggregator/model/object.h"
#include "shared/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pod(const char *text)
{
	cJSON *tree = cJSON_Parse(text);
	char field[OBJECT_FIELD_MAX];
	struct error error = {""};
	struct pod_spec pod;

	if (tree && pod_spec_read(tree, &pod, field, &error)) {
		assert(error.text[0] && strlen(field) < sizeof(field));
	} else if (tree) {
		for (int i = 0; i < 4; i++) {
			assert(pod_spec_need(&pod, RESOURCE_CPU, i & 1, i & 2) >= 0);
			assert(pod_spec_need(&pod, RESOURCE_MEMORY, i & 1, i & 2) >= 0);
		}
		pod_spec_free_members(&pod);
	}
	cJSON_Delete(tree);
}

static void check_request(const char *text, size_t len)
{
	struct scores_request rq = {0};
	char field[SCORES_FIELD_MAX];
	struct error error = {""};

	if (scores_request_parse(text, len, NULL, &rq, field, &error)) {
		assert(error.text[0] && strlen(field) < sizeof(field));
		return;
	}
	assert(rq.blend.count > 0 && rq.blend.count <= SCORE_PLUGINS);
	for (size_t i = 0; i < rq.blend.count; i++)
		assert(rq.blend.weights[i] > 0 &&
		       score_plugin_has(rq.blend.plugins[i], rq.blend.variant));
	scores_request_fini(&rq);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_alloc(size + 1);

	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	check_pod(text);
	check_request(text, size);
	free(text);
	return 0;
}
