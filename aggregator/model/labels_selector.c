/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A selector is a list of requirements, all of which must hold. Values are looked through one after
 * the other: there are hardly ever more than three.
 */
#include "aggregator/model/labels_selector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/array.h"
#include "shared/mem.h"

struct requirement {
	char *key; /* owned */
	enum selector_operator op;
	size_t value_count;
	char **values; /* owned */
};

struct selector {
	size_t count;
	struct requirement *of; /* owned */
};

struct selector *selector_new(void)
{
	return mem_zalloc(1, sizeof(struct selector));
}

void selector_add(struct selector *s, enum selector_operator op, const char *key, size_t key_len)
{
	ARRAY_ADD(s->of, s->count) =
		(struct requirement){.key = mem_strndup(key, key_len), .op = op};
}

void selector_add_value(struct selector *s, const char *value, size_t value_len)
{
	struct requirement *r = &s->of[s->count - 1];

	ARRAY_ADD(r->values, r->value_count) = mem_strndup(value, value_len);
}

void selector_free(struct selector *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		for (size_t k = 0; k < s->of[i].value_count; k++)
			free(s->of[i].values[k]);
		free(s->of[i].values);
		free(s->of[i].key);
	}
	free(s->of);
	free(s);
}

bool selector_is_empty(const struct selector *s)
{
	return s->count == 0;
}

static bool has_value(const struct requirement *r, const char *value)
{
	for (size_t i = 0; i < r->value_count; i++)
		if (strcmp(r->values[i], value) == 0)
			return true;
	return false;
}

static bool holds(const struct requirement *r, const char *value)
{
	switch (r->op) {
	case SELECTOR_IN:
		return value && has_value(r, value);
	case SELECTOR_NOT_IN:
		return !value || !has_value(r, value);
	case SELECTOR_EXISTS:
		return value != NULL;
	case SELECTOR_DOES_NOT_EXIST:
		return value == NULL;
	}
	return false;
}

bool selector_matches(const struct selector *s, const struct labels *l)
{
	for (size_t i = 0; i < s->count; i++)
		if (!holds(&s->of[i], labels_find(l, s->of[i].key)))
			return false;
	return true;
}

bool selector_find_required(const struct selector *s, struct label *out)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct requirement *r = &s->of[i];

		if (r->op != SELECTOR_IN || r->value_count != 1)
			continue;
		*out = (struct label){r->key, r->values[0]};
		return true;
	}
	return false;
}

/* --- from JSON */

static const struct {
	const char *name;
	bool values; /* must have some; else must have none */
} operators[] = {
	[SELECTOR_IN] = {"In", true},
	[SELECTOR_NOT_IN] = {"NotIn", true},
	[SELECTOR_EXISTS] = {"Exists", false},
	[SELECTOR_DOES_NOT_EXIST] = {"DoesNotExist", false},
};

enum { OPERATORS = sizeof(operators) / sizeof(operators[0]) };

static int read_match_labels(const cJSON *json, struct selector *s, struct error *error)
{
	struct labels l;
	int err = labels_read(json, &l, error);

	if (err)
		return error_at(error, err, "matchLabels");
	for (size_t i = 0; i < l.count; i++) {
		selector_add(s, SELECTOR_IN, l.of[i].key, strlen(l.of[i].key));
		selector_add_value(s, l.of[i].value, strlen(l.of[i].value));
	}
	labels_fini(&l);
	return 0;
}

static int read_operator(const cJSON *json, enum selector_operator *op, struct error *error)
{
	const char *name = object_json_text(json, "operator");

	for (unsigned int i = 0; i < OPERATORS; i++) {
		if (strcmp(operators[i].name, name) == 0) {
			*op = (enum selector_operator)i;
			return 0;
		}
	}
	return error_fail(error, -EINVAL,
			  "operator must be In, NotIn, Exists or DoesNotExist, and not \"%.60s\"",
			  name);
}

static int read_values(const cJSON *list, enum selector_operator op, struct selector *s,
		       struct error *error)
{
	bool some = cJSON_IsArray(list) && list->child;

	if ((list && !cJSON_IsArray(list)) || some != operators[op].values)
		return error_fail(error, -EINVAL,
				  "values must be a list of %s strings with operator %s",
				  operators[op].values ? "some" : "no", operators[op].name);
	for (const cJSON *value = some ? list->child : NULL; value; value = value->next) {
		if (!cJSON_IsString(value))
			return error_fail(error, -EINVAL, "values must be strings");
		selector_add_value(s, value->valuestring, strlen(value->valuestring));
	}
	return 0;
}

static int read_expression(const cJSON *json, struct selector *s, struct error *error)
{
	const char *key = object_json_text(json, "key");
	enum selector_operator op;

	if (!*key)
		return error_fail(error, -EINVAL, "key must be the name of a label");
	if (read_operator(json, &op, error))
		return -EINVAL;
	selector_add(s, op, key, strlen(key));
	return read_values(object_json_find(json, "values"), op, s, error);
}

static int read_expressions(const cJSON *list, struct selector *s, struct error *error)
{
	size_t place = 0;

	if (list && !cJSON_IsArray(list))
		return error_fail(error, -EINVAL, "matchExpressions: must be a list");
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next, place++) {
		if (read_expression(item, s, error))
			return error_at(error, -EINVAL, "matchExpressions[%zu]", place);
	}
	return 0;
}

static int check_members(const cJSON *json, struct error *error)
{
	for (const cJSON *item = json->child; item; item = item->next) {
		if (strcmp(item->string, "matchLabels") != 0 &&
		    strcmp(item->string, "matchExpressions") != 0)
			return error_fail(error, -EINVAL, "\"%.60s\" is not known in a selector",
					  item->string);
	}
	return 0;
}

int selector_read(const cJSON *json, struct selector **out, struct error *error)
{
	struct selector *s;
	int err;

	if (!cJSON_IsObject(json))
		return error_fail(error, -EINVAL,
				  "must be an object with matchLabels or matchExpressions");
	s = selector_new();
	err = check_members(json, error);
	if (!err)
		err = read_match_labels(object_json_find(json, "matchLabels"), s, error);
	if (!err)
		err = read_expressions(object_json_find(json, "matchExpressions"), s, error);
	if (err)
		selector_free(s);
	else
		*out = s;
	return err;
}
