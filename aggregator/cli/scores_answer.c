/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scores of nodes for a pod, best first. The plugins that the first node was scored by are the
 * columns, under short names, so that all of them fit in 80 columns; FITS is there where the server
 * knows the cluster's objects. --explain prints the arithmetic instead: for each node and plugin
 * every input and term in the order it entered, so that a score can be followed by hand.
 */
#include "aggregator/cli/answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "aggregator/cli/lines.h"
#include "aggregator/cli/usage.h"
#include "aggregator/policy/score/score_tables.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/jsonw.h"
#include "shared/mem.h"
#include "shared/units.h"

enum sort_key { BY_SCORE, BY_NAME };

enum { EXPLAIN_INDENT = 4 };

/* --- the table -------------------------------------------------------------------------------- */

/* The fallback levels of the plugins, each once: "window 15m". */
static void read_fallbacks(const cJSON *item, struct buf *out)
{
	const cJSON *plugin;

	buf_clear(out);
	buf_add_str(out, "");
	for (plugin = document_first(item, "plugins"); plugin; plugin = plugin->next) {
		const char *fallback = document_text(plugin, "rung");

		if (fallback && !strstr(out->data, fallback))
			buf_printf(out, "%s%s", out->len ? ", " : "", fallback);
	}
	if (!out->len)
		buf_add_char(out, '-');
}

/* Only what says it is not fresh is not: "window 15m", "since start". */
static enum row_state read_state(const char *fallbacks)
{
	static const struct {
		const char *begin;
		enum row_state state;
	} words[] = {{"late", ROW_LATE},
		     {"allocation", ROW_NONE},
		     {"expired", ROW_EXPIRED},
		     {"none", ROW_NONE},
		     {"-", ROW_NONE}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(fallbacks, words[i].begin, strlen(words[i].begin)) == 0)
			return words[i].state;
	return ROW_FRESH;
}

/* As the heading of a column of at most three digits. */
static const char *short_name(const char *plugin)
{
	static const char *const names[][2] = {
#define X(id, name, heading, ...) {name, heading},
		SCORE_PLUGIN_ROWS(X)
#undef X
	};
	const char *const *row = array_find_text(names, sizeof(names) / sizeof(names[0]),
						 sizeof(names[0]), plugin ? plugin : "-");

	return row ? row[1] : plugin ? plugin : "-";
}

/* Whether the answer tells if the pod fits; it does where the cluster's objects are known. */
static bool tells_fits(const cJSON *item)
{
	return cJSON_IsBool(document_at(item, "fits"));
}

static bool is_unfit(const cJSON *item)
{
	return cJSON_IsFalse(document_at(item, "fits"));
}

static void cell_fits(const struct row *r, const struct column *c)
{
	if (!tells_fits(r->item))
		table_cell(r->table, PAINT_PLAIN, "-");
	else
		table_cell(r->table, is_unfit(r->item) ? PAINT_BAD : PAINT_PLAIN,
			   document_is_true(r->item, c->at) ? "yes" : "no");
}

static void add_score(const struct row *r, double score)
{
	row_add(r, PAINT_PLAIN, !isnan(score), "%.0f", score);
}

static void cell_score(const struct row *r, const struct column *c)
{
	add_score(r, row_number(r, c->at));
}

/* Of the plugin that the column is named after. */
static void cell_plugin(const struct row *r, const struct column *c)
{
	add_score(r, document_number(document_find(r->item, "plugins", "name", c->at), "score"));
}

/* The row's `more` is the text. */
static void cell_fallback(const struct row *r, const struct column *c)
{
	const enum table_paint paints[] = {
		[ROW_FRESH] = PAINT_PLAIN,
		[ROW_LATE] = PAINT_WARN,
		[ROW_EXPIRED] = PAINT_BAD,
		[ROW_NONE] = PAINT_BAD,
	};

	(void)c;
	table_cell(r->table, paints[read_state(r->more)], r->more);
}

/* For these plugins; the caller frees it. */
static struct column *make_columns(const cJSON *plugins, bool fits)
{
	const size_t most = 7 + (size_t)cJSON_GetArraySize(plugins); /* with the end */
	struct column *columns = mem_zalloc(most, sizeof(*columns)), *c = columns;

	*c++ = (struct column){"NODE", FORM_NAME, cell_text, .at = "node"};
	*c++ = (struct column){"SCORE", FORM_RIGHT, cell_score, .at = "score"};
	if (fits)
		*c++ = (struct column){"FITS", FORM_LEFT, cell_fits, .at = "fits"};
	for (const cJSON *plugin = document_first(plugins, ""); plugin; plugin = plugin->next) {
		const char *name = document_text(plugin, "name");

		*c++ = (struct column){short_name(name), FORM_RIGHT, cell_plugin, .at = name};
	}
	*c++ = (struct column){"RUNG", FORM_LEFT, cell_fallback, .at = NULL};
	*c++ = (struct column){"REASON", FORM_LEFT, cell_text, .at = "reason", .wide = true};
	if (fits)
		*c++ = (struct column){"REFUSED BY", FORM_LEFT, cell_text, .at = "fitReason",
				       .wide = true};
	return columns;
}

