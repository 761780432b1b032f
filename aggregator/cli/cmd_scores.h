/* SPDX-License-Identifier: Apache-2.0 */
/* Scores as a table or with all their terms, apart from asking for them. */
#ifndef EVENKEEL_AGGREGATOR_CLI_CMD_SCORES_H
#define EVENKEEL_AGGREGATOR_CLI_CMD_SCORES_H

#include "aggregator/cli/cli.h"

/* Appends what a ScoreList says to cli->out; the exit code, with cli->reason. */
int scores_render(struct cli *cli, const char *json, size_t len);
/*
 * The body to POST: {"pod", "nodes", "plugins", "args", "blend", "variant", "explain"}; pod is a
 * JSON object. -EINVAL with the reason for a --blend or --plugin that cannot be read.
 */
int scores_write_request(const struct cli *cli, const char *pod, size_t pod_len, struct buf *out,
			 struct reason *reason);

#endif
