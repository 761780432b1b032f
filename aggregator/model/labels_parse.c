/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selectors as people write them behind -l. The grammar of kubectl, without its comparisons of
 * integers:
 *
 *     selector    = [ requirement { "," requirement } ]
 *     requirement = [ "!" ] key | key ( "=" | "==" | "!=" ) [ value ] | key ( "in" | "notin" ) "("
 *       list ")"
 *     list        = [ value ] { "," [ value ] }, and not ""
 *
 * "in" and "notin" are operators behind a key and values elsewhere. The text is cut into words that
 * point into it; the parser looks one word ahead. Keys and values must be ones that an object can
 * have, since a selector that never matches because of a slip of the pen reads like an empty
 * cluster.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/model/labels_selector.h"
#include "shared/mem.h"

enum word_type {
	WORD_END,
	WORD_TEXT,
	WORD_COMMA,
	WORD_OPEN,
	WORD_CLOSE,
	WORD_NOT,
	WORD_EQUAL,
	WORD_NOT_EQUAL,
	WORD_COMPARE, /* < and >: known, but not to us */
};

struct word {
	enum word_type type;
	const char *at;
	size_t len;
};

struct parser {
	const char *text, *at;
	struct word word; /* the one ahead */
	struct selector *selector;
	struct error *reason;
};

enum { NAME_MAX_LEN = 63, PREFIX_MAX_LEN = 253 };

static const char SPECIAL[] = ",()!=<>";

static enum word_type type_of(char c)
{
	/* Of each special character, and of the NUL behind them. */
	static const enum word_type types[] = {WORD_COMMA, WORD_OPEN,	 WORD_CLOSE,   WORD_NOT,
					       WORD_EQUAL, WORD_COMPARE, WORD_COMPARE, WORD_END};
	const char *special = strchr(SPECIAL, c);

	return special ? types[special - SPECIAL] : WORD_TEXT;
}

static void next(struct parser *p)
{
	struct word *w = &p->word;

	while (*p->at && isspace((unsigned char)*p->at))
		p->at++;
	w->at = p->at;
	w->type = type_of(*p->at);
	w->len = w->type != WORD_END;
	if (w->type == WORD_TEXT) {
		while (w->at[w->len] && !strchr(SPECIAL, w->at[w->len]) &&
		       !isspace((unsigned char)w->at[w->len]))
			w->len++;
	} else if (w->at[0] && w->at[1] == '=' && (w->type == WORD_NOT || w->type == WORD_EQUAL)) {
		w->type = w->type == WORD_NOT ? WORD_NOT_EQUAL : WORD_EQUAL;
		w->len = 2;
	}
	p->at += w->len;
}

__attribute__((format(printf, 2, 3))) static int fail(const struct parser *p, const char *format,
						      ...)
{
	struct error what;

	MEM_FORMAT(what.text, sizeof(what.text), format);
	return error_fail(p->reason, -EINVAL, "selector \"%.150s\": %.300s", p->text, what.text);
}

