/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of drains for people: one line that says what it comes to, the nodes, and of the wave the moves, the destinations and the costs, so that it can be
 * followed by hand. Of nodes that are named, or with --explain, reasons stand in full, each with what would change it.
 */
#include "aggregator/cli/cmd_drain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/cli/commands.h"
#include "aggregator/cli/document.h"
#include "aggregator/cli/lines.h"
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

static const struct {
	const char *title;
	enum table_form form;
	bool wide; /* only there */
	bool sparse; /* left out where no row has anything in it */
} columns[COLUMNS] = {
	[NODE] = {"NODE", FORM_NAME, false, false},
	[VERDICT] = {"VERDICT", FORM_LEFT, false, false},
	[GROUP] = {"GROUP", FORM_LEFT, false, true},
	[SINCE] = {"SINCE", FORM_RIGHT, false, true},
	[DUE] = {"DUE-IN", FORM_RIGHT, false, true},
	[PODS] = {"PODS", FORM_RIGHT, false, false},
	[CPU] = {"CPU", FORM_RIGHT, false, false},
	[CPU_USED] = {"USED", FORM_RIGHT, false, true},
	[MEM] = {"MEM", FORM_RIGHT, false, false},
	[MEM_USED] = {"USED", FORM_RIGHT, false, true},
	[FIT] = {"P95-FIT", FORM_RIGHT, true, true},
	[REASON] = {"REASON", FORM_LEFT, false, true},
	[TEXT] = {"WHY", FORM_LEFT, true, true},
};

static const char *text_or(const cJSON *item, const char *path, const char *other)
{
	const char *text = document_text(item, path);

	return text ? text : other;
}

static bool is_verdict(const cJSON *item, const char *verdict)
{
	return strcmp(text_or(item, "verdict", ""), verdict) == 0;
}

/* --- the nodes ---------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	double rank; /* in the table: the greatest first */
	enum table_paint paint;
} verdicts[] = {
	{"drain", 5, PAINT_PLAIN},	{"inDeletion", 4, PAINT_WARN}, {"unneeded", 3, PAINT_PLAIN},
	{"notExamined", 2, PAINT_WARN}, {"needed", 1, PAINT_DIM},
};

