/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes and pods differ in their columns and rows, not in how a list is fetched and becomes a
 * table. With -o json the table stays empty: rows are only counted, since the exit code depends on
 * them.
 */
#include "aggregator/cli/usage_table.h"

#include <stdio.h>

#include "aggregator/cli/client.h"

void usage_table_init(struct usage_table *t, const struct usage_kind *kind, const struct cli *cli)
{
	char title[32];

	*t = (struct usage_table){.cli = cli, .table = table_new()};
	for (size_t i = 0; i < kind->column_count; i++) {
		const struct usage_column *column = &kind->columns[i];

		snprintf(title, sizeof(title), "%s(%s)", column->title,
			 cli_windows[cli->options->window]);
		table_column(t->table, column->windowed ? title : column->title, column->form);
	}
	for (size_t i = 0; i < kind->spare_count; i++)
		table_spare(t->table, kind->spares[i]);
	csv_columns(cli, t->table, kind->fields, kind->field_count);
	usage_tally_init(&t->tally, cli, kind->what);
}

void usage_table_fini(struct usage_table *t)
{
	table_free(t->table);
	usage_tally_fini(&t->tally);
}

void usage_table_hide_empty(struct usage_table *t, const struct usage_kind *kind)
{
	static const char *const empty[] = {"-", "none", "0", NULL};

	for (size_t i = 0; i < kind->column_count; i++)
		if (kind->columns[i].sparse && table_holds_only(t->table, i, empty))
			table_hide(t->table, i);
}

int usage_table_run(const struct usage_kind *kind, struct cli *cli, const char *path)
{
	struct usage_table table;
	struct list list;
	int rc, code;

	usage_table_init(&table, kind, cli);
	list_init(&list, kind->item, &table);
	list.envelope = kind->envelope;
	rc = list_fetch(&list, cli->client, path, &cli->reason);
	code = client_exit(rc);
	if (rc == 0) {
		if (cli->options->output == OUTPUT_JSON)
			list_print_json(&list, &cli->out);
		code = kind->finish(&table, cli);
	}
	list_fini(&list);
	usage_table_fini(&table);
	return code;
}
