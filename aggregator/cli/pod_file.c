/* SPDX-License-Identifier: Apache-2.0 */
/* JSON goes to the server as it is, once it parses; anything else is YAML (shared/yaml_json.h). */
#include "aggregator/cli/pod_file.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"
#include "shared/yaml_json.h"

enum { FILE_MAX = 1 << 20, JSON_MAX = 4 << 20, DEPTH_MAX = 64 };

static int convert_yaml(const char *name, const char *text, size_t len, struct buf *json,
			struct reason *reason)
{
	const struct yaml_json_limits limits = {DEPTH_MAX, JSON_MAX};
	size_t documents, before = json->len;

	if (yaml_json_convert(name, text, len, &limits, json, &documents, reason))
		return -EINVAL;
	if (documents == 1 && json->data[before] == '{') {
		json->data[--json->len] = '\0'; /* the newline */
		return 0;
	}
	json->len = before;
	if (documents > 1)
		reason_set(reason, "%s: holds several documents; give one pod", name);
	else
		reason_set(reason, "%s: holds no pod", name);
	return -EINVAL;
}

static bool is_blank(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
		p++;
	return p == end;
}

int pod_file_convert(const char *name, const char *text, size_t len, struct buf *json,
		     struct reason *reason)
{
	size_t blanks = 0;

	while (blanks < len && text[blanks] && strchr(" \t\r\n", text[blanks]))
		blanks++;
	if (blanks < len && text[blanks] == '{') {
		const char *end = NULL;
		cJSON *doc = cJSON_ParseWithLengthOpts(text, len, &end, false);
		bool whole = doc && is_blank(end, text + len);

		cJSON_Delete(doc);
		if (whole) {
			buf_add(json, text, (size_t)(end - text));
			return 0;
		}
	}
	return convert_yaml(name, text, len, json, reason);
}

int pod_file_read(const char *path, struct buf *json, struct reason *reason)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *file = standard ? stdin : fopen(path, "re");
	char *text;
	size_t len;
	int rc;

	if (!file) {
		reason_set(reason, "--pod: cannot read %s: %s", path, strerror(errno));
		return -EINVAL;
	}
	text = mem_alloc(FILE_MAX + 1);
	len = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file)) {
		reason_set(reason, "--pod: cannot read %s: %s", path, strerror(errno));
		rc = -EINVAL;
	} else if (len > FILE_MAX) {
		reason_set(reason, "--pod: %s is larger than 1 MiB", path);
		rc = -EINVAL;
	} else {
		rc = pod_file_convert(standard ? "standard input" : path, text, len, json, reason);
	}
	free(text);
	if (!standard)
		fclose(file);
	return rc;
}
