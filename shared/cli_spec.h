/* SPDX-License-Identifier: Apache-2.0 */
/* The commands and options of a program, for its manual page, completion and configuration file. */
#pragma once

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
	const char *const *words; /* known operands, NULL-terminated; or NULL */
	const struct cli_spec_example *examples; /* or NULL */
	const char *names; /* kind of the names of other operands: "NODE"; or NULL */
};

struct cli_spec {
	const struct option_program *program; /* its options go with every command */
	int section; /* of the manual */
	const struct cli_spec_command *commands; /* borrowed */
	size_t command_count; /* 0: the program takes no operands */
	/*
	 * Appends the names of a kind, one a line, for these words of a command line; none if
	 * unknown. NULL: no names.
	 */
	void (*find_names)(const char *what, int count, char *const *words, struct buf *out);
};

/* The manual page, in the man macros of roff. */
void cli_spec_manual(const struct cli_spec *o, struct buf *out);

/*
 * A configuration file: every option with meaning and default, commented out, except those in
 * `set`, "NAME=VALUE". 0, or -EINVAL with the reason: no such option.
 */
int cli_spec_config(const struct option_program *program, const struct option_list *set,
		    struct buf *out, struct error *error);

/*
 * The option whose value the argument after `word`, which begins with "-", is; NULL: none. Options
 * are those of the command, or of any command where it is NULL, and of the program.
 */
const struct option_spec *cli_spec_pending(const struct cli_spec *o,
					   const struct cli_spec_command *command,
					   const char *word);

/*
 * Candidates for the last of the words after the program's name, "CANDIDATE\tMEANING" a line. The
 * last line is ":0" files, ":16" folders or ":4" nothing else, as kubectl expects from a plugin.
 * bash splits "--name=value" into three words and needs "value" only; the same for ":".
 */
void cli_spec_complete(const struct cli_spec *o, int count, char *const *words, struct buf *out);

extern const char *const cli_spec_shells[]; /* "bash", "zsh", "fish", NULL */
/* The completion script of a shell, which calls cli_spec_complete(); false: the shell is unknown. */
bool cli_spec_script(const char *program, const char *shell, struct buf *out);

/*
 * Answers four hidden words: "__manual", "__config [NAME=VALUE]..", "__completion SHELL" and
 * "__complete WORD..". False: the first argument is none of them; else the answer is on standard
 * output, with the exit status.
 */
bool cli_spec_answer(const struct cli_spec *o, int argc, char **argv, int *status);
