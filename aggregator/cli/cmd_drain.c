/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel drain: which nodes could go, which go now and where their pods would go then, and why
 * the others stay. Nothing is drained: the plan is for people, and the first lines of "kubectl
 * drain" are theirs.
 *
 * Exit status: 0 where all nodes that are named go now, are on their way or drained, and 3 where one
 * does not; 4 where the plan or the cluster is stale or missing, or a node is not there, and of the
 * whole plan, or with --strict, where no use is known.
 */
#include "aggregator/cli/drain.h"

#include <stdio.h>

#include "aggregator/planner/drain_log.h"
#include "aggregator/cli/client.h"
#include "aggregator/cli/columns.h"

static const char *const sorts[] = {"verdict", "requests", "use", "name", NULL};

#define AT_SLACK(member) offsetof(struct cli_options, slack.member)

/* clang-format off */
static const struct option_spec specs[] = {
	CLI_FLAG("explain", 0, explain,
		 "Print the whole chain of reasons and the destination of every pod, for the named nodes or for the plan."),
	CLI_FLAG("history", 0, history,
		 "Print earlier decisions, the newest first, about the named nodes or all."),
	CLI_CHOICE("sort-by", 0, sort, NULL, "verdict", sorts,
		   "Order of the nodes: by verdict, nodes of the wave first; by requests or use, the highest first; or by name."),
	CLI_REVERSE,
	CLI_SELECTOR("nodes"),
	{"assume-unneeded-for", 0, OPTION_DURATION, offsetof(struct cli_options, assume_unneeded_ns), "TIME", NULL, 0,
	 DRAIN_WEEK_NS, NULL,
	 "With --snapshot: time since which unneeded nodes are taken to be unneeded; a dump has no past."},
	DRAIN_SETTINGS_OPTIONS(offsetof(struct cli_options, drain)),
	SLACK_OPTION_SPECS(AT_SLACK, ""),
	{0},
};
/* clang-format on */

/* --- options ---------------------------------------------------------------------------------- */

/* By a flag: what the environment says is meant for a daemon, too, that is started with it. */
static int refuse_rules(struct cli *cli)
{
	const char *given = slack_options_given(&cli->options->slack);
	struct drain_settings usual;

	if (given)
		return cli_misuse(cli, "%s goes with --snapshot; a server has its own", given);

	if (drain_settings_from_environment(&usual, &cli->reason))
		return CLI_USAGE;
	given = cli->options->assume_unneeded_ns
			? "assume-unneeded-for"
			: drain_settings_differ(&usual, &cli->options->drain);
	drain_settings_fini(&usual);
	if (!given)
		return CLI_OK;
	return cli_misuse(cli, "--%s goes with --snapshot; a server has its own", given);
}

/* --- the request ------------------------------------------------------------------------------ */

static int check_options(struct cli *cli)
{
	const struct cli_options *o = cli->options;

	if (o->output == OUTPUT_PLAN && (o->history || cli->operand_count || o->selector))
		return cli_misuse(cli, "-o plan is the whole wave: name no nodes and no labels");
	if (!o->history || (!o->explain && !o->selector))
		return CLI_OK;
	return cli_misuse(cli, o->explain
				       ? "--history tells what was, and --explain what is: give one"
				       : "--history knows no labels; name nodes");
}

static int ask(struct cli *cli)
{
	const struct cli_options *o = cli->options;
	struct buf path = BUF_INIT, names = BUF_INIT;
	char limit[24];

	for (size_t i = 0; i < cli->operand_count; i++)
		buf_printf(&names, "%s%s", i ? "," : "", cli->operands[i]);
	/* Of the history as many rows as shall be shown, or what the server tells by itself. */
	snprintf(limit, sizeof(limit), "%lld",
		 (long long)(o->limit < DRAIN_LOG_MAX ? o->limit : DRAIN_LOG_MAX));
	buf_add_str(&path, o->history ? "/v1/drain/history" : "/v1/drain");
	client_add_parameter(&path, "explain", o->explain ? "true" : NULL);
	client_add_parameter(&path, "node", names.data);
	client_add_parameter(&path, "labelSelector", o->selector);
	client_add_parameter(&path, "limit", o->history && o->limit > 0 ? limit : NULL);
	buf_fini(&names);
	return answer_get(cli, o->history ? &drain_history_answer : &drain_answer, &path);
}

