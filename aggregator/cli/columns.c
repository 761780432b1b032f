/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/cli/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/commands.h"
#include "shared/array.h"
#include "shared/mem.h"

const char *const columns_unknown[] = {"-", NULL};
const char *const columns_nothing[] = {"-", "none", "0", NULL};

struct row columns_start(const struct cli *cli, const struct column *columns,
			 const struct csv_field *fields)
{
	struct table *t = table_new();
	char title[32];

	for (const struct column *c = columns; c->title; c++) {
		snprintf(title, sizeof(title), "%s(%s)", c->title,
			 cli_windows[cli->options->window]);
		table_column(t, c->windowed ? title : c->title, c->form);
		table_spare(t, (size_t)(c - columns), c->spare);
	}
	for (const struct csv_field *f = fields; f && f->title; f++)
		csv_column(cli, t, f->title);
	return (struct row){.cli = cli, .columns = columns, .fields = fields, .table = t};
}

void columns_add_row(struct row *r, const char *name, double key)
{
	r->count++;
	table_row(r->table, name);
	table_key(r->table, key);
	for (const struct column *c = r->columns; c->title; c++)
		c->cell(r, c);
	for (const struct csv_field *f = r->fields; f && f->title; f++) {
		const cJSON *value = document_at(r->item, f->path);

		if (cJSON_IsNumber(value))
			csv_number(r, value->valuedouble);
		else if (cJSON_IsBool(value))
			csv_text(r, cJSON_IsTrue(value) ? "true" : "false");
		else
			csv_text(r, cJSON_GetStringValue(value));
	}
}

void columns_add_next(struct row *r, const char *name)
{
	columns_add_row(r, name, -(double)r->count);
}

void columns_show(const struct row *r, size_t index, bool shown)
{
	struct columns_shown *all = r->cli->shown;
	const struct column *column = &r->columns[index];
	struct column_shown *of;
	size_t i = 0, width;

	while (all && i < all->count && all->of[i].column != column)
		i++;
	if (column->empty && table_holds_only(r->table, index, column->empty))
		shown = false;
	if (!shown && (!all || i == all->count)) {
		table_hide(r->table, index);
		return;
	}
	if (!all)
		return;
	if (i == all->count)
		ARRAY_ADD(all->of, all->count) = (struct column_shown){.column = column};
	of = &all->of[i];
	width = table_widen(r->table, index, of->width);
	all->grown |= width > of->width;
	of->width = width;
}

/* A picture that is drawn again and again stays within the terminal; what is printed once may wrap. */
static struct table_style style_of(const struct cli *cli)
{
	return (struct table_style){
		.headers = !cli->options->no_headers,
		.color = cli->color,
		.whole = cli->options->output == OUTPUT_WIDE && !cli->options->watch_ns,
		.width = cli->width,
	};
}

void columns_print(struct cli *cli, struct table *t, const char *kind)
{
	struct table_style style = style_of(cli);

	if (cli->options->output > OUTPUT_WIDE)
		return;
	table_sort(t, cli->options->reverse);
	if (output_is_rows(cli->form))
		table_drop_sums(t);
	if (cli->options->limit > 0)
		table_limit(t, (size_t)cli->options->limit);
	if (output_is_rows(cli->form))
		output_rows(cli, t, kind);
	else
		table_print(t, &style, &cli->out);
}

void columns_end(struct cli *cli, struct row *r, const char *kind)
{
	bool wide = cli->options->output == OUTPUT_WIDE;
	struct table_style style = style_of(cli);

	for (size_t i = 0; r->columns[i].title; i++)
		columns_show(r, i, !(wide ? r->columns[i].narrow : r->columns[i].wide));
	if (kind) {
		columns_print(cli, r->table, kind);
	} else if (r->count) {
		buf_add_char(&cli->out, '\n');
		table_print(r->table, &style, &cli->out);
	}
	table_free(r->table);
}

void columns_print_list(struct cli *cli, const cJSON *doc, const char *list, const char *name,
			const struct column *columns, const struct csv_field *fields,
			const char *kind)
{
	struct row row = columns_start(cli, columns, fields);

	row.doc = doc;
	for (row.item = document_first(doc, list); row.item; row.item = row.item->next)
		columns_add_next(&row, document_text_or(row.item, name, ""));
	columns_end(cli, &row, kind);
}

