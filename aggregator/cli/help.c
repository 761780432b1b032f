/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people read before they use a command: its usage, three examples, the words of its tables
 * and its own options. Options of all commands, and all words, are commands of their own. All of it
 * is made from the tables that parsing and the manual page use. Beside them the other commands that
 * are about the program itself: completion and version.
 */
#include "aggregator/cli/commands.h"

#include <string.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/columns.h"
#include "shared/document.h"
#include "shared/jsonw.h"

enum { WORD_COLUMN = 19 };

static const char exit_status[] =
	"\nExit status: 0 success; 1 error; 2 wrong usage; 3 refused, or a check failed;\n"
	"4 all usage (or what was named; with --strict any) is stale or missing.\n";

static void add_examples(const struct cli_spec_example *e, struct buf *out)
{
	if (!e->line)
		return;
	buf_add_str(out, "\nExamples:\n");
	for (; e->line; e++) {
		buf_printf(out, "  %s\n        ", e->line);
		options_wrap(out, e->meaning, OPTIONS_WIDTH, 8, 8);
	}
}

static const struct option_note *first_word(void)
{
	const struct option_note *note = cli_manual;

	while (!note->section || strcmp(note->section, CLI_GLOSSARY) != 0)
		note++;
	return note;
}

static void add_word(const struct option_note *note, struct buf *out)
{
	buf_printf(out, "  %-*s", WORD_COLUMN - 2, note->term);
	options_wrap(out, note->text, OPTIONS_WIDTH, WORD_COLUMN, WORD_COLUMN);
}

/* NULL-terminated; each is in the glossary. */
static void add_words(const char *const *words, struct buf *out)
{
	if (!*words)
		return;
	buf_add_str(out, "\nWords:\n");
	for (; *words; words++) {
		const struct option_note *note = first_word();

		while (strcmp(note->term, *words) != 0)
			note++;
		add_word(note, out);
	}
}

void help_of_command(const char *base, const struct command *c, struct buf *out)
{
	const struct option_program own = {.specs = c->specs, .env_prefix = "EVENKEEL_"};

	buf_printf(out, "Usage: %s %s%s%s [OPTION..]\n\n", base, c->name, c->usage ? " " : "",
		   c->usage ? c->usage : "");
	if (c->details)
		options_wrap(out, c->details, OPTIONS_WIDTH, 0, 0);
	else
		buf_printf(out, "%s.\n", c->summary);
	add_examples(c->examples, out);
	add_words(c->terms, out);
	if (c->specs) {
		buf_add_str(out, "\nOptions:\n");
		options_help_rows(&own, out);
	}
	buf_printf(out, "\nOptions of all commands: %s options\nAll words: %s glossary\n", base,
		   base);
	if (!c->verdict)
		buf_add_str(out, exit_status);
}

void help_of_program(const char *base, const char *usage, const char *summary,
		     const struct command *const *commands, size_t count, struct buf *out)
{
	static const struct cli_spec_example examples[] = {
		{"evenkeel nodes", "Allocatable, requests, limits and use of every node."},
		{"evenkeel scores --pod web.yaml --explain",
		 "The best node for a pod, with every term of its score."},
		{"evenkeel doctor", "Faults and their remedies."},
		{0},
	};

	buf_printf(out, "Usage: %s %s\n\n", base, usage);
	options_wrap(out, summary, OPTIONS_WIDTH, 0, 0);
	buf_add_str(out, "\nCommands:\n");
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "  %-12s%s.\n", commands[i]->name, commands[i]->summary);
	buf_printf(out, "  %-12s%s.\n", "help", "Show the help of a command: help COMMAND");
	add_examples(examples, out);
	buf_add_str(out, exit_status);
}

/* --- commands --------------------------------------------------------------------------------- */

static int run_options(struct cli *cli)
{
	const struct option_program common = {.specs = commands_common, .env_prefix = "EVENKEEL_"};

	buf_add_str(&cli->out, "Options of all commands:\n");
	options_help_rows(&common, &cli->out);
	buf_add_str(&cli->out, exit_status);
	return CLI_OK;
}

