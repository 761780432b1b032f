/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects as an API server gives them are taken to be valid: what it would refuse aborts the test
 * or means nothing. null is the same as absent.
 */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/place_checker_parts.h"

const cJSON *check_get(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return item && !cJSON_IsNull(item) ? item : NULL;
}

const cJSON *check_spec_of(const cJSON *object, const char *key)
{
	return check_get(check_get(object, "spec"), key);
}

const cJSON *check_meta_of(const cJSON *object, const char *key)
{
	return check_get(check_get(object, "metadata"), key);
}

const cJSON *check_first_of(const cJSON *list)
{
	return cJSON_IsArray(list) || cJSON_IsObject(list) ? list->child : NULL;
}

const char *check_text_of(const cJSON *object, const char *key, const char *absent)
{
	const cJSON *item = check_get(object, key);

	return cJSON_IsString(item) ? item->valuestring : absent;
}

int check_number_of(const cJSON *object, const char *key, int absent)
{
	const cJSON *item = check_get(object, key);

	return cJSON_IsNumber(item) ? item->valueint : absent;
}

bool check_equal(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

const char *check_name_of(const cJSON *object)
{
	return check_text_of(check_get(object, "metadata"), "name", "");
}

const char *check_namespace_of(const cJSON *object)
{
	return check_text_of(check_get(object, "metadata"), "namespace", "");
}

const char *check_label_of(const cJSON *object, const char *key)
{
	return check_text_of(check_meta_of(object, "labels"), key, NULL);
}

bool check_has_string(const cJSON *list, const char *text)
{
	for (const cJSON *item = check_first_of(list); item; item = item->next)
		if (cJSON_IsString(item) && check_equal(item->valuestring, text))
			return true;
	return false;
}

bool check_has_ended(const cJSON *pod)
{
	const char *phase = check_text_of(check_get(pod, "status"), "phase", "");

	return check_equal(phase, "Succeeded") || check_equal(phase, "Failed");
}

/* --- quantities: whole numbers, rounded up */

static int64_t amount(const char *resource, const cJSON *item)
{
	static const struct {
		const char *suffix;
		int64_t milli;
	} units[] = {
		{"", 1000},
		{"m", 1},
		{"k", 1000 * 1000LL},
		{"M", 1000 * 1000000LL},
		{"G", 1000 * 1000000000LL},
		{"Ki", 1000LL << 10},
		{"Mi", 1000LL << 20},
		{"Gi", 1000LL << 30},
	};
	int64_t number;
	char *end;

	if (cJSON_IsNumber(item))
		return (int64_t)item->valuedouble * (check_equal(resource, "cpu") ? 1000 : 1);
	number = strtoll(item->valuestring, &end, 10);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (check_equal(end, units[i].suffix))
			return check_equal(resource, "cpu")
				       ? number * units[i].milli
				       : (number * units[i].milli + 999) / 1000;
	fprintf(stderr, "the checker does not know the quantity %s\n", item->valuestring);
	abort();
}

int64_t check_amount_in(const cJSON *list, const char *resource)
{
	const cJSON *item = check_get(list, resource);

	return item ? amount(resource, item) : 0;
}

/* A limit without a request is a request. */
static int64_t container_request(const cJSON *container, const char *resource)
{
	const cJSON *resources = check_get(container, "resources");

	if (check_get(check_get(resources, "requests"), resource))
		return check_amount_in(check_get(resources, "requests"), resource);
	return check_amount_in(check_get(resources, "limits"), resource);
}

bool check_is_sidecar(const cJSON *init)
{
	return check_equal(check_text_of(init, "restartPolicy", ""), "Always");
}

static int64_t pod_request(const cJSON *pod, const char *resource, bool starting)
{
	const cJSON *level =
		check_get(check_get(check_spec_of(pod, "resources"), "requests"), resource);
	int64_t running = 0, sidecars = 0, worst = 0, total;

	for (const cJSON *init = check_first_of(check_spec_of(pod, "initContainers")); init;
	     init = init->next) {
		int64_t own = container_request(init, resource);

		if (check_is_sidecar(init))
			sidecars += own;
		else if (starting && own + sidecars > worst)
			worst = own + sidecars;
	}
	for (const cJSON *item = check_first_of(check_spec_of(pod, "containers")); item;
	     item = item->next)
		running += container_request(item, resource);
	total = running + sidecars > worst ? running + sidecars : worst;
	if (level)
		total = amount(resource, level);
	return total + check_amount_in(check_spec_of(pod, "overhead"), resource);
}

/*
 * What the pod needs at its worst moment: while it runs, or while one init container does beside
 * the sidecars started before it.
 */
int64_t check_pod_request(const cJSON *pod, const char *resource)
{
	return pod_request(pod, resource, true);
}

int64_t check_pod_running(const cJSON *pod, const char *resource)
{
	return pod_request(pod, resource, false);
}

/* --- labels */

static bool is_whole(const char *text, long long *out)
{
	char *end;

	*out = strtoll(text, &end, 10);
	return *text && !*end;
}

/*
 * One expression of a label selector or of node affinity; value is NULL where there is no such
 * label.
 */
static bool expression_holds(const cJSON *expression, const char *value)
{
	const char *op = check_text_of(expression, "operator", "");
	const cJSON *values = check_get(expression, "values");
	long long have, bound;

	if (check_equal(op, "In"))
		return value && check_has_string(values, value);
	if (check_equal(op, "NotIn"))
		return !value || !check_has_string(values, value);
	if (check_equal(op, "Exists"))
		return value;
	if (check_equal(op, "DoesNotExist"))
		return !value;
	if (!value || !check_first_of(values) || !is_whole(value, &have) ||
	    !is_whole(check_first_of(values)->valuestring, &bound))
		return false;
	return check_equal(op, "Gt") ? have > bound : check_equal(op, "Lt") && have < bound;
}

/* A selector that is absent selects nothing, an empty one everything. */
bool check_selects(const cJSON *selector, const cJSON *object)
{
	if (!selector)
		return false;
	for (const cJSON *want = check_first_of(check_get(selector, "matchLabels")); want;
	     want = want->next)
		if (!check_equal(want->valuestring, check_label_of(object, want->string)))
			return false;
	for (const cJSON *item = check_first_of(check_get(selector, "matchExpressions")); item;
	     item = item->next)
		if (!expression_holds(item, check_label_of(object, check_text_of(item, "key", ""))))
			return false;
	return true;
}

/* matchLabelKeys: the other has the same value of each of these labels that the pod has. */
bool check_same_labels(const cJSON *keys, const cJSON *pod, const cJSON *other)
{
	for (const cJSON *key = check_first_of(keys); key; key = key->next) {
		const char *own = check_label_of(pod, key->valuestring);

		if (own && !check_equal(own, check_label_of(other, key->valuestring)))
			return false;
	}
	return true;
}

/* --- node selectors */

/* One that asks for what cannot be a label's value is not understood. */
static bool asks_for_labels(const cJSON *expression)
{
	const cJSON *value = check_first_of(check_get(expression, "values"));
	regex_t valid;
	bool all = true;

	regcomp(&valid, "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$", REG_EXTENDED | REG_NOSUB);
	for (; value; value = value->next)
		all &= strlen(value->valuestring) <= 63 &&
		       regexec(&valid, value->valuestring, 0, NULL, 0) == 0;
	regfree(&valid);
	return all;
}

static bool node_term_matches(const cJSON *term, const cJSON *node)
{
	const cJSON *labels = check_first_of(check_get(term, "matchExpressions"));
	const cJSON *fields = check_first_of(check_get(term, "matchFields"));

	if (!labels && !fields)
		return false;
	for (; labels; labels = labels->next)
		if (!asks_for_labels(labels) ||
		    !expression_holds(labels,
				      check_label_of(node, check_text_of(labels, "key", ""))))
			return false;
	for (; fields; fields = fields->next)
		if (!check_equal(check_text_of(fields, "key", ""), "metadata.name") ||
		    !expression_holds(fields, check_name_of(node)))
			return false;
	return true;
}

/* Absent: every node. */
bool check_node_selector_matches(const cJSON *selector, const cJSON *node)
{
	const cJSON *term = check_first_of(check_get(selector, "nodeSelectorTerms"));

	while (term && !node_term_matches(term, node))
		term = term->next;
	return !selector || term;
}
