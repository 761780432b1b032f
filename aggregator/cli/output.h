/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms of -o that are the same for every command: the API's object in YAML, and rows as CSV or
 * names.
 */
#ifndef EVENKEEL_AGGREGATOR_CLI_OUTPUT_H
#define EVENKEEL_AGGREGATOR_CLI_OUTPUT_H

#include "aggregator/cli/cli.h"
#include "shared/table.h"

/* NULL, or what does not go with the form that is asked for. */
const char *output_conflict(const struct cli_options *o, const struct command *command);
/* The form that is asked for; the options then say what the command has to make for it. */
enum cli_output output_choose(struct cli_options *o);
/* CSV, or names. */
bool output_is_rows(enum cli_output form);
/* The rows of a table whose things are of that kind, in such a form. */
void output_rows(struct cli *cli, const struct table *t, const char *kind);
/* What the command printed becomes what is asked for; the exit code. */
int output_finish(struct cli *cli, int code);
/* Appends the JSON with line breaks and indents, and a line break at the end. */
void output_indent(const char *json, size_t len, struct buf *out);

#endif
