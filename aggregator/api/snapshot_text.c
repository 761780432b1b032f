/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cJSON parses a value where one stands and says where it ends, so all that is left to do here are
 * the commas, colons and brackets between. A value that is skipped is passed by its brackets and
 * strings alone: whoever needs it comes back.
 */
#include "aggregator/api/snapshot_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shared/mem.h"

int snapshot_text_fail(const struct snapshot_text *t, const char *format, ...)
{
	size_t line = 1;
	char text[400];

	MEM_FORMAT(text, sizeof(text), format);
	for (const char *p = t->start; p < t->at; p++)
		line += *p == '\n';
	return error_fail(t->error, -EINVAL, "%s:%zu: %s", t->name, line, text);
}

static void skip_blanks(struct snapshot_text *t)
{
	while (t->at < t->end &&
	       (*t->at == ' ' || *t->at == '\t' || *t->at == '\n' || *t->at == '\r'))
		t->at++;
}

bool snapshot_text_more(struct snapshot_text *t)
{
	skip_blanks(t);
	while (t->end - t->at >= 3 && memcmp(t->at, "---", 3) == 0) {
		t->at += 3;
		skip_blanks(t);
	}
	return t->at < t->end;
}

static bool stands_at(struct snapshot_text *t, char c)
{
	skip_blanks(t);
	return t->at < t->end && *t->at == c;
}

static int pass(struct snapshot_text *t, char c)
{
	if (!stands_at(t, c))
		return snapshot_text_fail(t, "not JSON: a %c is missing", c);
	t->at++;
	return 0;
}

int snapshot_text_open(struct snapshot_text *t, char bracket)
{
	if (!stands_at(t, bracket))
		return snapshot_text_fail(t, bracket == '{' ? "must be a JSON object"
							    : "must be a JSON list");
	t->at++;
	return 0;
}

/* 1 at the next, 0 behind the end. */
static int next(struct snapshot_text *t, bool *first, char closing)
{
	if (stands_at(t, closing)) {
		t->at++;
		return 0;
	}
	if (!*first && pass(t, ','))
		return -EINVAL;
	*first = false;
	return 1;
}

int snapshot_text_item(struct snapshot_text *t, bool *first)
{
	return next(t, first, ']');
}

int snapshot_text_member(struct snapshot_text *t, bool *first, char key[SNAPSHOT_KEY_MAX])
{
	int rc = next(t, first, '}');
	cJSON *name;

	if (rc <= 0)
		return rc;
	if (!stands_at(t, '"'))
		return snapshot_text_fail(t, "not JSON: a member has no name");
	if (snapshot_text_parse(t, &name))
		return -EINVAL;
	snprintf(key, SNAPSHOT_KEY_MAX, "%s", name->valuestring);
	cJSON_Delete(name);
	return pass(t, ':') ? -EINVAL : 1;
}

/* Behind the closing quote, or at the end. */
static const char *skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p < end ? p + 1 : end;
}

int snapshot_text_skip(struct snapshot_text *t)
{
	const struct snapshot_text before = *t;
	size_t depth = 0;

	while (t->at < t->end) {
		char c = *t->at;

		if (depth == 0 && (c == ',' || c == ']' || c == '}'))
			return 0;
		if (c == '"') {
			t->at = skip_string(t->at, t->end);
			continue;
		}
		depth += c == '[' || c == '{';
		depth -= c == ']' || c == '}';
		t->at++;
	}
	return snapshot_text_fail(&before, "not JSON: it ends within the value that begins here");
}

int snapshot_text_parse(struct snapshot_text *t, cJSON **json)
{
	const char *end = NULL;

	skip_blanks(t);
	*json = cJSON_ParseWithLengthOpts(t->at, (size_t)(t->end - t->at), &end, false);
	if (!*json) {
		t->at = end ? end : t->at;
		return snapshot_text_fail(t, "not JSON: \"%.*s\" cannot stand here",
					  (int)(t->end - t->at < 20 ? t->end - t->at : 20), t->at);
	}
	t->at = end;
	return 0;
}
