/* SPDX-License-Identifier: Apache-2.0 */
/* The table of pods from a PodList, apart from fetching it. */
#ifndef EVENKEEL_AGGREGATOR_CLI_CMD_PODS_H
#define EVENKEEL_AGGREGATOR_CLI_CMD_PODS_H

#include "aggregator/cli/list.h"
#include "aggregator/cli/table.h"
#include "aggregator/cli/usage_row.h"

struct pods_table {
	const struct cli *cli; /* borrowed */
	struct table *table; /* owned */
	struct usage_tally tally;
	bool namespaced; /* any pod has a namespace */
	bool stale; /* any is not fresh */
};

void pods_table_init(struct pods_table *p, const struct cli *cli);
void pods_table_fini(struct pods_table *p);
list_item pods_table_item; /* the context is the struct pods_table */
/* Appends to cli->out; the exit code, with cli->reason. */
int pods_table_finish(struct pods_table *p, struct cli *cli);

#endif
