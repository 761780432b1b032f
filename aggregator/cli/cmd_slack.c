/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel slack: room that is kept for pods to come, class by class, and what it would take to
 * have all of it. Below the table in words: what the target is made of, what finds no place and
 * why, which nodes would help, and notes of the server. --explain has the step's own sentences
 * there instead. With -o balloons or capacitybuffers the same target as objects for kubectl, which
 * the server writes.
 *
 * Exit status: 3 where something is unplaced; 4 where the plan, the cluster or all use is stale or
 * missing.
 */
#include "aggregator/cli/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/columns.h"
#include "aggregator/cli/lines.h"
#include "aggregator/cli/quota_table.h"
#include "shared/units.h"

/* --- the table -------------------------------------------------------------------------------- */

/* "+" behind what was not counted to its end. */
static void cell_slots(const struct row *r, const struct column *c)
{
	double slots = row_number(r, c->at);

	row_add(r, PAINT_PLAIN, isfinite(slots), "%.0f%s", slots,
		document_is_true(r->item, "slots.atLeast") ? "+" : "");
}

static const struct column_paint states[] = {
	{"unplaced", PAINT_BAD},
	{"impossible", PAINT_BAD},
	{"lowering", PAINT_DIM},
	{NULL, PAINT_PLAIN},
};

/* "n1, n2 (3)" */
static void cell_nodes(const struct row *r, const struct column *c)
{
	struct buf text = BUF_INIT;

	for (const cJSON *n = document_first(r->item, c->at); n; n = n->next) {
		double count = document_number(n, "count");

		buf_printf(&text, "%s%s", text.len ? ", " : "", document_text_or(n, "node", "-"));
		if (count > 1)
			buf_printf(&text, " (%.0f)", count);
	}
	table_cell(r->table, PAINT_PLAIN, text.len ? text.data : "-");
	buf_fini(&text);
}

/* clang-format off */
static const struct column columns[] = {
	{"CLASS", FORM_NAME, cell_text, .at = "name"},
	{"ORIGIN", FORM_LEFT, cell_text, .at = "origin", .wide = true},
	{"CPU-REQ", FORM_RIGHT, quota_cell_request, .at = "shape.cpuMillicores"},
	{"MEM-REQ", FORM_RIGHT, quota_cell_request, .at = "shape.memoryBytes"},
	{"TARGET", FORM_RIGHT, cell_count, .at = "target", .wide = true},
	{"WANTED", FORM_RIGHT, cell_count, .at = "wanted"},
	{"PLACED", FORM_RIGHT, cell_count, .at = "placed", .spare = 2},
	{"BALLOONS", FORM_RIGHT, cell_count, .at = "balloons", .empty = columns_unknown},
	{"UNPLACED", FORM_RIGHT, cell_faults, .at = "unplaced"},
	{"SLOTS", FORM_RIGHT, cell_slots, .at = "slots.byRequests"},
	{"USABLE", FORM_RIGHT, cell_slots, .at = "slots.byUse", .empty = columns_unknown, .spare = 3},
	{"FRAGMENTED", FORM_RIGHT, cell_share, .at = "fragmentation", .spare = 1},
	{"STATE", FORM_LEFT, cell_text, .at = "verdict", .paints = states},
	{"NODES", FORM_LEFT, cell_nodes, .at = "nodes", .empty = columns_unknown, .wide = true},
	{0},
};
/* clang-format on */

static const struct csv_field fields[] = {
	{"class", "name"},
	{"origin", "origin"},
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
	{0},
};

static bool is_hidden(const struct cli *cli, const cJSON *item)
{
	const char *namespace = cli->options->namespace, *name = document_text_or(item, "name", "");
	size_t len = namespace ? strlen(namespace) : 0;

	return namespace && !(strncmp(name, namespace, len) == 0 && name[len] == '/');
}

