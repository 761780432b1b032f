/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel version: of this program, and of the server where one answers. The server says its
 * version in its metrics, as evenkeel_build_info{version="X"}. No server is no error: the question
 * is answered as far as it can be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/cli.h"
#include "aggregator/cli/client.h"
#include "aggregator/cli/commands.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/table.h"

static const struct option_spec specs[] = {{0}};

/* NULL when the metrics do not say; the caller frees it. */
static char *find_version(const char *metrics)
{
	static const char family[] = "\nevenkeel_build_info{", label[] = "version=\"";
	const char *at = strstr(metrics, family), *end;

	if (!at)
		return NULL;
	at += strlen(family);
	end = at + strcspn(at, "\n");
	at = strstr(at, label);
	if (!at || at > end)
		return NULL;
	at += strlen(label);
	return mem_strndup(at, strcspn(at, "\"\n"));
}

static void print_json(struct cli *cli, const char *server)
{
	struct jsonw w;

	jsonw_init(&w, &cli->out);
	jsonw_object_open(&w);
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
	table_cell(t, PAINT_PLAIN, client_server(cli->client));
	commands_print_table(cli, t, "version");
	table_free(t);
}

static int run(struct cli *cli)
{
	struct buf metrics = BUF_INIT;
	char *server = NULL;

	if (client_get(cli->client, "/metrics", &metrics, &cli->reason) == 0) {
		server = find_version(metrics.data);
		if (!server)
			reason_set(&cli->reason, "%s does not say its version",
				   client_server(cli->client));
	}
	if (cli->options->output == OUTPUT_JSON)
		print_json(cli, server);
	else
		print_table(cli, server);
	free(server);
	buf_fini(&metrics);
	return CLI_OK;
}

static const struct outline_example examples[] = {
	{"evenkeel version", "Both versions."},
	{"evenkeel version -o json", "For another program."},
	{"evenkeel --version", "That of this program alone."},
	{0},
};

const struct command command_version = {
	.name = "version",
	.usage = "",
	.summary = "Show the versions of this program and of the server",
	.examples = examples,
	.specs = specs,
	.run = run,
};
