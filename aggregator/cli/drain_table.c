/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes, those that go first; and of the wave the moves, the destinations and the costs, so
 * that it can be followed by hand. Columns without anything in them are left out.
 */
#include "aggregator/cli/columns.h"
#include "aggregator/cli/drain_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/cmd_drain.h"
#include "aggregator/cli/commands.h"
#include "aggregator/cli/document.h"
#include "shared/mem.h"
#include "shared/table.h"
#include "shared/units.h"

enum column {
	NODE,
	VERDICT,
	GROUP,
	SINCE,
	DUE,
	PODS,
	CPU,
	CPU_USED,
	MEM,
	MEM_USED,
	FIT,
	REASON,
	TEXT,
	COLUMNS
};

static const struct column_spec columns[COLUMNS] = {
	[NODE] = {"NODE", FORM_NAME, false, false, 0},
	[VERDICT] = {"VERDICT", FORM_LEFT, false, false, 0},
	[GROUP] = {"GROUP", FORM_LEFT, false, true, 0},
	[SINCE] = {"SINCE", FORM_RIGHT, false, true, 1},
	[DUE] = {"DUE-IN", FORM_RIGHT, false, true, 0},
	[PODS] = {"PODS", FORM_RIGHT, false, false, 0},
	[CPU] = {"CPU-REQ%", FORM_RIGHT, false, false, 5},
	[CPU_USED] = {"CPU-MEAN%", FORM_RIGHT, false, true, 3},
	[MEM] = {"MEM-REQ%", FORM_RIGHT, false, false, 4},
	[MEM_USED] = {"WORKSET-MEAN%", FORM_RIGHT, false, true, 2},
	[FIT] = {"P95-FIT", FORM_RIGHT, true, true, 0},
	[REASON] = {"REASON", FORM_LEFT, false, true, 0},
	[TEXT] = {"WHY", FORM_LEFT, true, true, 0},
};

static const struct csv_field fields[] = {
	{"node", "name"},
	{"verdict", "verdict"},
	{"group", "group"},
	{"since", "since"},
	{"due", "due"},
	{"pods", "pods"},
	{"daemon_pods", "daemonPods"},
	{"cpu_allocatable_millicores", "allocatable.cpuMillicores"},
	{"cpu_requests_millicores", "requests.cpuMillicores"},
	{"cpu_mean_millicores", "usage.cpuMillicores"},
	{"memory_allocatable_bytes", "allocatable.memoryBytes"},
	{"memory_requests_bytes", "requests.memoryBytes"},
	{"working_set_mean_bytes", "usage.workingSetBytes"},
	{"p95_fit_ratio", "utilization.rightSized"},
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static bool is_verdict(const cJSON *item, const char *verdict)
{
	return strcmp(document_text_or(item, "verdict", ""), verdict) == 0;
}

/* --- the nodes -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	double rank; /* in the table: the greatest first */
	enum table_paint paint;
} verdicts[] = {
	{"drain", 6, PAINT_PLAIN},    {"inDeletion", 5, PAINT_WARN},  {"drained", 4, PAINT_PLAIN},
	{"unneeded", 3, PAINT_PLAIN}, {"notExamined", 2, PAINT_WARN}, {"kept", 1, PAINT_DIM},
	{"needed", 0, PAINT_DIM},
};

static void add_verdict(struct table *t, const cJSON *item, double *rank)
{
	const char *verdict = document_text_or(item, "verdict", "-");

	*rank = 0;
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
		if (strcmp(verdicts[i].name, verdict) == 0) {
			*rank = verdicts[i].rank;
			table_cell(t, verdicts[i].paint, verdict);
			return;
		}
	table_cell(t, PAINT_PLAIN, verdict);
}

static void add_age(struct table *t, double seconds)
{
	char text[UNITS_LEN];

	units_age(seconds, text);
	table_cell(t, PAINT_PLAIN, isfinite(seconds) ? text : "-");
}

