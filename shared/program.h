/* SPDX-License-Identifier: Apache-2.0 */
/* The start of every daemon: options, --help, --version, logging, libraries. */
#ifndef EVENKEEL_SHARED_PROGRAM_H
#define EVENKEEL_SHARED_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "shared/options.h"
#include "shared/error.h"

/* Members of every daemon's option struct. */
struct program_common {
	char *config;
	bool verbose, help, version;
};

/* The last rows of the option table, for a struct program_common at offset `base`. */
#define PROGRAM_COMMON_OPTIONS(base)                                                               \
	{.name = "config",                                                                         \
	 .kind = OPTION_STRING,                                                                    \
	 .offset = (base) + offsetof(struct program_common, config),                               \
	 .value = "FILE",                                                                          \
	 .help = "YAML file with any of these options by their long names."},                      \
		{.name = "verbose",                                                                \
		 .letter = 'v',                                                                    \
		 .kind = OPTION_FLAG,                                                              \
		 .offset = (base) + offsetof(struct program_common, verbose),                      \
		 .help = "Log more."},                                                             \
		{.name = "help",                                                                   \
		 .letter = 'h',                                                                    \
		 .kind = OPTION_FLAG,                                                              \
		 .offset = (base) + offsetof(struct program_common, help),                         \
		 .help = "Print this and exit."},                                                  \
		{.name = "version",                                                                \
		 .kind = OPTION_FLAG,                                                              \
		 .offset = (base) + offsetof(struct program_common, version),                      \
		 .help = "Print the version and exit."},                                           \
	{                                                                                          \
		0                                                                                  \
	}

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

#endif
