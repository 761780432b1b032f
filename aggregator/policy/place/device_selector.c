/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As in CEL, a conjunction with a false term is false even if another term is an error. An attribute
 * of another type than the constant is not equal, but a version compared with it is an error.
 */
#include "aggregator/policy/place/device_selector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/model/object_json.h"
#include "shared/mem.h"

/* Greater numbers are inexact as JSON numbers. */
static const int64_t LARGEST = INT64_C(1) << 53;

/* --- reading */

static void skip_space(const char **at)
{
	*at += strspn(*at, " \t\r\n");
}

static bool take(const char **at, const char *token)
{
	size_t len = strlen(token);

	skip_space(at);
	if (strncmp(*at, token, len) != 0)
		return false;
	*at += len;
	return true;
}

/* NULL: none. The caller frees it. */
static char *take_text(const char **at)
{
	const char *begin, *end;

	skip_space(at);
	begin = *at + 1;
	if (**at != '"' && **at != '\'')
		return NULL;
	end = begin + strcspn(begin, **at == '"' ? "\"\\\r\n" : "'\\\r\n");
	if (*end != **at)
		return NULL;
	*at = end + 1;
	return mem_strndup(begin, (size_t)(end - begin));
}

static char *take_name(const char **at)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	const char *begin;

	skip_space(at);
	begin = *at;
	if (!*begin || !strchr(letters, *begin))
		return NULL;
	while (**at && (strchr(letters, **at) || (**at >= '0' && **at <= '9')))
		++*at;
	return mem_strndup(begin, (size_t)(*at - begin));
}

static bool take_number(const char **at, int64_t *out)
{
	size_t sign = **at == '-', digits = strspn(*at + sign, "0123456789");
	const char *end = *at + sign + digits;

	if (!digits || (digits > 1 && (*at)[sign] == '0') || strchr(".eEuUxX", *end ? *end : ' '))
		return false;
	errno = 0;
	*out = strtoll(*at, NULL, 10);
	*at = end;
	return errno == 0 && *out > -LARGEST && *out < LARGEST;
}

static bool take_bool(const char **at, int64_t *out)
{
	char *word = take_name(at);
	bool known = word && (strcmp(word, "true") == 0 || strcmp(word, "false") == 0);

	*out = known && *word == 't';
	free(word);
	return known;
}

static bool take_constant(const char **at, struct device_term *t)
{
	t->text = take_text(at);
	t->type = t->text ? DEVICE_TEXT : DEVICE_INT;
	if (t->text || take_number(at, &t->number))
		return true;
	t->type = DEVICE_BOOL;
	return take_bool(at, &t->number);
}

static bool take_term(const char **at, struct device_term *t)
{
	if (!take(at, "device") || !take(at, "."))
		return false;
	t->name = take_name(at);
	if (t->name && strcmp(t->name, "driver") == 0)
		return take(at, "==") && take_constant(at, t) && t->type == DEVICE_TEXT;
	if (!t->name || strcmp(t->name, "attributes") != 0 || !take(at, "["))
		return false;
	free(t->name);
	t->name = NULL;
	t->domain = take_text(at);
	if (!t->domain || !take(at, "]") || !take(at, "."))
		return false;
	t->name = take_name(at);
	return t->name && take(at, "==") && take_constant(at, t);
}

int device_selector_read(const char *expression, struct device_selector *out)
{
	*out = (struct device_selector){0};
	do {
		struct device_term *t;

		out->of = mem_realloc(out->of, (out->count + 1) * sizeof(*out->of));
		t = &out->of[out->count++];
		*t = (struct device_term){.domain = NULL};
		if (!take_term(&expression, t))
			return -EINVAL;
		out->reads_attributes |= t->domain != NULL;
	} while (take(&expression, "&&"));
	skip_space(&expression);
	return *expression ? -EINVAL : 0;
}

void device_selector_fini(struct device_selector *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->of[i].domain);
		free(s->of[i].name);
		free(s->of[i].text);
	}
	free(s->of);
	*s = (struct device_selector){0};
}

/* --- matching */

/* The attribute "domain/name", or "name" in the driver's domain. */
static const cJSON *find_attribute(const struct device_term *t, const char *driver,
				   const cJSON *attributes)
{
	size_t len = strlen(t->domain);

	for (const cJSON *a = attributes ? attributes->child : NULL; a; a = a->next) {
		const char *slash = strchr(a->string, '/');

		if (slash ? (size_t)(slash - a->string) == len &&
				    memcmp(a->string, t->domain, len) == 0 &&
				    strcmp(slash + 1, t->name) == 0
			  : strcmp(driver, t->domain) == 0 && strcmp(a->string, t->name) == 0)
			return a;
	}
	return NULL;
}

static enum device_match match_constant(const struct device_term *t, const cJSON *attribute)
{
	static const char *const members[] = {"string", "bool", "int"};
	const cJSON *value = attribute ? attribute->child : NULL;
	bool equal;

	if (!value || value->next || strcmp(value->string, "version") == 0)
		return DEVICE_ERROR;
	if (strcmp(value->string, members[t->type]) != 0)
		return DEVICE_OTHER;
	if (t->type == DEVICE_TEXT)
		equal = cJSON_IsString(value) && strcmp(value->valuestring, t->text) == 0;
	else if (t->type == DEVICE_BOOL)
		equal = cJSON_IsTrue(value) == (t->number != 0);
	else
		equal = cJSON_IsNumber(value) && value->valuedouble == (double)t->number;
	return equal ? DEVICE_MATCHES : DEVICE_OTHER;
}

enum device_match device_selector_match(const struct device_selector *s, const char *driver,
					const cJSON *attributes)
{
	enum device_match all = DEVICE_MATCHES;

	for (size_t i = 0; i < s->count; i++) {
		const struct device_term *t = &s->of[i];
		enum device_match m;

		if (!t->domain)
			m = strcmp(driver, t->text) == 0 ? DEVICE_MATCHES : DEVICE_OTHER;
		else
			m = match_constant(t, find_attribute(t, driver, attributes));
		if (m == DEVICE_OTHER)
			return m;
		if (m == DEVICE_ERROR)
			all = m;
	}
	return all;
}
