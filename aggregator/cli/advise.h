/* SPDX-License-Identifier: Apache-2.0 */
/* evenkeel advise: its items, and the forms of output that change workloads. */
#pragma once

#include "aggregator/cli/cli.h"
#include "shared/document.h"

struct advise {
	struct cli *cli;
	cJSON *items; /* owned; those of the call, in the API's order: of a workload side by side */
	size_t ended, unsure; /* items that were left out of items */
};

/* Whether what is printed would change workloads: -o patch, vpa and scenario, and --nodes. */
bool advise_changes(const struct cli_options *o);
/* Whether the item is one of --confidence. */
bool advise_is_sure(const struct cli_options *o, const cJSON *item);
/*
 * Prints the changes; standard error has the containers that are left out and the pods that lose
 * their class. enum cli_exit, with cli->reason.
 */
int advise_show_changes(struct advise *a);
