/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the parts of a Pod object that decide scores. Every function returns 0 or -EINVAL and is
 * given the path of what it reads; the first failure writes path and reason and unwinds. Memory is
 * bounded by the document: one struct container_spec per element of its arrays.
 */
#include "aggregator/model/pod_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/mem.h"
#include "shared/quantity.h"

struct parser {
	char *field;
	struct error *reason;
};

static int fail(const struct parser *p, const char *path, const char *key, const char *why)
{
	snprintf(p->field, POD_JSON_FIELD_MAX, "%s%s%s", path, *path ? "." : "", key);
	error_set(p->reason, "%s", why);
	return -EINVAL;
}

static const char *join(char out[POD_JSON_FIELD_MAX], const char *path, const char *key)
{
	snprintf(out, POD_JSON_FIELD_MAX, "%s.%s", path, key);
	return out;
}

/* *out becomes NULL where the member is absent or null. */
static int get(const struct parser *p, const cJSON *object, const char *path, const char *key,
	       int type, const cJSON **out)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	*out = NULL;
	if (!item || cJSON_IsNull(item))
		return 0;
	if ((item->type & 0xff) != type)
		return fail(p, path, key,
			    type == cJSON_Object  ? "must be an object"
			    : type == cJSON_Array ? "must be a list"
						  : "must be a string");
	*out = item;
	return 0;
}

int pod_json_quantity(const cJSON *value, int (*parse)(const char *, int64_t *, struct error *),
		      int64_t *out, struct error *reason)
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
		error_set(reason, "must be a quantity such as \"500m\" or \"2Gi\"");
		return -EINVAL;
	}
	err = parse(text, &amount, reason);
	if (err)
		return err;
	if (amount < 0) {
		error_set(reason, "must not be negative");
		return -EINVAL;
	}
	*out = amount;
	return 0;
}

static int parse_amount(const struct parser *p, const cJSON *list, const char *path,
			const char *key, int (*parse)(const char *, int64_t *, struct error *),
			bool *has, int64_t *out)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(list, key);
	struct error why;

	if (!item || cJSON_IsNull(item))
		return 0;
	if (pod_json_quantity(item, parse, out, &why))
		return fail(p, path, key, why.text);
	*has = true;
	return 0;
}

static int parse_list(const struct parser *p, const cJSON *parent, const char *path,
		      const char *key, struct resource_list *out)
{
	char here[POD_JSON_FIELD_MAX];
	const cJSON *list;
	int err = get(p, parent, path, key, cJSON_Object, &list);

	if (err || !list)
		return err;
	join(here, path, key);
	err = parse_amount(p, list, here, "cpu", quantity_parse_milli, &out->has_cpu,
			   &out->cpu_milli);
	if (err)
		return err;
	return parse_amount(p, list, here, "memory", quantity_parse_units, &out->has_mem,
			    &out->mem_bytes);
}

static void default_to(struct resource_list *requests, const struct resource_list *limits)
{
	if (!requests->has_cpu && limits->has_cpu) {
		requests->has_cpu = true;
		requests->cpu_milli = limits->cpu_milli;
	}
	if (!requests->has_mem && limits->has_mem) {
		requests->has_mem = true;
		requests->mem_bytes = limits->mem_bytes;
	}
}

/* parent.resources; *present may be NULL. */
static int parse_resources(const struct parser *p, const cJSON *parent, const char *path,
			   bool *present, struct resource_list *requests,
			   struct resource_list *limits)
{
	char here[POD_JSON_FIELD_MAX];
	const cJSON *resources;
	int err = get(p, parent, path, "resources", cJSON_Object, &resources);

	if (err || !resources)
		return err;
	if (present)
		*present = true;
	join(here, path, "resources");
	err = parse_list(p, resources, here, "requests", requests);
	return err ? err : parse_list(p, resources, here, "limits", limits);
}

static int parse_container(const struct parser *p, const cJSON *item, const char *path,
			   struct container_spec *c)
{
	const cJSON *policy;
	int err;

