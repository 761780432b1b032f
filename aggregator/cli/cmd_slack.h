/* SPDX-License-Identifier: Apache-2.0 */
/* What the answer about slack looks like; apart from the request, for tests. */
#ifndef EVENKEEL_AGGREGATOR_CLI_CMD_SLACK_H
#define EVENKEEL_AGGREGATOR_CLI_CMD_SLACK_H

#include "aggregator/cli/cli.h"

/*
 * Shows an answer of /v1/slack as the options say, appended to cli->out; the exit code, with
 * cli->reason.
 */
int slack_render(struct cli *cli, const char *json, size_t len);

#endif
