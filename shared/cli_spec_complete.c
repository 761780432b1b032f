/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates for a command line. The words before the last are read like the parser does, to know
 * the command, whether options have ended, and whether the last word is an option's value:
 *
 *	words before --> command, ended, pending option --> candidates for the last word
 *
 * Options of a command may precede it: before a command the options of all commands are accepted,
 * and only the general ones are offered. Nothing fails; an unknown word has no candidates.
 */
#include "shared/array.h"
#include "shared/options_internal.h"
#include "shared/cli_spec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

enum directive { FILES = 0, NOTHING = 4, FOLDERS = 16 };

struct completion {
	const struct cli_spec *cli;
	const struct cli_spec_command *command; /* NULL: none yet, or "help" */
	const struct option_spec *pending; /* the option whose value is next */
	size_t operands; /* complete ones, with the command */
	bool ended, help, unknown;
	int count; /* of words before the last */
	char **words; /* owned, as each of them */
	struct buf *out;
};

static const struct option_spec *find_option(const struct cli_spec *o,
					     const struct cli_spec_command *command,
					     const char *name, char letter)
{
	const struct option_spec *spec = NULL;

	if (command)
		spec = options_find(command->specs, name, letter);
	for (size_t i = 0; !command && !spec && i < o->command_count; i++)
		spec = options_find(o->commands[i].specs, name, letter);
	return spec ? spec : options_find(o->program->specs, name, letter);
}

/* bash splits "--server=http://a:1" into "--server", "=", "http", ":", "//a", ":" and "1". */
static void join_words(struct completion *c, int count, char *const *words)
{
	bool open = false;

	c->words = mem_zalloc((size_t)count + 1, sizeof(*c->words));
	for (int i = 0; i < count; i++) {
		bool splits = words[i][0] && words[i][strspn(words[i], ":")] == '\0';
		char *last = c->count ? c->words[c->count - 1] : NULL;

		if (strcmp(words[i], "=") == 0)
			splits = last && last[0] == '-' && i + 1 < count;
		if (last && (open || splits)) {
			c->words[c->count - 1] = mem_printf("%s%s", last, words[i]);
			free(last);
		} else {
			c->words[c->count++] = mem_strdup(words[i]);
		}
		open = splits;
	}
}

/* --- the words before the last ---------------------------------------------------------------- */

const struct option_spec *cli_spec_pending(const struct cli_spec *o,
					   const struct cli_spec_command *command, const char *word)
{
	const struct option_spec *spec = NULL;

	if (word[1] == '-')
		return strchr(word, '=') || !(spec = find_option(o, command, word + 2, 0)) ||
				       options_stands_alone(spec)
			       ? NULL
			       : spec;
	for (word++; *word; word++) {
		spec = find_option(o, command, NULL, *word);
		if (!spec || !options_stands_alone(spec))
			return spec && !word[1] ? spec : NULL;
		if (spec->kind == OPTION_PERIOD && word[1] == '=')
			return NULL;
	}
	return NULL;
}

static void take_operand(struct completion *c, const char *word)
{
	bool first = c->operands++ == 0, named = c->help && c->operands == 2;

	if (!c->cli->command_count)
		return;
	if (first && strcmp(word, "help") == 0)
		c->help = true;
	else if (first || named)
		c->command = array_find_text(c->cli->commands, c->cli->command_count,
					     sizeof(struct cli_spec_command), word);
	c->unknown = c->unknown || (first && !c->help && !c->command);
}

static void take_word(struct completion *c, const char *word)
{
	if (c->pending) {
		if (strcmp(word, "=") != 0)
			c->pending = NULL;
	} else if (c->ended || word[0] != '-' || !word[1]) {
		take_operand(c, word);
	} else if (strcmp(word, "--") == 0) {
		c->ended = true;
	} else {
		c->pending = cli_spec_pending(c->cli, c->command, word);
	}
}

/* --- candidates ------------------------------------------------------------------------------- */

/* head and word are the candidate; typed: the present text. */
static void offer(struct completion *c, const char *typed, const char *head, const char *word,
		  const char *help)
{
	size_t head_len = strlen(head), typed_len = strlen(typed);

	if (typed_len < head_len
		    ? strncmp(head, typed, typed_len) != 0
		    : strncmp(head, typed, head_len) != 0 ||
			      strncmp(word, typed + head_len, typed_len - head_len) != 0)
		return;
	buf_printf(c->out, "%s%s", head, word);
	if (help) {
		const char *stop = strstr(help, ". ");
		size_t len = stop ? (size_t)(stop - help) : strlen(help);

		/* The first sentence of a help text, in one line. */
		if (len && help[len - 1] == '.')
			len--;
		buf_add_char(c->out, '\t');
		buf_add(c->out, help, len);
	}
	buf_add_char(c->out, '\n');
}

