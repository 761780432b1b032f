/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel slack: room that is kept for pods to come, class by class, and what it would take to
 * have all of it. With -o balloons or capacitybuffers the same target as objects for kubectl, which
 * the server writes.
 *
 * Exit status: 3 where something is unplaced; 4 where the plan, the cluster or all use is stale or
 * missing.
 */
#include "aggregator/cli/cmd_slack.h"

#include <string.h>

#include "aggregator/cli/client.h"
#include "aggregator/cli/offline.h"

static const char *const formats[] = {"object", "balloons", "capacitybuffer", NULL};

#define AT_SLACK(member) offsetof(struct cli_options, slack.member)

static const struct option_spec specs[] = {
	{"node", 0, OPTION_STRING, offsetof(struct cli_options, node), "NODE", NULL, 0, 0, NULL,
	 "Only what stands on this node."},
	{"explain", 0, OPTION_FLAG, offsetof(struct cli_options, explain), NULL, NULL, 0, 0, NULL,
	 "Say what the step did, sentence by sentence."},
	{"format", 0, OPTION_CHOICE, offsetof(struct cli_options, format), NULL, "object", 0, 0,
	 formats,
	 "What -o yaml prints: the API's object; or as -o balloons does, Deployments of pods that "
	 "do nothing and are preempted by all; or as -o capacitybuffers, CapacityBuffers of the "
	 "cluster autoscaler."},
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
		offline_set_slack(cli->offline, rules);
		return CLI_OK;
	}
	given = slack_options_given(&cli->options->slack);
	if (!given)
		return CLI_OK;
	reason_set(&cli->reason, "%s goes with --snapshot; a server has its own", given);
	return CLI_USAGE;
}

static void add_parameter(struct buf *path, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(path, "%c%s=", strchr(path->data, '?') ? '&' : '?', name);
	client_escape(value, path);
}

static void write_path(const struct cli *cli, struct buf *path)
{
	const struct cli_options *o = cli->options;

	buf_add_str(path, "/v1/slack");
	if (o->output >= OUTPUT_BALLOONS) {
		add_parameter(path, "format",
			      o->output == OUTPUT_BALLOONS ? "balloons" : "capacitybuffer");
		return;
	}
	add_parameter(path, "class", cli->operand_count ? cli->operands[0] : NULL);
	add_parameter(path, "node", o->node);
	add_parameter(path, "explain", o->explain ? "true" : NULL);
}

static int ask(struct cli *cli)
{
	struct buf path = BUF_INIT, answer = BUF_INIT;
	int rc, code;

	write_path(cli, &path);
	rc = client_get(cli->client, path.data, &answer, &cli->reason);
	code = rc ? client_exit(rc) : slack_render(cli, answer.data ? answer.data : "", answer.len);
	buf_fini(&path);
	buf_fini(&answer);
	return code;
}

static int check_operands(struct cli *cli)
{
	const struct cli_options *o = cli->options;

	if (cli->operand_count > 1)
		reason_set(&cli->reason, "slack takes one class, and not \"%.60s\" as well",
			   cli->operands[1]);
	else if (o->output >= OUTPUT_BALLOONS && (cli->operand_count || o->node))
		reason_set(&cli->reason,
			   "objects for kubectl are of all classes: give no class and no --node");
	else
		return CLI_OK;
	return CLI_USAGE;
}

static int run(struct cli *cli)
{
	struct slack_options rules;
	int code = check_operands(cli);

	if (code == CLI_OK)
		code = set_rules(cli, &rules);
	if (code == CLI_OK)
		code = ask(cli);
	if (cli->offline)
		offline_set_slack(cli->offline, NULL);
	return code;
}

static const struct outline_example examples[] = {
	{"evenkeel slack", "How much room is kept for pods to come, and whether it is there."},
	{"evenkeel slack shop/Deployment/web --explain", "Why one class has the size that it has."},
	{"evenkeel slack -o balloons | kubectl apply -f -",
	 "Placeholders as pods that every other pod preempts."},
	{0},
};
static const char *const terms[] = {"placeholder", "WANTED",   "UNPLACED",   "SLOTS", "USABLE",
				    "FRAGMENTED",  "lowering", "impossible", NULL};

const struct command command_slack = {
	.name = "slack",
	.usage = "[CLASS]",
	.summary = "Show the room kept for pods to come, and what could start now",
	.details = "Shows one row for each class of placeholders: a workload with the annotation "
		   "evenkeel.io/slack (\"2\" or \"10%\" of its replicas, or \"shared\"); cover-N, "
		   "sizes that hold any pod of those that share; unit, what is missing to the "
		   "cluster's rate. CPU-REQ and MEM-REQ are of one placeholder. -o balloons and -o "
		   "capacitybuffers print the target for kubectl apply. Exit status 3: something "
		   "is unplaced.",
	.examples = examples,
	.terms = terms,
	.specs = specs,
	.names = "CLASS",
	.lists = true,
	.run = run,
};
