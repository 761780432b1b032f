/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes one decision of a C source file: `mutate FILE` lists the changes that are possible, one a
 * line, as "NUMBER LINE CHANGE"; `mutate FILE NUMBER` writes the file with that change. A test suite
 * that still passes does not test the decision.
 *
 * A scanner finds the places, since the sources are formatted by clang-format: binary operators
 * have spaces around them, and a function's body lies between a `{` and a `}` in the first column.
 * Comments, strings, preprocessor lines and what is outside of functions stay as they are.
 *
 *	comparison	a < b	-> a <= b, and so on; == <-> !=
 *	condition	a && b	-> a || b; !a -> a
 *	arithmetic	a + b	<-> a - b; a * b <-> a / b; += <-> -=
 *	constant	7	-> 8
 *	call		f(x);	-> ; (a statement that is nothing but a call, and frees nothing:
 *			the sanitizers find leaks)
 *	operands	a - b	-> b - a; f(a, b) -> f(b, a), but for strcmp(a, b) == 0 and the like
 *
 * Sizes of allocations stay: too large a one changes nothing, and the sanitizers find one that is
 * too small. Some changes do not compile or change nothing; the caller finds out.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/file.h"
#include "shared/mem.h"

enum { FILE_MAX = 1 << 20, OPERAND_MAX = 80 };

struct change {
	size_t at, len; /* the bytes of the file that are replaced */
	char with[2 * OPERAND_MAX + 8];
};

struct scan {
	const char *text; /* of the file */
	bool *is_code; /* of each byte: in the body of a function, and no comment or string */
	size_t len;
	struct change *changes; /* owned */
	size_t count;
};

static const struct {
	const char *from, *to;
} operators[] = {
	{" < ", " <= "},  {" <= ", " < "},  {" > ", " >= "},  {" >= ", " > "},	{" == ", " != "},
	{" != ", " == "}, {" && ", " || "}, {" || ", " && "}, {" + ", " - "},	{" - ", " + "},
	{" * ", " / "},	  {" / ", " * "},   {" += ", " -= "}, {" -= ", " += "},
};

/* --- which bytes are code ---------------------------------------------------------------------- */

/* The end of the comment, string, character or preprocessor line at `at`; `at` where there is none. */
static size_t skip(const char *text, size_t len, size_t at)
{
	size_t end = at;

	if (strncmp(text + at, "/*", 2) == 0) {
		const char *close = strstr(text + at + 2, "*/");

		return close ? (size_t)(close - text) + 2 : len;
	}
	if (text[at] == '"' || text[at] == '\'') {
		for (end = at + 1; end < len && text[end] != text[at]; end++)
			end += text[end] == '\\';
		return end + 1 < len ? end + 1 : len;
	}
	if (text[at] == '#' && (at == 0 || text[at - 1] == '\n'))
		while (end < len && (text[end] != '\n' || text[end - 1] == '\\'))
			end++;
	return end;
}

static void mark_code(struct scan *s)
{
	bool body = false;

	for (size_t at = 0; at < s->len;) {
		size_t end = skip(s->text, s->len, at);

		if (end > at) {
			at = end;
			continue;
		}
		if (at && s->text[at - 1] == '\n' && (s->text[at] == '{' || s->text[at] == '}'))
			body = s->text[at] == '{';
		s->is_code[at++] = body;
	}
}

/* --- changes ------------------------------------------------------------------------------------ */

static void add(struct scan *s, size_t at, size_t len, const char *with)
{
	struct change *c;

	s->changes = mem_realloc(s->changes, (s->count + 1) * sizeof(*s->changes));
	c = &s->changes[s->count++];
	c->at = at;
	c->len = len;
	snprintf(c->with, sizeof(c->with), "%s", with);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_operand(char c)
{
	return is_word(c) || c == '.' || c == '[' || c == ']';
}

/* Length of the plain operand that begins at `at`: names, members and indices, no calls. */
static size_t operand_len(const struct scan *s, size_t at)
{
	size_t end = at;

	while (end < s->len && s->is_code[end] &&
	       (is_operand(s->text[end]) || strncmp(s->text + end, "->", 2) == 0))
		end += is_operand(s->text[end]) ? 1 : 2;
	return end < s->len && s->text[end] != '(' && end - at < OPERAND_MAX ? end - at : 0;
}

/* Where the plain operand that ends before `end` begins. */
static size_t operand_start(const struct scan *s, size_t end)
{
	size_t at = end;

	while (at &&
	       (is_operand(s->text[at - 1]) || (at > 1 && strncmp(s->text + at - 2, "->", 2) == 0)))
		at -= is_operand(s->text[at - 1]) ? 1 : 2;
	return at;
}

static void find_swap(struct scan *s, size_t at, size_t operator_len)
{
	size_t first = operand_start(s, at), second = at + operator_len;
	size_t first_len = at - first, second_len = operand_len(s, second);
	char with[sizeof(s->changes->with)];

	if (!first_len || !second_len || first_len > OPERAND_MAX ||
	    (first && s->text[first - 1] == ')'))
		return;
	snprintf(with, sizeof(with), "%.*s%.*s%.*s", (int)second_len, s->text + second,
		 (int)operator_len, s->text + at, (int)first_len, s->text + first);
	add(s, first, second + second_len - first, with);
}

static void find_operator(struct scan *s, size_t at)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
		size_t len = strlen(operators[i].from);

		if (strncmp(s->text + at, operators[i].from, len) == 0)
			add(s, at, len, operators[i].to);
	}
	if (strncmp(s->text + at, " - ", 3) == 0)
		find_swap(s, at, 3);
	if (s->text[at] == '!' && s->text[at + 1] != '=')
		add(s, at, 1, "");
}