static void offer_names(struct completion *c, const char *what, const char *typed, const char *head)
{
	struct buf names = BUF_INIT;
	char *rest, *name;

	if (!c->cli->find_names)
		return;
	c->cli->find_names(what, c->count, c->words, &names);
	rest = names.data;
	while ((name = strsep(&rest, "\n")))
		if (*name)
			offer(c, typed, head, name, NULL);
	buf_fini(&names);
}

static enum directive offer_value(struct completion *c, const struct option_spec *spec,
				  const char *typed, const char *head)
{
	char *copy, *rest, *part;

	if (spec->kind == OPTION_FLAG) {
		offer(c, typed, head, "true", NULL);
		offer(c, typed, head, "false", NULL);
		return NOTHING;
	}
	for (size_t i = 0; spec->choices && spec->choices[i]; i++)
		offer(c, typed, head, spec->choices[i], NULL);
	if (spec->choices || !spec->value)
		return NOTHING;
	/* The words of "hard|soft", without placeholders in capitals. */
	copy = mem_strdup(spec->value);
	rest = copy;
	while (strchr(spec->value, '|') && (part = strsep(&rest, "|"))) {
		bool literal = *part;

		for (const char *p = part; *p; p++)
			literal = literal && !isupper((unsigned char)*p);
		if (literal)
			offer(c, typed, head, part, NULL);
	}
	free(copy);
	offer_names(c, spec->value, typed, head);
	if (strcmp(spec->value, "FILE") == 0)
		return FILES;
	return strcmp(spec->value, "DIR") == 0 ? FOLDERS : NOTHING;
}

static void offer_options(struct completion *c, const char *typed, const struct option_spec *specs)
{
	for (; specs->name; specs++) {
		char letter[] = {'-', specs->letter, '\0'};

		offer(c, typed, options_is_on(specs) ? "--no-" : "--", specs->name, specs->help);
		if (specs->letter && strcmp(typed, "-") == 0)
			offer(c, typed, "", letter, specs->help);
	}
}

/* "--name=val" in one word; NOTHING: another word. */
static enum directive offer_joined(struct completion *c, const char *typed)
{
	size_t len = strcspn(typed, "=");
	char *name = mem_strndup(typed + 2, len - 2), *head = mem_strndup(typed, len + 1);
	const struct option_spec *spec = find_option(c->cli, c->command, name, 0);
	enum directive directive = spec ? offer_value(c, spec, typed, head) : NOTHING;

	free(name);
	free(head);
	return directive;
}

static enum directive offer_operands(struct completion *c, const char *typed)
{
	const char *const *words = c->command && !c->help ? c->command->words : NULL;

	if (c->operands == 0 || (c->help && c->operands == 1)) {
		for (size_t i = 0; i < c->cli->command_count; i++)
			offer(c, typed, "", c->cli->commands[i].name, c->cli->commands[i].summary);
		if (c->operands == 0)
			offer(c, typed, "", "help", "Show the options of a command");
	}
	for (; words && *words && c->operands == 1; words++)
		offer(c, typed, "", *words, NULL);
	if (c->command && c->command->names && !c->help &&
	    (c->operands == 1 || strstr(c->command->usage, "..")))
		offer_names(c, c->command->names, typed, "");
	return NOTHING;
}

static enum directive offer_all(struct completion *c, const char *typed)
{
	if (c->pending)
		return offer_value(c, c->pending, strcmp(typed, "=") == 0 ? "" : typed, "");
	if (c->ended || typed[0] != '-')
		return offer_operands(c, typed);
	if (strncmp(typed, "--", 2) == 0 && strchr(typed, '='))
		return offer_joined(c, typed);
	if (c->unknown)
		return NOTHING;
	if (c->command)
		offer_options(c, typed, c->command->specs);
	offer_options(c, typed, c->cli->program->specs);
	return NOTHING;
}

void cli_spec_complete(const struct cli_spec *o, int count, char *const *words, struct buf *out)
{
	struct completion c = {.cli = o, .out = out};
	enum directive directive;

	join_words(&c, count > 0 ? count - 1 : 0, words);
	for (int i = 0; i < c.count; i++)
		take_word(&c, c.words[i]);
	directive = offer_all(&c, count > 0 ? words[count - 1] : "");
	buf_printf(out, ":%d\n", directive);
	for (int i = 0; i < c.count; i++)
		free(c.words[i]);
	free(c.words);
}