static int run_glossary(struct cli *cli)
{
	const struct option_note *note = first_word();

	do
		add_word(note++, &cli->out);
	while (note->text && !note->section);
	return CLI_OK;
}

const struct command command_options = {
	.name = "options",
	.summary = "Show the options that all commands have",
	.server = CLI_SERVER_UNUSED,
	.run = run_options,
};

const struct command command_glossary = {
	.name = "glossary",
	.summary = "Explain the words of tables and answers",
	.server = CLI_SERVER_UNUSED,
	.run = run_glossary,
};

/* --- completion ------------------------------------------------------------------------------- */

static int run_completion(struct cli *cli)
{
	static const char shells[] = "bash, zsh or fish";

	if (cli->operand_count != 1)
		return cli_misuse(cli, "completion: say for which shell: %s", shells);
	if (!cli_spec_script("evenkeel", cli->operands[0], &cli->out))
		return cli_misuse(cli, "completion: \"%s\" is not known; it is %s",
				  cli->operands[0], shells);
	return CLI_OK;
}

const struct command command_completion = {
	.name = "completion",
	.usage = "bash|zsh|fish",
	.summary = "Print what completes this command's arguments in a shell",
	.details = "Prints what completes this command's arguments in a shell, for the file that "
		   "the shell reads where it starts. Packages have done so already.",
	.examples = {{"source <(evenkeel completion bash)", "In ~/.bashrc."},
		     {"source <(evenkeel completion zsh)", "In ~/.zshrc, after compinit."},
		     {"evenkeel completion fish | source", "In ~/.config/fish/config.fish."}},
	.words = cli_spec_shells,
	.server = CLI_SERVER_UNUSED,
	.run = run_completion,
};

/* --- versions --------------------------------------------------------------------------------- */

static void print_json(struct cli *cli, const char *server)
{
	struct jsonw w;

	jsonw_begin(&w, &cli->out);
	jsonw_key_string(&w, "client", EVENKEEL_VERSION);
	if (server)
		jsonw_key_string(&w, "server", server);
	jsonw_object_close(&w);
	buf_add_char(&cli->out, '\n');
}

static void print_table(struct cli *cli, const char *server)
{
	struct table *t = table_new();

	table_column(t, "PART", FORM_LEFT);
	table_column(t, "VERSION", FORM_LEFT);
	table_column(t, "WHERE", FORM_LEFT);
	table_row(t, "1");
	table_cell(t, PAINT_PLAIN, "client");
	table_cell(t, PAINT_PLAIN, EVENKEEL_VERSION);
	table_row(t, "2");
	table_cell(t, PAINT_PLAIN, "server");
	table_cell(t, PAINT_PLAIN, server ? server : "-");
	table_cell(t, PAINT_PLAIN, cli->client ? client_server(cli->client) : "-");
	columns_print(cli, t, "version");
	table_free(t);
}

/* Of this program, and of the server where one answers. No server is no error. */
static int run_version(struct cli *cli)
{
	cJSON *status = NULL;
	const char *server = NULL;

	if (cli->client &&
	    client_ask(cli->client, "/v1/status", NULL, &status, &cli->reason) == 0) {
		server = document_text(status, "version");
		if (!server)
			error_set(&cli->reason, "%s does not say its version",
				  client_server(cli->client));
	}
	if (cli->options->output == OUTPUT_JSON)
		print_json(cli, server);
	else
		print_table(cli, server);
	cJSON_Delete(status);
	return CLI_OK;
}

const struct command command_version = {
	.name = "version",
	.summary = "Show the versions of this program and of the server",
	.examples = {{"evenkeel version", "Both versions."},
		     {"evenkeel version -o json", "For another program."},
		     {"evenkeel --version", "That of this program alone."}},
	.server = CLI_SERVER_OPTIONAL,
	.run = run_version,
};
