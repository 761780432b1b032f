/* SPDX-License-Identifier: Apache-2.0 */
/* What the answers about quotas look like; apart from the requests, for tests. */
#ifndef EVENKEEL_AGGREGATOR_CLI_CMD_QUOTA_H
#define EVENKEEL_AGGREGATOR_CLI_CMD_QUOTA_H

#include "aggregator/cli/cli.h"

/*
 * Each shows an answer of the API as the options say, appended to cli->out; the exit code, with
 * cli->reason.
 */
int quota_render_list(struct cli *cli, const char *json, size_t len); /* /v1/quotas */
int quota_render_one(struct cli *cli, const char *json, size_t len); /* /v1/quotas/NAMESPACE */
int quota_render_lint(struct cli *cli, const char *json, size_t len); /* its findings */
int quota_render_admission(struct cli *cli, const char *json, size_t len); /* /v1/quotas/admit */
int quota_render_plan(struct cli *cli, const char *json, size_t len); /* /v1/quotas/preempt */

#endif