/* The words that the parser expected instead of the next one. */
static int fail_expected(const struct parser *p, const char *what)
{
	const struct word *w = &p->word;

	if (w->type == WORD_END)
		return fail(p, "%s is expected at the end", what);
	return fail(p, "%s is expected, and not \"%.*s\" at character %zu", what,
		    w->len > 60 ? 60 : (int)w->len, w->at, (size_t)(w->at - p->text) + 1);
}

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool label_is_name(const char *text, size_t len)
{
	if (len < 1 || len > NAME_MAX_LEN || !is_alnum(text[0]) || !is_alnum(text[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_alnum(text[i]) && text[i] != '-' && text[i] != '_' && text[i] != '.')
			return false;
	return true;
}

/* Labels of a domain: lower case, "-" inside of them only. */
static bool is_domain(const char *text, size_t len)
{
	if (len < 1 || len > PREFIX_MAX_LEN)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool edge = i == 0 || i == len - 1 || text[i - 1] == '.' || text[i + 1] == '.';
		bool plain = is_alnum(text[i]) && !(text[i] >= 'A' && text[i] <= 'Z');

		if (!plain && (edge || (text[i] != '-' && text[i] != '.')))
			return false;
	}
	return true;
}

static bool is_key(const char *text, size_t len)
{
	const char *slash = memchr(text, '/', len);
	size_t prefix = slash ? (size_t)(slash - text) : 0;

	if (!slash)
		return label_is_name(text, len);
	return is_domain(text, prefix) && label_is_name(slash + 1, len - prefix - 1);
}

static bool is_word(const struct word *w, const char *text)
{
	return w->type == WORD_TEXT && w->len == strlen(text) && memcmp(w->at, text, w->len) == 0;
}

/* The word ahead, or the empty value where there is none. */
static int parse_value(struct parser *p)
{
	if (p->word.type != WORD_TEXT) {
		selector_add_value(p->selector, "", 0);
		return 0;
	}
	if (!label_is_name(p->word.at, p->word.len))
		return fail_expected(p, "a value (letters, digits, -, _ and .)");
	selector_add_value(p->selector, p->word.at, p->word.len);
	next(p);
	return 0;
}

static int parse_list(struct parser *p)
{
	if (p->word.type != WORD_OPEN)
		return fail_expected(p, "\"(\"");
	next(p);
	if (p->word.type == WORD_CLOSE)
		return fail_expected(p, "a value");
	for (;;) {
		if (parse_value(p))
			return -EINVAL;
		if (p->word.type != WORD_COMMA)
			break;
		next(p);
	}
	if (p->word.type != WORD_CLOSE)
		return fail_expected(p, "\",\" or \")\"");
	next(p);
	return 0;
}

/* The rest of a requirement after a key without "!". */
static int parse_operator(struct parser *p, const struct word *key)
{
	bool not_in = is_word(&p->word, "notin");

	switch (p->word.type) {
	case WORD_EQUAL:
	case WORD_NOT_EQUAL:
		selector_add(p->selector,
			     p->word.type == WORD_EQUAL ? SELECTOR_IN : SELECTOR_NOT_IN, key->at,
			     key->len);
		next(p);
		return parse_value(p);
	case WORD_TEXT:
		if (!not_in && !is_word(&p->word, "in"))
			break;
		selector_add(p->selector, not_in ? SELECTOR_NOT_IN : SELECTOR_IN, key->at,
			     key->len);
		next(p);
		return parse_list(p);
	case WORD_COMMA:
	case WORD_END:
		selector_add(p->selector, SELECTOR_EXISTS, key->at, key->len);
		return 0;
	default:
		break;
	}
	return fail_expected(p, "one of = == != in notin");
}

static int parse_requirement(struct parser *p)
{
	bool not = p->word.type == WORD_NOT;
	struct word key;

	if (not )
		next(p);
	key = p->word;
	if (key.type != WORD_TEXT || is_word(&key, "in") || is_word(&key, "notin") ||
	    !is_key(key.at, key.len))
		return fail_expected(p, "the key of a label");
	next(p);
	if (!not )
		return parse_operator(p, &key);
	selector_add(p->selector, SELECTOR_DOES_NOT_EXIST, key.at, key.len);
	return 0;
}

static int parse_all(struct parser *p)
{
	next(p);
	if (p->word.type == WORD_END)
		return 0;
	for (;;) {
		if (parse_requirement(p))
			return -EINVAL;
		if (p->word.type == WORD_END)
			return 0;
		if (p->word.type != WORD_COMMA)
			return fail_expected(p, "\",\"");
		next(p);
	}
}

int selector_parse(const char *text, struct selector **out, struct error *reason)
{
	struct parser p = {.text = text, .at = text, .selector = selector_new(), .reason = reason};

	if (parse_all(&p)) {
		selector_free(p.selector);
		return -EINVAL;
	}
	*out = p.selector;
	return 0;
}
