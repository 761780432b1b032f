/* SPDX-License-Identifier: Apache-2.0 */
/* The table that a list of nodes or of pods becomes, and the command that fetches the list. */
#ifndef EVENKEEL_AGGREGATOR_CLI_USAGE_TABLE_H
#define EVENKEEL_AGGREGATOR_CLI_USAGE_TABLE_H

#include "aggregator/cli/columns.h"
#include "aggregator/cli/list.h"
#include "aggregator/cli/usage_row.h"
#include "shared/table.h"

struct usage_column {
	const char *title;
	enum table_form form;
	bool wide; /* only there */
	bool windowed; /* the title names the window */
	bool sparse; /* left out where no row has anything in it: nothing known, no limit, none */
};

struct usage_table {
	const struct cli *cli; /* borrowed */
	struct table *table; /* owned */
	struct usage_tally tally;
	bool namespaced; /* any row has a namespace */
	bool stale; /* any is not fresh */
	bool known; /* any is known to a Kubernetes API */
	size_t pages;
};

/* What a table shows. */
struct usage_kind {
	const char *what; /* "node", "pod" */
	const struct usage_column *columns;
	size_t column_count;
	const size_t *spares; /* columns that narrow terminals lose, the first one first */
	size_t spare_count;
	const struct csv_field *fields;
	size_t field_count;
	list_item *item; /* the context is the struct usage_table */
	void (*envelope)(void *context, const cJSON *page); /* see struct list; NULL: none */
	/* Appends to cli->out; the exit code, with cli->reason. */
	int (*finish)(struct usage_table *t, struct cli *cli);
};

void usage_table_init(struct usage_table *t, const struct usage_kind *kind, const struct cli *cli);
void usage_table_fini(struct usage_table *t);
/* Leaves out what is sparse and empty. */
void usage_table_hide_empty(struct usage_table *t, const struct usage_kind *kind);
/*
 * GETs path as list_fetch() does and shows it as the options say; the exit code, with cli->reason.
 */
int usage_table_run(const struct usage_kind *kind, struct cli *cli, const char *path);

#endif
