/* SPDX-License-Identifier: Apache-2.0 */
/* Column tables for terminals and scripts: aligned, sorted, cut to rows and columns where asked. */
#ifndef EVENKEEL_SHARED_TABLE_H
#define EVENKEEL_SHARED_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "shared/buf.h"

enum table_paint { PAINT_PLAIN, PAINT_WARN, PAINT_BAD, PAINT_DIM };

enum table_form {
	FORM_LEFT, /* texts, which lose their end when a terminal is too narrow */
	FORM_RIGHT, /* numbers, which are never shortened */
	FORM_NAME, /* left, and shortened when a terminal is too narrow, but never alike */
};

struct table_style {
	bool headers;
	bool color;
	bool short_names; /* long names give way before spare columns do */
	bool whole; /* where shortening cannot make lines fit, nothing is shortened */
	size_t width; /* of the terminal, which no line exceeds but for `whole`; 0: any */
};

struct table;

struct table *table_new(void);
void table_free(struct table *t);
/* Columns come before rows; the title is copied. */
void table_column(struct table *t, const char *title, enum table_form form);
/* A column that only table_print_csv() prints. */
void table_data_column(struct table *t, const char *title);
/* Begins a row; name decides between equal keys when sorting, and is copied. */
void table_row(struct table *t, const char *name);
/*
 * The next cell of the newest row; a row ends up with one for each column. What a terminal may not
 * get becomes "?" (shared/utf8.h).
 */
void table_cell(struct table *t, enum table_paint paint, const char *text);
/* What the newest row is sorted by: greatest first, NaN last. */
void table_key(struct table *t, double key);
/* The newest row sums up others, .. */
void table_sums_up(struct table *t);
/* .. and is no thing of a list. */
void table_drop_sums(struct table *t);
/* Reversed, the least key comes first; rows that sum up stay first, and NaN last. */
void table_sort(struct table *t, bool reversed);
/* Drops rows beyond the first `most`. */
void table_limit(struct table *t, size_t most);
/*
 * True when every cell of the column is one of the texts (a NULL ends them), and so when there are
 * no rows.
 */
bool table_holds_only(const struct table *t, size_t column, const char *const *texts);
/* Leaves a column out of what is printed. */
void table_hide(struct table *t, size_t column);
/* Leaves it out only on terminals that are too narrow; what is spared first goes first. */
void table_spare(struct table *t, size_t column);
void table_print(const struct table *t, const struct table_style *style, struct buf *out);
/* One line in at most `width` columns, by its end; escape sequences (colours) take none. */
void table_add_cut(struct buf *out, const char *line, size_t len, size_t width);
/*
 * The columns of data, as RFC 4180 has it; "-", which is nothing known, is empty.
 */
void table_print_csv(const struct table *t, bool headers, struct buf *out);
/* Names of rows, in their order, and each once. */
void table_each_name(const struct table *t, void (*tell)(void *context, const char *name),
		     void *context);

#endif
