/* SPDX-License-Identifier: Apache-2.0 */
/* What the plan of drains looks like; apart from the request, for tests. */
#ifndef EVENKEEL_AGGREGATOR_CLI_CMD_DRAIN_H
#define EVENKEEL_AGGREGATOR_CLI_CMD_DRAIN_H

#include "aggregator/cli/cli.h"

/* Keys of --sort-by, for cli_options.sort. */
enum drain_sort { DRAIN_BY_VERDICT, DRAIN_BY_REQUESTS, DRAIN_BY_USE, DRAIN_BY_NAME };

/*
 * Shows an answer of /v1/drain as the options say, appended to cli->out; the exit code, with
 * cli->reason.
 */
int drain_render(struct cli *cli, const char *json, size_t len);
/* The same of /v1/drain/history. */
int drain_render_history(struct cli *cli, const char *json, size_t len);

#endif
