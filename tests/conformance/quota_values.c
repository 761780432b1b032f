/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/quota_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

/* A JSON number cannot tell 2^63 - 1 from 2^63: the bound of an int64 is meant. */
static bool read_amount(const cJSON *item, int64_t *out, struct error *error)
{
	double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;

	if (!(value == trunc(value)) || fabs(value) > 0x1p63) {
		values_fail(error, "\"%s\" must be a whole number", item->string);
		return false;
	}
	*out = value >= 0x1p63 ? INT64_MAX : value <= -0x1p63 ? -INT64_MAX : (int64_t)value;
	return true;
}

bool quota_values_amounts(const cJSON *flat, struct resources *out, struct error *error)
{
	*out = RESOURCES_NONE;
	for (const cJSON *item = flat ? flat->child : NULL; item; item = item->next) {
		int64_t amount;

		if (!read_amount(item, &amount, error))
			return false;
		resources_set_named(out, item->string, amount);
	}
	return true;
}

static bool is_standard(const char *name)
{
	for (unsigned int id = 0; id < RESOURCE_STANDARD; id++)
		if (strcmp(resource_name((enum resource_id)id), name) == 0)
			return true;
	return false;
}

static bool same_key(const struct resources *got, const cJSON *item, bool extended,
		     const char *what, struct error *error)
{
	int64_t amount, have = 0;
	bool there = resources_find(got, item->string, &have);

	if (!read_amount(item, &amount, error))
		return false;
	if (have == amount && (there || !extended || is_standard(item->string)))
		return true;
	values_fail(error, "%s: %s is %" PRId64 "%s, and not %" PRId64, what, item->string, have,
		    there ? "" : " (absent)", amount);
	return false;
}

bool quota_values_same(const struct resources *got, const cJSON *expect, bool extended,
		       const char *what, struct error *error)
{
	const char *name;
	int64_t amount;

	for (const cJSON *item = expect->child; item; item = item->next)
		if (!same_key(got, item, extended, what, error))
			return false;
	for (size_t at = 0; resources_next(got, &at, &name, &amount);) {
		if (cJSON_GetObjectItemCaseSensitive(expect, name) ||
		    (amount == 0 && (!extended || is_standard(name))))
			continue;
		values_fail(error, "%s: there is also %s %" PRId64, what, name, amount);
		return false;
	}
	return true;
}

bool quota_values_quota(const cJSON *c, const char *namespace, struct quota *out,
			struct error *error)
{
	const char *name = cJSON_GetStringValue(values_get(c, "name"));
	const char *given = cJSON_GetStringValue(values_get(c, "namespace"));
	const cJSON *pods = values_get(c, "pods");

	*out = (struct quota){
		.namespace = given ? given : namespace,
		.name = name ? name : "eq",
		.has_min = values_get(c, "min") != NULL,
		.has_max = values_get(c, "max") != NULL,
		.used_pods = (uint32_t)(pods ? cJSON_GetArraySize(pods) : 0),
		.weight = 1,
	};
	return quota_values_amounts(values_get(c, "min"), &out->min, error) &&
	       quota_values_amounts(values_get(c, "max"), &out->max, error) &&
	       quota_values_amounts(values_get(c, "used"), &out->used, error);
}

void quota_values_free(struct quota *q)
{
	resources_fini(&q->min);
	resources_fini(&q->max);
	resources_fini(&q->used);
}

bool quota_values_quotas(const cJSON *list, struct quota **out, size_t *count, struct error *error)
{
	static const char *const keys[] = {"namespace", "name", "min", "max", "used", "pods", NULL};
	static const char *const places[] = {"quota-0", "quota-1", "quota-2", "quota-3",
					     "quota-4", "quota-5", "quota-6", "quota-7"};

	*out = mem_zalloc((size_t)(list ? cJSON_GetArraySize(list) : 0) + 1, sizeof(**out));
	*count = 0;
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
		struct quota *q = &(*out)[(*count)++];

		if (*count > sizeof(places) / sizeof(places[0])) {
			values_fail(error, "there are more quotas than this runner has names for");
			return false;
		}
		if (!values_only(item, keys, error) ||
		    !quota_values_quota(item, places[*count - 1], q, error))
			return false;
	}
	return true;
}

void quota_values_free_all(struct quota *quotas, size_t count)
{
	for (size_t i = 0; i < count; i++)
		quota_values_free(&quotas[i]);
	free(quotas);
}

/* --- records ---------------------------------------------------------------------------------- */

