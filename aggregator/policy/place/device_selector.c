/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As in CEL, a conjunction with a false term is false even if another term is an error. An
 * attribute of another type than the constant is not equal, but a version compared with it is an
 * error.
 */
#include "aggregator/policy/place/device_selector.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/mem.h"

/* --- reading */

#define SPACE "[ \t\r\n]*"
#define TEXT  "(\"[^\"\\\r\n]*\"|'[^'\\\r\n]*')"
#define NAME  "([A-Za-z_][A-Za-z0-9_]*)"
/* Numbers that JSON numbers hold exactly. */
#define NUMBER "-?(0|[1-9][0-9]{0,14})"
#define TERM                                                                                       \
	"^" SPACE "device" SPACE "\\." SPACE "(driver|attributes" SPACE "\\[" SPACE TEXT SPACE     \
	"\\]" SPACE "\\." SPACE NAME ")" SPACE "==" SPACE "(" TEXT "|true|false|" NUMBER ")" SPACE \
	"(&&|$)"

enum { LEFT = 1, DOMAIN, ATTRIBUTE, CONSTANT, TEXT_CONSTANT, DIGITS, END, PARTS };

/* Without its quotes; NULL: absent. */
static char *take(const char *text, const regmatch_t *part, int quote)
{
	if (part->rm_so < 0)
		return NULL;
	return mem_strndup(text + part->rm_so + quote,
			   (size_t)(part->rm_eo - part->rm_so - 2 * quote));
}

static struct device_term read_term(const char *text, const regmatch_t *parts)
{
	const char *constant = text + parts[CONSTANT].rm_so;
	struct device_term t = {.domain = take(text, &parts[DOMAIN], 1),
				.name = take(text, &parts[ATTRIBUTE], 0),
				.text = take(text, &parts[TEXT_CONSTANT], 1),
				.type = DEVICE_TEXT};

	if (!t.text) {
		t.type = parts[DIGITS].rm_so < 0 ? DEVICE_BOOL : DEVICE_INT;
		t.number = t.type == DEVICE_INT ? strtoll(constant, NULL, 10) : *constant == 't';
	}
	return t;
}

int device_selector_read(const char *expression, struct device_selector *out)
{
	regmatch_t parts[PARTS];
	regex_t term;
	int err;

	*out = (struct device_selector){0};
	if (regcomp(&term, TERM, REG_EXTENDED))
		mem_exhausted();
	do {
		err = regexec(&term, expression, PARTS, parts, 0) ? -EINVAL : 0;
		if (err)
			break;
		ARRAY_ADD(out->of, out->count) = read_term(expression, parts);
		out->reads_attributes |= parts[DOMAIN].rm_so >= 0;
		if (parts[DOMAIN].rm_so < 0 && parts[TEXT_CONSTANT].rm_so < 0)
			err = -EINVAL;
		expression += parts[END].rm_eo;
	} while (!err && parts[END].rm_eo > parts[END].rm_so);
	regfree(&term);
	return err;
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

/* NULL: none, or no object. Elements of lists have no names. */
static const cJSON *first_member(const cJSON *json)
{
	return cJSON_IsObject(json) ? json->child : NULL;
}

/* The attribute "domain/name", or "name" in the driver's domain. */
static const cJSON *find_attribute(const struct device_term *t, const char *driver,
				   const cJSON *attributes)
{
	size_t len = strlen(t->domain);

	for (const cJSON *a = first_member(attributes); a; a = a->next) {
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
	const cJSON *value = first_member(attribute);
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
