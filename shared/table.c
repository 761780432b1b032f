/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells are collected first, widths follow. Columns are two blanks apart; the last printed one is
 * not padded, so lines have no trailing blanks. On a narrow terminal these shrink, one after the
 * other, until lines fit:
 *
 *	with short_names names beyond NAME_SHORT
 *	spare columns, in their order
 *	the ends of texts (FORM_LEFT), the widest first, down to TEXT_LEAST
 *	parts of names, the widest first, as long as different ones stay different
 *	columns that are neither names nor the first one, from the right
 *	the rest beyond the edge
 *
 * Titles and numbers are never shortened. A name loses its middle; if the names of a column differ
 * only at one end (nodes of one domain, units of one slice), it loses the other.
 */
#include "shared/arith.h"
#include "shared/table.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/array.h"
#include "shared/hash.h"
#include "shared/mem.h"
#include "shared/utf8.h"

enum { GAP = 2, TEXT_LEAST = 12, NAME_SHORT = 20, NAME_LEAST = 8, ALIKE_LEAST = 6 };

struct column {
	char *title; /* owned */
	enum table_form form;
	bool hidden;
	bool data; /* of table_print_csv() only */
	size_t spare; /* > 0: the order in which it is hidden */
	size_t least; /* its width, also if its cells have less */
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
	bool sums_up;
};

struct table {
	struct column *columns; /* owned */
	size_t column_count;
	struct row *rows; /* owned */
	size_t row_count;
	size_t spares; /* the highest order of a spare column */
};

/* The part cut from a long name. */
enum cut { CUT_MIDDLE, CUT_END, CUT_START, CUTS };