static void print_table(struct cli *cli, const cJSON *doc)
{
	struct row row = columns_start(cli, columns, fields);

	for (row.item = document_first(doc, "items"); row.item; row.item = row.item->next)
		if (!is_hidden(cli, row.item))
			columns_add_next(&row, document_text_or(row.item, "name", "-"));
	columns_end(cli, &row, row.count ? "slack" : NULL);
	if (row.count)
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

/* How far the promise is that shall take the rate's place. */
static void say_watched(const cJSON *target, struct buf *line)
{
	if (document_at(target, "arrivalSpansNeeded"))
		buf_printf(line,
			   " What arrives while a node starts was watched for %.0f of the %.0f "
			   "such times that are needed; until then the rate counts.",
			   document_number(target, "arrivalSpans"),
			   document_number(target, "arrivalSpansNeeded"));
}

/* What the number of units comes from, so that it can be followed by hand. */
static void say_target(struct cli *cli, const cJSON *target, struct buf *line)
{
	const char *base = document_text_or(target, "base", "requested");
	double nodes = document_number(target, "nodes");

	buf_add_str(line, "Slack shall be at least ");
	write_amount(line, target, "extra");
	if (document_is(target, "from", "arrivals")) {
		buf_printf(line, ": what arrives while a node starts, in 95%% of %.0f such times. ",
			   document_number(target, "arrivalSpans"));
	} else {
		buf_printf(line, ": %g%% of the ", document_number(target, "rate") * 100);
		write_amount(line, target, base);
		buf_printf(line, " that %s.",
			   strcmp(base, "allocatable") == 0 ? "nodes can give" : "pods request");
		say_watched(target, line);
	}
	buf_printf(line, " %.0f node%s ready, and can give pods ", nodes,
		   nodes == 1 ? " is" : "s are");
	write_amount(line, target, "allocatable");
	buf_add_char(line, '.');
	lines_wrap_buf(cli, 0, line);
}

static void say_unplaced(struct cli *cli, const cJSON *item, struct buf *line)
{
	double unplaced = document_number(item, "unplaced");

	/* A note says why it is impossible. */
	if (!(unplaced > 0) || document_is(item, "verdict", "impossible"))
		return;
	buf_printf(line, "%.0f find%s no place: %s", unplaced, unplaced == 1 ? "s" : "",
		   document_text_or(item, "reason", "nodes are missing"));
	lines_wrap_under(cli, 0, line->data, "%s: ", document_text_or(item, "name", "-"));
	buf_clear(line);
}

static void print_words(struct cli *cli, const cJSON *doc)
{
	struct buf line = BUF_INIT;
	const cJSON *item;

	say_target(cli, document_at(doc, "target"), &line);
	lines_add_pod_use(cli, doc);
	for (item = document_first(doc, "items"); item; item = item->next)
		if (!is_hidden(cli, item))
			say_unplaced(cli, item, &line);
	for (item = document_first(doc, "nodesToAdd"); item; item = item->next) {
		double count = document_number(item, "count");
		const char *type = document_text(item, "instanceType");

		buf_printf(&line, "%.0f more node%s like %s%s%s (", count, units_plural(count),
			   document_text_or(item, "like", "-"), type ? " of type " : "",
			   type ? type : "");
		write_amount(&line, item, "gives");
		buf_add_str(&line, " for pods) would hold what finds no place.");
		lines_wrap_buf(cli, 0, &line);
	}
	for (item = document_first(doc, "notes"); item; item = item->next)
		lines_wrap_under(cli, 0, document_text_or(item, "text", ""),
				 "%s: ", document_text_or(item, "about", "-"));
	buf_fini(&line);
}

/* --- the answer ------------------------------------------------------------------------------- */

/* Placeholders that no more nodes of today's sizes would help. */
static double count_impossible(const cJSON *doc)
{
	double count = 0;

	for (const cJSON *item = document_first(doc, "items"); item; item = item->next)
		if (document_is(item, "verdict", "impossible"))
			count += document_number(item, "unplaced");
	return count;
}

static void tell_unplaced(struct cli *cli, const cJSON *doc, double unplaced)
{
	double add = document_number(doc, "total.nodesToAdd"), impossible = count_impossible(doc);
	const char *find = unplaced == 1 ? " finds" : "s find";
	char beside[64] = "";

	if (impossible >= unplaced) {
		error_set(&cli->reason, "%.0f placeholder%s no place: no node is large enough",
			  unplaced, find);
		return;
	}
	if (impossible > 0)
		snprintf(beside, sizeof(beside), ", but not %.0f that no node could hold",
			 impossible);
	error_set(&cli->reason, "%.0f placeholder%s no place; %.0f more node%s would help%s",
		  unplaced, find, add, units_plural(add), beside);
}

static int judge(struct cli *cli, const cJSON *doc)
{
	double unplaced = document_number(doc, "total.unplaced");
	const char *stale = document_text(doc, "stale");

	if (unplaced > 0) {
		tell_unplaced(cli, doc, unplaced);
		return CLI_REFUSED;
	}
	if (stale)
		return error_fail(&cli->reason, CLI_STALE, "%s", stale);
	if (strcmp(document_text_or(doc, "useCap", "on"), "on") == 0)
		return CLI_OK;
	return error_fail(&cli->reason, CLI_STALE, "%s",
			  cli->no_usage ? cli->no_usage
					: "no node is measured: slots are by requests alone");
}

static void print(struct cli *cli, const cJSON *doc)
{
	print_table(cli, doc);
	if (cli->options->explain)
		lines_wrap_list(cli, 0, document_at(doc, "narration"));
	else
		print_words(cli, doc);
}

const struct answer slack_answer = {
	.about = "slack",
	.members = {"items", "target"},
	.print = print,
	.judge = judge,
};

/* --- the command ------------------------------------------------------------------------------ */

static const char *const formats[] = {"object", "balloons", "capacitybuffer", NULL};

#define AT_SLACK(member) offsetof(struct cli_options, slack.member)

static const struct option_spec specs[] = {
	CLI_TEXT("node", 0, node, "NODE", "Only placeholders on this node."),
	CLI_FLAG("explain", 0, explain, "Print the decisions of the step."),
	CLI_CHOICE("format", 0, format, NULL, "object", formats,
		   "Output of -o yaml: the API's object; balloons, as -o balloons: Deployments of "
		   "idle pods that every other pod preempts; or capacitybuffer, as -o "
		   "capacitybuffers: CapacityBuffers of cluster-autoscaler."),
	SLACK_OPTION_SPECS(AT_SLACK, "With --snapshot: "),
	{0},
};

/* What only the server can be told, unless there is none. */
static int set_rules(struct cli *cli, struct slack_options *rules)
{
	const char *given;

	if (slack_options_read(&cli->options->slack, rules, &cli->reason))
		return CLI_USAGE;
	if (cli->offline) {
		offline_set_rules(cli->offline, NULL, rules, NULL);
		return CLI_OK;
	}
	given = slack_options_given(&cli->options->slack);
	if (!given)
		return CLI_OK;
	return cli_misuse(cli, "%s goes with --snapshot; a server has its own", given);
}

static int ask(struct cli *cli)
{
	const struct cli_options *o = cli->options;
	struct buf path = BUF_INIT;

	buf_add_str(&path, "/v1/slack");
	if (o->output >= OUTPUT_BALLOONS) {
		client_add_parameter(&path, "format",
				     formats[o->output == OUTPUT_BALLOONS ? 1 : 2]);
	} else {
		client_add_parameter(&path, "class", cli->operand_count ? cli->operands[0] : NULL);
		client_add_parameter(&path, "node", o->node);
		client_add_parameter(&path, "explain", o->explain ? "true" : NULL);
	}
	return answer_get(cli, &slack_answer, &path);
}

static int check_operands(struct cli *cli)
{
	const struct cli_options *o = cli->options;

	if (cli->operand_count > 1)
		return cli_misuse(cli, "slack takes one class, and not \"%.60s\" as well",
				  cli->operands[1]);
	if (o->output >= OUTPUT_BALLOONS && (cli->operand_count || o->node))
		return cli_misuse(
			cli, "objects for kubectl are of all classes: give no class and no --node");
	return CLI_OK;
}

static int run(struct cli *cli)
{
	struct slack_options rules;
	int code = check_operands(cli) ?: set_rules(cli, &rules) ?: ask(cli);

	if (cli->offline)
		offline_set_rules(cli->offline, NULL, NULL, NULL);
	return code;
}

const struct command command_slack = {
	.name = "slack",
	.usage = "[CLASS]",
	.summary = "Show the room kept for future pods, and how many could start now",
	.details = "Shows one row for each class of placeholders: a workload with the annotation "
		   "evenkeel.io/slack (\"2\" or \"10%\" of its replicas, or \"shared\"); cover-N, "
		   "sizes that hold any pod of the workloads that share; unit, the rest up to the "
		   "cluster's rate. CPU-REQ and MEM-REQ are of one placeholder. -o balloons and -o "
		   "capacitybuffers print the target for kubectl apply. Exit status 3: a "
		   "placeholder is unplaced.",
	.examples = {{"evenkeel slack",
		      "The room kept for future pods, and whether nodes have it."},
		     {"evenkeel slack shop/Deployment/web --explain",
		      "The reasons for the size of one class."},
		     {"evenkeel slack -o balloons | kubectl apply -f -",
		      "Placeholders as pods that every other pod preempts."}},
	.terms = {"placeholder", "WANTED", "UNPLACED", "SLOTS", "USABLE", "FRAGMENTED", "lowering",
		  "impossible"},
	.specs = specs,
	.names = "CLASS",
	.lists = true,
	.run = run,
};
