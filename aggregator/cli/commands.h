/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of commands: parsing, help and running follow from it. */
#ifndef EVENKEEL_AGGREGATOR_CLI_COMMANDS_H
#define EVENKEEL_AGGREGATOR_CLI_COMMANDS_H

#include "aggregator/cli/cli.h"
#include "shared/table.h"

extern const struct option_spec commands_common[]; /* options of all commands */

/* The whole program; returns its exit code. */
int commands_main(int argc, char **argv);
/* How tables are printed for this call. */
struct table_style commands_style(const struct cli *cli);
/*
 * Sorts, limits and prints a table as the options say; nothing with -o json. kind is what kubectl
 * would call a row's thing ("node").
 */
void commands_print_table(struct cli *cli, struct table *t, const char *kind);
/* -o json: the API's object as it is, with a line's end behind it. */
void commands_print_json(struct cli *cli, const char *json, size_t len);

#endif
