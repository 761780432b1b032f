/* SPDX-License-Identifier: Apache-2.0 */
/* Records for tests: made of JSON with ' for ", and compared member by member. */
#pragma once

#include "aggregator/model/object.h"

/* To be deleted. NULL when the text is no JSON. */
cJSON *object_json_of(const char *text);
/* Whether both say the same; else *what is the member that differs. */
bool object_same(const struct object *a, const struct object *b, const char **what);
/*
 * Writes the record, reads what was written, and writes that: NULL, or what was wrong with it. What
 * the second writes must be the same bytes, and the second record the same as the first.
 */
const char *object_check_written(const struct object *o);
