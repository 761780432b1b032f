/* SPDX-License-Identifier: Apache-2.0 */
/* The table of pods from a PodList, apart from fetching it. */
#ifndef EVENKEEL_AGGREGATOR_CLI_CMD_PODS_H
#define EVENKEEL_AGGREGATOR_CLI_CMD_PODS_H

#include "aggregator/cli/usage_table.h"

extern const struct usage_kind pods_kind;

#endif
