/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evenkeel slack: room that is kept for pods to come, class by class, and what it would take to
 * have all of it. With -o balloons or capacitybuffers the same target as objects for kubectl, which
 * the server writes.
 *
 * Exit status: 3 where something is unplaced; 4 where the plan, the cluster or all use is stale or
 * missing.
 */
#include "aggregator/cli/answer.h"
#include "aggregator/cli/client.h"

static const char *const formats[] = {"object", "balloons", "capacitybuffer", NULL};

#define AT_SLACK(member) offsetof(struct cli_options, slack.member)

static const struct option_spec specs[] = {
	CLI_TEXT("node", 0, node, "NODE", "Only what stands on this node."),
	CLI_FLAG("explain", 0, explain, "Say what the step did, sentence by sentence."),
	CLI_CHOICE("format", 0, format, NULL, "object", formats,
		   "What -o yaml prints: the API's object; or as -o balloons does, Deployments of "
		   "pods that do nothing and are preempted by all; or as -o capacitybuffers, "
		   "CapacityBuffers of the cluster autoscaler."),
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
	return cli_fail(&cli->reason, CLI_USAGE, "%s goes with --snapshot; a server has its own",
			given);
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
		return cli_fail(&cli->reason, CLI_USAGE,
				"slack takes one class, and not \"%.60s\" as well",
				cli->operands[1]);
	if (o->output >= OUTPUT_BALLOONS && (cli->operand_count || o->node))
		return cli_fail(
			&cli->reason, CLI_USAGE,
			"objects for kubectl are of all classes: give no class and no --node");
	return CLI_OK;
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
		offline_set_rules(cli->offline, NULL, NULL, NULL);
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
