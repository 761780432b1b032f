/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kube_objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "shared/quantity.h"
#include "shared/yaml_json.h"

cJSON *kube_objects_parse(const struct buf *yaml)
{
	static const struct yaml_json_limits limits = {.depth = 40, .bytes = 1 << 20};
	struct buf json = BUF_INIT;
	cJSON *all = cJSON_CreateArray();
	struct error error = {""};
	size_t count;
	char *rest, *line;

	if (yaml_json_convert("objects", yaml->data, yaml->len, &limits, &json, &count, &error))
		fail_msg("%s", error.text);
	for (line = strtok_r(json.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		cJSON_AddItemToArray(all, cJSON_Parse(line));
	assert_int_equal(cJSON_GetArraySize(all), count);
	buf_fini(&json);
	return all;
}

/* Texts that are equal, or the same amount: the server writes 1000m as 1. */
static bool same_text(const char *a, const char *b)
{
	int64_t left, right;

	return strcmp(a, b) == 0 || (quantity_parse_milli(a, &left, NULL) == 0 &&
				     quantity_parse_milli(b, &right, NULL) == 0 && left == right);
}

bool kube_objects_are_kept(const cJSON *given, const cJSON *kept) /* NOLINT(misc-no-recursion) */
{
	const cJSON *m, *other = kept ? kept->child : NULL;

	if (kept && cJSON_IsString(given) && cJSON_IsString(kept))
		return same_text(given->valuestring, kept->valuestring);
	if (!cJSON_IsObject(given) && !cJSON_IsArray(given))
		return cJSON_Compare(given, kept, true);
	cJSON_ArrayForEach (m, given) {
		if (cJSON_IsObject(given))
			other = cJSON_GetObjectItemCaseSensitive(kept, m->string);
		if (!other && cJSON_IsFalse(m))
			continue; /* what is not there is false */
		if (!other || !kube_objects_are_kept(m, other)) {
			print_message("            %s is not kept\n", m->string ? m->string : "-");
			return false;
		}
		other = other->next;
	}
	return true;
}
