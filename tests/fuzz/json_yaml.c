/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever JSON a server sends becomes YAML that our own reader takes, and has the same value where
 * JSON is clear about it.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "shared/json_yaml.h"
#include "shared/yaml_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEPTH = 60 };

/*
 * Texts that are not UTF-8, repeated and long keys, and numbers that no double holds are not the
 * same again.
 */
static bool is_clear(const cJSON *value, size_t depth)
{
	if (depth > DEPTH ||
	    (cJSON_IsNumber(value) && value->valuedouble - value->valuedouble != 0))
		return false;
	for (const cJSON *m = value->child; m; m = m->next) {
		if (m->string && strlen(m->string) > 200)
			return false;
		for (const cJSON *other = m->next; m->string && other; other = other->next)
			if (strcmp(m->string, other->string) == 0)
				return false;
		if (!is_clear(m, depth + 1))
			return false;
	}
	return true;
}

static bool is_ascii(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] > 127)
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct yaml_json_limits limits = {.depth = DEPTH + 5, .bytes = 1 << 20};
	cJSON *value = cJSON_ParseWithLength((const char *)data, size), *back;
	struct buf yaml = BUF_INIT, json = BUF_INIT;
	struct error error = {""};
	size_t documents;

	if (!value)
		return 0;
	json_yaml_write(value, false, &yaml);
	if (size < 4096 && is_clear(value, 0) && is_ascii(data, size) &&
	    (cJSON_IsObject(value) || cJSON_IsArray(value))) {
		assert(yaml_json_convert("yaml", yaml.data, yaml.len, &limits, &json, &documents,
					 &error) == 0);
		back = cJSON_Parse(json.data);
		assert(cJSON_Compare(value, back, true));
		cJSON_Delete(back);
	}
	cJSON_Delete(value);
	buf_fini(&yaml);
	buf_fini(&json);
	return 0;
}
