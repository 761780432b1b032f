/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of classes, and below it in words: what the target is made of, what finds no place and
 * why, which nodes would help, and notes of the server. --explain has the step's own sentences
 * there instead.
 */
#include "aggregator/cli/cmd_slack.h"
#include "aggregator/cli/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/commands.h"
#include "aggregator/cli/document.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/quota_table.h"
#include "shared/mem.h"

enum column {
	CLASS,
	KIND,
	CPU,
	MEMORY,
	TARGET,
	WANTED,
	PLACED,
	BALLOONS,
	UNPLACED,
	SLOTS,
	USABLE,
	FRAGMENTED,
	STATE,
	NODES,
	COLUMNS
};

static const struct column_spec columns[COLUMNS] = {
	[CLASS] = {"CLASS", FORM_NAME, false, false, 0},
	[KIND] = {"KIND", FORM_LEFT, true, false, 0},
	[CPU] = {"CPU-REQ", FORM_RIGHT, false, false, 0},
	[MEMORY] = {"MEM-REQ", FORM_RIGHT, false, false, 0},
	[TARGET] = {"TARGET", FORM_RIGHT, true, false, 0},
	[WANTED] = {"WANTED", FORM_RIGHT, false, false, 0},
	[PLACED] = {"PLACED", FORM_RIGHT, false, false, 2},
	[BALLOONS] = {"BALLOONS", FORM_RIGHT, false, true, 0},
	[UNPLACED] = {"UNPLACED", FORM_RIGHT, false, false, 0},
	[SLOTS] = {"SLOTS", FORM_RIGHT, false, false, 0},
	[USABLE] = {"USABLE", FORM_RIGHT, false, true, 3},
	[FRAGMENTED] = {"FRAGMENTED", FORM_RIGHT, false, false, 1},
	[STATE] = {"STATE", FORM_LEFT, false, false, 0},
	[NODES] = {"NODES", FORM_LEFT, true, true, 0},
};

