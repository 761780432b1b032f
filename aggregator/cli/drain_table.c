/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes, those that go first; and of the wave the moves, the destinations and the costs, so
 * that it can be followed by hand. Columns without anything in them are left out.
 */
#include "aggregator/cli/drain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/columns.h"
#include "shared/mem.h"
#include "shared/units.h"

/* --- the nodes -------------------------------------------------------------------------------- */

/* In the order of the table, the last first. */
static const struct column_paint verdicts[] = {
	{"needed", PAINT_DIM},	   {"kept", PAINT_DIM},	     {"notExamined", PAINT_WARN},
	{"unneeded", PAINT_PLAIN}, {"drained", PAINT_PLAIN}, {"inDeletion", PAINT_WARN},
	{"drain", PAINT_PLAIN},	   {NULL, PAINT_PLAIN},
};

static double rank_of(const cJSON *item)
{
	for (int i = 0; verdicts[i].text; i++)
		if (document_is(item, "verdict", verdicts[i].text))
			return i;
	return 0;
}

static void cell_due(const struct row *r, const struct column *c)
{
	double due = document_time(r->item, c->at) - document_time(r->doc, "planned");
	bool unneeded = document_is(r->item, "verdict", "unneeded");

	if (unneeded && due > 0)
		row_add_units(r, PAINT_PLAIN, units_age, due);
	else
		table_cell(r->table, PAINT_PLAIN, unneeded ? "due" : "-");
}

static void cell_pods(const struct row *r, const struct column *c)
{
	double pods = row_number(r, c->at), daemons = row_number(r, "daemonPods");

	if (daemons > 0)
		row_add(r, PAINT_PLAIN, isfinite(pods), "%.0f+%.0f", pods - daemons, daemons);
	else
		row_add(r, PAINT_PLAIN, isfinite(pods), "%.0f", pods);
}

/* Painted where requests hold a node which does little. */
static void cell_requested(const struct row *r, const struct column *c)
{
	row_add_units(r, document_is_true(r->item, "idleInFact") ? PAINT_WARN : PAINT_PLAIN,
		      units_percent, row_share(r, c->at, c->of));
}

/* The first of the chain, and behind it which pod's, where it is one that holds the node. */
static char *reason_of(const cJSON *item, const char *member)
{
	const cJSON *first = document_first(item, "reasons");
	const cJSON *second = first ? first->next : NULL;
	bool pod = second && document_is(first, "code", "BlockedByPod");

	return mem_printf("%s%s%s", document_text_or(first, member, "-"), pod ? ": " : "",
			  pod ? document_text_or(second, member, "-") : "");
}

static void cell_reason(const struct row *r, const struct column *c)
{
	char *text = reason_of(r->item, c->at);

	table_cell(r->table, PAINT_PLAIN, text);
	free(text);
}

/* clang-format off */
static const struct column node_columns[] = {
	{"NODE", FORM_NAME, cell_text, .at = "name"},
	{"VERDICT", FORM_LEFT, cell_text, .at = "verdict", .paints = verdicts},
	{"GROUP", FORM_LEFT, cell_text, .at = "group", .empty = columns_unknown},
	{"SINCE", FORM_RIGHT, cell_ago, .at = "since", .of = "planned", .empty = columns_unknown, .spare = 1},
	{"DUE-IN", FORM_RIGHT, cell_due, .at = "due", .empty = columns_unknown},
	{"PODS", FORM_RIGHT, cell_pods, .at = "pods"},
	{"CPU-REQ%", FORM_RIGHT, cell_requested, .at = "requests.cpuMillicores", .of = "allocatable.cpuMillicores", .spare = 5},
	{"CPU-MEAN%", FORM_RIGHT, cell_share, .at = "usage.cpuMillicores", .of = "allocatable.cpuMillicores",
	 .empty = columns_unknown, .spare = 3},
	{"MEM-REQ%", FORM_RIGHT, cell_requested, .at = "requests.memoryBytes", .of = "allocatable.memoryBytes", .spare = 4},
	{"WORKSET-MEAN%", FORM_RIGHT, cell_share, .at = "usage.workingSetBytes", .of = "allocatable.memoryBytes",
	 .empty = columns_unknown, .spare = 2},
	{"P95-FIT", FORM_RIGHT, cell_share, .at = "utilization.rightSized", .empty = columns_unknown, .wide = true},
	{"REASON", FORM_LEFT, cell_reason, .at = "code", .empty = columns_unknown},
	{"WHY", FORM_LEFT, cell_reason, .at = "text", .empty = columns_unknown, .wide = true},
	{0},
};
/* clang-format on */

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
	{0},
};

/* Of equal verdicts: as the wave goes, else those that have waited the longest first. Below 1. */
static double rank_within(const cJSON *doc, const cJSON *item)
{
	double age = document_time(doc, "planned") - document_time(item, "since"), at = 0;
	const cJSON *node = document_first(doc, "wave.nodes");

	for (; node && document_is(item, "verdict", "drain"); node = node->next, at++)
		if (strcmp(document_text_or(node, "name", ""),
			   document_text_or(item, "name", "-")) == 0)
			return 1 / (at + 2);
	return age > 0 ? age / (age + 1e6) : 0;
}

static double key_of(const struct cli *cli, const cJSON *item, double rank)
{
	int sort = cli->options->sort;

	if (sort == DRAIN_BY_VERDICT)
		return rank;
	if (sort == DRAIN_BY_NAME)
		return 0;
	return document_number(item,
			       sort == DRAIN_BY_USE ? "utilization.used" : "utilization.requested");
}

