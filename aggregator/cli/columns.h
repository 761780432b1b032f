/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a command's table, as one list: which there are, and when they are left out. */
#ifndef EVENKEEL_AGGREGATOR_CLI_COLUMNS_H
#define EVENKEEL_AGGREGATOR_CLI_COLUMNS_H

#include "aggregator/cli/cli.h"
#include "shared/table.h"

struct column_spec {
	const char *title;
	enum table_form form;
	bool wide; /* only with -o wide */
	bool sparse; /* left out where no row has anything in it: each cell is one of `empty` */
};

/* A table without rows; the caller frees it. */
struct table *columns_start(const struct column_spec *columns, size_t count);
/* Once all rows are there. empty ends with NULL. */
void columns_hide(const struct cli *cli, struct table *t, const struct column_spec *columns,
		  size_t count, const char *const *empty);

#endif