/* {cpu in millicores, other: amount} as a list of quantities. */
static bool add_list(cJSON *to, const char *key, const cJSON *flat, struct error *error)
{
	cJSON *list = cJSON_AddObjectToObject(to, key);

	for (const cJSON *item = flat ? flat->child : NULL; item; item = item->next) {
		char text[40];
		int64_t amount;

		if (!read_amount(item, &amount, error))
			return false;
		snprintf(text, sizeof(text), "%" PRId64 "%s", amount,
			 strcmp(item->string, "cpu") == 0 ? "m" : "");
		cJSON_AddStringToObject(list, item->string, text);
	}
	return true;
}

static bool add_containers(cJSON *spec, const char *key, const cJSON *given, struct error *error)
{
	cJSON *list = cJSON_AddArrayToObject(spec, key);

	for (const cJSON *item = given ? given->child : NULL; item; item = item->next) {
		cJSON *container = cJSON_CreateObject();

		cJSON_AddItemToArray(list, container);
		if (!add_list(cJSON_AddObjectToObject(container, "resources"), "requests", item,
			      error))
			return false;
	}
	return true;
}

/* A pod that runs has a node, also where a case does not say which. */
static const char *node_of(const cJSON *c)
{
	const char *node = cJSON_GetStringValue(values_get(c, "node"));
	const char *phase = cJSON_GetStringValue(values_get(c, "phase"));

	if (node)
		return node;
	return phase && strcmp(phase, "Running") == 0 ? "some-node" : "";
}

static bool add_spec(cJSON *pod, const cJSON *c, struct error *error)
{
	const char *node = node_of(c);
	const cJSON *request = values_get(c, "request");
	cJSON *spec = cJSON_AddObjectToObject(pod, "spec"), *one = NULL;
	bool read;

	if (node[0])
		cJSON_AddStringToObject(spec, "nodeName", node);
	if (request) {
		one = cJSON_CreateArray();
		cJSON_AddItemToArray(one, cJSON_Duplicate(request, true));
	}
	read = add_containers(spec, "containers", one ? one : values_get(c, "containers"), error) &&
	       add_containers(spec, "initContainers", values_get(c, "init_containers"), error) &&
	       (!values_get(c, "overhead") ||
		add_list(spec, "overhead", values_get(c, "overhead"), error));
	cJSON_Delete(one);
	return read;
}

static void add_text(cJSON *to, const char *key, const cJSON *c, const char *from)
{
	const char *text = cJSON_GetStringValue(values_get(c, from));

	if (text && text[0])
		cJSON_AddStringToObject(to, key, text);
}

static struct object *read_record(enum object_kind kind, cJSON *json, struct error *error)
{
	char field[OBJECT_FIELD_MAX];
	struct error refused = {""};
	struct object *o = NULL;

	if (object_read(kind, json, &o, field, &refused)) {
		values_fail(error, "%s: %s", field, refused.text);
		o = NULL;
	}
	cJSON_Delete(json);
	return o;
}

struct object *quota_values_pod(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"namespace",	      "pod",	  "uid",     "node",
					   "phase",	      "priority", "request", "containers",
					   "init_containers", "overhead", NULL};
	cJSON *json = cJSON_CreateObject();
	cJSON *metadata = cJSON_AddObjectToObject(json, "metadata");

	add_text(metadata, "namespace", c, "namespace");
	add_text(metadata, "name", c, "pod");
	add_text(metadata, "uid", c, "uid");
	add_text(cJSON_AddObjectToObject(json, "status"), "phase", c, "phase");
	if (!values_only(c, keys, error) || !add_spec(json, c, error)) {
		cJSON_Delete(json);
		return NULL;
	}
	return read_record(OBJECT_POD, json, error);
}

struct object *quota_values_object(const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"namespace", "name", "min", "max", NULL};
	cJSON *json = cJSON_CreateObject();
	cJSON *metadata = cJSON_AddObjectToObject(json, "metadata");
	cJSON *spec = cJSON_AddObjectToObject(json, "spec");

	add_text(metadata, "namespace", c, "namespace");
	add_text(metadata, "name", c, "name");
	if (!values_only(c, keys, error) ||
	    (values_get(c, "min") && !add_list(spec, "min", values_get(c, "min"), error)) ||
	    (values_get(c, "max") && !add_list(spec, "max", values_get(c, "max"), error))) {
		cJSON_Delete(json);
		return NULL;
	}
	return read_record(OBJECT_ELASTIC_QUOTA, json, error);
}
