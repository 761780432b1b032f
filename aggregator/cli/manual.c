/* SPDX-License-Identifier: Apache-2.0 */
/* What evenkeel(1) says besides its commands and options, which come from their tables. */
#include "aggregator/cli/cli.h"

const struct option_note cli_manual[] = {
	{"DESCRIPTION", NULL,
	 "Agents on every node measure what its workloads use; an aggregator keeps windows of 5, "
	 "10 and 15 "
	 "minutes and joins them with the Kubernetes API. This command asks the aggregator, or "
	 "computes the same "
	 "from files (--snapshot). Linked as kubectl-evenkeel it is \"kubectl evenkeel\"."},
	{NULL, NULL,
	 "Options may stand before or after the command. Data goes to standard output, messages to "
	 "standard "
	 "error."},
	{"EXIT STATUS", "0", "Success."},
	{NULL, "1", "An error, such as a server that does not answer."},
	{NULL, "2", "Wrong usage."},
	{NULL, "3", "What was asked for is refused or cannot be, or a check failed."},
	{NULL, "4",
	 "All usage, or that of an object named in the call, is stale or missing; with --strict "
	 "any."},
	{"EXAMPLES", NULL, "What every node has, uses and how that varies, most varying first:"},
	{NULL, NULL, "\tevenkeel nodes --sort-by sigma"},
	{NULL, NULL, "Where a pod would run best, with every term of the arithmetic:"},
	{NULL, NULL, "\tevenkeel scores --pod pod.yaml --explain"},
	{NULL, NULL, "What could be drained, from a dump, without any server:"},
	{NULL, NULL,
	 "\tkubectl get nodes,pods,pdb,replicasets -A -o json > dump.json\n"
	 "evenkeel drain --snapshot dump.json --assume-unneeded-for 15m"},
	{"SEE ALSO", NULL, "evenkeel-agent(8), evenkeel-aggregator(8), kubectl(1)"},
	{NULL, NULL, NULL},
};
