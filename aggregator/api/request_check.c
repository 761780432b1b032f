/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Members of a body by their types, as route_describe.c lists them: what /openapi.json says of a
 * body is what is checked.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/api/request_body.h"
#include "shared/array.h"
#include "shared/timefmt.h"
#include "shared/utf8.h"

enum { CHECK_FIELD_MAX = 160, FIGURES_MAX = 32 };

static bool is_text(const cJSON *item)
{
	return cJSON_IsString(item) && strlen(item->valuestring) <= REQUEST_TEXT_MAX &&
	       utf8_is_clean(item->valuestring);
}

static bool is_number(const cJSON *item)
{
	return cJSON_IsNumber(item) && isfinite(item->valuedouble) && item->valuedouble >= 0;
}

static bool is_list(const cJSON *item, bool (*is_one)(const cJSON *item))
{
	size_t count = 0;

	if (!cJSON_IsArray(item))
		return false;
	for (const cJSON *one = item->child; one; one = one->next)
		if (++count > REQUEST_LIST_MAX || !is_one(one))
			return false;
	return true;
}

/* A number, or an object of numbers. */
static bool is_figures(const cJSON *item)
{
	size_t count = 0;

	if (!cJSON_IsObject(item))
		return is_number(item);
	for (const cJSON *one = item->child; one; one = one->next)
		if (++count > FIGURES_MAX || !is_number(one) || !utf8_is_clean(one->string))
			return false;
	return true;
}

static bool is_time(const cJSON *item)
{
	struct error error;
	int64_t ns;

	return is_text(item) && timefmt_parse(item->valuestring, &ns, &error) == 0;
}

static bool is_object(const cJSON *item)
{
	return cJSON_IsObject(item);
}

/* NULL, or what it must be. */
static const char *fault_of(const cJSON *item, const struct api_field *f)
{
	switch (f->type) {
	case API_STRING:
		return is_text(item) ? NULL : "a text of at most 2048 bytes without controls";
	case API_BOOLEAN:
		return cJSON_IsBool(item) ? NULL : "true or false";
	case API_NAMES:
		return is_list(item, is_text) ? NULL : "a list of texts";
	case API_COUNT:
		return is_number(item) && item->valuedouble <= 1e15 &&
				       floor(item->valuedouble) == item->valuedouble
			       ? NULL
			       : "a whole number, 0 or more";
	case API_NUMBER:
		return is_number(item) || cJSON_IsNull(item) ? NULL
							     : "a number, 0 or more, or null";
	case API_TIME:
		return is_time(item) ? NULL : "a time such as 2026-01-31T12:00:00Z";
	case API_FIGURES:
		return is_figures(item) ? NULL : "a number, or an object of numbers";
	case API_REPORTED_REQUESTS:
	case API_REPORTED_NODES:
	case API_REPORTED_DESTINATIONS:
	case API_REPORTED_RESCUES:
	case API_WAVE_NODES:
		return is_list(item, is_object) ? NULL : "a list of objects";
	case API_INTEGER:
	case API_OBJECT:
	case API_POD:
		break;
	}
	assert(false); /* of bodies that others read */
	return NULL;
}

static bool check_members(const cJSON *object, const struct api_field *list, const char *at,
			  struct api_response *rs);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables of route_describe.c */
static bool check_member(const cJSON *item, const struct api_field *f, const char *field,
			 struct api_response *rs)
{
	const struct api_field *of = api_members_of(f->type);
	const char *fault = fault_of(item, f);
	char below[CHECK_FIELD_MAX];
	size_t i = 0;

	if (fault)
		return api_fail(rs, FAIL_BAD_REQUEST, field, "must be %s", fault);
	if (f->values && !array_has_text(f->values, item->valuestring))
		return api_fail(rs, FAIL_BAD_REQUEST, field, "\"%.64s\" is not known",
				item->valuestring);
	for (const cJSON *one = of ? item->child : NULL; one; one = one->next, i++) {
		snprintf(below, sizeof(below), "%.100s[%zu].", field, i);
		if (!check_members(one, of, below, rs))
			return false;
	}
	return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): as check_member() */
static bool check_members(const cJSON *object, const struct api_field *list, const char *at,
			  struct api_response *rs)
{
	char field[CHECK_FIELD_MAX];

	for (const cJSON *item = object->child; item; item = item->next) {
		const struct api_field *f = api_field_find(item->string, list);

		snprintf(field, sizeof(field), "%s%.64s", at, item->string);
		if (!f)
			return api_fail(rs, FAIL_BAD_REQUEST, field,
					"is not a member of this request");
		if (request_member(object, item->string) != item)
			return api_fail(rs, FAIL_BAD_REQUEST, field, "is there twice");
		if (!check_member(item, f, field, rs))
			return false;
	}
	for (; list->name; list++) {
		snprintf(field, sizeof(field), "%s%s", at, list->name);
		if (list->required && !request_member(object, list->name))
			return api_fail(rs, FAIL_BAD_REQUEST, field, "is missing");
	}
	return true;
}

bool request_check(const cJSON *tree, const struct api_field *members, struct api_response *rs)
{
	return check_members(tree, members, "", rs);
}