	if (!cJSON_IsObject(item)) {
		snprintf(p->field, POD_JSON_FIELD_MAX, "%s", path);
		error_set(p->reason, "must be an object");
		return -EINVAL;
	}
	err = get(p, item, path, "restartPolicy", cJSON_String, &policy);
	if (err)
		return err;
	c->sidecar = policy && strcmp(policy->valuestring, "Always") == 0;
	err = parse_resources(p, item, path, NULL, &c->requests, &c->limits);
	if (err)
		return err;
	default_to(&c->requests, &c->limits);
	return 0;
}

static int parse_containers(const struct parser *p, const cJSON *spec, const char *key,
			    struct container_spec **out, size_t *count)
{
	char here[POD_JSON_FIELD_MAX];
	const cJSON *list, *item;
	int err = get(p, spec, "spec", key, cJSON_Array, &list);

	if (err || !list || !list->child)
		return err;
	*out = mem_zalloc((size_t)cJSON_GetArraySize(list), sizeof(**out));
	for (item = list->child; item; item = item->next) {
		snprintf(here, sizeof(here), "spec.%s[%zu]", key, *count);
		err = parse_container(p, item, here, &(*out)[*count]);
		if (err)
			return err;
		(*count)++;
	}
	return 0;
}

static bool requested(const struct container_spec *c, size_t count, bool mem)
{
	for (size_t i = 0; i < count; i++)
		if (mem ? c[i].requests.has_mem : c[i].requests.has_cpu)
			return true;
	return false;
}

/*
 * A limit for the whole pod stands in for a request of it, unless a container requests that
 * resource.
 */
static void default_pod_requests(struct pod_spec *s)
{
	struct resource_list limits = s->pod_limits;

	limits.has_cpu = limits.has_cpu && !requested(s->containers, s->container_count, false) &&
			 !requested(s->init, s->init_count, false);
	limits.has_mem = limits.has_mem && !requested(s->containers, s->container_count, true) &&
			 !requested(s->init, s->init_count, true);
	default_to(&s->pod_requests, &limits);
}

static int parse_spec(const struct parser *p, const cJSON *spec, struct pod_spec *out)
{
	int err = parse_containers(p, spec, "containers", &out->containers, &out->container_count);

	if (!err)
		err = parse_containers(p, spec, "initContainers", &out->init, &out->init_count);
	if (!err)
		err = parse_list(p, spec, "spec", "overhead", &out->overhead);
	if (!err)
		err = parse_resources(p, spec, "spec", &out->has_pod_resources, &out->pod_requests,
				      &out->pod_limits);
	/* An empty list is a pod that asks for nothing; no list at all is a misspelt one. */
	if (!err && !object_json_find(spec, "containers"))
		err = fail(p, "spec", "containers", "is required");
	if (!err)
		default_pod_requests(out);
	return err;
}

static int parse_pod(const struct parser *p, const cJSON *pod, struct pod_spec *out)
{
	const cJSON *kind, *metadata, *name = NULL, *spec;
	int err = get(p, pod, "", "kind", cJSON_String, &kind);

	if (!err && kind && strcmp(kind->valuestring, "Pod") != 0)
		err = fail(p, "", "kind", "must be Pod");
	if (!err)
		err = get(p, pod, "", "metadata", cJSON_Object, &metadata);
	if (!err && metadata)
		err = get(p, metadata, "metadata", "name", cJSON_String, &name);
	if (!err)
		err = get(p, pod, "", "spec", cJSON_Object, &spec);
	if (!err && !spec)
		err = fail(p, "", "spec", "is required");
	if (err)
		return err;
	out->name = name ? name->valuestring : NULL;
	return parse_spec(p, spec, out);
}

int pod_json_parse(const cJSON *pod, struct pod_spec *spec, char field[POD_JSON_FIELD_MAX],
		   struct error *reason)
{
	struct parser p = {field, reason};
	struct pod_spec parsed = {0};
	int err;

	if (!cJSON_IsObject(pod)) {
		field[0] = '\0';
		error_set(reason, "must be a Pod object");
		return -EINVAL;
	}
	err = parse_pod(&p, pod, &parsed);
	if (err) {
		pod_spec_free_members(&parsed);
		return err;
	}
	*spec = parsed;
	return 0;
}
