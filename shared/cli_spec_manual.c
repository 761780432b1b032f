/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manual page in the order of man-pages(7): name, synopsis, description, commands, options, other
 * sources of options, then the program's notes (files, signals, exit status, examples). Texts are
 * plain English and are escaped for roff here only.
 */
#include "shared/options_internal.h"
#include "shared/cli_spec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

static void add_escaped(struct buf *out, const char *text)
{
	static const char *const escapes[256] = {
		['\\'] = "\\e",	 ['-'] = "\\-",	  ['\''] = "\\(aq",
		['`'] = "\\(ga", ['^'] = "\\(ha", ['~'] = "\\(ti",
	};

	for (; *text; text++) {
		const char *escape = escapes[(unsigned char)*text];

		if (escape)
			buf_add_str(out, escape);
		else
			buf_add_char(out, *text);
	}
}

static void add(struct buf *out, const char *text)
{
	/* A dot at the beginning of a line is a request. */
	if (*text == '.')
		buf_add_str(out, "\\&");
	add_escaped(out, text);
}

static void add_line(struct buf *out, const char *text)
{
	add(out, text);
	buf_add_char(out, '\n');
}

static void add_font(struct buf *out, char font, const char *text)
{
	buf_printf(out, "\\f%c", font);
	add_escaped(out, text);
	buf_add_str(out, "\\fR");
}

/* --- options ---------------------------------------------------------------------------------- */

static void add_option(const struct option_program *program, const struct option_spec *spec,
		       struct buf *out)
{
	struct buf text = BUF_INIT;

	buf_add_str(out, ".TP\n");
	if (spec->letter) {
		char letter[] = {'-', spec->letter, '\0'};

		add_font(out, 'B', letter);
		buf_add_str(out, ", ");
	}
	buf_printf(&text, "--%s%s", options_is_on(spec) ? "no-" : "", spec->name);
	add_font(out, 'B', text.data);
	buf_clear(&text);
	options_value_word(spec, &text);
	if (text.len) {
		if (!options_stands_alone(spec))
			buf_add_char(out, ' ');
		add_font(out, 'I', text.data);
	}
	buf_add_char(out, '\n');
	buf_clear(&text);
	options_meaning(program, spec, &text);
	add_line(out, text.data);
	buf_fini(&text);
}

static void add_options(const struct option_program *program, const struct option_spec *specs,
			struct buf *out)
{
	for (; specs->name; specs++)
		add_option(program, specs, out);
}

static void add_sources(const struct option_program *program, struct buf *out)
{
	if (!program->env_prefix)
		return;
	buf_add_str(out, ".SH ENVIRONMENT\n");
	buf_printf(out,
		   "The variable that an option names in brackets stands for that option; a list "
		   "is separated by commas, records by semicolons, and a flag is true or false.\n"
		   "The command line overrides the environment%s.\n",
		   program->config_name ? ", and that the configuration file" : "");
	if (program->config_name) {
		buf_add_str(out, ".SH CONFIGURATION FILE\nThe file of ");
		buf_printf(out, "\\fB\\-\\-%s\\fR", program->config_name);
		buf_add_str(out, " is YAML: one mapping of long option names to values; a list is "
				 "a sequence.\n"
				 "What is unknown or out of range stops the start, with the line "
				 "and the reason.\n");
	}
}

/* --- sections --------------------------------------------------------------------------------- */

/* The summary as a phrase: "samples the use .." */
static void add_name(const struct option_program *program, struct buf *out)
{
	char *summary = mem_strdup(program->summary);
	size_t len = strlen(summary);

	summary[0] = (char)tolower((unsigned char)summary[0]);
	if (len && summary[len - 1] == '.')
		summary[len - 1] = '\0';
	buf_add_str(out, ".SH NAME\n");
	add(out, program->name);
	buf_add_str(out, " \\- ");
	add_line(out, summary);
	free(summary);
}

static void add_note(const struct option_note *note, struct buf *out)
{
	if (note->term) {
		buf_add_str(out, ".TP\n");
		add_font(out, 'B', note->term);
		buf_add_char(out, '\n');
		add_line(out, note->text);
	} else if (note->text[0] == '\t') {
		buf_add_str(out, ".PP\n.RS 4\n.nf\n");
		add_line(out, note->text + 1);
		buf_add_str(out, ".fi\n.RE\n");
	} else {
		buf_add_str(out, ".PP\n");
		add_line(out, note->text);
	}
}

/* The notes of a section, from the first one. */
static const struct option_note *add_notes(const struct option_note *note, struct buf *out)
{
	buf_printf(out, ".SH %s\n", note->section);
	do
		add_note(note++, out);
	while (note->text && !note->section);
	return note;
}

static void add_command(const struct cli_spec *o, const struct cli_spec_command *command,
			struct buf *out)
{
	buf_printf(out, ".SS %s", command->name);
	if (command->usage[0])
		buf_add_char(out, ' ');
	add_line(out, command->usage);
	add(out, command->summary);
	buf_add_str(out, ".\n");
	if (command->details) {
		buf_add_str(out, ".PP\n");
		add_line(out, command->details);
	}
	for (const struct cli_spec_example *e = command->examples; e && e->line; e++) {
		buf_add_str(out, ".PP\n");
		add_line(out, e->meaning);
		buf_add_str(out, ".PP\n.RS 4\n.nf\n");
		add_line(out, e->line);
		buf_add_str(out, ".fi\n.RE\n");
	}
	add_options(o->program, command->specs, out);
}

void cli_spec_manual(const struct cli_spec *o, struct buf *out)
{
	const struct option_note *note = o->program->manual;

	buf_add_str(out, ".TH ");
	for (const char *p = o->program->name; *p; p++) {
		char upper[] = {(char)toupper((unsigned char)*p), '\0'};

		add_escaped(out, upper);
	}
	buf_printf(out, " %d \"\" \"evenkeel %s\" \"%s\"\n.nh\n.ad l\n", o->section,
		   EVENKEEL_VERSION, o->section == 8 ? "System Administration" : "User Commands");
	add_name(o->program, out);
	buf_add_str(out, ".SH SYNOPSIS\n");
	add_font(out, 'B', o->program->name);
	buf_add_char(out, ' ');
	add_line(out, o->program->usage);
	if (note && note->text && note->section && strcmp(note->section, "DESCRIPTION") == 0)
		note = add_notes(note, out);
	if (o->command_count)
		buf_add_str(out, ".SH COMMANDS\n");
	for (size_t i = 0; i < o->command_count; i++)
		add_command(o, &o->commands[i], out);
	buf_add_str(out, ".SH OPTIONS\n");
	add_options(o->program, o->program->specs, out);
	add_sources(o->program, out);
	while (note && note->text)
		note = add_notes(note, out);
}
