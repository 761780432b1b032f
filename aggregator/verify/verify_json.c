/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as an API server gives them: metadata, amounts, labels and selectors. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/verify/verify_internal.h"
#include "shared/arith.h"
#include "shared/quantity.h"

const cJSON *verify_first_member(const cJSON *object, const char *path)
{
	const cJSON *below = document_at(object, path);

	return cJSON_IsObject(below) ? below->child : NULL;
}

double verify_number(const cJSON *object, const char *path, double absent)
{
	const cJSON *item = document_at(object, path);

	return cJSON_IsNumber(item) ? item->valuedouble : absent;
}

bool verify_contains(const cJSON *object, const char *path, const char *text)
{
	VERIFY_EACH (item, object, path)
		if (verify_equal(item->valuestring, text))
			return true;
	return false;
}

bool verify_has_ended(const cJSON *pod)
{
	const char *phase = verify_text(pod, "status.phase");

	return verify_equal(phase, "Succeeded") || verify_equal(phase, "Failed");
}

bool verify_is_bound_to_node(const cJSON *pod)
{
	const cJSON *owner = document_controller(pod);

	return document_is(owner, "kind", "DaemonSet") || document_is(owner, "kind", "Node") ||
	       document_annotation(pod, "kubernetes.io/config.mirror") ||
	       verify_equal(document_annotation(pod, AUTOSCALER "daemonset-pod"), "true");
}

bool verify_must_leave(const cJSON *pod)
{
	return !verify_has_ended(pod) && !verify_is_deleted(pod) && !verify_is_bound_to_node(pod);
}

/* --- amounts */

int64_t verify_amount(const cJSON *list, const char *resource)
{
	const char *dot = strrchr(resource, '.');
	bool cpu = strcmp(dot ? dot + 1 : resource, "cpu") == 0; /* also "requests.cpu" */
	int64_t amount = 0;

	object_json_quantity(object_json_find(list, resource),
			     cpu ? quantity_parse_milli : quantity_parse_units, &amount, NULL);
	return amount;
}

/* A limit without a request is a request. After a resize in place the greatest amount counts. */
static int64_t container_request(const cJSON *pod, const char *statuses, const cJSON *container,
				 const char *resource)
{
	const cJSON *requests = document_at(container, "resources.requests");
	const cJSON *status =
		document_find(pod, statuses, "name", document_text(container, "name"));
	int64_t most =
		object_json_find(requests, resource)
			? verify_amount(requests, resource)
			: verify_amount(document_at(container, "resources.limits"), resource);

	most = int_max(most, verify_amount(document_at(status, "allocatedResources"), resource));
	return int_max(most, verify_amount(document_at(status, "resources.requests"), resource));
}

int64_t verify_request(const cJSON *pod, const char *resource)
{
	const cJSON *level = document_at(pod, "spec.resources.requests");
	int64_t sidecars = 0, running, worst = 0, own;

	VERIFY_EACH (item, pod, "spec.initContainers") {
		own = container_request(pod, "status.initContainerStatuses", item, resource);
		worst = int_max(worst, add_saturating(own, sidecars));
		if (document_is(item, "restartPolicy", "Always"))
			sidecars = add_saturating(sidecars, own);
	}
	running = sidecars;
	VERIFY_EACH (item, pod, "spec.containers")
		running = add_saturating(running, container_request(pod, "status.containerStatuses",
								    item, resource));
	worst = object_json_find(level, resource) ? verify_amount(level, resource)
						  : int_max(worst, running);
	return add_saturating(worst, verify_amount(document_at(pod, "spec.overhead"), resource));
}

/* --- selectors */

static bool is_whole(const char *text, long long *out)
{
	char *end;

	*out = strtoll(text, &end, 10);
	return *text && !*end;
}

/* An expression of a label selector or of node affinity; value is NULL where no such label is. */
static bool expression_holds(const cJSON *expression, const char *value)
{
	const char *op = verify_text(expression, "operator");
	const char *only = cJSON_GetStringValue(document_first(expression, "values"));
	long long have, bound;

	if (verify_equal(op, "In"))
		return verify_contains(expression, "values", value);
	if (verify_equal(op, "NotIn"))
		return !verify_contains(expression, "values", value);
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
	VERIFY_EACH_MEMBER (item, selector, "matchLabels")
		if (!verify_equal(item->valuestring, document_label(object, item->string)))
			return false;
	VERIFY_EACH (item, selector, "matchExpressions")
		if (!expression_holds(item, document_label(object, verify_text(item, "key"))))
			return false;
	return cJSON_IsObject(selector);
}

#define ALPHANUMERIC "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static bool is_label_value(const char *text)
{
	size_t len = strlen(text);

	return !len || (len <= 63 && strspn(text, ALPHANUMERIC "-_.") == len &&
			strspn(text, ALPHANUMERIC) && strspn(text + len - 1, ALPHANUMERIC));
}

static bool node_term_matches(const cJSON *term, const cJSON *node, const char *name)
{
	VERIFY_EACH (item, term, "matchExpressions") {
		/* An expression with a value that no label can have matches nothing. */
		VERIFY_EACH (value, item, "values")
			if (!cJSON_IsString(value) || !is_label_value(value->valuestring))
				return false;
		if (!expression_holds(item, document_label(node, verify_text(item, "key"))))
			return false;
	}
	VERIFY_EACH (item, term, "matchFields")
		if (!document_is(item, "key", "metadata.name") || !expression_holds(item, name))
			return false;
	return document_first(term, "matchExpressions") || document_first(term, "matchFields");
}

bool verify_node_selector(const cJSON *selector, const cJSON *node, const char *name)
{
	VERIFY_EACH (term, selector, "nodeSelectorTerms")
		if (node_term_matches(term, node, name))
			return true;
	return !cJSON_IsObject(selector);
}
