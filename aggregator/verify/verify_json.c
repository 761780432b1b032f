/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as an API server gives them. A value of another type than the API has counts as absent. */
#include <stdarg.h>
#include <stdio.h>
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
	return cJSON_IsArray(list) ? list->child : NULL;
}

const cJSON *verify_first_member(const cJSON *object)
{
	return cJSON_IsObject(object) ? object->child : NULL;
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

int64_t verify_whole(double value)
{
	if (value >= 0x1p63)
		return INT64_MAX;
	return value > -0x1p63 ? (int64_t)value : INT64_MIN;
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

const char *verify_annotation(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(verify_get(verify_at(object, "metadata.annotations"), key));
}

bool verify_contains(const cJSON *list, const char *text)
{
	VERIFY_EACH (item, list)
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

bool verify_has_condition(const cJSON *object, const char *type)
{
	VERIFY_EACH (item, verify_at(object, "status.conditions"))
		if (verify_equal(verify_text(item, "type", ""), type))
			return verify_equal(verify_text(item, "status", ""), "True");
	return false;
}

bool verify_is_bound_to_node(const cJSON *pod)
{
	const char *owner = verify_text(verify_controller(pod), "kind", "");

	return verify_equal(owner, "DaemonSet") || verify_equal(owner, "Node") ||
	       verify_get(verify_at(pod, "metadata.annotations"), "kubernetes.io/config.mirror") ||
	       verify_equal(verify_annotation(pod, AUTOSCALER "daemonset-pod"), "true");
}

bool verify_must_leave(const cJSON *pod)
{
	return !verify_has_ended(pod) && !verify_at(pod, "metadata.deletionTimestamp") &&
	       !verify_is_bound_to_node(pod);
}

bool verify_refuse(const struct verify_question *q, const char *format, ...)
{
	va_list arguments;

	if (!q->error)
		return false;
	va_start(arguments, format);
	vsnprintf(q->error->text, sizeof(q->error->text), format, arguments);
	va_end(arguments);
	return false;
}

/* --- amounts */

int64_t verify_amount(const cJSON *list, const char *resource)
{
	const cJSON *item = verify_get(list, resource);
	const char *dot = strrchr(resource, '.');
	bool cpu = strcmp(dot ? dot + 1 : resource, "cpu") == 0; /* also "requests.cpu" */
	int64_t amount = 0;

	if (cJSON_IsNumber(item))
		return verify_whole(item->valuedouble * (cpu ? 1000 : 1));
	if (cJSON_IsString(item))
		(cpu ? quantity_parse_milli : quantity_parse_units)(item->valuestring, &amount,
								    NULL);
	return amount;
}

/* A limit without a request is a request. After a resize in place the greatest amount counts. */
static int64_t container_request(const cJSON *container, const cJSON *statuses,
				 const char *resource)
{
	const cJSON *requests = verify_at(container, "resources.requests");
	int64_t most = verify_get(requests, resource)
			       ? verify_amount(requests, resource)
			       : verify_amount(verify_at(container, "resources.limits"), resource);

	VERIFY_EACH (status, statuses)
		if (verify_equal(verify_text(status, "name", NULL),
				 verify_text(container, "name", NULL))) {
			most = int_max(most, verify_amount(verify_get(status, "allocatedResources"),
							   resource));
			most = int_max(most, verify_amount(verify_at(status, "resources.requests"),
							   resource));
		}
	return most;
}

bool verify_is_sidecar(const cJSON *init)
{
	return verify_equal(verify_text(init, "restartPolicy", ""), "Always");
}

int64_t verify_request(const cJSON *pod, const char *resource)
{
	const cJSON *spec = verify_get(pod, "spec");
	const cJSON *inits = verify_at(pod, "status.initContainerStatuses");
	const cJSON *statuses = verify_at(pod, "status.containerStatuses");
	const cJSON *level = verify_at(spec, "resources.requests");
	int64_t running = 0, sidecars = 0, worst = 0;

	VERIFY_EACH (item, verify_get(spec, "initContainers")) {
		int64_t own = container_request(item, inits, resource);

		worst = int_max(worst, add_saturating(own, sidecars));
		if (verify_is_sidecar(item))
			sidecars = add_saturating(sidecars, own);
	}
	VERIFY_EACH (item, verify_get(spec, "containers"))
		running = add_saturating(running, container_request(item, statuses, resource));
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
	VERIFY_EACH_MEMBER (item, verify_get(selector, "matchLabels"))
		if (!verify_equal(item->valuestring, verify_label(object, item->string)))
			return false;
	VERIFY_EACH (item, verify_get(selector, "matchExpressions"))
		if (!expression_holds(item, verify_label(object, verify_text(item, "key", ""))))
			return false;
	return selector;
}

bool verify_same_labels(const cJSON *keys, const cJSON *pod, const cJSON *other)
{
	VERIFY_EACH (key, keys) {
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
	const cJSON *expressions = verify_get(term, "matchExpressions");
	const cJSON *fields = verify_get(term, "matchFields");

	if (!verify_first(expressions) && !verify_first(fields))
		return false;
	VERIFY_EACH (item, expressions) {
		/* An expression with a value that no label can have matches nothing. */
		VERIFY_EACH (value, verify_get(item, "values"))
			if (!cJSON_IsString(value) || !is_label_value(value->valuestring))
				return false;
		if (!expression_holds(item, verify_label(node, verify_text(item, "key", ""))))
			return false;
	}
	VERIFY_EACH (item, fields)
		if (!verify_equal(verify_text(item, "key", ""), "metadata.name") ||
		    !expression_holds(item, name))
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
