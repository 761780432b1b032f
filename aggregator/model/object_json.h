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

/* Where the first error of an object goes; later ones are dropped. All borrowed. */
struct object_fault {
	char *field; /* its path is written here */
	size_t field_max;
	struct error *error;
	bool found;
};

/*
 * A value of the object and its path, as a chain up to the whole, which has the key "". Values
 * live as long as those above them.
 */
struct object_json {
	const cJSON *json; /* borrowed; NULL: absent */
	struct object_fault *fault; /* borrowed */
	const struct object_json *up; /* borrowed; NULL: none */
	const char *key; /* NULL: an element of a list */
	size_t index;
};

/*
 * More names than this in one list of amounts are refused: nobody has them, and sums compare them
 * all.
 */
enum { OBJECT_RESOURCES_MAX = 256 };

/* The error is about the member `key`, or about the value itself where key is NULL. */
void object_json_fail(const struct object_json *of, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* NULL: absent. object may be NULL, and need not be an object; the same for the next three. */
const cJSON *object_json_find(const cJSON *object, const char *key);
/* The string; "" where the member is absent or no string. */
const char *object_json_text(const cJSON *object, const char *key);
/* Whether the member is that string. */
bool object_json_is(const cJSON *object, const char *key, const char *text);
/* The first element; NULL: none, or no list. */
const cJSON *object_json_first(const cJSON *list);

/* Members of an object that is absent are absent; a member of another kind is an error, and absent. */
struct object_json object_json_object(const struct object_json *of, const char *key);
struct object_json object_json_list(const struct object_json *of, const char *key);
const char *object_json_string(const struct object_json *of, const char *key, const char *absent);
bool object_json_bool(const struct object_json *of, const char *key); /* absent: false */
int32_t object_json_int32(const struct object_json *of, const char *key, int32_t absent);
/* RFC 3339 as Unix time; 0 when absent. */
int64_t object_json_time(const struct object_json *of, const char *key);
/*
 * Adds a list of amounts, none of them negative, to *out, which is the caller's to free also after
 * an error. Whether the member is there.
 */
bool object_json_resources(const struct object_json *of, const char *key, struct resources *out);
/* A member of such a list; false: it is no amount, which is an error. */
bool object_json_amount(const struct object_json *list, const cJSON *item, int64_t *amount);

/* A member of an object, and its place there. */
struct object_member {
	const cJSON *item;
	size_t place;
};
/*
 * Sorts by name. The first of equal names stays, as a reader of JSON that stops there would have it;
 * returns how many are left.
 */
size_t object_members_sort(struct object_member *members, size_t count);

/* The first element of a list, or member of an object; its json is NULL behind the last one. */
struct object_json object_json_begin(const struct object_json *parent);
void object_json_next(struct object_json *child);
size_t object_json_count(const struct object_json *list);

/* A quantity as JSON writes it, a string or a number; not negative. 0 or -EINVAL. */
int object_json_quantity(const cJSON *value, int (*parse)(const char *, int64_t *, struct error *),
			 int64_t *out, struct error *error);
/*
 * The number as its author wrote it: an integer without a fraction or exponent, else the shortest
 * that reads back alike.
 */
void object_json_number(double value, char text[32]);
