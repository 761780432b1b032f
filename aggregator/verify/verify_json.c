/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as an API server gives them. What it would refuse means nothing here. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/verify/verify_internal.h"
#include "shared/arith.h"
#include "shared/quantity.h"

const cJSON *verify_get(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return item && !cJSON_IsNull(item) ? item : NULL;
}

const cJSON *verify_at(const cJSON *object, const char *path)
{
	char key[64];

	while (object && *path) {
		size_t len = strcspn(path, ".");

		if (len >= sizeof(key))
			return NULL;
		memcpy(key, path, len);
		key[len] = '\0';
		object = verify_get(object, key);
		path += len + (path[len] == '.');
	}
	return object;
}

const cJSON *verify_first(const cJSON *list)
{
	return cJSON_IsArray(list) || cJSON_IsObject(list) ? list->child : NULL;
}

const char *verify_text(const cJSON *object, const char *path, const char *absent)
{
	const char *text = cJSON_GetStringValue(verify_at(object, path));

	return text ? text : absent;
}

double verify_number(const cJSON *object, const char *path, double absent)
{
	const cJSON *item = verify_at(object, path);

	return cJSON_IsNumber(item) ? item->valuedouble : absent;
}

bool verify_equal(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

const char *verify_name(const cJSON *object)
{
	return verify_text(object, "metadata.name", "");
}

const char *verify_namespace(const cJSON *object)
{
	return verify_text(object, "metadata.namespace", "");
}

const char *verify_label(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(verify_get(verify_at(object, "metadata.labels"), key));
}

bool verify_contains(const cJSON *list, const char *text)
{
	for (const cJSON *item = verify_first(list); item; item = item->next)
		if (verify_equal(item->valuestring, text))
			return true;
	return false;
}

const cJSON *verify_controller(const cJSON *object)
{
	const cJSON *owner = verify_first(verify_at(object, "metadata.ownerReferences"));

	while (owner && !cJSON_IsTrue(verify_get(owner, "controller")))
		owner = owner->next;
	return owner;
}

bool verify_is_kind(const cJSON *object, const char *kind)
{
	return verify_equal(verify_text(object, "kind", ""), kind);
}

bool verify_has_ended(const cJSON *pod)
{
	const char *phase = verify_text(pod, "status.phase", "");

	return verify_equal(phase, "Succeeded") || verify_equal(phase, "Failed");
}

bool verify_is_ready(const cJSON *object)
{
	const cJSON *item = verify_first(verify_at(object, "status.conditions"));

	while (item && !verify_equal(verify_text(item, "type", ""), "Ready"))
		item = item->next;
	return verify_equal(verify_text(item, "status", ""), "True");
}

/* --- amounts */

int64_t verify_amount(const cJSON *list, const char *resource)
{
	const cJSON *item = verify_get(list, resource);
	const char *dot = strrchr(resource, '.');
	bool cpu = strcmp(dot ? dot + 1 : resource, "cpu") == 0; /* also "requests.cpu" */
	int64_t amount = 0;

	if (cJSON_IsNumber(item))
		return (int64_t)item->valuedouble * (cpu ? 1000 : 1);
	if (cJSON_IsString(item))
		(cpu ? quantity_parse_milli : quantity_parse_units)(item->valuestring, &amount,
								    NULL);
	return amount;
}

/* A limit without a request is a request. */
static int64_t container_request(const cJSON *container, const char *resource)
{
	const cJSON *requests = verify_at(container, "resources.requests");

	if (verify_get(requests, resource))
		return verify_amount(requests, resource);
	return verify_amount(verify_at(container, "resources.limits"), resource);
}

bool verify_is_sidecar(const cJSON *init)
{
	return verify_equal(verify_text(init, "restartPolicy", ""), "Always");
}

int64_t verify_request(const cJSON *pod, const char *resource)
{
	const cJSON *spec = verify_get(pod, "spec"), *item;
	const cJSON *level = verify_at(spec, "resources.requests");
	int64_t running = 0, sidecars = 0, worst = 0;

	for (item = verify_first(verify_get(spec, "initContainers")); item; item = item->next) {
		int64_t own = container_request(item, resource);

		worst = int_max(worst, add_saturating(own, sidecars));
		if (verify_is_sidecar(item))
			sidecars = add_saturating(sidecars, own);
	}
	for (item = verify_first(verify_get(spec, "containers")); item; item = item->next)
		running = add_saturating(running, container_request(item, resource));
	worst = int_max(worst, add_saturating(running, sidecars));
	if (verify_get(level, resource))
		worst = verify_amount(level, resource);
	return add_saturating(worst, verify_amount(verify_get(spec, "overhead"), resource));
}

/* --- labels */

static bool is_whole(const char *text, long long *out)
{
	char *end;

	*out = strtoll(text, &end, 10);
	return *text && !*end;
}

/* An expression of a label selector or of node affinity; value is NULL where no such label is. */
static bool expression_holds(const cJSON *expression, const char *value)
{
	const char *op = verify_text(expression, "operator", "");
	const cJSON *values = verify_get(expression, "values");
	const char *only = cJSON_GetStringValue(verify_first(values));
	long long have, bound;

	if (verify_equal(op, "In"))
		return value && verify_contains(values, value);
	if (verify_equal(op, "NotIn"))
		return !value || !verify_contains(values, value);
	if (verify_equal(op, "Exists"))
		return value;
	if (verify_equal(op, "DoesNotExist"))
		return !value;
	if (!value || !only || !is_whole(value, &have) || !is_whole(only, &bound))
		return false;
	return verify_equal(op, "Gt") ? have > bound : verify_equal(op, "Lt") && have < bound;
}

bool verify_selects(const cJSON *selector, const cJSON *object)
{
	const cJSON *item = verify_first(verify_get(selector, "matchLabels"));

	for (; item; item = item->next)
		if (!verify_equal(item->valuestring, verify_label(object, item->string)))
			return false;
	item = verify_first(verify_get(selector, "matchExpressions"));
	for (; item; item = item->next)
		if (!expression_holds(item, verify_label(object, verify_text(item, "key", ""))))
			return false;
	return selector;
}

bool verify_same_labels(const cJSON *keys, const cJSON *pod, const cJSON *other)
{
	for (const cJSON *key = verify_first(keys); key; key = key->next) {
		const char *own = verify_label(pod, key->valuestring);

		if (own && !verify_equal(own, verify_label(other, key->valuestring)))
			return false;
	}
	return true;
}

/* --- node selectors */

#define ALPHANUMERIC "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static bool is_label_value(const char *text)
{
	size_t len = strlen(text);

	return !len || (len <= 63 && strspn(text, ALPHANUMERIC "-_.") == len &&
			strspn(text, ALPHANUMERIC) && strspn(text + len - 1, ALPHANUMERIC));
}

static bool node_term_matches(const cJSON *term, const cJSON *node, const char *name)
{
	const cJSON *labels = verify_first(verify_get(term, "matchExpressions"));
	const cJSON *fields = verify_first(verify_get(term, "matchFields")), *value;

	if (!labels && !fields)
		return false;
	for (; labels; labels = labels->next) {
		/* An expression that requires what cannot be a label's value matches nothing. */
		value = verify_first(verify_get(labels, "values"));
		for (; value; value = value->next)
			if (!cJSON_IsString(value) || !is_label_value(value->valuestring))
				return false;
		if (!expression_holds(labels, verify_label(node, verify_text(labels, "key", ""))))
			return false;
	}
	for (; fields; fields = fields->next)
		if (!verify_equal(verify_text(fields, "key", ""), "metadata.name") ||
		    !expression_holds(fields, name))
			return false;
	return true;
}

bool verify_node_selector(const cJSON *selector, const cJSON *node, const char *name)
{
	const cJSON *term = verify_first(verify_get(selector, "nodeSelectorTerms"));

	while (term && !node_term_matches(term, node, name))
		term = term->next;
	return !selector || term;
}
