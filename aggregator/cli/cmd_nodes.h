/* SPDX-License-Identifier: Apache-2.0 */
/* The table of nodes from a NodeList, apart from fetching it. */
#ifndef EVENKEEL_AGGREGATOR_CLI_CMD_NODES_H
#define EVENKEEL_AGGREGATOR_CLI_CMD_NODES_H

#include "aggregator/cli/list.h"
#include "aggregator/cli/table.h"
#include "aggregator/cli/usage_row.h"

struct nodes_table {
	const struct cli *cli; /* borrowed */
	struct table *table; /* owned */
	struct usage_tally tally;
};

void nodes_table_init(struct nodes_table *n, const struct cli *cli);
void nodes_table_fini(struct nodes_table *n);
list_item nodes_table_item; /* the context is the struct nodes_table */
/* Appends to cli->out; the exit code, with cli->reason. */
int nodes_table_finish(struct nodes_table *n, struct cli *cli);

#endif