static const struct csv_field fields[] = {
	{"node", "node"},     {"score", "score"},	   {"fits", "fits"},
	{"reason", "reason"}, {"refused_by", "fitReason"}, {0},
};

static void add_data_cells(const struct row *r, const cJSON *plugins)
{
	for (const cJSON *plugin = document_first(plugins, ""); plugin; plugin = plugin->next) {
		const cJSON *own =
			document_find(r->item, "plugins", "name", document_text(plugin, "name"));

		csv_number(r, document_number(own, "score"));
		csv_text(r, document_text(own, "rung"));
	}
}

static void print_table(struct cli *cli, const cJSON *first)
{
	const cJSON *plugins = document_at(first, "plugins");
	struct column *columns = make_columns(plugins, tells_fits(first));
	struct row row = columns_start(cli, columns, fields);
	struct buf fallbacks = BUF_INIT;

	for (const cJSON *plugin = document_first(plugins, ""); plugin; plugin = plugin->next) {
		const char *name = document_text_or(plugin, "name", "-");
		char *score = mem_printf("%s_score", name), *fallback = mem_printf("%s_rung", name);

		csv_column(cli, row.table, score);
		csv_column(cli, row.table, fallback);
		free(score);
		free(fallback);
	}
	for (row.item = first; row.item; row.item = row.item->next) {
		read_fallbacks(row.item, &fallbacks);
		row.more = fallbacks.data;
		columns_add_next(&row, document_text_or(row.item, "node", ""));
		add_data_cells(&row, plugins);
	}
	columns_end(cli, &row, "node");
	free(columns);
	buf_fini(&fallbacks);
}

/* --- the explanation -------------------------------------------------------------------------- */

static void cell_term(const struct row *r, const struct column *c)
{
	row_add(r, PAINT_PLAIN, true, "%*s%s", EXPLAIN_INDENT, "",
		document_text_or(r->item, c->at, "-"));
}

/* At most 6 decimals, without trailing zeros. */
static void cell_value(const struct row *r, const struct column *c)
{
	double value = row_number(r, c->at);
	struct buf number = BUF_INIT;
	struct jsonw w;

	jsonw_init(&w, &number);
	if (isfinite(value))
		jsonw_fixed(&w, value, 6);
	table_cell(r->table, PAINT_PLAIN, isfinite(value) ? number.data : "-");
	buf_fini(&number);
}

/* Bytes also as people read them. */
static void cell_unit(const struct row *r, const struct column *c)
{
	char human[UNITS_LEN];

	units_bytes(row_number(r, c->of), human);
	if (document_is(r->item, c->at, "bytes"))
		row_add(r, PAINT_DIM, true, "bytes (%s)", human);
	else
		table_cell(r->table, PAINT_DIM, document_text_or(r->item, c->at, ""));
}

static const struct column terms[] = {
	{"", FORM_LEFT, cell_term, .at = "name"},
	{"", FORM_RIGHT, cell_value, .at = "value"},
	{"", FORM_LEFT, cell_unit, .at = "unit", .of = "value"},
	{0},
};

static void explain_terms(struct cli *cli, const cJSON *plugin)
{
	struct table_style style = {.headers = false, .color = cli->color};
	struct row row = columns_start(cli, terms, NULL);

	for (row.item = document_first(plugin, "terms"); row.item; row.item = row.item->next)
		columns_add_next(&row, "");
	table_print(row.table, &style, &cli->out);
	table_free(row.table);
}

/* "The pod fits on 3 of 5 nodes; refused by NodeResourcesFit on 1, TaintToleration on 1." */
static void explain_counts(struct cli *cli, const cJSON *doc)
{
	double fits = document_number(doc, "fits"), all = fits;
	const cJSON *refused = document_at(doc, "refused");
	struct buf filters = BUF_INIT;

	if (isnan(fits))
		return;
	buf_add_str(&filters, "");
	for (const cJSON *item = refused ? refused->child : NULL; item; item = item->next) {
		buf_printf(&filters, "%s%s on %.0f", filters.len ? ", " : "; refused by ",
			   item->string ? item->string : "-", item->valuedouble);
		all += item->valuedouble;
	}
	lines_print(cli, "The pod fits on %.0f of %.0f nodes%s.", fits, all, filters.data);
	buf_add_char(&cli->out, '\n');
	buf_fini(&filters);
}

