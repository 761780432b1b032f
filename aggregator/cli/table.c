/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells are collected first, widths follow from them. Columns are two blanks apart; the last printed one is not
 * padded, so that lines carry no trailing blanks. On a terminal that is too narrow the widest name column gives way, one
 * place at a time, down to NAME_LEAST; numbers are never cut. Names keep both ends, since those tell pods apart.
 */
#include "aggregator/cli/table.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/mem.h"

enum { GAP = 2, NAME_LEAST = 8 };

struct column {
	char *title; /* owned */
	enum table_form form;
	bool hidden;
};

struct cell {
	char *text; /* owned */
	enum table_paint paint;
};

struct row {
	char *name; /* owned */
	struct cell *cells; /* owned; one for each column */
	size_t filled, order;
	double key;
};

struct table {
	struct column *columns; /* owned */
	size_t column_count;
	struct row *rows; /* owned */
	size_t row_count, row_room;
};

static const char *const paints[] = {
	[PAINT_PLAIN] = "",
	[PAINT_WARN] = "\033[33m",
	[PAINT_BAD] = "\033[31m",
	[PAINT_DIM] = "\033[2m",
};

struct table *table_new(void)
{
	return mem_zalloc(1, sizeof(struct table));
}

static void free_row(struct row *row, size_t columns)
{
	for (size_t i = 0; i < columns; i++)
		free(row->cells[i].text);
	free(row->cells);
	free(row->name);
}

void table_free(struct table *t)
{
	if (!t)
		return;
	table_limit(t, 0);
	for (size_t i = 0; i < t->column_count; i++)
		free(t->columns[i].title);
	free(t->columns);
	free(t->rows);
	free(t);
}

