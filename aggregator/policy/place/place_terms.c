/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Node selector terms of required node affinity, of volumes, and (with other names and In only) of
 * storage classes. An unknown member is an error, since half a term would admit too much.
 */
#include "aggregator/policy/place/place_terms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/array.h"
#include "shared/mem.h"

const char *const place_operators[PLACE_OPERATORS] = {
	[PLACE_IN] = "In",	   [PLACE_NOT_IN] = "NotIn",
	[PLACE_EXISTS] = "Exists", [PLACE_DOES_NOT_EXIST] = "DoesNotExist",
	[PLACE_GT] = "Gt",	   [PLACE_LT] = "Lt",
};

/* A decimal number with an optional sign, as Go's strconv.ParseInt(). */
static bool read_number(const char *text, int64_t *out)
{
	const char *digits = *text == '-' || *text == '+' ? text + 1 : text;

	if (!*digits || digits[strspn(digits, "0123456789")])
		return false;
	errno = 0;
	*out = strtoll(text, NULL, 10);
	return errno == 0;
}

static int bad(struct error *error, const char *what)
{
	return error_fail(error, -EINVAL, "%s", what);
}

static int read_values(const cJSON *list, struct place_requirement *r, struct error *error)
{
	if (list && !cJSON_IsArray(list))
		return bad(error, "values: must be a list of strings");
	for (const cJSON *v = list ? list->child : NULL; v; v = v->next) {
		if (!cJSON_IsString(v))
			return bad(error, "values: must be a list of strings");
		ARRAY_ADD(r->values, r->value_count) = mem_strdup(v->valuestring);
	}
	return 0;
}

static int check_values(struct place_requirement *r, struct error *error)
{
	switch (r->op) {
	case PLACE_IN:
	case PLACE_NOT_IN:
		if (!r->value_count)
			return bad(error, "values: must not be empty with In and NotIn");
		if (r->field && r->value_count != 1)
			return bad(error, "values: must be one in matchFields");
		return 0;
	case PLACE_GT:
	case PLACE_LT:
		if (r->value_count != 1)
			return bad(error, "values: must be one with Gt and Lt");
		break;
	default:
		if (r->value_count)
			return bad(error, "values: must be empty with Exists and DoesNotExist");
	}
	return r->field ? bad(error, "operator: must be In or NotIn in matchFields") : 0;
}

/* The API accepts any text, as Gt five; the kube-scheduler then matches no node by the term. */
static bool has_impossible_value(struct place_requirement *r)
{
	if ((r->op == PLACE_GT || r->op == PLACE_LT) && !read_number(r->values[0], &r->number))
		return true;
	for (uint32_t i = 0; !r->field && i < r->value_count; i++)
		if (*r->values[i] && !label_is_name(r->values[i], strlen(r->values[i])))
			return true;
	return false;
}

static int read_operator(const cJSON *json, struct place_requirement *r, struct error *error)
{
	const char *name = object_json_text(json, "operator");
	const char *const *found =
		array_find_text(place_operators, PLACE_OPERATORS, sizeof(*place_operators), name);

	if (!found)
		return error_fail(error, -EINVAL, "operator: \"%.60s\" is not known", name);
	r->op = (enum place_operator)(found - place_operators);
	return 0;
}

static int check_members(const cJSON *json, const char *const *known, struct error *error)
{
	if (!cJSON_IsObject(json))
		return bad(error, "must be an object");
	for (const cJSON *m = json->child; m; m = m->next) {
		if (!array_has_text(known, m->string))
			return error_fail(error, -EINVAL, "%.60s: is not known", m->string);
	}
	return 0;
}

static int read_requirement(const cJSON *json, bool topology, struct place_requirement *r,
			    struct error *error)
{
	static const char *const members[] = {"key", "operator", "values", NULL};
	const char *key = cJSON_GetStringValue(object_json_find(json, "key"));

	if (check_members(json, members, error))
		return -EINVAL;
	if (!key || !*key)
		return bad(error, "key: must be a string");
	if (r->field && strcmp(key, "metadata.name") != 0)
		return error_fail(error, -EINVAL, "key: \"%.60s\" is not known in matchFields",
				  key);
	r->key = mem_strdup(key);
	if (!topology && read_operator(json, r, error))
		return -EINVAL;
	if (read_values(object_json_find(json, "values"), r, error))
		return -EINVAL;
	if (check_values(r, error))
		return -EINVAL;
	r->never = has_impossible_value(r);
	return 0;
}