static void add_times(struct table *t, const cJSON *item, double planned)
{
	double due = document_time(item, "due") - planned;

	add_age(t, planned - document_time(item, "since"));
	if (is_verdict(item, "unneeded") && due > 0)
		add_age(t, due);
	else
		table_cell(t, PAINT_PLAIN, is_verdict(item, "unneeded") ? "due" : "-");
}

static void add_pods(struct table *t, const cJSON *item)
{
	double pods = document_number(item, "pods"), daemons = document_number(item, "daemonPods");
	char text[UNITS_LEN];

	if (daemons > 0)
		snprintf(text, sizeof(text), "%.0f+%.0f", pods - daemons, daemons);
	else
		snprintf(text, sizeof(text), "%.0f", pods);
	table_cell(t, PAINT_PLAIN, isfinite(pods) ? text : "-");
}

static double share(const cJSON *item, const char *part, const char *whole)
{
	double of = document_number(item, whole);

	return of > 0 ? document_number(item, part) / of : NAN;
}

static void add_share(struct table *t, enum table_paint paint, double value)
{
	char text[UNITS_LEN];

	units_percent(value, text);
	table_cell(t, paint, isfinite(value) ? text : "-");
}

/* Requests that hold a node which does little. */
static enum table_paint paint_of_requests(const cJSON *item)
{
	return cJSON_IsTrue(document_at(item, "idleInFact")) ? PAINT_WARN : PAINT_PLAIN;
}

static void add_shares(struct table *t, const cJSON *item)
{
	static const char cpu[] = "allocatable.cpuMillicores", mem[] = "allocatable.memoryBytes";

	add_share(t, paint_of_requests(item), share(item, "requests.cpuMillicores", cpu));
	add_share(t, PAINT_PLAIN, share(item, "usage.cpuMillicores", cpu));
	add_share(t, paint_of_requests(item), share(item, "requests.memoryBytes", mem));
	add_share(t, PAINT_PLAIN, share(item, "usage.workingSetBytes", mem));
	add_share(t, PAINT_PLAIN, document_number(item, "utilization.rightSized"));
}

/* Which pod's, where it is one that holds the node. */
static void add_reasons(const struct cli *cli, struct table *t, const cJSON *item)
{
	const cJSON *first = document_first(document_at(item, "reasons"));
	const cJSON *second = first ? first->next : NULL;
	bool pod = second && strcmp(document_text_or(first, "code", ""), "BlockedByPod") == 0;
	char *code = mem_printf("%s%s%s", document_text_or(first, "code", "-"), pod ? ": " : "",
				pod ? document_text_or(second, "code", "-") : "");
	char *text = mem_printf("%s%s%s", document_text_or(first, "text", "-"), pod ? ": " : "",
				pod ? document_text_or(second, "text", "-") : "");

	table_cell(t, PAINT_PLAIN, code);
	table_cell(t, PAINT_PLAIN, text);
	csv_cells(cli, t, item, fields, FIELDS);
	csv_text(cli, t, document_text(pod ? second : first, "code"));
	csv_text(cli, t, text);
	free(code);
	free(text);
}

/* Of equal verdicts: as the wave goes, else those that have waited the longest first. Below 1. */
static double rank_within(const cJSON *doc, const cJSON *item)
{
	double age = document_time(doc, "planned") - document_time(item, "since"), at = 0;
	const cJSON *node = document_first(document_at(doc, "wave.nodes"));

	for (; node && is_verdict(item, "drain"); node = node->next, at++)
		if (strcmp(document_text_or(node, "name", ""),
			   document_text_or(item, "name", "-")) == 0)
			return 1 / (at + 2);
	return age > 0 ? age / (age + 1e6) : 0;
}

static double key_of(const struct cli *cli, const cJSON *item, double rank)
{
	switch ((enum drain_sort)cli->options->sort) {
	case DRAIN_BY_VERDICT:
		return rank;
	case DRAIN_BY_REQUESTS:
		return document_number(item, "utilization.requested");
	case DRAIN_BY_USE:
		return document_number(item, "utilization.used");
	case DRAIN_BY_NAME:
		break;
	}
	return 0;
}