static int ask_files(struct cli *cli)
{
	struct slack_options slack;
	struct drain_setup setup;
	int code;

	if (slack_options_read(&cli->options->slack, &slack, &cli->reason) ||
	    drain_setup_init(&setup, &cli->options->drain, &cli->reason))
		return CLI_USAGE;
	setup.config.assume_unneeded_ns = cli->options->assume_unneeded_ns;
	offline_set_rules(cli->offline, NULL, &slack, &setup);
	code = ask(cli);
	offline_set_rules(cli->offline, NULL, NULL, NULL);
	drain_setup_fini(&setup);
	return code;
}

/* --- the history ------------------------------------------------------------------------------ */

static const struct column_paint events[] = {
	{"needed", PAINT_DIM},	 {"kept", PAINT_DIM},  {"inDeletion", PAINT_WARN},
	{"evicted", PAINT_WARN}, {"gone", PAINT_WARN}, {NULL, PAINT_PLAIN},
};

static const struct column columns[] = {
	{"AGE", FORM_RIGHT, cell_ago, .at = "time"},
	{"TIME", FORM_LEFT, cell_text, .at = "time", .wide = true},
	{"EVENT", FORM_LEFT, cell_text, .at = "event", .paints = events},
	{"NODE", FORM_NAME, cell_text, .at = "node"},
	{"REASON", FORM_LEFT, cell_text, .at = "reason"},
	{"WHY", FORM_LEFT, cell_text, .at = "text"},
	{0},
};

static const struct csv_field fields[] = {
	{"time", "time"},     {"event", "event"}, {"node", "node"},
	{"reason", "reason"}, {"text", "text"},	  {0},
};

static void print_history(struct cli *cli, const cJSON *doc)
{
	columns_print_list(cli, doc, "items", "node", columns, fields, "node");
}

const struct answer drain_history_answer = {
	.about = "what was decided",
	.members = {"items"},
	.kind = "DrainHistory",
	.print = print_history,
};

/* --- the command ------------------------------------------------------------------------------ */

static int run(struct cli *cli)
{
	int code;

	for (size_t i = 0; i < cli->operand_count; i++)
		if (!cli->operands[i][0])
			return cli_misuse(cli, "the name of a node is empty");
	code = check_options(cli);
	if (code != CLI_OK)
		return code;
	return cli->offline ? ask_files(cli) : refuse_rules(cli) ?: ask(cli);
}

const struct command command_drain = {
	.name = "drain",
	.usage = "[NODE..]",
	.summary = "Show nodes that may be drained, and destinations of their pods",
	.details =
		"Shows one row for each node, nodes of the wave first. It only tells: no node is "
		"drained. CPU-REQ% and MEM-REQ% are requests, CPU-MEAN% and WORKSET-MEAN% means of "
		"real use, as shares of the allocatable. REASON is the first of the chain: "
		"--explain prints the whole chain, with remedies; --history prints earlier "
		"decisions. Below are the moves of the wave, its disruptions of "
		"PodDisruptionBudgets and owners, and the use of each destination: now, reserved, "
		"after the wave, and the cap. Options of scale-down and slack go with --snapshot; "
		"a server has its own. Exit status 3: a named node may not be drained now.",
	.examples = {{"evenkeel drain",
		      "Nodes that may be drained now, and the reasons of the others."},
		     {"evenkeel drain node-7 --explain",
		      "The reasons that keep one node, and their remedies."},
		     {"evenkeel drain -o commands",
		      "The kubectl commands that drain the nodes of the wave."},
		     {"evenkeel drain -o plan > wave.json",
		      "The wave as a file, for evenkeel verify wave.json."},
		     {"evenkeel drain -o soft-taints",
		      "Commands by which schedulers prefer nodes that stay."}},
	.terms = {"drain", "drained", "unneeded", "needed", "kept", "inDeletion", "notExamined",
		  "SINCE", "DUE-IN", "0+2", "wave", "P95-FIT", "CPU-MEAN%", "CPU-CAP",
		  "CPU-RESERVED"},
	.specs = specs,
	.names = "NODE",
	.lists = true,
	.run = run,
};
