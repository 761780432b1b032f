/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same few questions are asked of hundreds of members: is it there, is it of the right kind,
 * and if not, where is it? Paths are chains of stack frames, so that reading a pod that is well
 * costs nothing for them.
 */
#include "aggregator/model/object_json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object.h"
#include "aggregator/model/object_bounds.h"
#include "shared/mem.h"
#include "shared/quantity.h"
#include "shared/timefmt.h"

/* Appends to what stands in field; what does not fit is cut. */
__attribute__((format(printf, 2, 3))) static void append(char *field, const char *format, ...)
{
	size_t len = strlen(field);

	MEM_FORMAT(field + len, OBJECT_FIELD_MAX - len, format);
}

static void append_key(char *field, const char *key)
{
	append(field, "%s%s", *field ? "." : "", key);
}

static void append_path(char *field, const struct object_path *path)
{
	if (!path)
		return;
	append_path(field, path->up);
	if (path->key)
		append_key(field, path->key);
	else
		append(field, "[%zu]", path->index);
}

int object_json_fail(const struct object_json *r, const struct object_path *path, const char *key,
		     const char *format, ...)
{
	struct error what;

	r->field[0] = '\0';
	append_path(r->field, path);
	if (key)
		append_key(r->field, key);
	MEM_FORMAT(what.text, sizeof(what.text), format);
	return error_fail(r->error, -EINVAL, "%s", what.text);
}

const cJSON *object_json_find(const cJSON *object, const char *key)
{
	const cJSON *item =
		cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;

	return cJSON_IsNull(item) ? NULL : item;
}

const char *object_json_text(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(object_json_find(object, key));

	return text ? text : "";
}

bool object_json_is(const cJSON *object, const char *key, const char *text)
{
	return strcmp(object_json_text(object, key), text) == 0;
}

const cJSON *object_json_first(const cJSON *list)
{
	return cJSON_IsArray(list) ? list->child : NULL;
}

int object_json_object(const struct object_json *r, const cJSON *object,
		       const struct object_path *path, const char *key, const cJSON **out)
{
	const cJSON *item = object_json_find(object, key);

	if (item && !cJSON_IsObject(item))
		return object_json_fail(r, path, key, "must be an object");
	*out = item;
	return 0;
}

int object_json_array(const struct object_json *r, const cJSON *object,
		      const struct object_path *path, const char *key, const cJSON **out)
{
	const cJSON *item = object_json_find(object, key);

	if (item && !cJSON_IsArray(item))
		return object_json_fail(r, path, key, "must be a list");
	*out = item;
	return 0;
}

int object_json_string(const struct object_json *r, const cJSON *object,
		       const struct object_path *path, const char *key, const char *absent,
		       const char **out)
{
	const cJSON *item = object_json_find(object, key);
	size_t len, most;

	if (item && !cJSON_IsString(item))
		return object_json_fail(r, path, key, "must be a string");
	len = item ? strlen(item->valuestring) : 0;
	most = object_bound_of_string(NULL, key, len);
	if (most)
		return object_json_fail(r, path, key,
					"must not be longer than %zu bytes, and has %zu", most,
					len);
	*out = item ? item->valuestring : absent;
	return 0;
}

int object_json_bool(const struct object_json *r, const cJSON *object,
		     const struct object_path *path, const char *key, bool *out)
{
	const cJSON *item = object_json_find(object, key);

	if (item && !cJSON_IsBool(item))
		return object_json_fail(r, path, key, "must be true or false");
	*out = cJSON_IsTrue(item);
	return 0;
}

int object_json_int32(const struct object_json *r, const cJSON *object,
		      const struct object_path *path, const char *key, int32_t absent, int32_t *out)
{
	const cJSON *item = object_json_find(object, key);

	if (!item) {
		*out = absent;
		return 0;
	}
	if (!cJSON_IsNumber(item) || item->valuedouble != trunc(item->valuedouble) ||
	    item->valuedouble < INT32_MIN || item->valuedouble > INT32_MAX)
		return object_json_fail(r, path, key, "must be a whole number of 32 bits");
	*out = (int32_t)item->valuedouble;
	return 0;
}

int object_json_time(const struct object_json *r, const cJSON *object,
		     const struct object_path *path, const char *key, int64_t *out_ns)
{
	const char *text = NULL;
	struct error error;

	if (object_json_string(r, object, path, key, NULL, &text))
		return -EINVAL;
	*out_ns = 0;
	if (text && timefmt_parse(text, out_ns, &error))
		return object_json_fail(r, path, key, "%s", error.text);
	return 0;
}

int object_json_quantity(const cJSON *value, int (*parse)(const char *, int64_t *, struct error *),
			 int64_t *out, struct error *error)
{
	char number[32];
	const char *text = number;
	int64_t amount;
	int err;

	if (cJSON_IsString(value)) {
		text = value->valuestring;
	} else if (cJSON_IsNumber(value)) {
		object_json_number(value->valuedouble, number);
	} else {
		return error_fail(error, -EINVAL, "must be a quantity such as \"500m\" or \"2Gi\"");
	}
	err = parse(text, &amount, error);
	if (err)
		return err;
	if (amount < 0)
		return error_fail(error, -EINVAL, "must not be negative");
	*out = amount;
	return 0;
}

/* Also under the names that quotas give them. */
static bool is_cpu(const char *name)
{
	return strcmp(name, "cpu") == 0 || strcmp(name, "requests.cpu") == 0 ||
	       strcmp(name, "limits.cpu") == 0;
}

int object_json_resources(const struct object_json *r, const cJSON *object,
			  const struct object_path *path, const char *key, bool *present,
			  struct resources *out)
{
	const struct object_path here = {path, key, 0};
	const cJSON *list = NULL;
	struct error error;

	if (object_json_object(r, object, path, key, &list))
		return -EINVAL;
	if (present)
		*present = list != NULL;
	if (list && cJSON_GetArraySize(list) > OBJECT_RESOURCES_MAX)
		return object_json_fail(r, path, key, "must not name more than %d resources",
					OBJECT_RESOURCES_MAX);
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
		int64_t amount;

		/* Of equal names the first counts, as everywhere. */
		if (object_json_find(list, item->string) != item)
			continue;
		if (object_json_quantity(item,
					 is_cpu(item->string) ? quantity_parse_milli
							      : quantity_parse_units,
					 &amount, &error))
			return object_json_fail(r, &here, item->string, "%s", error.text);
		resources_set_named(out, item->string, amount);
	}
	return 0;
}

void object_json_number(double value, char text[32])
{
	/*
	 * Below 2^63 every double without a fraction is such an integer; cJSON keeps no more of a
	 * larger number.
	 */
	if (value == trunc(value) && fabs(value) < 0x1p63) {
		snprintf(text, 32, "%lld", (long long)value);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, 32, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			return;
	}
}