static void add_node(const struct cli *cli, struct table *t, const cJSON *doc, const cJSON *item)
{
	const char *name = document_text_or(item, "name", "-");
	double rank;

	table_row(t, name);
	table_cell(t, PAINT_PLAIN, name);
	add_verdict(t, item, &rank);
	table_cell(t, PAINT_PLAIN, document_text_or(item, "group", "-"));
	add_times(t, item, document_time(doc, "planned"));
	add_pods(t, item);
	add_shares(t, item);
	add_reasons(cli, t, item);
	table_key(t, key_of(cli, item, rank + rank_within(doc, item)));
}

void drain_print_nodes(struct cli *cli, const cJSON *doc)
{
	static const char *const empty[] = {"-", NULL};
	struct table *t = columns_start(columns, COLUMNS);

	csv_columns(cli, t, fields, FIELDS);
	csv_column(cli, t, "reason");
	csv_column(cli, t, "text");
	for (const cJSON *item = document_first(document_at(doc, "items")); item; item = item->next)
		add_node(cli, t, doc, item);
	columns_hide(cli, t, columns, COLUMNS, empty);
	commands_print_table(cli, t, "node");
	table_free(t);
}

/* --- tables of the wave ----------------------------------------------------------------------- */

/* In the order in which rows were added, and whole. */
static void print_part(struct cli *cli, struct table *t)
{
	struct table_style style = commands_style(cli);

	buf_add_char(&cli->out, '\n');
	table_print(t, &style, &cli->out);
	table_free(t);
}

static void add_cpu(struct table *t, double milli)
{
	char text[UNITS_LEN];

	units_cpu(milli, text);
	table_cell(t, PAINT_PLAIN, text);
}

static void add_bytes(struct table *t, double bytes)
{
	char text[UNITS_LEN];

	units_bytes(bytes, text);
	table_cell(t, PAINT_PLAIN, text);
}

static void add_move(struct table *t, const char *node, const cJSON *move)
{
	bool placeholder = cJSON_IsTrue(document_at(move, "placeholder"));
	char *pod =
		mem_printf("%s%s%s%s", placeholder ? "" : document_text_or(move, "namespace", ""),
			   placeholder ? "" : "/", document_text_or(move, "name", "-"),
			   placeholder ? " (room)" : "");

	table_row(t, node);
	table_cell(t, PAINT_PLAIN, document_text_or(move, "from", node));
	table_cell(t, PAINT_PLAIN, pod);
	table_cell(t, PAINT_PLAIN,
		   document_text_or(move, "to",
				    cJSON_IsTrue(document_at(move, "deleted"))
					    ? "deleted, not moved"
					    : "nowhere"));
	add_cpu(t, document_number(move, "cpuMillicores"));
	add_bytes(t, document_number(move, "memoryBytes"));
	add_age(t, document_number(move, "ageSeconds"));
	free(pod);
}

static struct table *start_moves(void)
{
	struct table *t = table_new();

	table_column(t, "FROM", FORM_NAME);
	table_column(t, "POD", FORM_NAME);
	table_column(t, "TO", FORM_NAME);
	table_column(t, "CPU-REQ", FORM_RIGHT);
	table_column(t, "MEM-REQ", FORM_RIGHT);
	table_column(t, "AGE", FORM_RIGHT);
	return t;
}

static size_t add_moves(struct table *t, const cJSON *node)
{
	const char *name = document_text_or(node, "name", "-");
	const cJSON *move = document_first(document_at(node, "moves"));
	size_t count = 0;

	for (; move; move = move->next, count++)
		add_move(t, name, move);
	return count;
}

void drain_print_moves(struct cli *cli, const cJSON *first, bool one)
{
	static const char *const empty[] = {"-", NULL};
	enum { AGE = 5 };
	struct table *t = start_moves();
	size_t count = 0;

	for (const cJSON *node = first; node; node = one ? NULL : node->next)
		count += add_moves(t, node);
	if (table_holds_only(t, AGE, empty))
		table_hide(t, AGE);
	if (count)
		print_part(cli, t);
	else
		table_free(t);
}

