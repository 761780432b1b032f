/* SPDX-License-Identifier: Apache-2.0 */
/* --help, from the table of options: flags in one column, their wrapped meaning in the other. */
#include "shared/options_internal.h"

#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMN = 26 };

static void pad(struct buf *out, size_t width)
{
	buf_printf(out, "%*s", (int)width, "");
}

void options_wrap(struct buf *out, const char *text, size_t width, size_t indent, size_t at)
{
	bool first = true;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (!first && at + 1 + len > width) {
			/* A long word begins further to the left. */
			at = indent + len <= width ? indent : len < width ? width - len : 0;
			buf_add_char(out, '\n');
			pad(out, at);
			first = true;
		}
		if (!first) {
			buf_add_char(out, ' ');
			at++;
		}
		buf_add(out, text, len);
		at += len;
		first = false;
		text += len;
		text += strspn(text, " ");
	}
	buf_add_char(out, '\n');
}

/* It is shown as --no-name, and its variable means the opposite. */
bool options_is_on(const struct option_spec *spec)
{
	return spec->kind == OPTION_FLAG && spec->initial && strcmp(spec->initial, "true") == 0;
}

void options_value_word(const struct option_spec *spec, struct buf *out)
{
	if (spec->kind == OPTION_FLAG)
		return;
	if (spec->kind == OPTION_PERIOD)
		buf_printf(out, "[=%s]", spec->value);
	else if (spec->value)
		buf_add_str(out, spec->value);
	else if (spec->kind != OPTION_CHOICE)
		buf_add_str(out, "VALUE");
	else
		for (size_t i = 0; spec->choices[i]; i++)
			buf_printf(out, "%s%s", i ? "|" : "", spec->choices[i]);
}

static void add_note(struct buf *notes, const char *before, const char *text)
{
	buf_printf(notes, "%s%s%s", notes->len ? "; " : " [", before, text);
}

void options_meaning(const struct option_program *program, const struct option_spec *spec,
		     struct buf *out)
{
	struct buf notes = BUF_INIT, range = BUF_INIT;

	if (options_is_list(spec))
		add_note(&notes, "", "repeatable");
	if (spec->initial && spec->initial[0] && spec->kind != OPTION_FLAG)
		add_note(&notes, "default ", spec->initial);
	options_range(spec, &range);
	if (range.len)
		add_note(&notes, "", range.data);
	if (program->env_prefix && !options_only_typed(spec)) {
		char *name = options_env_name(program, spec->name);

		add_note(&notes, "", name);
		if (options_is_on(spec))
			buf_add_str(&notes, "=false");
		free(name);
	}
	buf_add_str(out, spec->help);
	if (notes.len)
		buf_printf(out, "%s]", notes.data);
	buf_fini(&notes);
	buf_fini(&range);
}

void options_help_rows(const struct option_program *program, struct buf *out)
{
	struct buf flags = BUF_INIT, meaning = BUF_INIT;

	for (const struct option_spec *spec = program->specs; spec->name; spec++) {
		const char *no;

		buf_clear(&flags);
		buf_clear(&meaning);
		/* "  -o, --output table|wide|json" */
		no = options_is_on(spec) ? "no-" : "";
		if (spec->letter)
			buf_printf(&flags, "  -%c, --%s%s", spec->letter, no, spec->name);
		else
			buf_printf(&flags, "      --%s%s", no, spec->name);
		if (!options_stands_alone(spec))
			buf_add_char(&flags, ' ');
		options_value_word(spec, &flags);
		options_meaning(program, spec, &meaning);
		buf_add_str(out, flags.data);
		if (flags.len + 2 > HELP_COLUMN) {
			buf_add_char(out, '\n');
			pad(out, HELP_COLUMN);
		} else {
			pad(out, HELP_COLUMN - flags.len);
		}
		options_wrap(out, meaning.data, OPTIONS_WIDTH, HELP_COLUMN, HELP_COLUMN);
	}
	buf_fini(&flags);
	buf_fini(&meaning);
}

void options_help(const struct option_program *program, struct buf *out)
{
	buf_printf(out, "Usage: %s %s\n\n", program->name, program->usage);
	options_wrap(out, program->summary, OPTIONS_WIDTH, 0, 0);
	buf_add_str(out, "\nOptions:\n");
	options_help_rows(program, out);
}
