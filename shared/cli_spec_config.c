/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that packages install: the options, their meanings and defaults, all commented out
 * except those the caller sets.
 */
#include "shared/options_internal.h"
#include "shared/cli_spec.h"

#include <errno.h>
#include <string.h>

enum { WIDTH = 99 };

/* Wraps text into lines after "# ". */
static void add_comment(struct buf *out, const char *text)
{
	struct buf lines = BUF_INIT;
	char *rest, *line;

	options_wrap(&lines, text, WIDTH, 0, 0);
	rest = lines.data;
	while ((line = strsep(&rest, "\n")) && rest)
		buf_printf(out, "# %s\n", line);
	buf_fini(&lines);
}

/* A value in YAML; strings are quoted. */
static void add_scalar(const struct option_spec *spec, const char *text, size_t len,
		       struct buf *out)
{
	bool quoted = spec->kind == OPTION_STRING || options_is_list(spec);

	buf_add_str(out, quoted ? "\"" : "");
	buf_add(out, text, len);
	buf_add_str(out, quoted ? "\"" : "");
}

static void add_value(const struct option_spec *spec, const char *text, struct buf *out)
{
	const char *separator = spec->kind == OPTION_RECORDS ? ";" : ",";

	if (!options_is_list(spec)) {
		add_scalar(spec, text, strlen(text), out);
		return;
	}
	buf_add_char(out, '[');
	for (bool first = true; *text; first = false) {
		size_t len = strcspn(text, separator);

		buf_add_str(out, first ? "" : ", ");
		add_scalar(spec, text, len, out);
		text += len + (text[len] == *separator);
	}
	buf_add_char(out, ']');
}

static void add_default(const struct option_spec *spec, struct buf *out)
{
	struct buf word = BUF_INIT;

	if (spec->initial)
		add_value(spec, spec->initial, out);
	else if (options_stands_alone(spec))
		buf_add_str(out, "false");
	else if (options_is_list(spec))
		buf_add_str(out, "[]");
	else {
		options_value_word(spec, &word);
		buf_add_str(out, word.data);
	}
	buf_fini(&word);
}

/* The value of the "NAME=VALUE" with this name, or NULL. */
static const char *find_set(const struct option_list *set, const struct option_spec *spec)
{
	size_t len = strlen(spec->name);

	for (size_t i = 0; i < set->count; i++)
		if (strncmp(set->items[i], spec->name, len) == 0 && set->items[i][len] == '=')
			return set->items[i] + len + 1;
	return NULL;
}

static void add_option(const struct option_program *program, const struct option_spec *spec,
		       const char *value, struct buf *out)
{
	struct buf meaning = BUF_INIT;

	options_meaning(program, spec, &meaning);
	buf_add_char(out, '\n');
	if (options_is_on(spec))
		buf_printf(out, "# false: %s\n", spec->help);
	else
		add_comment(out, meaning.data);
	buf_printf(out, "%s%s: ", value ? "" : "#", spec->name);
	if (value)
		add_value(spec, value, out);
	else
		add_default(spec, out);
	buf_add_char(out, '\n');
	buf_fini(&meaning);
}

static bool is_setting(const struct option_program *program, const struct option_spec *spec)
{
	return !options_only_typed(spec) &&
	       !(program->config_name && strcmp(spec->name, program->config_name) == 0);
}

static int check_set(const struct option_program *program, const struct option_list *set,
		     struct error *error)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct option_spec *spec = program->specs;

		while (spec->name && !(is_setting(program, spec) &&
				       find_set(&(struct option_list){&set->items[i], 1}, spec)))
			spec++;
		if (!spec->name)
			return error_fail(error, -EINVAL,
					  "__config: \"%.100s\" is no NAME=VALUE of an option",
					  set->items[i]);
	}
	return 0;
}

int cli_spec_config(const struct option_program *program, const struct option_list *set,
		    struct buf *out, struct error *error)
{
	/* A file has no variables. */
	struct option_program quiet = *program;

	if (check_set(program, set, error))
		return -EINVAL;
	quiet.env_prefix = NULL;
	buf_printf(out,
		   "# What %s does; see its manual page. Lines without a sign before them differ "
		   "from the defaults.\n"
		   "# The command line overrides the environment (%sKEY_FILE for key-file), and "
		   "that this file.\n",
		   program->name, program->env_prefix ? program->env_prefix : "");
	for (const struct option_spec *spec = program->specs; spec->name; spec++)
		if (is_setting(program, spec))
			add_option(&quiet, spec, find_set(set, spec), out);
	return 0;
}
