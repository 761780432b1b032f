/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables as lists of columns: what each is called, which member of an item it shows and how, and
 * when it is left out. Behind them stand the columns of -o csv.
 */
#pragma once

#include "aggregator/cli/cli.h"
#include "shared/document.h"
#include "shared/table.h"
#include "shared/units.h"

struct column;
struct csv_field;

/* The sources of a row's cells. All is borrowed, but the table. */
struct row {
	const struct cli *cli;
	const struct column *columns;
	const struct csv_field *fields; /* may be NULL */
	struct table *table; /* owned */
	size_t count; /* rows so far */
	const cJSON *doc; /* the whole answer */
	const cJSON *item; /* what the row is about */
	const void *more; /* for cells of the command itself */
};

/* Adds one cell to the row. */
typedef void column_cell(const struct row *r, const struct column *c);

/* How a text is painted; the last, with NULL, is for all others. */
struct column_paint {
	const char *text;
	enum table_paint paint;
};

struct column {
	const char *title; /* NULL ends a list */
	enum table_form form;
	column_cell *cell;
	/* The member of the item that is shown; "*" in it is the window of --window. */
	const char *at;
	const char *of; /* the member that is its whole, or stands beside it */
	const struct column_paint *paints; /* of texts; NULL: plain */
	const char *const *empty; /* left out where all cells are among these; ended by NULL */
	size_t spare; /* > 0: the order in which narrow terminals lose it */
	bool wide; /* only with -o wide */
	bool narrow; /* only without */
	bool windowed; /* the title names the window */
	bool of_api; /* nothing without a Kubernetes API; for tables of use */
	/* For cmd_pods.c: only without --contention, only with it, or always. */
	enum { VIEW_USE, VIEW_CONTENTION, VIEW_BOTH } view;
};

/* For struct column: nothing is known; or nothing known, no limit, none. */
extern const char *const columns_unknown[], *const columns_nothing[];

/* What -o csv has of an item: a value as the API tells it, with its unit in the title. */
struct csv_field {
	const char *title; /* NULL ends a list */
	const char *path; /* of a number, text or truth; what is absent or null is empty */
};

/* A table without rows; fields may be NULL. For columns_end(). */
struct row columns_start(const struct cli *cli, const struct column *columns,
			 const struct csv_field *fields);
/* Adds a row with all its cells; name and key as for table_row() and table_key(). */
void columns_add_row(struct row *r, const char *name, double key);
/* The same behind all others. */
void columns_add_next(struct row *r, const char *name);
/* Columns that runs of a command show, and their widths, for all of the runs to have the same. */
struct columns_shown {
	struct column_shown {
		const struct column *column; /* borrowed */
		size_t width;
	} * of; /* owned */
	size_t count;
	bool grown; /* by a run; the caller resets it */
};

/*
 * Hides the column, unless it is to be shown and not empty, or is among cli->shown, whose width it then
 * gets.
 */
void columns_show(const struct row *r, size_t index, bool shown);
/*
 * Sorts, limits and prints a table as the options say; nothing with -o json. kind is what kubectl
 * would call a row's thing ("node"); "": names of rows begin with it.
 */
void columns_print(struct cli *cli, struct table *t, const char *kind);
/*
 * Prints the table without the columns that the rules of struct column leave out, and frees it. kind as
 * for columns_print(); NULL: it stands beside another, behind an empty line, and has all its rows in
 * their order; nothing where there is none.
 */
void columns_end(struct cli *cli, struct row *r, const char *kind);
/*
 * A table of the items of a list in the answer, in their order. name is the member that names a row;
 * -o name leaves out rows without it. kind as for columns_end().
 */
void columns_print_list(struct cli *cli, const cJSON *doc, const char *list, const char *name,
			const struct column *columns, const struct csv_field *fields,
			const char *kind);

/* --- cells */

/* A number of the item; NaN where there is none. */
double row_number(const struct row *r, const char *path);
/* The share of one number in another, NULL: the number; NaN where one is missing, or the whole is 0. */
double row_share(const struct row *r, const char *part, const char *whole);

/* Adds a cell; "-" where it is not known. */
void row_add(const struct row *r, enum table_paint paint, bool known, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same of a quantity as a function of shared/units.h prints it. */
typedef void units_print(double amount, char out[UNITS_LEN]);
/* That of an amount, by its path. */
units_print *row_units_of(const char *path);
void row_add_units(const struct row *r, enum table_paint paint, units_print *print, double amount);

void cell_text(const struct row *r, const struct column *c);
/* "-" of what has none. */
void cell_namespace(const struct row *r, const struct column *c);
/* "KIND/NAME" of an object with a kind and a name. */
void cell_workload(const struct row *r, const struct column *c);
/* Of a time, from that of the whole answer; c->of: its member, NULL: "time". */
void cell_ago(const struct row *r, const struct column *c);
/* In the unit that the member's name has: CPU of "..Millicores", else bytes. */
void cell_amount(const struct row *r, const struct column *c);
void cell_count(const struct row *r, const struct column *c);
/* A count that is painted where it is above 0. */
void cell_faults(const struct row *r, const struct column *c);
/* As cell_amount(); "none" if it is null. */
void cell_limit(const struct row *r, const struct column *c);
/* "3/9": the counts at c->at and c->of. */
void cell_pair(const struct row *r, const struct column *c);
/* "42%": of c->of, or of a share as it is. */
void cell_share(const struct row *r, const struct column *c);

/* --- of -o csv, for what is no member of an item; value NaN or NULL: nothing */

void csv_column(const struct cli *cli, struct table *t, const char *title);
void csv_number(const struct row *r, double value);
void csv_text(const struct row *r, const char *text);
