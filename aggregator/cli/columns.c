/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/cli/columns.h"

#include <math.h>
#include <stdio.h>

#include "aggregator/cli/document.h"

struct table *columns_start(const struct column_spec *columns, size_t count)
{
	struct table *t = table_new();

	for (size_t i = 0; i < count; i++)
		table_column(t, columns[i].title, columns[i].form);
	for (size_t order = 1; order <= count; order++)
		for (size_t i = 0; i < count; i++)
			if (columns[i].spare == order)
				table_spare(t, i);
	return t;
}

void columns_hide(const struct cli *cli, struct table *t, const struct column_spec *columns,
		  size_t count, const char *const *empty)
{
	bool wide = cli->options->output == OUTPUT_WIDE;

	for (size_t i = 0; i < count; i++)
		if ((columns[i].wide && !wide) ||
		    (columns[i].sparse && table_holds_only(t, i, empty)))
			table_hide(t, i);
}

/* --- data */

void csv_column(const struct cli *cli, struct table *t, const char *title)
{
	if (cli->form == OUTPUT_CSV)
		table_data_column(t, title);
}

void csv_number(const struct cli *cli, struct table *t, double value)
{
	char text[32];

	if (cli->form != OUTPUT_CSV)
		return;
	snprintf(text, sizeof(text), "%.15g", value);
	table_cell(t, PAINT_PLAIN, isfinite(value) ? text : "-");
}

void csv_text(const struct cli *cli, struct table *t, const char *text)
{
	if (cli->form == OUTPUT_CSV)
		table_cell(t, PAINT_PLAIN, text ? text : "-");
}

void csv_columns(const struct cli *cli, struct table *t, const struct csv_field *fields,
		 size_t count)
{
	for (size_t i = 0; i < count; i++)
		csv_column(cli, t, fields[i].title);
}

void csv_cells(const struct cli *cli, struct table *t, const cJSON *item,
	       const struct csv_field *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const cJSON *value = document_at(item, fields[i].path);

		if (cJSON_IsNumber(value))
			csv_number(cli, t, value->valuedouble);
		else if (cJSON_IsBool(value))
			csv_text(cli, t, cJSON_IsTrue(value) ? "true" : "false");
		else
			csv_text(cli, t, cJSON_GetStringValue(value));
	}
}
