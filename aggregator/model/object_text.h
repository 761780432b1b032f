/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the canonical text (object.h) of those parts of a JSON object that a table keeps. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "aggregator/model/object_json.h"
#include "shared/buf.h"
#include "shared/jsonw.h"

/* A row of a table, which is sorted by name and ends with a row without one. */
struct object_text_row {
	const char *name;
	const struct object_text_row *below; /* NULL: all of it */
	bool (*member)(const char *name); /* instead of a table: which members; NULL: all */
	bool (*element)(const cJSON *element); /* which elements of a list; NULL: all */
};

/* Rows of a table, and members that are left out though a row keeps them. */
enum { OBJECT_TEXT_ROWS_MAX = 24, OBJECT_TEXT_SKIPS_MAX = 8 };

struct object_text {
	struct jsonw json; /* for members of the caller's own */
	const cJSON *skip[OBJECT_TEXT_SKIPS_MAX]; /* borrowed */
	size_t skips;
	size_t most; /* bytes of the text */
	/* Borrowed: the first that is beyond its bound, and nothing is written behind it; or NULL. */
	const cJSON *beyond;
	struct error error; /* of beyond */
};

void object_text_init(struct object_text *t, struct buf *out, size_t most);
/* The members that the table keeps, of an object that the caller has opened. */
void object_text_members(struct object_text *t, const cJSON *object,
			 const struct object_text_row *table);
/* The object with the members that the table keeps. */
void object_text_object(struct object_text *t, const cJSON *object,
			const struct object_text_row *table);
/* Fails where something below `whole`, the object that was written, is beyond its bound. */
void object_text_end(const struct object_text *t, const struct object_json *whole);
/* Null, or a number that JSON has no word for: it is written as if it were not there. */
bool object_text_is_nothing(const cJSON *item);
