/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading members of a JSON object whose author may be hostile or careless: each function takes
 * where it reads, and says by its path what cannot be read. Everywhere null is the same as absent.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/resources.h"
#include "shared/error.h"

/* Where errors go. */
struct object_json {
	char *field; /* of OBJECT_FIELD_MAX: the path is written here */
	struct error *error;
};

/*
 * A place in the object as a chain on the stack, from the member up to the whole; text is only made
 * of it when something is wrong. The whole is NULL.
 */
struct object_path {
	const struct object_path *up;
	const char *key; /* NULL: an element of an array */
	size_t index;
};

/*
 * More names than this in one list of amounts are refused: nobody has them, and sums compare them
 * all.
 */
enum { OBJECT_RESOURCES_MAX = 256 };

/*
 * -EINVAL; the path is that of the member `key` below `path`, or `path` itself where key is NULL.
 */
int object_json_fail(const struct object_json *r, const struct object_path *path, const char *key,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* NULL: absent. object may be NULL, and need not be an object; the same for the next three. */
const cJSON *object_json_find(const cJSON *object, const char *key);
/* The string; "" where the member is absent or no string. */
const char *object_json_text(const cJSON *object, const char *key);
/* Whether the member is that string. */
bool object_json_is(const cJSON *object, const char *key, const char *text);
/* The first element; NULL: none, or no list. */
const cJSON *object_json_first(const cJSON *list);

/*
 * Each: 0 with *out set, or -EINVAL when the member is there and of another kind. *out is NULL or
 * `absent` where it is not there.
 */
int object_json_object(const struct object_json *r, const cJSON *object,
		       const struct object_path *path, const char *key, const cJSON **out);
int object_json_array(const struct object_json *r, const cJSON *object,
		      const struct object_path *path, const char *key, const cJSON **out);
int object_json_string(const struct object_json *r, const cJSON *object,
		       const struct object_path *path, const char *key, const char *absent,
		       const char **out);
int object_json_bool(const struct object_json *r, const cJSON *object,
		     const struct object_path *path, const char *key,
		     bool *out); /* absent: false */
int object_json_int32(const struct object_json *r, const cJSON *object,
		      const struct object_path *path, const char *key, int32_t absent,
		      int32_t *out);
/* RFC 3339 as Unix time; 0 when absent. */
int object_json_time(const struct object_json *r, const cJSON *object,
		     const struct object_path *path, const char *key, int64_t *out_ns);
/* A quantity as JSON writes it, a string or a number; not negative. 0 or -EINVAL. */
int object_json_quantity(const cJSON *value, int (*parse)(const char *, int64_t *, struct error *),
			 int64_t *out, struct error *error);
/*
 * A list of amounts, none of them negative, into *out, which has none yet and is the caller's to
 * free also after a failure. *present may be NULL.
 */
int object_json_resources(const struct object_json *r, const cJSON *object,
			  const struct object_path *path, const char *key, bool *present,
			  struct resources *out);

/*
 * The number as its author wrote it: an integer without a fraction or exponent, else the shortest
 * that reads back alike.
 */
void object_json_number(double value, char text[32]);