/* A copy of text in which no byte can move a terminal's cursor. */
static char *clean(const char *text)
{
	char *copy = mem_strdup(text);

	for (char *p = copy; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = '?';
	return copy;
}

void table_column(struct table *t, const char *title, enum table_form form)
{
	assert(t->row_count == 0);
	t->columns = mem_realloc(t->columns, (t->column_count + 1) * sizeof(*t->columns));
	t->columns[t->column_count++] = (struct column){.title = clean(title), .form = form};
}

void table_row(struct table *t, const char *name)
{
	if (t->row_count == t->row_room) {
		t->row_room = t->row_room ? 2 * t->row_room : 32;
		t->rows = mem_realloc(t->rows, t->row_room * sizeof(*t->rows));
	}
	t->rows[t->row_count] = (struct row){
		.name = mem_strdup(name),
		.cells = mem_zalloc(t->column_count, sizeof(struct cell)),
		.order = t->row_count,
		.key = NAN,
	};
	t->row_count++;
}

static struct row *newest(struct table *t)
{
	assert(t->row_count > 0);
	return &t->rows[t->row_count - 1];
}

void table_cell(struct table *t, enum table_paint paint, const char *text)
{
	struct row *row = newest(t);

	assert(row->filled < t->column_count);
	row->cells[row->filled++] = (struct cell){.text = clean(text), .paint = paint};
}

void table_key(struct table *t, double key)
{
	newest(t)->key = key;
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	int names;

	if (isnan(a->key) != isnan(b->key))
		return isnan(a->key) ? 1 : -1;
	if (a->key != b->key && !isnan(a->key))
		return a->key > b->key ? -1 : 1;
	names = strcmp(a->name, b->name);
	if (names)
		return names;
	return a->order < b->order ? -1 : 1;
}

void table_sort(struct table *t)
{
	if (t->row_count > 1)
		qsort(t->rows, t->row_count, sizeof(*t->rows), compare_rows);
}

size_t table_rows(const struct table *t)
{
	return t->row_count;
}

void table_limit(struct table *t, size_t most)
{
	while (t->row_count > most)
		free_row(&t->rows[--t->row_count], t->column_count);
}

void table_hide(struct table *t, size_t column)
{
	assert(column < t->column_count);
	t->columns[column].hidden = true;
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t table_text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += !continues(*text);
	return width;
}

/* Where code point number `at` of text begins. */
static const char *code_point(const char *text, size_t at)
{
	for (; *text; text++)
		if (!continues(*text) && at-- == 0)
			break;
	return text;
}

static void add_spaces(struct buf *out, size_t count)
{
	buf_printf(out, "%*s", (int)count, "");
}

/* text in at most `width` columns: "kube-pro…-x7f9k". Returns how many it took. */
static size_t add_shortened(struct buf *out, const char *text, size_t width)
{
	size_t full = table_text_width(text), tail;
	const char *end;

	if (full <= width) {
		buf_add_str(out, text);
		return full;
	}
	tail = (width - 1) / 2;
	end = code_point(text, width - 1 - tail);
	buf_add(out, text, (size_t)(end - text));
	buf_add_str(out, "…");
	buf_add_str(out, code_point(text, full - tail));
	return width;
}

static void add_cell(struct buf *out, const char *paint, const char *text,
		     const struct column *column, size_t width, bool last)
{
	size_t full = table_text_width(text), taken;

	if (column->form == FORM_RIGHT && full < width)
		add_spaces(out, width - full);
	if (*paint)
		buf_add_str(out, paint);
	taken = add_shortened(out, text, column->form == FORM_NAME ? width : full);
	if (*paint)
		buf_add_str(out, "\033[0m");
	if (column->form != FORM_RIGHT && !last && taken < width)
		add_spaces(out, width - taken);
	if (!last)
		add_spaces(out, GAP);
}

static size_t last_shown(const struct table *t)
{
	size_t last = t->column_count;

	for (size_t i = 0; i < t->column_count; i++)
		if (!t->columns[i].hidden)
			last = i;
	return last;
}

static const char *cell_text(const struct row *row, size_t column)
{
	return row->cells[column].text ? row->cells[column].text : "-";
}

static size_t column_width(const struct table *t, size_t column, bool headers)
{
	size_t width = headers ? table_text_width(t->columns[column].title) : 0;

	for (size_t i = 0; i < t->row_count; i++) {
		size_t cell = table_text_width(cell_text(&t->rows[i], column));

		width = cell > width ? cell : width;
	}
	return width;
}

/* Takes places from the widest name column until the line fits or nothing can give. */
static void shrink(const struct table *t, size_t *widths, size_t total, size_t most)
{
	while (total > most) {
		size_t widest = SIZE_MAX;

		for (size_t i = 0; i < t->column_count; i++)
			if (!t->columns[i].hidden && t->columns[i].form == FORM_NAME &&
			    widths[i] > NAME_LEAST &&
			    (widest == SIZE_MAX || widths[i] > widths[widest]))
				widest = i;
		if (widest == SIZE_MAX)
			return;
		widths[widest]--;
		total--;
	}
}

static void print_headers(const struct table *t, const size_t *widths, size_t last, bool color,
			  struct buf *out)
{
	for (size_t i = 0; i < t->column_count; i++)
		if (!t->columns[i].hidden)
			add_cell(out, color ? "\033[1m" : "", t->columns[i].title, &t->columns[i],
				 widths[i], i == last);
	buf_add_char(out, '\n');
}

void table_print(const struct table *t, const struct table_style *style, struct buf *out)
{
	size_t *widths = mem_zalloc(t->column_count, sizeof(*widths)), total = 0;
	size_t last = last_shown(t);

	for (size_t i = 0; i < t->column_count; i++) {
		widths[i] = t->columns[i].hidden ? 0 : column_width(t, i, style->headers);
		total += t->columns[i].hidden ? 0 : widths[i] + (total ? GAP : 0);
	}
	if (style->width)
		shrink(t, widths, total, style->width);
	if (style->headers)
		print_headers(t, widths, last, style->color, out);
	for (size_t r = 0; r < t->row_count; r++) {
		const struct row *row = &t->rows[r];

		for (size_t i = 0; i < t->column_count; i++)
			if (!t->columns[i].hidden)
				add_cell(out, style->color ? paints[row->cells[i].paint] : "",
					 cell_text(row, i), &t->columns[i], widths[i], i == last);
		buf_add_char(out, '\n');
	}
	free(widths);
}
