/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as YAML in block style, as kubectl prints it; yaml_json.h is the way back. */
#ifndef EVENKEEL_SHARED_JSON_YAML_H
#define EVENKEEL_SHARED_JSON_YAML_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "shared/buf.h"

/*
 * Appends a document; marked: behind a line "---", as one of several needs it. Members keep their
 * order. Text is plain only where no reader takes it for anything else; what is not UTF-8 becomes
 * "?".
 */
void json_yaml_write(const cJSON *value, bool marked, struct buf *out);

#endif
