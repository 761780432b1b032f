/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of --help. */
#ifndef EVENKEEL_AGGREGATOR_CLI_HELP_H
#define EVENKEEL_AGGREGATOR_CLI_HELP_H

#include "aggregator/cli/cli.h"

/* base: "evenkeel", or what it was called as. */
void help_of_command(const char *base, const struct command *c, struct buf *out);
void help_of_program(const char *base, const char *usage, const char *summary,
		     const struct command *const *commands, size_t count, struct buf *out);

#endif
