/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences of an answer on a terminal: wrapped, and with control characters made harmless. */
#ifndef EVENKEEL_AGGREGATOR_CLI_LINES_H
#define EVENKEEL_AGGREGATOR_CLI_LINES_H

#include <stddef.h>

#include "aggregator/cli/cli.h"
#include "aggregator/cli/document.h"

enum { LINES_WIDTH = 100 };

/* One line as it is; on a terminal that is narrower, wrapped. */
void lines_add(const struct cli *cli, const char *text, struct buf *out);
/*
 * As many lines as it takes, each within LINES_WIDTH, and the terminal, and behind so many blanks; the first begins
 * with `head` ("" for none).
 */
void lines_add_wrapped(const struct cli *cli, size_t indent, const char *head, const char *text,
		       struct buf *out);

/* How the answer knows what pods use, where nobody measured some. */
void lines_add_pod_use(const struct cli *cli, const cJSON *doc, struct buf *out);

#endif
