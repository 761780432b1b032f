/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values are told apart by brackets and quotes; whether what is between them is JSON is found out when each is parsed
 * by the library, which every one is. So a wrong bracket inside of a value is that value's error, and here only the
 * commas and colons of the levels that are walked need to be right.
 */
#include "aggregator/api/extender_scan.h"

#include <string.h>

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at;
}

/* Behind the closing quote; at is behind the opening one. */
static const char *skip_string(const char *at, const char *end)
{
	for (; at < end; at++) {
		if (*at == '"')
			return at + 1;
		if (*at == '\\')
			at++;
	}
	return NULL;
}

static bool ends_plain(char c)
{
	return c == ',' || c == ']' || c == '}' || c == ':' || c == ' ' || c == '\t' || c == '\n' ||
	       c == '\r';
}

static const char *skip_nested(const char *at, const char *end)
{
	size_t depth = 0;

	while (at && at < end) {
		char c = *at++;

		if (c == '"')
			at = skip_string(at, end);
		else if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && --depth == 0)
			return at;
	}
	return NULL;
}

const char *extender_scan_value(const char *at, const char *end)
{
	const char *start = at;

	if (at == end)
		return NULL;
	if (*at == '"')
		return skip_string(at + 1, end);
	if (*at == '{' || *at == '[')
		return skip_nested(at, end);
	while (at < end && !ends_plain(*at))
		at++;
	return at > start ? at : NULL;
}

bool extender_scan_open(struct extender_scan *s, const char *text, size_t len, char bracket)
{
	const char *end = text + len;

	text = skip_space(text, end);
	if (text == end || *text != bracket || extender_scan_value(text, end) == NULL)
		return false;
	*s = (struct extender_scan){.at = text + 1, .end = end};
	return true;
}

static bool fail(struct extender_scan *s)
{
	s->broken = true;
	return false;
}

/* To the next element, over the comma before it; false at the closing bracket. */
static bool next(struct extender_scan *s, char closing)
{
	s->at = skip_space(s->at, s->end);
	if (s->at < s->end && *s->at == closing) {
		s->at++;
		return skip_space(s->at, s->end) == s->end ? false : fail(s);
	}
	if (s->begun) {
		if (s->at == s->end || *s->at != ',')
			return fail(s);
		s->at = skip_space(s->at + 1, s->end);
	}
	s->begun = true;
	return true;
}

static bool take_value(struct extender_scan *s, const char **text, size_t *len)
{
	const char *end = extender_scan_value(s->at, s->end);

	if (!end)
		return fail(s);
	*text = s->at;
	*len = (size_t)(end - s->at);
	s->at = end;
	return true;
}

bool extender_scan_item(struct extender_scan *s, const char **text, size_t *len)
{
	return !s->broken && next(s, ']') && take_value(s, text, len);
}

bool extender_scan_member(struct extender_scan *s, const char **key, size_t *key_len,
			  const char **text, size_t *len)
{
	if (s->broken || !next(s, '}'))
		return false;
	if (s->at == s->end || *s->at != '"' || !take_value(s, key, key_len))
		return fail(s);
	s->at = skip_space(s->at, s->end);
	if (s->at == s->end || *s->at != ':')
		return fail(s);
	s->at = skip_space(s->at + 1, s->end);
	return take_value(s, text, len);
}

cJSON *extender_scan_parse(const char *text, size_t len)
{
	const char *end = NULL;
	cJSON *tree = cJSON_ParseWithLengthOpts(text, len, &end, false);

	if (tree && skip_space(end, text + len) == text + len)
		return tree;
	cJSON_Delete(tree);
	return NULL;
}
