/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as its manual page, its completion and its configuration file see it; all are made from
 * its tables.
 */
#ifndef EVENKEEL_SHARED_CLI_SPEC_H
#define EVENKEEL_SHARED_CLI_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "shared/buf.h"
#include "shared/options.h"

struct cli_spec_example {
	const char *line, *meaning; /* NULL ends a list */
};

struct cli_spec_command {
	const char *name;
	const char *usage; /* what follows the name */
	const char *summary; /* one line, without a stop */
	const char *details; /* or NULL */
	const struct option_spec *specs; /* its own */
	const char *const *words; /* operands that are known beforehand, NULL-terminated; or NULL */
	const struct cli_spec_example *examples; /* or NULL */
	const char *names; /* what other operands are names of: "NODE"; or NULL */
};

struct cli_spec {
	const struct option_program *program; /* its specs go with every command */
	int section; /* of the manual */
	const struct cli_spec_command *commands; /* borrowed */
	size_t command_count; /* 0: the program takes no operands */
	/*
	 * Appends the names, one a line, of what is called so in operands and as the value of
	 * options, as of these words of a command line; unknown: none. NULL: nobody knows any.
	 */
	void (*find_names)(const char *what, int count, char *const *words, struct buf *out);
};

/* The manual page, in the man macros of roff. */
void cli_spec_manual(const struct cli_spec *o, struct buf *out);

/*
 * A configuration file: every option with its meaning and its default, commented out, but for those
 * in `set`, which are "NAME=VALUE". 0, or -EINVAL with the reason where there is no such option.
 */
int cli_spec_config(const struct option_program *program, const struct option_list *set,
		    struct buf *out, struct reason *reason);

/*
 * What the last of the words after the program's name can become, "CANDIDATE\tMEANING" in each
 * line. The last line says what else there is: ":0" files, ":16" folders, ":4" nothing. That is
 * what kubectl takes from a plugin. A word "=" stands for one that a shell has split: bash gives
 * "--name=value" as three words, and then wants "value" only. So does ":".
 */
void cli_spec_complete(const struct cli_spec *o, int count, char *const *words, struct buf *out);

extern const char *const cli_spec_shells[]; /* "bash", "zsh", "fish", NULL */
/*
 * What that shell reads to complete the program, by asking the program: cli_spec_complete(). shell:
 * index of its name.
 */
void cli_spec_script(const char *program, int shell, struct buf *out);

/*
 * Programs answer to four words that no help lists: "__manual", "__config [NAME=VALUE]..",
 * "__completion SHELL" and "__complete WORD..". False when the first argument is none of them; else
 * the answer, on standard output, and the exit status.
 */
bool cli_spec_answer(const struct cli_spec *o, int argc, char **argv, int *status);

#endif