static int read_list(const cJSON *term, const char *member, struct place_one_term *out,
		     struct error *error)
{
	const cJSON *list = object_json_find(term, member);
	bool topology = strcmp(member, "matchLabelExpressions") == 0;
	size_t at = 0;

	if (list && !cJSON_IsArray(list))
		return error_fail(error, -EINVAL, "%s: must be a list", member);
	for (const cJSON *json = list ? list->child : NULL; json; json = json->next, at++) {
		struct place_requirement *r = &ARRAY_ADD(out->of, out->count);

		*r = (struct place_requirement){.field = strcmp(member, "matchFields") == 0};
		if (read_requirement(json, topology, r, error))
			return error_at(error, -EINVAL, "%s[%zu]", member, at);
	}
	return 0;
}

static int read_terms(const cJSON *list, const char *const *members, struct place_terms *out,
		      struct error *error)
{
	size_t at = 0;

	*out = (struct place_terms){0};
	if (list && !cJSON_IsArray(list))
		return bad(error, "must be a list");
	for (const cJSON *term = list ? list->child : NULL; term; term = term->next, at++) {
		struct place_one_term *t = &ARRAY_ADD(out->of, out->count);
		int err = check_members(term, members, error);

		*t = (struct place_one_term){0};
		for (const char *const *m = members; !err && *m; m++)
			err = read_list(term, *m, t, error);
		if (err) {
			error_prefix(error, "[%zu]", at);
			place_terms_fini(out);
			return err;
		}
	}
	return 0;
}

int place_terms_read(const cJSON *list, struct place_terms *out, struct error *error)
{
	static const char *const members[] = {"matchExpressions", "matchFields", NULL};

	return read_terms(list, members, out, error);
}

int place_terms_read_topologies(const cJSON *list, struct place_terms *out, struct error *error)
{
	static const char *const members[] = {"matchLabelExpressions", NULL};

	return read_terms(list, members, out, error);
}

void place_terms_fini(struct place_terms *t)
{
	for (uint32_t i = 0; i < t->count; i++) {
		for (uint32_t k = 0; k < t->of[i].count; k++) {
			struct place_requirement *r = &t->of[i].of[k];

			for (uint32_t v = 0; v < r->value_count; v++)
				free(r->values[v]);
			free(r->values);
			free(r->key);
		}
		free(t->of[i].of);
	}
	free(t->of);
	*t = (struct place_terms){0};
}

void place_terms_add_zones(struct place_terms *t, const char *key, const char *values)
{
	struct place_requirement *r = mem_zalloc(1, sizeof(*r));

	*r = (struct place_requirement){.key = mem_strdup(key), .op = PLACE_IN};
	for (;;) {
		const char *end = strstr(values, "__");

		ARRAY_ADD(r->values, r->value_count) =
			end ? mem_strndup(values, (size_t)(end - values)) : mem_strdup(values);
		if (!end)
			break;
		values = end + 2;
	}
	ARRAY_ADD(t->of, t->count) = (struct place_one_term){.count = 1, .of = r};
}

static bool has_value(const struct place_requirement *r, const char *value)
{
	for (uint32_t i = 0; i < r->value_count; i++)
		if (strcmp(r->values[i], value) == 0)
			return true;
	return false;
}

bool place_requirement_match(const struct place_requirement *r, const struct labels *labels,
			     const char *name)
{
	const char *value = r->field ? name : labels_find(labels, r->key);
	int64_t number;

	if (r->never)
		return false;
	switch (r->op) {
	case PLACE_IN:
		return value && has_value(r, value);
	case PLACE_NOT_IN:
		return !value || !has_value(r, value);
	case PLACE_EXISTS:
		return value != NULL;
	case PLACE_DOES_NOT_EXIST:
		return value == NULL;
	case PLACE_GT:
		return value && read_number(value, &number) && number > r->number;
	case PLACE_LT:
		return value && read_number(value, &number) && number < r->number;
	default:
		return false;
	}
}

static bool match_one(const struct place_one_term *t, const struct labels *labels, const char *name)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (!place_requirement_match(&t->of[i], labels, name))
			return false;
	return t->count > 0;
}

bool place_terms_match(const struct place_terms *t, const struct labels *labels, const char *name)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (match_one(&t->of[i], labels, name))
			return true;
	return false;
}
