/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keyed digests of the tokens are kept, not the tokens, and compared in constant time, so neither
 * memory nor the time of an answer reveals one. A token on several lines enrols the nodes of all of
 * them.
 */
#include "aggregator/state/enrolment_tokens.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/mem.h"

enum { DIGEST_LEN = 32 };

struct line {
	uint8_t digest[DIGEST_LEN];
	char *patterns; /* owned; each ends with a NUL, the last with two */
};

struct enrolment_tokens {
	uint8_t key[ENROLMENT_TOKEN_KEY_LEN];
	size_t count;
	struct line *lines;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void digest(const struct enrolment_tokens *t, const void *token, size_t len,
		   uint8_t out[DIGEST_LEN])
{
	crypto_generichash(out, DIGEST_LEN, token, len, t->key, sizeof(t->key));
}

/* Of one line after the token. NULL: there is none. */
static char *read_patterns(const char *text, size_t len)
{
	char *patterns = mem_zalloc(1, len + 2);
	size_t to = 0;

	for (size_t i = 0; i < len; i++) {
		if (!is_space(text[i]))
			patterns[to++] = text[i];
		else if (to && patterns[to - 1])
			patterns[to++] = '\0';
	}
	if (to)
		return patterns;
	free(patterns);
	return NULL;
}

static int take_line(struct enrolment_tokens *t, const char *text, size_t len, size_t number,
		     struct error *error)
{
	size_t token_len = 0;
	struct line line;

	while (token_len < len && !is_space(text[token_len]))
		token_len++;
	if (token_len < ENROLMENT_TOKEN_LEAST)
		return error_fail(error, -EINVAL,
				  "line %zu: the token is shorter than %d characters; make one "
				  "with head -c 32 /dev/urandom | base64 -w0",
				  number, ENROLMENT_TOKEN_LEAST);
	line.patterns =
		memchr(text, '\0', len) ? NULL : read_patterns(text + token_len, len - token_len);
	if (!line.patterns)
		return error_fail(
			error, -EINVAL,
			"line %zu: no node names follow the token; \"*\" stands for all nodes",
			number);
	digest(t, text, token_len, line.digest);
	ARRAY_ADD(t->lines, t->count) = line;
	return 0;
}

int enrolment_tokens_parse(struct enrolment_tokens **out,
			   const uint8_t key[ENROLMENT_TOKEN_KEY_LEN], const char *text, size_t len,
			   struct error *error)
{
	struct enrolment_tokens *t = mem_zalloc(1, sizeof(*t));
	const char *end = text + len;
	int rc = 0;

	memcpy(t->key, key, sizeof(t->key));
	for (size_t number = 1; text < end && !rc; number++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		const char *line = text;

		if (!stop)
			stop = end;
		text = stop + 1;
		while (line < stop && is_space(*line))
			line++;
		if (line < stop && *line != '#')
			rc = take_line(t, line, (size_t)(stop - line), number, error);
	}
	if (rc)
		enrolment_tokens_free(t);
	else
		*out = t;
	return rc;
}

void enrolment_tokens_free(struct enrolment_tokens *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->count; i++)
		free(t->lines[i].patterns);
	free(t->lines);
	free(t);
}

static bool matches(const struct line *l, const char *node)
{
	for (const char *p = l->patterns; *p; p += strlen(p) + 1)
		if (fnmatch(p, node, 0) == 0)
			return true;
	return false;
}

enum enrolment_token_verdict enrolment_tokens_check(const struct enrolment_tokens *t,
						    struct span token, const char *node)
{
	enum enrolment_token_verdict verdict = TOKEN_UNKNOWN;
	uint8_t wanted[DIGEST_LEN];

	digest(t, token.data, token.len, wanted);
	for (size_t i = 0; i < t->count; i++) {
		if (sodium_memcmp(t->lines[i].digest, wanted, sizeof(wanted)) != 0)
			continue;
		if (matches(&t->lines[i], node))
			return TOKEN_ENROLS;
		verdict = TOKEN_OF_OTHER_NODES;
	}
	return verdict;
}

bool enrolment_token_is_jwt(struct span token)
{
	size_t parts = 1, part_len = 0;

	for (size_t i = 0; i < token.len; i++) {
		if (token.data[i] == '.') {
			if (!part_len)
				return false;
			parts++;
			part_len = 0;
		} else if (isalnum(token.data[i]) || token.data[i] == '-' || token.data[i] == '_') {
			part_len++;
		} else {
			return false;
		}
	}
	return parts == 3 && part_len;
}