/* How one column is printed. */
struct layout {
	size_t full, width; /* width of its cells, and the given width */
	size_t least; /* least width */
	bool hidden;
	enum cut cut;
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

static char *clean(const char *text)
{
	char *copy = mem_strdup(text);

	utf8_clean(copy);
	return copy;
}

void table_column(struct table *t, const char *title, enum table_form form)
{
	assert(t->row_count == 0);
	ARRAY_ADD(t->columns, t->column_count) =
		(struct column){.title = clean(title), .form = form};
}

void table_data_column(struct table *t, const char *title)
{
	table_column(t, title, FORM_LEFT);
	t->columns[t->column_count - 1].hidden = t->columns[t->column_count - 1].data = true;
}

void table_row(struct table *t, const char *name)
{
	size_t order = t->row_count;

	ARRAY_ADD(t->rows, t->row_count) = (struct row){
		.name = mem_strdup(name),
		.cells = mem_zalloc(t->column_count, sizeof(struct cell)),
		.order = order,
		.key = NAN,
	};
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

void table_sums_up(struct table *t)
{
	newest(t)->sums_up = true;
}

void table_drop_sums(struct table *t)
{
	size_t kept = 0;

	for (size_t r = 0; r < t->row_count; r++) {
		if (t->rows[r].sums_up)
			free_row(&t->rows[r], t->column_count);
		else
			t->rows[kept++] = t->rows[r];
	}
	t->row_count = kept;
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct row *a = left, *b = right;
	int order = *(const bool *)context ? -1 : 1, names;

	if (a->sums_up != b->sums_up)
		return a->sums_up ? -1 : 1;
	if (isnan(a->key) != isnan(b->key))
		return isnan(a->key) ? 1 : -1;
	if (a->key != b->key && !isnan(a->key))
		return a->key > b->key ? -order : order;
	names = strcmp(a->name, b->name);
	if (names)
		return order * names;
	return a->order < b->order ? -1 : 1;
}

void table_sort(struct table *t, bool reversed)
{
	if (t->row_count > 1)
		qsort_r(t->rows, t->row_count, sizeof(*t->rows), compare_rows, &reversed);
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

void table_spare(struct table *t, size_t column, size_t order)
{
	assert(column < t->column_count);
	t->columns[column].spare = order;
	t->spares = order > t->spares ? order : t->spares;
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Width of text: code points, as names in clusters have no wide characters. */
static size_t text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += !continues(*text);
	return width;
}

/* The begin of code point number `at`. */
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

/* The rest of a long text: before the "…", and after it. */
struct ends {
	size_t head; /* bytes */
	const char *tail;
};

static struct ends cut_text(const char *text, size_t full, size_t width, enum cut cut)
{
	size_t tail = cut == CUT_END ? 0 : cut == CUT_START ? width - 1 : (width - 1) / 2;

	return (struct ends){(size_t)(code_point(text, width - 1 - tail) - text),
			     code_point(text, full - tail)};
}

/* text in at most `width` columns: "kube-pro…-x7f9k". Returns how many it took. */
static size_t add_shortened(struct buf *out, const char *text, size_t width, enum cut cut)
{
	size_t full = text_width(text);
	struct ends ends;

	if (full <= width) {
		buf_add_str(out, text);
		return full;
	}
	ends = cut_text(text, full, width, cut);
	buf_add(out, text, ends.head);
	buf_add_str(out, "…");
	buf_add_str(out, ends.tail);
	return width;
}

static void add_cell(struct buf *out, const char *paint, const char *text, enum table_form form,
		     const struct layout *layout, bool last)
{
	size_t full = text_width(text), taken;

	if (form == FORM_RIGHT && full < layout->width)
		add_spaces(out, layout->width - full);
	if (*paint && *text)
		buf_add_str(out, paint);
	taken = add_shortened(out, text, form == FORM_RIGHT ? full : layout->width, layout->cut);
	if (*paint && *text)
		buf_add_str(out, "\033[0m");
	if (form != FORM_RIGHT && !last && taken < layout->width)
		add_spaces(out, layout->width - taken);
	if (!last)
		add_spaces(out, GAP);
}

static const char *cell_text(const struct row *row, size_t column)
{
	return row->cells[column].text ? row->cells[column].text : "-";
}

bool table_holds_only(const struct table *t, size_t column, const char *const *texts)
{
	assert(column < t->column_count);
	for (size_t i = 0; i < t->row_count; i++)
		if (!array_has_text(texts, cell_text(&t->rows[i], column)))
			return false;
	return true;
}

static size_t column_width(const struct table *t, size_t column, bool headers)
{
	size_t title = headers ? text_width(t->columns[column].title) : 0,
	       width = t->columns[column].least;

	width = title > width ? title : width;
	for (size_t i = 0; i < t->row_count; i++) {
		size_t cell = text_width(cell_text(&t->rows[i], column));

		width = cell > width ? cell : width;
	}
	return width;
}

size_t table_widen(struct table *t, size_t column, size_t least)
{
	t->columns[column].least = least;
	return column_width(t, column, false);
}

/* Length of the common prefix, or suffix. */
static size_t shared(const char *a, const char *b, bool end)
{
	size_t a_len = strlen(a), b_len = strlen(b), n = 0;

	while (n < a_len && n < b_len &&
	       (end ? a[a_len - 1 - n] == b[b_len - 1 - n] : a[n] == b[n]))
		n++;
	return n;
}

static enum cut choose_cut(const struct table *t, size_t column)
{
	size_t start = SIZE_MAX, end = SIZE_MAX;

	if (t->row_count < 2)
		return CUT_MIDDLE;
	for (size_t i = 1; i < t->row_count; i++) {
		const char *first = cell_text(&t->rows[0], column);
		size_t head = shared(first, cell_text(&t->rows[i], column), false);
		size_t tail = shared(first, cell_text(&t->rows[i], column), true);

		start = head < start ? head : start;
		end = tail < end ? tail : end;
	}
	if (start < ALIKE_LEAST && end < ALIKE_LEAST)
		return CUT_MIDDLE;
	return end > start ? CUT_END : CUT_START;
}

static size_t line_width(const struct table *t, const struct layout *layout)
{
	size_t total = 0;

	for (size_t i = 0; i < t->column_count; i++)
		if (!layout[i].hidden)
			total += layout[i].width + (total ? GAP : 0);
	return total;
}

/* --- cuts of names ---------------------------------------------------------------------------- */

/* A name as printed, and in full. */
struct print {
	uint64_t shown, whole;
};

static struct print print_of(const char *text, size_t width, enum cut cut)
{
	size_t full = text_width(text);
	struct print p = {.whole = hash_bytes(HASH_BEGIN, text, strlen(text))};
	struct ends ends;

	p.shown = p.whole;
	if (full > width) {
		ends = cut_text(text, full, width, cut);
		p.shown = hash_bytes(HASH_BEGIN, text, ends.head);
		p.shown = hash_bytes(p.shown, "…", strlen("…"));
		p.shown = hash_bytes(p.shown, ends.tail, strlen(ends.tail));
	}
	return p;
}

static int compare_prints(const void *left, const void *right)
{
	const struct print *a = left, *b = right;

	return COMPARE(a->shown, b->shown) ?: COMPARE(a->whole, b->whole);
}

/* Whether different names of the column stay different. */
static bool are_told_apart(const struct table *t, size_t column, size_t width, enum cut cut)
{
	struct print *prints = mem_zalloc(t->row_count, sizeof(*prints));
	bool apart = true;

	for (size_t i = 0; i < t->row_count; i++)
		prints[i] = print_of(cell_text(&t->rows[i], column), width, cut);
	array_sort(prints, t->row_count, sizeof(*prints), compare_prints);
	for (size_t i = 1; i < t->row_count && apart; i++)
		apart = prints[i].shown != prints[i - 1].shown ||
			prints[i].whole == prints[i - 1].whole;
	free(prints);
	return apart;
}

/* The preferred cut, or another that keeps names different; false: none. */
static bool find_cut(const struct table *t, size_t column, size_t width, enum cut *cut)
{
	enum cut preferred = choose_cut(t, column);

	for (int i = 0; i < CUTS; i++) {
		*cut = (enum cut)((preferred + i) % CUTS);
		if (are_told_apart(t, column, width, *cut))
			return true;
	}
	*cut = preferred;
	return false;
}

/* The wider, the more names stay different. */
static size_t least_of_name(const struct table *t, size_t column, size_t low, size_t high)
{
	enum cut cut;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (find_cut(t, column, middle, &cut))
			high = middle;
		else
			low = middle + 1;
	}
	return high;
}

/* --- narrow terminals ------------------------------------------------------------------------- */

static void set_least(const struct table *t, struct layout *layout, bool headers)
{
	for (size_t i = 0; i < t->column_count; i++) {
		struct layout *l = &layout[i];
		size_t title = headers ? text_width(t->columns[i].title) : 0;
		size_t least = t->columns[i].form == FORM_LEFT ? TEXT_LEAST : NAME_LEAST;

		least = least > title ? least : title;
		least = least < l->full ? least : l->full;
		if (t->columns[i].form == FORM_NAME && !l->hidden)
			least = least_of_name(t, i, least, l->full);
		l->least = t->columns[i].form == FORM_RIGHT ? l->full : least;
	}
}

/* Narrows the widest columns of that form, to `least` or their own width, until the line fits. */
static void shrink(const struct table *t, struct layout *layout, size_t most, enum table_form form,
		   size_t least)
{
	for (size_t total = line_width(t, layout); total > most; total--) {
		struct layout *widest = NULL;

		for (size_t i = 0; i < t->column_count; i++)
			if (!layout[i].hidden && t->columns[i].form == form &&
			    layout[i].width > layout[i].least && layout[i].width > least &&
			    (!widest || layout[i].width > widest->width))
				widest = &layout[i];
		if (!widest)
			return;
		widest->width--;
	}
}

/* Hides the rightmost column that is neither a name nor the first; false: none. */
static bool leave_out_last(const struct table *t, struct layout *layout)
{
	for (size_t i = t->column_count; i-- > 1;) {
		if (layout[i].hidden || t->columns[i].form == FORM_NAME)
			continue;
		layout[i].hidden = true;
		return true;
	}
	return false;
}

static void reset_widths(const struct table *t, struct layout *layout)
{
	for (size_t i = 0; i < t->column_count; i++)
		layout[i].width = layout[i].full;
}

static void fit(const struct table *t, struct layout *layout, const struct table_style *style)
{
	set_least(t, layout, style->headers);
	if (style->short_names)
		shrink(t, layout, style->width, FORM_NAME, NAME_SHORT);
	if (!style->whole) {
		for (size_t order = 1; order <= t->spares && line_width(t, layout) > style->width;
		     order++)
			for (size_t i = 0; i < t->column_count; i++)
				if (t->columns[i].spare == order)
					layout[i].hidden = true;
	}
	do {
		reset_widths(t, layout);
		shrink(t, layout, style->width, FORM_LEFT, 0);
		shrink(t, layout, style->width, FORM_NAME, 0);
	} while (!style->whole && line_width(t, layout) > style->width &&
		 leave_out_last(t, layout));
	if (style->whole && line_width(t, layout) > style->width)
		reset_widths(t, layout);
	for (size_t i = 0; i < t->column_count; i++)
		if (t->columns[i].form == FORM_NAME && layout[i].width < layout[i].full)
			find_cut(t, i, layout[i].width, &layout[i].cut);
}

static struct layout *lay_out(const struct table *t, const struct table_style *style)
{
	struct layout *layout = mem_zalloc(t->column_count, sizeof(*layout));

	for (size_t i = 0; i < t->column_count; i++) {
		layout[i].hidden = t->columns[i].hidden;
		layout[i].full = layout[i].width = column_width(t, i, style->headers);
		layout[i].cut = CUT_END;
	}
	if (style->width && line_width(t, layout) > style->width)
		fit(t, layout, style);
	return layout;
}

/* row NULL: the headers. */
static void print_line(const struct table *t, const struct row *row, const struct layout *layout,
		       bool color, struct buf *out)
{
	size_t last = t->column_count, begin = out->len;

	for (size_t i = 0; i < t->column_count; i++)
		if (!layout[i].hidden)
			last = i;
	for (size_t i = 0; i < t->column_count; i++) {
		const char *paint = row ? paints[row->cells[i].paint] : "\033[1m";

		if (!layout[i].hidden)
			add_cell(out, color ? paint : "",
				 row ? cell_text(row, i) : t->columns[i].title, t->columns[i].form,
				 &layout[i], i == last);
	}
	while (out->len > begin && out->data[out->len - 1] == ' ')
		out->len--;
}

/* The length of an escape sequence here; 0: none. */
static size_t escape_len(const char *text, size_t len)
{
	size_t i = 2;

	if (len < 2 || text[0] != '\033' || text[1] != '[')
		return 0;
	while (i < len && (text[i] < '@' || text[i] > '~'))
		i++;
	return i < len ? i + 1 : len;
}

void table_add_cut(struct buf *out, const char *line, size_t len, size_t width)
{
	size_t taken = 0, kept = 0;
	bool painted = false;

	for (size_t i = 0; i < len;) {
		size_t escape = escape_len(line + i, len - i);

		painted |= escape > 0;
		taken += !escape && !continues(line[i]);
		if (taken > width)
			break;
		i += escape ? escape : 1;
		kept = taken < width ? i : kept;
	}
	if (taken <= width) {
		buf_add(out, line, len);
		return;
	}
	buf_add(out, line, kept);
	buf_add_str(out, painted ? "…\033[0m" : "…");
}

void table_print(const struct table *t, const struct table_style *style, struct buf *out)
{
	struct layout *layout = lay_out(t, style);
	bool cut = style->width && !style->whole && line_width(t, layout) > style->width;
	struct buf line = BUF_INIT;

	for (size_t i = style->headers ? 0 : 1; i <= t->row_count; i++) {
		buf_clear(&line);
		print_line(t, i ? &t->rows[i - 1] : NULL, layout, style->color, &line);
		table_add_cut(out, line.data, line.len, cut ? style->width : SIZE_MAX);
		buf_add_char(out, '\n');
	}
	buf_fini(&line);
	free(layout);
}

/* --- for programs ----------------------------------------------------------------------------- */

static void add_field(struct buf *out, const char *text, bool first)
{
	if (!first)
		buf_add_char(out, ',');
	if (!strpbrk(text, ",\"\r\n")) {
		buf_add_str(out, text);
		return;
	}
	buf_add_char(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf_add_char(out, '"');
		buf_add_char(out, *text);
	}
	buf_add_char(out, '"');
}

/* row NULL: the titles. */
static void add_record(const struct table *t, const struct row *row, struct buf *out)
{
	bool first = true;

	for (size_t i = 0; i < t->column_count; i++) {
		const char *text = row ? cell_text(row, i) : t->columns[i].title;

		if (!t->columns[i].data)
			continue;
		add_field(out, strcmp(text, "-") == 0 ? "" : text, first);
		first = false;
	}
	buf_add_str(out, "\r\n");
}

void table_print_csv(const struct table *t, bool headers, struct buf *out)
{
	if (headers)
		add_record(t, NULL, out);
	for (size_t r = 0; r < t->row_count; r++)
		add_record(t, &t->rows[r], out);
}

struct told {
	UT_hash_handle hh;
};

void table_each_name(const struct table *t, void (*tell)(void *context, const char *name),
		     void *context)
{
	struct told *told = mem_zalloc(t->row_count + 1, sizeof(*told)), *set = NULL, *found;

	for (size_t r = 0; r < t->row_count; r++) {
		const char *name = t->rows[r].name;

		HASH_FIND(hh, set, name, strlen(name), found);
		if (found)
			continue;
		HASH_ADD_KEYPTR(hh, set, name, strlen(name), &told[r]);
		tell(context, name);
	}
	HASH_CLEAR(hh, set);
	free(told);
}