/* --- cells ------------------------------------------------------------------------------------ */

double row_number(const struct row *r, const char *path)
{
	const char *star = strchr(path, '*');
	char full[96];

	if (!star)
		return document_number(r->item, path);
	snprintf(full, sizeof(full), "%.*s%s%s", (int)(star - path), path,
		 cli_windows[r->cli->options->window], star + 1);
	return document_number(r->item, full);
}

double row_share(const struct row *r, const char *part, const char *whole)
{
	double of = whole ? row_number(r, whole) : 1;

	return of > 0 ? row_number(r, part) / of : NAN;
}

void row_add(const struct row *r, enum table_paint paint, bool known, const char *format, ...)
{
	char *text = NULL;

	if (known)
		MEM_PRINT(text, format);
	table_cell(r->table, paint, known ? text : "-");
	free(text);
}

void row_add_units(const struct row *r, enum table_paint paint, units_print *print, double amount)
{
	char text[UNITS_LEN];

	print(amount, text);
	table_cell(r->table, paint, text);
}

units_print *row_units_of(const char *path)
{
	return strstr(path, "Millicores") ? units_cpu : units_bytes;
}

void cell_text(const struct row *r, const struct column *c)
{
	const char *text = document_text_or(r->item, c->at, "-");
	const struct column_paint *p = c->paints;

	while (p && p->text && strcmp(p->text, text) != 0)
		p++;
	table_cell(r->table, p ? p->paint : PAINT_PLAIN, text);
}

void cell_namespace(const struct row *r, const struct column *c)
{
	const char *namespace = document_text_or(r->item, c->at, "");

	table_cell(r->table, PAINT_PLAIN, *namespace ? namespace : "-");
}

void cell_workload(const struct row *r, const struct column *c)
{
	const cJSON *workload = document_at(r->item, c->at);
	const char *kind = document_text(workload, "kind"), *name = document_text(workload, "name");

	row_add(r, PAINT_PLAIN, kind && name, "%s/%s", kind, name);
}

void cell_ago(const struct row *r, const struct column *c)
{
	row_add_units(r, PAINT_PLAIN, units_age,
		      document_time(r->doc, c->of ? c->of : "time") -
			      document_time(r->item, c->at));
}

void cell_amount(const struct row *r, const struct column *c)
{
	row_add_units(r, PAINT_PLAIN, row_units_of(c->at), row_number(r, c->at));
}

void cell_count(const struct row *r, const struct column *c)
{
	double count = row_number(r, c->at);

	row_add(r, PAINT_PLAIN, isfinite(count), "%.10g", count);
}

void cell_faults(const struct row *r, const struct column *c)
{
	double count = row_number(r, c->at);

	row_add(r, count > 0 ? PAINT_BAD : PAINT_PLAIN, isfinite(count), "%.10g", count);
}

void cell_limit(const struct row *r, const struct column *c)
{
	if (document_is_null(r->item, c->at))
		table_cell(r->table, PAINT_DIM, "none");
	else
		cell_amount(r, c);
}

void cell_pair(const struct row *r, const struct column *c)
{
	double count = row_number(r, c->at), of = row_number(r, c->of);

	row_add(r, PAINT_PLAIN, isfinite(count) && isfinite(of), "%.10g/%.10g", count, of);
}

void cell_share(const struct row *r, const struct column *c)
{
	row_add_units(r, PAINT_PLAIN, units_percent, row_share(r, c->at, c->of));
}

/* --- data ------------------------------------------------------------------------------------- */

void csv_column(const struct cli *cli, struct table *t, const char *title)
{
	if (cli->form == OUTPUT_CSV)
		table_data_column(t, title);
}

void csv_number(const struct row *r, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.15g", value);
	csv_text(r, isfinite(value) ? text : NULL);
}

void csv_text(const struct row *r, const char *text)
{
	if (r->cli->form == OUTPUT_CSV)
		table_cell(r->table, PAINT_PLAIN, text ? text : "-");
}
