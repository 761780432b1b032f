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
#include "shared/arith.h"
#include "shared/mem.h"
#include "shared/quantity.h"
#include "shared/timefmt.h"

/* Appends to what stands in the field; what does not fit is cut. */
__attribute__((format(printf, 2, 3))) static void append(const struct object_fault *fault,
							 const char *format, ...)
{
	size_t len = strlen(fault->field);

	MEM_FORMAT(fault->field + len, fault->field_max - len, format);
}

static void append_key(const struct object_fault *fault, const char *key)
{
	append(fault, "%s%s", *fault->field ? "." : "", key);
}

static void append_path(const struct object_fault *fault, const struct object_json *of)
{
	if (!of)
		return;
	append_path(fault, of->up);
	if (of->key)
		append_key(fault, of->key);
	else
		append(fault, "[%zu]", of->index);
}

void object_json_fail(const struct object_json *of, const char *key, const char *format, ...)
{
	struct object_fault *fault = of->fault;
	struct error what;

	if (fault->found)
		return;
	fault->found = true;
	fault->field[0] = '\0';
	append_path(fault, of);
	if (key)
		append_key(fault, key);
	MEM_FORMAT(what.text, sizeof(what.text), format);
	error_set(fault->error, "%s", what.text);
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

/* The member where it is of the kind, or absent. */
static struct object_json member(const struct object_json *of, const char *key,
				 cJSON_bool (*is_kind)(const cJSON *), const char *kind)
{
	const cJSON *item = object_json_find(of->json, key);

	if (item && !is_kind(item)) {
		object_json_fail(of, key, "must be %s", kind);
		item = NULL;
	}
	return (struct object_json){item, of->fault, of, key, 0};
}

struct object_json object_json_object(const struct object_json *of, const char *key)
{
	return member(of, key, cJSON_IsObject, "an object");
}

struct object_json object_json_list(const struct object_json *of, const char *key)
{
	return member(of, key, cJSON_IsArray, "a list");
}

struct object_json object_json_begin(const struct object_json *parent)
{
	const cJSON *child = parent->json ? parent->json->child : NULL;

	return (struct object_json){child, parent->fault, parent, child ? child->string : NULL, 0};
}

void object_json_next(struct object_json *child)
{
	child->json = child->json->next;
	child->key = child->json ? child->json->string : NULL;
	child->index++;
}

size_t object_json_count(const struct object_json *list)
{
	return list->json ? (size_t)cJSON_GetArraySize(list->json) : 0;
}

const char *object_json_string(const struct object_json *of, const char *key, const char *absent)
{
	const char *text = cJSON_GetStringValue(member(of, key, cJSON_IsString, "a string").json);
	size_t len = text ? strlen(text) : 0, most = object_bound_of_string(NULL, key, len);

	if (most)
		object_json_fail(of, key, "must not be longer than %zu bytes, and has %zu", most,
				 len);
	return text ? text : absent;
}

bool object_json_bool(const struct object_json *of, const char *key)
{
	return cJSON_IsTrue(member(of, key, cJSON_IsBool, "true or false").json);
}

static cJSON_bool is_int32(const cJSON *item)
{
	return cJSON_IsNumber(item) && item->valuedouble == trunc(item->valuedouble) &&
	       item->valuedouble >= INT32_MIN && item->valuedouble <= INT32_MAX;
}

int32_t object_json_int32(const struct object_json *of, const char *key, int32_t absent)
{
	const cJSON *item = member(of, key, is_int32, "a whole number of 32 bits").json;

	return item ? (int32_t)item->valuedouble : absent;
}

int64_t object_json_time(const struct object_json *of, const char *key)
{
	const char *text = object_json_string(of, key, NULL);
	struct error error;
	int64_t ns = 0;

	if (text && timefmt_parse(text, &ns, &error))
		object_json_fail(of, key, "%s", error.text);
	return ns;
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

bool object_json_amount(const struct object_json *list, const cJSON *item, int64_t *amount)
{
	struct error error;

	if (!object_json_quantity(
		    item, is_cpu(item->string) ? quantity_parse_milli : quantity_parse_units,
		    amount, &error))
		return true;
	object_json_fail(list, item->string, "%s", error.text);
	return false;
}

bool object_json_resources(const struct object_json *of, const char *key, struct resources *out)
{
	const struct object_json list = object_json_object(of, key);

	if (object_json_count(&list) > OBJECT_RESOURCES_MAX) {
		object_json_fail(of, key, "must not name more than %d resources",
				 OBJECT_RESOURCES_MAX);
		return true;
	}
	for (const cJSON *item = list.json ? list.json->child : NULL; item; item = item->next) {
		int64_t amount;

		/* Of equal names the first counts, as everywhere. */
		if (object_json_find(list.json, item->string) == item &&
		    object_json_amount(&list, item, &amount))
			resources_set_named(out, item->string, amount);
	}
	return list.json;
}

static int compare_members(const void *a, const void *b)
{
	const struct object_member *x = a, *y = b;

	return strcmp(x->item->string, y->item->string) ?: COMPARE(x->place, y->place);
}

size_t object_members_sort(struct object_member *members, size_t count)
{
	size_t kept = 0;

	qsort(members, count, sizeof(*members), compare_members);
	for (size_t i = 0; i < count; i++)
		if (!kept || strcmp(members[kept - 1].item->string, members[i].item->string) != 0)
			members[kept++] = members[i];
	return kept;
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