void drain_print_destinations(struct cli *cli, const cJSON *wave)
{
	enum { CPU_RESERVED = 1, CPU_AMOUNTS = 4, MEM_RESERVED, AMOUNTS = 8 };
	static const struct {
		const char *title, *path;
	} amounts[AMOUNTS] = {
		{"CPU-NOW", "cpuMillicores.now"},     {"CPU-RESERVED", "cpuMillicores.reserved"},
		{"CPU-AFTER", "cpuMillicores.after"}, {"CPU-CAP", "cpuMillicores.limit"},
		{"MEM-NOW", "memoryBytes.now"},	      {"MEM-RESERVED", "memoryBytes.reserved"},
		{"MEM-AFTER", "memoryBytes.after"},   {"MEM-CAP", "memoryBytes.limit"},
	};
	const cJSON *d = document_first(document_at(wave, "destinations"));
	struct table *t = table_new();

	table_column(t, "DESTINATION", FORM_NAME);
	table_column(t, "PODS", FORM_RIGHT);
	for (size_t i = 0; i < AMOUNTS; i++)
		table_column(t, amounts[i].title, FORM_RIGHT);
	table_spare(t, 2 + CPU_RESERVED);
	table_spare(t, 2 + MEM_RESERVED);
	for (; d; d = d->next) {
		char text[UNITS_LEN];

		table_row(t, document_text_or(d, "node", "-"));
		table_cell(t, PAINT_PLAIN, document_text_or(d, "node", "-"));
		snprintf(text, sizeof(text), "%.0f", document_number(d, "pods"));
		table_cell(t, PAINT_PLAIN, text);
		for (size_t i = 0; i < CPU_AMOUNTS; i++)
			add_cpu(t, document_number(d, amounts[i].path));
		for (size_t i = CPU_AMOUNTS; i < AMOUNTS; i++)
			add_bytes(t, document_number(d, amounts[i].path));
	}
	for (size_t i = 2; i < 2 + AMOUNTS; i++) {
		static const char *const empty[] = {"-", NULL};

		if (table_holds_only(t, i, empty))
			table_hide(t, i);
	}
	print_part(cli, t);
}

/* "-" where there is none. */
static void add_number(struct table *t, double value)
{
	char text[UNITS_LEN];

	snprintf(text, sizeof(text), "%.0f", value);
	table_cell(t, PAINT_PLAIN, isfinite(value) ? text : "-");
}

static void add_cost(struct table *t, const cJSON *cost)
{
	char *name = mem_printf("%s %s/%s", document_text_or(cost, "kind", "-"),
				document_text_or(cost, "namespace", ""),
				document_text_or(cost, "name", "-"));

	table_row(t, name);
	table_cell(t, PAINT_PLAIN, name);
	add_number(t, document_number(cost, "pods"));
	add_number(t, document_number(cost, "allowed"));
	add_number(t, document_number(cost, "left"));
	table_cell(t, PAINT_WARN,
		   cJSON_IsTrue(document_at(cost, "oneAfterTheOther")) ? "one after the other"
								       : "-");
	free(name);
}

void drain_print_costs(struct cli *cli, const cJSON *wave)
{
	static const char *const empty[] = {"-", NULL};
	const cJSON *cost = document_first(document_at(wave, "disruptions"));
	struct table *t = table_new();

	table_column(t, "DISRUPTED", FORM_NAME);
	table_column(t, "PODS", FORM_RIGHT);
	table_column(t, "ALLOWED", FORM_RIGHT);
	table_column(t, "LEFT", FORM_RIGHT);
	table_column(t, "HOW", FORM_LEFT);
	for (; cost; cost = cost->next)
		add_cost(t, cost);
	for (size_t i = 2; i < 5; i++)
		if (table_holds_only(t, i, empty))
			table_hide(t, i);
	print_part(cli, t);
}
