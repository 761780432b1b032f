/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences of an answer on a terminal: wrapped, and with control characters made harmless. */
#pragma once

#include "aggregator/cli/cli.h"
#include "shared/document.h"

/* One line as it is; on a terminal that is narrower, wrapped. */
void lines_add(const struct cli *cli, const char *text, struct buf *out);
/* The same, to cli->out. */
void lines_print(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * To cli->out in as many lines as it takes, each within 100 columns, and the terminal, and behind
 * so many blanks.
 */
void lines_wrap(struct cli *cli, size_t indent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same of a line, which is then empty. */
void lines_wrap_buf(struct cli *cli, size_t indent, struct buf *line);
/* The same of each text in a list. */
void lines_wrap_list(struct cli *cli, size_t indent, const cJSON *list);
/* The same of one text; the first line begins with the head. */
void lines_wrap_under(struct cli *cli, size_t indent, const char *text, const char *head, ...)
	__attribute__((format(printf, 4, 5)));
/* The answer's warnings about the pod it was asked about, a line each. */
void lines_print_warnings(struct cli *cli, const cJSON *doc);
/* How the answer knows what pods use, where nobody measured some. */
void lines_add_pod_use(struct cli *cli, const cJSON *doc);
