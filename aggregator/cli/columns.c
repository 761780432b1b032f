/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/cli/columns.h"

struct table *columns_start(const struct column_spec *columns, size_t count)
{
	struct table *t = table_new();

	for (size_t i = 0; i < count; i++)
		table_column(t, columns[i].title, columns[i].form);
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
