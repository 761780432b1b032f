/* SPDX-License-Identifier: Apache-2.0 */
/* The start of every daemon: options, --help, --version, logging, libraries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shared/options.h"
#include "shared/error.h"

/* Members of every daemon's option struct. */
struct program_common {
	char *config;
	bool verbose, help, version;
};

#define PROGRAM_AT(base, member) ((base) + offsetof(struct program_common, member))
/* The last rows of the option table, for a struct program_common at offset `base`. */
/* clang-format off */
#define PROGRAM_COMMON_OPTIONS(base)                                                               \
	TEXT_OPTION("config", PROGRAM_AT(base, config), "FILE", NULL,                              \
		    "YAML file with any of these options by their long names."),                   \
	FLAG_OPTION("verbose", 'v', PROGRAM_AT(base, verbose), "Log more."),                       \
	FLAG_OPTION("help", 'h', PROGRAM_AT(base, help), "Print this and exit."),                  \
	FLAG_OPTION("version", 0, PROGRAM_AT(base, version), "Print the version and exit."),       \
	{0}
/* clang-format on */

/* The work of a program with its options: an exit status, with the reason if it is not 0. */
typedef int program_run(const void *values, struct error *error);

/*
 * Parses the options into values, answers --help and --version and the words of cli_spec.h, ignores
 * SIGPIPE, starts logging and libsodium, runs, and frees. Returns the exit status: 0 ok, 1 error, 2
 * usage; failures are logged in one line.
 */
int program_main(const struct option_program *program, void *values,
		 const struct program_common *common, program_run *run, int argc, char **argv);

/*
 * Checks that the process may open `count` more descriptors (at most 64) now. 0, or -errno with the
 * reason, which says what to raise. Call it before libraries start: without descriptors nanomsg
 * 1.1.5 runs without the thread that accepts connections, and libuv aborts.
 */
int program_check_descriptors(int count, struct error *error);