static const struct csv_field fields[] = {
	{"class", "name"},
	{"kind", "kind"},
	{"cpu_request_millicores", "shape.cpuMillicores"},
	{"memory_request_bytes", "shape.memoryBytes"},
	{"target", "target"},
	{"wanted", "wanted"},
	{"placed", "placed"},
	{"balloons", "balloons"},
	{"unplaced", "unplaced"},
	{"slots_by_requests", "slots.byRequests"},
	{"slots_by_use", "slots.byUse"},
	{"slots_at_least", "slots.atLeast"},
	{"fragmented_ratio", "fragmentation"},
	{"state", "verdict"},
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* --- the table -------------------------------------------------------------------------------- */

static void add_count(struct table *t, enum table_paint paint, double count, bool more)
{
	char text[UNITS_LEN];

	snprintf(text, sizeof(text), "%.0f%s", count, more ? "+" : "");
	table_cell(t, paint, isfinite(count) ? text : "-");
}

static void add_share(struct table *t, double share)
{
	char text[UNITS_LEN];

	units_percent(share, text);
	table_cell(t, PAINT_PLAIN, text);
}

static enum table_paint paint_of(const char *verdict)
{
	return strcmp(verdict, "unplaced") == 0	    ? PAINT_BAD
	       : strcmp(verdict, "impossible") == 0 ? PAINT_BAD
	       : strcmp(verdict, "lowering") == 0   ? PAINT_DIM
						    : PAINT_PLAIN;
}

/* "n1, n2 (3)" */
static void add_nodes(struct table *t, const cJSON *item)
{
	struct buf text = BUF_INIT;

	for (const cJSON *n = document_first(document_at(item, "nodes")); n; n = n->next) {
		double count = document_number(n, "count");

		buf_printf(&text, "%s%s", text.len ? ", " : "", document_text_or(n, "node", "-"));
		if (count > 1)
			buf_printf(&text, " (%.0f)", count);
	}
	table_cell(t, PAINT_PLAIN, text.len ? text.data : "-");
	buf_fini(&text);
}

static void add_row(const struct cli *cli, struct table *t, const cJSON *item, size_t place)
{
	const char *name = document_text_or(item, "name", "-"),
		   *verdict = document_text_or(item, "verdict", "-");
	bool more = cJSON_IsTrue(document_at(item, "slots.atLeast"));
	double unplaced = document_number(item, "unplaced");

	table_row(t, name);
	table_key(t, -(double)place);
	table_cell(t, PAINT_PLAIN, name);
	table_cell(t, PAINT_PLAIN, document_text_or(item, "kind", "-"));
	quota_amount_cell(t, PAINT_PLAIN, "cpu", document_number(item, "shape.cpuMillicores"));
	quota_amount_cell(t, PAINT_PLAIN, "memory", document_number(item, "shape.memoryBytes"));
	add_count(t, PAINT_PLAIN, document_number(item, "target"), false);
	add_count(t, PAINT_PLAIN, document_number(item, "wanted"), false);
	add_count(t, PAINT_PLAIN, document_number(item, "placed"), false);
	add_count(t, PAINT_PLAIN, document_number(item, "balloons"), false);
	add_count(t, unplaced > 0 ? PAINT_BAD : PAINT_PLAIN, unplaced, false);
	add_count(t, PAINT_PLAIN, document_number(item, "slots.byRequests"), more);
	add_count(t, PAINT_PLAIN, document_number(item, "slots.byUse"), more);
	add_share(t, document_number(item, "fragmentation"));
	table_cell(t, paint_of(verdict), verdict);
	add_nodes(t, item);
	csv_cells(cli, t, item, fields, FIELDS);
}

static bool is_hidden(const struct cli *cli, const cJSON *item)
{
	const char *namespace = cli->options->namespace, *name = document_text_or(item, "name", "");
	size_t len = namespace ? strlen(namespace) : 0;

	return namespace && !(strncmp(name, namespace, len) == 0 && name[len] == '/');
}

static void print_table(struct cli *cli, const cJSON *doc)
{
	static const char *const empty[] = {"-", NULL};
	struct table *t = columns_start(columns, COLUMNS);
	size_t place = 0;

	csv_columns(cli, t, fields, FIELDS);
	for (const cJSON *item = document_first(document_at(doc, "items")); item; item = item->next)
		if (!is_hidden(cli, item))
			add_row(cli, t, item, place++);
	columns_hide(cli, t, columns, COLUMNS, empty);
	if (place)
		commands_print_table(cli, t, "slack");
	table_free(t);
	if (place)
		buf_add_char(&cli->out, '\n');
}

/* --- words ------------------------------------------------------------------------------------ */

static void write_amount(struct buf *out, const cJSON *doc, const char *member)
{
	const cJSON *amount = document_at(doc, member);
	char text[UNITS_LEN];

	quota_amount_print("cpu", document_number(amount, "cpuMillicores"), text);
	buf_printf(out, "%s CPU and ", text);
	quota_amount_print("memory", document_number(amount, "memoryBytes"), text);
	buf_add_str(out, text);
}

static void say(struct cli *cli, struct buf *line)
{
	lines_add_wrapped(cli, 0, "", line->data ? line->data : "", &cli->out);
	buf_clear(line);
}

/* How far the promise is that shall take the rate's place. */
static void say_watched(const cJSON *target, struct buf *line)
{
	if (document_at(target, "arrivalSpansNeeded"))
		buf_printf(line,
			   " What arrives while a node starts was watched for %.0f of the %.0f "
			   "such times that are "
			   "needed; until then the rate counts.",
			   document_number(target, "arrivalSpans"),
			   document_number(target, "arrivalSpansNeeded"));
}

/* What the number of units comes from, so that it can be followed by hand. */
static void say_target(struct cli *cli, const cJSON *target, struct buf *line)
{
	bool arrivals = strcmp(document_text_or(target, "from", ""), "arrivals") == 0;
	const char *base = document_text_or(target, "base", "requested");
	double nodes = document_number(target, "nodes");

	buf_add_str(line, "Slack shall be at least ");
	write_amount(line, target, "extra");
	if (arrivals)
		buf_printf(line, ": what arrives while a node starts, in 95%% of %.0f such times. ",
			   document_number(target, "arrivalSpans"));
	else
		buf_printf(line, ": %g%% of the ", document_number(target, "rate") * 100);
	if (!arrivals) {
		write_amount(line, target, base);
		buf_printf(line, " that %s.",
			   strcmp(base, "allocatable") == 0 ? "nodes can give" : "pods request");
		say_watched(target, line);
	}
	buf_printf(line, " %.0f node%s ready, and can give pods ", nodes,
		   nodes == 1 ? " is" : "s are");
	write_amount(line, target, "allocatable");
	buf_add_char(line, '.');
	say(cli, line);
}

static void say_unplaced(struct cli *cli, const cJSON *item, struct buf *line)
{
	/* A note says why it is impossible. */
	bool told = strcmp(document_text_or(item, "verdict", ""), "impossible") == 0;
	double unplaced = document_number(item, "unplaced");
	char *head = mem_printf("%s: ", document_text_or(item, "name", "-"));

	if (unplaced > 0 && !told) {
		buf_printf(line, "%.0f find%s no place: %s", unplaced, unplaced == 1 ? "s" : "",
			   document_text_or(item, "reason", "nodes are missing"));
		lines_add_wrapped(cli, 0, head, line->data, &cli->out);
		buf_clear(line);
	}
	free(head);
}

static void say_node(struct cli *cli, const cJSON *demand, struct buf *line)
{
	double count = document_number(demand, "count");
	const char *type = document_text(demand, "instanceType");

	buf_printf(line, "%.0f more node%s like %s%s%s%s (", count, count == 1 ? "" : "s",
		   document_text_or(demand, "like", "-"), type ? " of type " : "", type ? type : "",
		   "");
	write_amount(line, demand, "gives");
	buf_add_str(line, " for pods) would hold what finds no place.");
	say(cli, line);
}

static void print_words(struct cli *cli, const cJSON *doc)
{
	struct buf line = BUF_INIT;
	const cJSON *item;

	say_target(cli, document_at(doc, "target"), &line);
	lines_add_pod_use(cli, doc, &cli->out);
	for (item = document_first(document_at(doc, "items")); item; item = item->next)
		if (!is_hidden(cli, item))
			say_unplaced(cli, item, &line);
	for (item = document_first(document_at(doc, "nodesToAdd")); item; item = item->next)
		say_node(cli, item, &line);
	for (item = document_first(document_at(doc, "notes")); item; item = item->next) {
		char *head = mem_printf("%s: ", document_text_or(item, "about", "-"));

		lines_add_wrapped(cli, 0, head, document_text_or(item, "text", ""), &cli->out);
		free(head);
	}
	buf_fini(&line);
}

static void print_narration(struct cli *cli, const cJSON *doc)
{
	for (const cJSON *line = document_first(document_at(doc, "narration")); line;
	     line = line->next)
		if (cJSON_IsString(line))
			lines_add_wrapped(cli, 0, "", line->valuestring, &cli->out);
}

/* --- the answer ------------------------------------------------------------------------------- */

/* Placeholders that no more nodes of today's sizes would help. */
static double count_impossible(const cJSON *doc)
{
	double count = 0;

	for (const cJSON *item = document_first(document_at(doc, "items")); item; item = item->next)
		if (strcmp(document_text_or(item, "verdict", ""), "impossible") == 0)
			count += document_number(item, "unplaced");
	return count;
}

static void tell_unplaced(struct cli *cli, const cJSON *doc, double unplaced)
{
	double add = document_number(doc, "total.nodesToAdd"), impossible = count_impossible(doc);
	const char *find = unplaced == 1 ? " finds" : "s find";
	char beside[64] = "";

	if (impossible >= unplaced) {
		reason_set(&cli->reason, "%.0f placeholder%s no place: no node is large enough",
			   unplaced, find);
		return;
	}
	if (impossible > 0)
		snprintf(beside, sizeof(beside), ", but not %.0f that no node could hold",
			 impossible);
	reason_set(&cli->reason, "%.0f placeholder%s no place; %.0f more node%s would help%s",
		   unplaced, find, add, add == 1 ? "" : "s", beside);
}

static int judge(struct cli *cli, const cJSON *doc)
{
	double unplaced = document_number(doc, "total.unplaced");
	const char *stale = document_text(doc, "stale");

	if (unplaced > 0) {
		tell_unplaced(cli, doc, unplaced);
		return CLI_REFUSED;
	}
	if (stale) {
		reason_set(&cli->reason, "%s", stale);
		return CLI_STALE;
	}
	if (strcmp(document_text_or(doc, "useCap", "on"), "on") == 0)
		return CLI_OK;
	reason_set(&cli->reason, "%s",
		   cli->no_usage ? cli->no_usage
				 : "no node is measured: slots are by requests alone");
	return CLI_STALE;
}

int slack_render(struct cli *cli, const char *json, size_t len)
{
	cJSON *doc;
	int code;

	if (cli->options->output >= OUTPUT_BALLOONS) {
		commands_print_json(cli, json, len);
		return CLI_OK;
	}
	doc = cJSON_ParseWithLength(json, len);
	if (!document_at(doc, "items") || !document_at(doc, "target")) {
		cJSON_Delete(doc);
		reason_set(&cli->reason, "the answer is not one about slack; is that an "
					 "evenkeel-aggregator of this version?");
		return CLI_ERROR;
	}
	if (cli->options->output == OUTPUT_JSON) {
		commands_print_json(cli, json, len);
	} else {
		print_table(cli, doc);
		if (cli->options->explain)
			print_narration(cli, doc);
		else
			print_words(cli, doc);
	}
	code = judge(cli, doc);
	cJSON_Delete(doc);
	return code;
}