/* What -o csv has of the reasons: the code of the one that decides. */
static void add_reason_data(const struct row *r)
{
	const cJSON *first = document_first(r->item, "reasons");
	bool pod = first && first->next && document_is(first, "code", "BlockedByPod");
	char *text = reason_of(r->item, "text");

	csv_text(r, document_text(pod ? first->next : first, "code"));
	csv_text(r, text);
	free(text);
}

void drain_print_nodes(struct cli *cli, const cJSON *doc)
{
	struct row row = columns_start(cli, node_columns, fields);

	row.doc = doc;
	csv_column(cli, row.table, "reason");
	csv_column(cli, row.table, "text");
	for (row.item = document_first(doc, "items"); row.item; row.item = row.item->next) {
		double rank = rank_of(row.item) + rank_within(doc, row.item);

		columns_add_row(&row, document_text_or(row.item, "name", "-"),
				key_of(cli, row.item, rank));
		add_reason_data(&row);
	}
	columns_end(cli, &row, "node");
}

/* --- tables of the wave ----------------------------------------------------------------------- */

/* Where the pod is; else the node that the row's `more` names. */
static void cell_from(const struct row *r, const struct column *c)
{
	table_cell(r->table, PAINT_PLAIN, document_text_or(r->item, c->at, r->more));
}

static void cell_pod(const struct row *r, const struct column *c)
{
	const char *name = document_text_or(r->item, c->at, "-");

	if (document_is_true(r->item, "placeholder"))
		row_add(r, PAINT_PLAIN, true, "%s (room)", name);
	else
		row_add(r, PAINT_PLAIN, true, "%s/%s", document_text_or(r->item, "namespace", ""),
			name);
}

static void cell_to(const struct row *r, const struct column *c)
{
	const char *nowhere =
		document_is_true(r->item, "deleted") ? "deleted, not moved" : "nowhere";

	table_cell(r->table, PAINT_PLAIN, document_text_or(r->item, c->at, nowhere));
}

static void cell_age(const struct row *r, const struct column *c)
{
	row_add_units(r, PAINT_PLAIN, units_age, row_number(r, c->at));
}

static const struct column move_columns[] = {
	{"FROM", FORM_NAME, cell_from, .at = "from"},
	{"POD", FORM_NAME, cell_pod, .at = "name"},
	{"TO", FORM_NAME, cell_to, .at = "to"},
	{"CPU-REQ", FORM_RIGHT, cell_amount, .at = "cpuMillicores"},
	{"MEM-REQ", FORM_RIGHT, cell_amount, .at = "memoryBytes"},
	{"AGE", FORM_RIGHT, cell_age, .at = "ageSeconds", .empty = columns_unknown},
	{0},
};

void drain_print_moves(struct cli *cli, const cJSON *first, bool one)
{
	struct row row = columns_start(cli, move_columns, NULL);

	for (const cJSON *node = first; node; node = one ? NULL : node->next) {
		row.more = document_text_or(node, "name", "-");
		row.item = document_first(node, "moves");
		for (; row.item; row.item = row.item->next)
			columns_add_next(&row, "");
	}
	columns_end(cli, &row, NULL);
}

/* clang-format off */
static const struct column destination_columns[] = {
	{"DESTINATION", FORM_NAME, cell_text, .at = "node"},
	{"PODS", FORM_RIGHT, cell_count, .at = "pods"},
	{"CPU-NOW", FORM_RIGHT, cell_amount, .at = "cpuMillicores.now", .empty = columns_unknown},
	{"CPU-RESERVED", FORM_RIGHT, cell_amount, .at = "cpuMillicores.reserved", .empty = columns_unknown, .spare = 1},
	{"CPU-AFTER", FORM_RIGHT, cell_amount, .at = "cpuMillicores.after", .empty = columns_unknown},
	{"CPU-CAP", FORM_RIGHT, cell_amount, .at = "cpuMillicores.limit", .empty = columns_unknown},
	{"MEM-NOW", FORM_RIGHT, cell_amount, .at = "memoryBytes.now", .empty = columns_unknown},
	{"MEM-RESERVED", FORM_RIGHT, cell_amount, .at = "memoryBytes.reserved", .empty = columns_unknown, .spare = 2},
	{"MEM-AFTER", FORM_RIGHT, cell_amount, .at = "memoryBytes.after", .empty = columns_unknown},
	{"MEM-CAP", FORM_RIGHT, cell_amount, .at = "memoryBytes.limit", .empty = columns_unknown},
	{0},
};
/* clang-format on */

static void cell_owner(const struct row *r, const struct column *c)
{
	row_add(r, PAINT_PLAIN, true, "%s %s/%s", document_text_or(r->item, "kind", "-"),
		document_text_or(r->item, "namespace", ""), document_text_or(r->item, c->at, "-"));
}

static void cell_how(const struct row *r, const struct column *c)
{
	table_cell(r->table, PAINT_WARN,
		   document_is_true(r->item, c->at) ? "one after the other" : "-");
}

static const struct column cost_columns[] = {
	{"DISRUPTED", FORM_NAME, cell_owner, .at = "name"},
	{"PODS", FORM_RIGHT, cell_count, .at = "pods"},
	{"ALLOWED", FORM_RIGHT, cell_count, .at = "allowed", .empty = columns_unknown},
	{"LEFT", FORM_RIGHT, cell_count, .at = "left", .empty = columns_unknown},
	{"HOW", FORM_LEFT, cell_how, .at = "oneAfterTheOther", .empty = columns_unknown},
	{0},
};

void drain_print_wave(struct cli *cli, const cJSON *wave)
{
	drain_print_moves(cli, document_first(wave, "nodes"), false);
	if (document_number(wave, "pods") > 0)
		columns_print_list(cli, wave, "destinations", "node", destination_columns, NULL,
				   NULL);
	columns_print_list(cli, wave, "disruptions", "name", cost_columns, NULL, NULL);
}