static void add_verdict(struct table *t, const cJSON *item, double *rank)
{
	const char *verdict = text_or(item, "verdict", "-");

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
static void add_reasons(struct table *t, const cJSON *item)
{
	const cJSON *first = document_first(document_at(item, "reasons"));
	const cJSON *second = first ? first->next : NULL;
	bool pod = second && strcmp(text_or(first, "code", ""), "BlockedByPod") == 0;
	char *code = mem_printf("%s%s%s", text_or(first, "code", "-"), pod ? ": " : "",
				pod ? text_or(second, "code", "-") : "");
	char *text = mem_printf("%s%s%s", text_or(first, "text", "-"), pod ? ": " : "",
				pod ? text_or(second, "text", "-") : "");

	table_cell(t, PAINT_PLAIN, code);
	table_cell(t, PAINT_PLAIN, text);
	free(code);
	free(text);
}

/* Of equal verdicts: as the wave goes, else those that have waited the longest first. Below 1. */
static double rank_within(const cJSON *doc, const cJSON *item)
{
	double age = document_time(doc, "planned") - document_time(item, "since"), at = 0;
	const cJSON *node = document_first(document_at(doc, "wave.nodes"));

	for (; node && is_verdict(item, "drain"); node = node->next, at++)
		if (strcmp(text_or(node, "name", ""), text_or(item, "name", "-")) == 0)
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
	const char *name = text_or(item, "name", "-");
	double rank;

	table_row(t, name);
	table_cell(t, PAINT_PLAIN, name);
	add_verdict(t, item, &rank);
	table_cell(t, PAINT_PLAIN, text_or(item, "group", "-"));
	add_times(t, item, document_time(doc, "planned"));
	add_pods(t, item);
	add_shares(t, item);
	add_reasons(t, item);
	table_key(t, key_of(cli, item, rank + rank_within(doc, item)));
}

static void print_nodes(struct cli *cli, const cJSON *doc)
{
	static const char *const empty[] = {"-", NULL};
	bool wide = cli->options->output == OUTPUT_WIDE;
	struct table *t = table_new();

	for (size_t i = 0; i < COLUMNS; i++)
		table_column(t, columns[i].title, columns[i].form);
	for (const cJSON *item = document_first(document_at(doc, "items")); item; item = item->next)
		add_node(cli, t, doc, item);
	for (size_t i = 0; i < COLUMNS; i++)
		if ((columns[i].wide && !wide) ||
		    (columns[i].sparse && table_holds_only(t, i, empty)))
			table_hide(t, i);
	commands_print_table(cli, t);
	table_free(t);
}

/* --- tables of the wave ------------------------------------------------------------------------------------------- */

/* In the order in which rows were added, and whole. */
static void print_part(struct cli *cli, struct table *t)
{
	struct table_style style = {
		.headers = !cli->options->no_headers,
		.color = cli->color,
		.whole = cli->options->output == OUTPUT_WIDE,
		.width = cli->width,
	};

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
	char *pod = mem_printf("%s%s%s%s", placeholder ? "" : text_or(move, "namespace", ""),
			       placeholder ? "" : "/", text_or(move, "name", "-"),
			       placeholder ? " (room)" : "");

	table_row(t, node);
	table_cell(t, PAINT_PLAIN, node);
	table_cell(t, PAINT_PLAIN, pod);
	table_cell(t, PAINT_PLAIN, text_or(move, "to", "nowhere"));
	add_cpu(t, document_number(move, "cpuMillicores"));
	add_bytes(t, document_number(move, "memoryBytes"));
	free(pod);
}

static struct table *start_moves(void)
{
	struct table *t = table_new();

	table_column(t, "FROM", FORM_NAME);
	table_column(t, "POD", FORM_NAME);
	table_column(t, "TO", FORM_NAME);
	table_column(t, "CPU", FORM_RIGHT);
	table_column(t, "MEMORY", FORM_RIGHT);
	return t;
}

static void add_moves(struct table *t, const cJSON *node)
{
	const char *name = text_or(node, "name", "-");
	const cJSON *move = document_first(document_at(node, "moves"));

	for (; move; move = move->next)
		add_move(t, name, move);
}

static void print_destinations(struct cli *cli, const cJSON *wave)
{
	static const char *const paths[] = {"cpuMillicores.before", "cpuMillicores.after",
					    "cpuMillicores.limit",  "memoryBytes.before",
					    "memoryBytes.after",    "memoryBytes.limit"};
	const cJSON *d = document_first(document_at(wave, "destinations"));
	struct table *t = table_new();

	table_column(t, "DESTINATION", FORM_NAME);
	table_column(t, "PODS", FORM_RIGHT);
	table_column(t, "CPU", FORM_RIGHT);
	table_column(t, "THEN", FORM_RIGHT);
	table_column(t, "MOST", FORM_RIGHT);
	table_column(t, "MEMORY", FORM_RIGHT);
	table_column(t, "THEN", FORM_RIGHT);
	table_column(t, "MOST", FORM_RIGHT);
	for (; d; d = d->next) {
		char text[UNITS_LEN];

		table_row(t, text_or(d, "node", "-"));
		table_cell(t, PAINT_PLAIN, text_or(d, "node", "-"));
		snprintf(text, sizeof(text), "%.0f", document_number(d, "pods"));
		table_cell(t, PAINT_PLAIN, text);
		for (size_t i = 0; i < 3; i++)
			add_cpu(t, document_number(d, paths[i]));
		for (size_t i = 3; i < 6; i++)
			add_bytes(t, document_number(d, paths[i]));
	}
	for (size_t i = 2; i < 8; i++) {
		static const char *const empty[] = {"-", NULL};

		if (table_holds_only(t, i, empty))
			table_hide(t, i);
	}
	print_part(cli, t);
}

static void add_cost(struct table *t, const cJSON *cost)
{
	bool budget = strcmp(text_or(cost, "kind", ""), "PodDisruptionBudget") == 0;
	char *name = mem_printf("%s %s/%s", text_or(cost, "kind", "-"),
				text_or(cost, "namespace", ""), text_or(cost, "name", "-"));
	char text[UNITS_LEN];

	table_row(t, name);
	table_cell(t, PAINT_PLAIN, name);
	snprintf(text, sizeof(text), "%.0f", document_number(cost, "pods"));
	table_cell(t, PAINT_PLAIN, text);
	snprintf(text, sizeof(text), "%.0f", document_number(cost, "allowed"));
	table_cell(t, PAINT_PLAIN, budget ? text : "-");
	table_cell(t, PAINT_WARN,
		   cJSON_IsTrue(document_at(cost, "oneAfterTheOther")) ? "one after the other"
								       : "-");
	free(name);
}

static void print_costs(struct cli *cli, const cJSON *wave)
{
	static const char *const empty[] = {"-", NULL};
	const cJSON *cost = document_first(document_at(wave, "disruptions"));
	struct table *t = table_new();

	table_column(t, "DISRUPTED", FORM_NAME);
	table_column(t, "PODS", FORM_RIGHT);
	table_column(t, "ALLOWED", FORM_RIGHT);
	table_column(t, "HOW", FORM_LEFT);
	for (; cost; cost = cost->next)
		add_cost(t, cost);
	if (table_holds_only(t, 2, empty))
		table_hide(t, 2);
	if (table_holds_only(t, 3, empty))
		table_hide(t, 3);
	print_part(cli, t);
}

/* --- the wave ----------------------------------------------------------------------------------------------------- */

static void say(struct cli *cli, struct buf *line)
{
	lines_add_wrapped(cli, 0, "", line->data ? line->data : "", &cli->out);
	buf_clear(line);
}

static void add_count(struct buf *line, double count, const char *one, const char *more)
{
	buf_printf(line, "%.0f %s", count, count > 0 && count < 2 ? one : more);
}

static void say_robust(const cJSON *wave, struct buf *line)
{
	const char *fragile = document_text(wave, "notRobust");

	if (cJSON_IsTrue(document_at(wave, "robust")))
		buf_add_str(line, "There is room as well if the scheduler puts them elsewhere.");
	else if (fragile)
		buf_printf(line, "It depends on where the scheduler puts them: %s.", fragile);
}

static void say_wave(struct cli *cli, const cJSON *wave)
{
	const cJSON *node = document_first(document_at(wave, "nodes"));
	double empty = document_number(wave, "emptyNodes"), pods = document_number(wave, "pods");
	struct buf line = BUF_INIT;

	buf_add_str(&line, "Now, in this order:");
	for (; node; node = node->next)
		buf_printf(&line, " %s%s", text_or(node, "name", "-"), node->next ? "," : "");
	buf_add_str(&line, ". ");
	add_count(&line, empty, "is empty", "are empty");
	buf_add_str(&line, ", ");
	add_count(&line, pods, "pod moves", "pods move");
	buf_add_str(&line, ". ");
	if (pods > 0)
		say_robust(wave, &line);
	buf_add_char(&cli->out, '\n');
	say(cli, &line);
	buf_fini(&line);
}

static void print_wave(struct cli *cli, const cJSON *wave)
{
	const cJSON *node = document_first(document_at(wave, "nodes"));
	struct table *t;

	say_wave(cli, wave);
	if (!(document_number(wave, "pods") > 0))
		return;
	t = start_moves();
	for (; node; node = node->next)
		add_moves(t, node);
	print_part(cli, t);
	print_destinations(cli, wave);
	if (document_first(document_at(wave, "disruptions")))
		print_costs(cli, wave);
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static void add_verdicts(struct buf *line, const cJSON *doc)
{
	static const struct {
		const char *path, *words;
	} parts[] = {
		{"verdicts.drain", "may be drained now"},
		{"verdicts.unneeded", "could be later"},
		{"verdicts.needed", "needed"},
		{"verdicts.inDeletion", "on the way"},
		{"verdicts.notExamined", "not examined"},
	};
	double sum = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		sum += document_number(doc, parts[i].path);
	add_count(line, sum, "node", "nodes");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		double count = document_number(doc, parts[i].path);

		if (count > 0 || i == 0)
			buf_printf(line, "%s %.0f %s", i ? "," : ":", count, parts[i].words);
	}
	buf_add_char(line, '.');
}

static void add_hindrances(struct buf *line, const cJSON *doc)
{
	double unplaced = document_number(doc, "owed.unplaced"),
	       held = document_number(doc, "throttled.held");

	if (cJSON_IsTrue(document_at(doc, "throttled.state")))
		buf_printf(line,
			   " Throttled: %.0f of %.0f nodes and %.0f of %.0f drains; %.0f wait.",
			   document_number(doc, "throttled.nodes.used"),
			   document_number(doc, "throttled.nodes.limit"),
			   document_number(doc, "throttled.drains.used"),
			   document_number(doc, "throttled.drains.limit"), held);
	if (unplaced > 0) {
		buf_add_char(line, ' ');
		add_count(line, unplaced, "pod", "pods");
		buf_add_str(line, " of nodes on the way, or evicted, fit nowhere.");
	}
}

static void print_summary(struct cli *cli, const cJSON *doc)
{
	struct buf line = BUF_INIT;

	add_verdicts(&line, doc);
	add_hindrances(&line, doc);
	say(cli, &line);
	buf_fini(&line);
	buf_add_char(&cli->out, '\n');
}

static void explain_reason(struct cli *cli, const cJSON *reason)
{
	char *head = mem_printf("%s: ", text_or(reason, "code", "-"));
	const char *unblock = document_text(reason, "unblock");
	struct buf line = BUF_INIT;

	buf_add_str(&line, text_or(reason, "text", ""));
	if (line.len && line.data[line.len - 1] != '.')
		buf_add_char(&line, '.');
	lines_add_wrapped(cli, 2, head, line.data, &cli->out);
	if (unblock)
		lines_add_wrapped(cli, 6, "what helps: ", unblock, &cli->out);
	buf_fini(&line);
	free(head);
}

static void add_right_sized(struct buf *line, const cJSON *item)
{
	char requested[UNITS_LEN], sized[UNITS_LEN];

	units_percent(document_number(item, "utilization.requested"), requested);
	units_percent(document_number(item, "utilization.rightSized"), sized);
	buf_printf(line,
		   "by requests it is %s full; were they what its pods use at the 95th "
		   "percentile, and some headroom, %s",
		   requested, sized);
}

/* The node in the wave, or NULL. */
static const cJSON *find_in_wave(const cJSON *doc, const cJSON *item)
{
	const cJSON *node = document_first(document_at(doc, "wave.nodes"));

	while (node && strcmp(text_or(node, "name", ""), text_or(item, "name", "-")) != 0)
		node = node->next;
	return node;
}

static void say_going(struct cli *cli, const cJSON *doc, const cJSON *node)
{
	const cJSON *move = document_first(document_at(node, "moves"));
	struct buf line = BUF_INIT;
	int pods = 0;

	for (; move; move = move->next)
		pods += !cJSON_IsTrue(document_at(move, "placeholder"));
	if (pods) {
		buf_add_str(&line, "it goes now, and ");
		add_count(&line, pods, "pod moves. ", "pods move. ");
		say_robust(document_at(doc, "wave"), &line);
	} else {
		buf_add_str(&line, "it goes now; nothing on it has to move.");
	}
	lines_add_wrapped(cli, 2, "", line.data, &cli->out);
	buf_fini(&line);
}

static void print_moves(struct cli *cli, const cJSON *node)
{
	struct table *t;

	if (!document_first(document_at(node, "moves")))
		return;
	t = start_moves();
	add_moves(t, node);
	print_part(cli, t);
}

static void explain_node(struct cli *cli, const cJSON *doc, const cJSON *item)
{
	const cJSON *reason = document_first(document_at(item, "reasons"));
	const cJSON *going = find_in_wave(doc, item);
	char *title =
		mem_printf("%s: %s", text_or(item, "name", "-"), text_or(item, "verdict", "-"));
	struct buf line = BUF_INIT;

	buf_add_char(&cli->out, '\n');
	lines_add(cli, title, &cli->out);
	free(title);
	if (going)
		say_going(cli, doc, going);
	for (; reason; reason = reason->next)
		explain_reason(cli, reason);
	if (isfinite(document_number(item, "utilization.rightSized"))) {
		add_right_sized(&line, item);
		lines_add_wrapped(cli, 2, "", line.data, &cli->out);
	}
	buf_fini(&line);
	print_moves(cli, going ? going : item);
}

static void print_narration(struct cli *cli, const cJSON *doc)
{
	const cJSON *line = document_first(document_at(doc, "narration"));

	buf_add_char(&cli->out, '\n');
	for (; line; line = line->next)
		if (cJSON_IsString(line))
			lines_add_wrapped(cli, 0, "", line->valuestring, &cli->out);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* Of nodes that are named each by itself, else the plan. */
static void print_tables(struct cli *cli, const cJSON *doc)
{
	const cJSON *item = document_first(document_at(doc, "items"));

	if (cli->operand_count) {
		print_nodes(cli, doc);
		for (; item; item = item->next)
			explain_node(cli, doc, item);
		return;
	}
	if (!cli->options->no_headers)
		print_summary(cli, doc);
	print_nodes(cli, doc);
	if (cJSON_IsObject(document_at(doc, "wave")))
		print_wave(cli, document_at(doc, "wave"));
	if (cli->options->explain)
		print_narration(cli, doc);
}

/* The first node that is named and stays. */
static const cJSON *find_held(const struct cli *cli, const cJSON *doc)
{
	const cJSON *item = document_first(document_at(doc, "items"));

	for (; cli->operand_count && item; item = item->next)
		if (!is_verdict(item, "drain") && !is_verdict(item, "inDeletion"))
			return item;
	return NULL;
}

static int judge(struct cli *cli, const cJSON *doc)
{
	const cJSON *held = find_held(cli, doc);
	const char *stale = document_text(doc, "stale"), *cap = text_or(doc, "useCap", "on");

	if (held) {
		reason_set(&cli->reason, "node %.253s does not go now: %.64s",
			   text_or(held, "name", "-"),
			   text_or(document_first(document_at(held, "reasons")), "code", "-"));
		return CLI_REFUSED;
	}
	if (!stale && strcmp(cap, "off: no usage data") != 0)
		return CLI_OK;
	reason_set(&cli->reason, "%s",
		   stale ? stale
		   : cli->no_usage
			   ? cli->no_usage
			   : "no node is measured: destinations are chosen by requests alone");
	return CLI_STALE;
}

static void print_as_it_is(struct cli *cli, const char *text, size_t len)
{
	buf_add(&cli->out, text, len);
	if (!len || text[len - 1] != '\n')
		buf_add_char(&cli->out, '\n');
}

int drain_render(struct cli *cli, const char *json, size_t len)
{
	cJSON *doc = cJSON_ParseWithLength(json, len);
	int code;

	if (!document_at(doc, "items") || !document_at(doc, "verdicts")) {
		cJSON_Delete(doc);
		reason_set(&cli->reason, "the answer is not one about drains; is that an "
					 "evenkeel-aggregator of this version?");
		return CLI_ERROR;
	}
	if (cli->options->output == OUTPUT_JSON)
		print_as_it_is(cli, json, len);
	else
		print_tables(cli, doc);
	code = judge(cli, doc);
	cJSON_Delete(doc);
	return code;
}
