/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands make two things: the API's object as JSON, or a table with words around it. The other
 * forms are made of these, when the command has run, and so no command knows of them:
 *
 *   json   the API's text; on a terminal with line breaks and indents in between
 *   yaml   the JSON, written as YAML. Numbers are as JSON readers have them: beyond 2^53 rounded
 *   csv    the wide table, every column; no words
 *   name   KIND/NAME of each row that is an object's, as kubectl has it; of pods KIND/NAMESPACE/NAME
 *
 * Tables are made of cells that are clean for terminals (shared/utf8.h), JSON is escaped here.
 */
#include "aggregator/cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include "shared/json_yaml.h"
#include "shared/log.h"
#include "shared/mem.h"
#include "shared/utf8.h"

/* What --format of slack says of -o yaml: the API's object, .. */
enum { FORMAT_OBJECT, FORMAT_BALLOONS };

bool output_is_rows(enum cli_output form)
{
	return form == OUTPUT_CSV || form == OUTPUT_NAME;
}

const char *const output_names[] = {
	"table",	   "wide", "json",  "yaml", "csv",	"name",	    "commands",
	"soft-taints",	   "plan", "patch", "vpa",  "scenario", "snapshot", "balloons",
	"capacitybuffers", NULL};

/* Commands that alone have a form. */
static const char *const owners[] = {
	[OUTPUT_COMMANDS] = "drain",  [OUTPUT_SOFT_TAINTS] = "drain", [OUTPUT_PLAN] = "drain",
	[OUTPUT_PATCH] = "advise",    [OUTPUT_VPA] = "advise",	      [OUTPUT_SCENARIO] = "advise",
	[OUTPUT_SNAPSHOT] = "whatif", [OUTPUT_BALLOONS] = "slack",    [OUTPUT_BUFFERS] = "slack",
};

int output_check(const struct cli_options *o, const struct command *command, struct error *reason)
{
	bool rows = output_is_rows((enum cli_output)o->output);
	const char *owner = owners[o->output];

	if (owner && strcmp(command->name, owner) != 0)
		return error_fail(reason, CLI_USAGE, "-o %s goes with %s", output_names[o->output],
				  owner);
	if (rows && !command->lists)
		return error_fail(reason, CLI_USAGE,
				  "-o csv and -o name go with lists; take -o json or yaml here");
	if (rows && o->explain)
		return error_fail(
			reason, CLI_USAGE,
			"--explain has no rows: it goes with -o table, wide, json and yaml");
	return CLI_OK;
}

enum cli_output output_choose(struct cli_options *o)
{
	enum cli_output form = (enum cli_output)o->output;

	if (form == OUTPUT_YAML && o->format != FORMAT_OBJECT)
		form = o->format == FORMAT_BALLOONS ? OUTPUT_BALLOONS : OUTPUT_BUFFERS;
	o->output = output_is_rows(form)  ? OUTPUT_WIDE
		    : form == OUTPUT_YAML ? OUTPUT_JSON
					  : (int)form;
	return form;
}

struct names {
	struct buf *out;
	const char *kind;
	size_t unclean;
};

/* Whether it is one word, as names are; classes of slack, and names with their kind, have slashes. */
static bool is_one_word(const struct names *n, const char *name)
{
	bool slashes = !*n->kind || strcmp(n->kind, "slack") == 0;

	return utf8_is_clean(name) && !name[strcspn(name, slashes ? " " : " /")];
}

/*
 * A pod's row has its namespace on a line of its own, which is empty for what is no pod of an API.
 * Cleaned, a name would be another object's. A row without a name is no object.
 */
static void add_name(void *context, const char *name)
{
	struct names *n = context;
	const char *line = strchr(name, '\n');
	char *namespace = mem_strndup(name, line ? (size_t)(line - name) : 0);
	const char *own = line ? line + 1 : name;

	if (is_one_word(n, namespace) && is_one_word(n, own) && *own)
		buf_printf(n->out, "%s%s%s%s%s\n", n->kind, *n->kind ? "/" : "", namespace,
			   *namespace ? "/" : "", own);
	else if (*own)
		n->unclean++;
	free(namespace);
}

void output_rows(struct cli *cli, const struct table *t, const char *kind)
{
	struct names names = {.out = &cli->rows, .kind = kind};

	if (cli->form == OUTPUT_CSV)
		table_print_csv(t, !cli->options->no_headers, &cli->rows);
	else
		table_each_name(t, add_name, &names);
	if (names.unclean)
		log_info("%zu left out: there are blanks, slashes or unprintable characters in "
			 "their names",
			 names.unclean);
}

static void break_line(struct buf *out, size_t depth)
{
	buf_printf(out, "\n%*s", (int)(2 * depth), "");
}

/* The length of the string that starts here, with its quotes. */
static size_t string_length(const char *text, const char *end)
{
	const char *p = text + 1;

	while (p < end && *p != '"')
		p += *p == '\\' && p + 1 < end ? 2 : 1;
	return (size_t)(p - text) + (p < end);
}

/* Only blanks between values change: numbers stay as the API wrote them. */
void output_indent(const char *json, size_t len, struct buf *out)
{
	const char *end = json + len;
	size_t depth = 0, taken;

	for (const char *p = json; p < end; p += taken) {
		bool opens = *p == '{' || *p == '[', closes = *p == '}' || *p == ']';
		bool empty = out->len && strchr("{[", out->data[out->len - 1]);

		taken = *p == '"' ? string_length(p, end) : 1;
		if (strchr(" \t\r\n", *p))
			continue;
		depth -= closes && depth;
		if (empty != closes)
			break_line(out, depth);
		buf_add(out, p, taken);
		depth += opens;
		if (*p == ',')
			break_line(out, depth);
		if (*p == ':')
			buf_add_char(out, ' ');
	}
	buf_add_char(out, '\n');
}

static void show_json(struct cli *cli)
{
	struct buf text = BUF_INIT, clean = BUF_INIT;

	if (cli->form == OUTPUT_JSON && cli->terminal)
		output_indent(cli->out.data, cli->out.len, &text);
	else
		buf_add(&text, cli->out.data, cli->out.len);
	utf8_add_json(&clean, text.data, text.len);
	buf_fini(&text);
	buf_fini(&cli->out);
	cli->out = clean;
}

int output_finish(struct cli *cli, int code)
{
	if (cli->out.len && (cli->form == OUTPUT_JSON || cli->form >= OUTPUT_SNAPSHOT))
		show_json(cli);
	if (cli->form == OUTPUT_YAML) {
		cJSON *object;

		if (!cli->out.len)
			return code;
		object = cJSON_ParseWithLength(cli->out.data, cli->out.len);
		buf_clear(&cli->out);
		if (!object)
			return error_fail(
				&cli->reason, CLI_ERROR,
				"the answer is not JSON; is that an evenkeel-aggregator?");
		json_yaml_write(object, cli->options->watch_ns > 0, &cli->out);
		cJSON_Delete(object);
		return code;
	}
	if (output_is_rows(cli->form)) {
		buf_clear(&cli->out);
		buf_add(&cli->out, cli->rows.data ? cli->rows.data : "", cli->rows.len);
	}
	return code;
}
