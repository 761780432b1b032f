/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a server sends for JSON is clean for a terminal then, line by line, and means the same. */
#include <assert.h>
#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lines(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		char *line = mem_strndup(text, len);

		assert(utf8_is_clean(line));
		free(line);
		text += len + (text[len] == '\n');
	}
}

static void check_same(const char *before, const char *after)
{
	cJSON *a = cJSON_Parse(before), *b = cJSON_Parse(after);
	char *x = a ? cJSON_PrintUnformatted(a) : NULL, *y = b ? cJSON_PrintUnformatted(b) : NULL;

	assert(!x || (y && strcmp(x, y) == 0));
	cJSON_free(x);
	cJSON_free(y);
	cJSON_Delete(a);
	cJSON_Delete(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup((const char *)data, size);
	struct buf out = BUF_INIT;

	buf_add_str(&out, "");
	utf8_add_json(&out, text, strlen(text));
	check_lines(out.data);
	/* cJSON takes "\\u" before anything for a NUL. */
	if (utf8_is_valid(text, strlen(text)) && !strstr(text, "\\u"))
		check_same(text, out.data);
	utf8_clean(text);
	assert(utf8_is_clean(text));
	buf_fini(&out);
	free(text);
	return 0;
}
