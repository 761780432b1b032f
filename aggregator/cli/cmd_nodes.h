/* SPDX-License-Identifier: Apache-2.0 */
/* The table of nodes from a NodeList, apart from fetching it. */
#ifndef EVENKEEL_AGGREGATOR_CLI_CMD_NODES_H
#define EVENKEEL_AGGREGATOR_CLI_CMD_NODES_H

#include "aggregator/cli/usage_table.h"

extern const struct usage_kind nodes_kind;

#endif
