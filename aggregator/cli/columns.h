/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a command's table, as one list: which there are, and when they are left out. */
#ifndef EVENKEEL_AGGREGATOR_CLI_COLUMNS_H
#define EVENKEEL_AGGREGATOR_CLI_COLUMNS_H

#include <cjson/cJSON.h>

#include "aggregator/cli/cli.h"
#include "shared/table.h"

struct column_spec {
	const char *title;
	enum table_form form;
	bool wide; /* only with -o wide */
	bool sparse; /* left out where no row has anything in it: each cell is one of `empty` */
	size_t spare; /* > 0: the order in which narrow terminals lose it */
};

/* What -o csv has of an item: a value as the API tells it, with its unit in the title. */
struct csv_field {
	const char *title;
	const char *path; /* of a number, text or truth; what is absent or null is empty */
};

/* A table without rows; the caller frees it. */
struct table *columns_start(const struct column_spec *columns, size_t count);
/* Once all rows are there. empty ends with NULL. */
void columns_hide(const struct cli *cli, struct table *t, const struct column_spec *columns,
		  size_t count, const char *const *empty);

/* Behind the columns of a table: nothing, but with -o csv. */
void csv_columns(const struct cli *cli, struct table *t, const struct csv_field *fields,
		 size_t count);
/* Behind the cells of a row. */
void csv_cells(const struct cli *cli, struct table *t, const cJSON *item,
	       const struct csv_field *fields, size_t count);
/* One of either, for what is no member of an item; value NaN or NULL: nothing. */
void csv_column(const struct cli *cli, struct table *t, const char *title);
void csv_number(const struct cli *cli, struct table *t, double value);
void csv_text(const struct cli *cli, struct table *t, const char *text);

#endif
