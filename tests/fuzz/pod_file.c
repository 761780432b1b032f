/* SPDX-License-Identifier: Apache-2.0 */
/* Any file given as a pod is refused with a reason, or becomes one JSON object. */
#include <assert.h>
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "aggregator/api/pod_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error = {""};
	struct buf json = BUF_INIT;
	const char *end = NULL;
	cJSON *doc;

	if (pod_file_convert("fuzz", (const char *)data, size, &json, &error)) {
		assert(error.text[0] && !strchr(error.text, '\n'));
		assert(json.len == 0);
	} else {
		doc = cJSON_ParseWithLengthOpts(json.data, json.len, &end, false);
		assert(cJSON_IsObject(doc));
		assert(end == json.data + json.len);
		cJSON_Delete(doc);
	}
	buf_fini(&json);
	return 0;
}
