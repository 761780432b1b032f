/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as YAML in block style, as kubectl prints it; yaml_json.h is the inverse. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "shared/buf.h"

/*
 * Appends a document; marked: after a line "---", as one of several. Members keep their order. Text
 * is plain only if every reader takes it for text; invalid UTF-8 becomes "?".
 */
void json_yaml_write(const cJSON *value, bool marked, struct buf *out);