static void find_constant(struct scan *s, size_t at)
{
	char with[24], *end;
	unsigned long long value;

	if (!isdigit((unsigned char)s->text[at]) || is_word(s->text[at - 1]) ||
	    s->text[at - 1] == '.')
		return;
	value = strtoull(s->text + at, &end, 0);
	if (*end == '.' || is_word(*end))
		return;
	snprintf(with, sizeof(with), "%llu", value + 1);
	add(s, at, (size_t)(end - s->text) - at, with);
}

/* The bracket that closes the one at `at`; the end of the file where there is none. */
static size_t closing(const struct scan *s, size_t at)
{
	int depth = 0;

	for (; at < s->len; at++) {
		depth += s->is_code[at] && s->text[at] == '(';
		if (s->is_code[at] && s->text[at] == ')' && --depth == 0)
			break;
	}
	return at;
}

static bool frees(const char *name, size_t len)
{
	const char *end = name + len - 4;

	return len >= 4 && (strncmp(end, "free", 4) == 0 || strncmp(end, "fini", 4) == 0 ||
			    strncmp(end, "drop", 4) == 0 || strncmp(end, "lete", 4) == 0);
}

/* At the first character of a line: a statement that is a call. */
static void find_call(struct scan *s, size_t at)
{
	size_t name = at, close;

	while (is_word(s->text[at]))
		at++;
	if (s->text[at] != '(')
		return;
	close = closing(s, at);
	if (close + 1 < s->len && s->text[close + 1] == ';' && !frees(s->text + name, at - name))
		add(s, name, close + 1 - name, "");
}

/* A comparison whose outcome is the same with its arguments swapped. */
static bool is_symmetric(const struct scan *s, size_t at)
{
	size_t close = closing(s, at);

	return at > 2 && strncmp(s->text + at - 3, "cmp", 3) == 0 && close + 5 < s->len &&
	       (strncmp(s->text + close + 1, " == 0", 5) == 0 ||
		strncmp(s->text + close + 1, " != 0", 5) == 0);
}

static void find_arguments(struct scan *s, size_t at)
{
	size_t first_len = operand_len(s, at + 1), second = at + 1 + first_len + 2;

	if (!at || !is_word(s->text[at - 1]) || !first_len || is_symmetric(s, at) ||
	    strncmp(s->text + second - 2, ", ", 2) != 0 || !operand_len(s, second) ||
	    !strchr(",)", s->text[second + operand_len(s, second)]))
		return;
	find_swap(s, second - 2, 2);
}

/* The end of a call at `at` that allocates (a larger size is no bug) or asserts (no input fails it); else `at`. */
static size_t skip_call(const struct scan *s, size_t at)
{
	static const char *const names[] = {"mem_alloc(", "mem_zalloc(", "mem_realloc(",
					    "buf_reserve(", "assert("};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!is_word(s->text[at - 1]) &&
		    strncmp(s->text + at, names[i], strlen(names[i])) == 0)
			return closing(s, at);
	return at;
}

static void find_changes(struct scan *s)
{
	for (size_t at = 1; at < s->len; at++) {
		at = skip_call(s, at);
		if (!s->is_code[at])
			continue;
		find_operator(s, at);
		find_constant(s, at);
		if (s->text[at - 1] == '\t' && is_word(s->text[at]))
			find_call(s, at);
		if (s->text[at] == '(')
			find_arguments(s, at);
	}
}

/* --- output ------------------------------------------------------------------------------------- */

static void list(const struct scan *s)
{
	size_t line = 1, at = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct change *c = &s->changes[i];
		int shown = (int)strcspn(s->text + c->at, "\n");

		if (c->at < at)
			line = 1, at = 0;
		for (; at < c->at; at++)
			line += s->text[at] == '\n';
		printf("%zu %zu %.*s -> %s\n", i, line,
		       (size_t)shown < c->len ? shown : (int)c->len, s->text + c->at, c->with);
	}
}

static void write_changed(const struct scan *s, const struct change *c)
{
	fwrite(s->text, 1, c->at, stdout);
	fputs(c->with, stdout);
	fwrite(s->text + c->at + c->len, 1, s->len - c->at - c->len, stdout);
}

int main(int argc, char **argv)
{
	struct buf text = {0};
	struct scan s = {0};
	struct error error;
	size_t number = 0;

	if (argc < 2 || argc > 3 || (argc == 3 && sscanf(argv[2], "%zu", &number) != 1)) {
		fprintf(stderr, "usage: mutate FILE [NUMBER]\n");
		return 2;
	}
	if (file_read(argv[1], FILE_MAX, &text, &error)) {
		fprintf(stderr, "mutate: %s\n", error.text);
		return 2;
	}
	s = (struct scan){.text = text.data, .len = text.len, .is_code = mem_zalloc(text.len, 1)};
	mark_code(&s);
	find_changes(&s);
	if (argc == 2)
		list(&s);
	else if (number < s.count)
		write_changed(&s, &s.changes[number]);
	free(s.changes);
	free(s.is_code);
	buf_fini(&text);
	return argc == 3 && number >= s.count ? 2 : 0;
}