static void explain_node(struct cli *cli, const cJSON *item)
{
	const cJSON *plugin = document_first(item, "plugins");
	const char *refusal = document_text(item, "fitReason");

	lines_print(cli, "%s  score %.0f", document_text_or(item, "node", "-"),
		    document_number(item, "score"));
	if (tells_fits(item))
		lines_wrap(cli, EXPLAIN_INDENT, "%s%s", refusal ? "does not fit: " : "fits",
			   refusal ? refusal : "");
	for (; plugin; plugin = plugin->next) {
		lines_print(cli, "  %s %.0f  (%s, %s)", document_text_or(plugin, "name", "-"),
			    document_number(plugin, "score"),
			    document_text_or(plugin, "variant", "-"),
			    document_text_or(plugin, "rung", "-"));
		lines_wrap(cli, EXPLAIN_INDENT, "%s", document_text_or(plugin, "reason", ""));
		explain_terms(cli, plugin);
	}
}

static void explain_expected(struct cli *cli, const cJSON *doc)
{
	const cJSON *use = document_at(doc, "expected");
	char cpu[UNITS_LEN], high[UNITS_LEN], memory[UNITS_LEN];

	if (!use)
		return;
	units_cpu(document_number(use, "cpuMillicores"), cpu);
	units_cpu(document_number(use, "highCpuMillicores"), high);
	units_bytes(document_number(use, "memoryBytes"), memory);
	lines_print(
		cli,
		"The pod is expected to use CPU %s (by %s; pods are spread by %s) and memory %s.",
		cpu, document_text(use, "source"), high, memory);
	buf_add_char(&cli->out, '\n');
}

static void print_explanation(struct cli *cli, const cJSON *doc, const cJSON *first)
{
	int64_t limit = cli->options->limit, shown = 0;

	explain_expected(cli, doc);
	explain_counts(cli, doc);

	for (const cJSON *item = first; item && (limit <= 0 || shown < limit); item = item->next) {
		if (shown++)
			buf_add_char(&cli->out, '\n');
		explain_node(cli, item);
	}
}

/* --- both ------------------------------------------------------------------------------------- */

static int compare_names(const cJSON *a, const cJSON *b)
{
	return strcmp(document_text_or(a, "node", ""), document_text_or(b, "node", ""));
}

/* Nodes where the pod fits, or nobody knows, come first; greatest scores first, none last. */
static int compare_scores(const cJSON *a, const cJSON *b)
{
	bool p = is_unfit(a), q = is_unfit(b);
	double x = document_number(a, "score"), y = document_number(b, "score");

	return COMPARE(p, q)
		?: COMPARE(!!isnan(x), !!isnan(y))
		?: COMPARE(y, x)
		?: compare_names(a, b);
}

/* The first item, after they were sorted as the options say. */
static const cJSON *sort_items(const struct cli *cli, const cJSON *doc)
{
	cJSON *list = (cJSON *)document_at(doc, "items");
	int (*compare)(const cJSON *a, const cJSON *b) =
		cli->options->sort == BY_NAME ? compare_names : compare_scores;

	DL_SORT(list->child, compare);
	return list->child;
}

/* Of nodes that were named, the first where the pod does not fit. */
static int check_fits(struct cli *cli, const cJSON *first)
{
	for (const cJSON *item = cli->operand_count ? first : NULL; item; item = item->next)
		if (is_unfit(item))
			return error_fail(&cli->reason, CLI_REFUSED,
					  "the pod does not fit on node \"%s\": %s",
					  document_text_or(item, "node", "-"),
					  document_text_or(item, "fitReason", "-"));
	return CLI_OK;
}

static int check_states(struct cli *cli, const cJSON *first)
{
	struct buf fallbacks = BUF_INIT;
	struct usage_tally tally;
	int code;

	usage_tally_init(&tally, cli, "node");
	for (const cJSON *item = first; item; item = item->next) {
		const char *node = document_text(item, "node");

		read_fallbacks(item, &fallbacks);
		if (node)
			usage_tally_add(&tally, node, read_state(fallbacks.data), NAN);
	}
	code = usage_tally_exit(&tally, &cli->reason);
	usage_tally_fini(&tally);
	buf_fini(&fallbacks);
	return code;
}

static int judge(struct cli *cli, const cJSON *doc)
{
	const cJSON *first = sort_items(cli, doc);

	return check_fits(cli, first) ?: check_states(cli, first);
}

static void print(struct cli *cli, const cJSON *doc)
{
	const cJSON *first = sort_items(cli, doc);

	if (cli->options->explain)
		print_explanation(cli, doc, first);
	else
		print_table(cli, first);
	lines_print_warnings(cli, doc);
}

const struct answer scores_answer = {.members = {"items"}, .print = print, .judge = judge};
