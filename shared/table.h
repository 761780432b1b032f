/* SPDX-License-Identifier: Apache-2.0 */
/* Column tables for terminals and scripts: aligned, sorted, limited. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shared/buf.h"

enum table_paint { PAINT_PLAIN, PAINT_WARN, PAINT_BAD, PAINT_DIM };

enum table_form {
	FORM_LEFT, /* texts, cut at the end on narrow terminals */
	FORM_RIGHT, /* numbers, never shortened */
	FORM_NAME, /* left, shortened on narrow terminals, but never to equal texts */
};

struct table_style {
	bool headers;
	bool color;
	bool short_names; /* shorten long names before dropping spare columns */
	bool whole; /* shorten nothing if lines do not fit even so */
	size_t width; /* of the terminal, the limit of a line unless `whole`; 0: any */
};

struct table;

struct table *table_new(void);
void table_free(struct table *t);
/* Columns come before rows; the title is copied. */
void table_column(struct table *t, const char *title, enum table_form form);
/* A column for table_print_csv() only. */
void table_data_column(struct table *t, const char *title);
/* Begins a row; the name, which is copied, sorts equal keys. */
void table_row(struct table *t, const char *name);
/* The next cell of the last row, one per column. Unsafe characters become "?" (shared/utf8.h). */
void table_cell(struct table *t, enum table_paint paint, const char *text);
/* The sort key of the last row: greatest first, NaN last. */
void table_key(struct table *t, double key);
/* Marks the last row as a sum of others. */
void table_sums_up(struct table *t);
/* Drops such rows, for lists. */
void table_drop_sums(struct table *t);
/* reversed: least first. Sums stay first, NaN last. */
void table_sort(struct table *t, bool reversed);
/* Drops rows beyond the first `most`. */
void table_limit(struct table *t, size_t most);
/* Whether every cell of the column is one of the texts (NULL-terminated); true without rows. */
bool table_holds_only(const struct table *t, size_t column, const char *const *texts);
/* Makes a column at least so wide; its width, without its title. */
size_t table_widen(struct table *t, size_t column, size_t least);
/* Hides a column. */
void table_hide(struct table *t, size_t column);
/* Hides it on narrow terminals, those of the lowest order first; 0: never. */
void table_spare(struct table *t, size_t column, size_t order);
void table_print(const struct table *t, const struct table_style *style, struct buf *out);
/* Appends a line cut to `width` columns; escape sequences (colours) take none. */
void table_add_cut(struct buf *out, const char *line, size_t len, size_t width);
/* CSV (RFC 4180) of the data columns; "-" (unknown) is empty. */
void table_print_csv(const struct table *t, bool headers, struct buf *out);
/* Calls tell with each row name once, in order. */
void table_each_name(const struct table *t, void (*tell)(void *context, const char *name),
		     void *context);
