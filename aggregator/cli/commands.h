/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the program around its commands: parsing, help, the forms of output, watching. */
#pragma once

#include <signal.h>

#include "aggregator/api/doctor.h"
#include "aggregator/cli/cli.h"
#include "shared/table.h"

extern const struct option_spec commands_common[]; /* options of all commands */

/* The whole program; returns its exit code. */
int commands_main(int argc, char **argv);

/*
 * Runs a command line on files, which it closes; outer: of the command that asks. *out gets what it prints, *reason why the exit code, which it returns, is not CLI_OK. CLI_USAGE without
 * output: no command could be run.
 */
int commands_run(struct offline *files, const struct option_list *words, const struct cli *outer,
		 struct buf *out, struct error *reason);

/* --- cmd_doctor.c */

/* "ok    what: detail", and advice indented below it, in lines of that width (0: as they are). */
void doctor_print(const struct doctor *d, bool color, size_t width, struct buf *out);
/* {"apiVersion","kind":"Diagnosis","verdict","checks":[{"verdict","what","detail","advice"}]} */
void doctor_print_json(const struct doctor *d, struct buf *out);

/* --- difference.c */

/* Prints the lines that differ, or that none does; cuts both texts into lines. */
void difference_print(struct cli *cli, struct buf *before, struct buf *after);

/* --- help.c */

/* base: "evenkeel", or what it was called as. */
void help_of_command(const char *base, const struct command *c, struct buf *out);
void help_of_program(const char *base, const char *usage, const char *summary,
		     const struct command *const *commands, size_t count, struct buf *out);

/* --- output.c: forms of -o that are the same for every command */

extern const char *const output_names[]; /* by enum cli_output; up to NULL */
/* CLI_USAGE with the reason where something does not go with the form that is asked for; else CLI_OK. */
int output_check(const struct cli_options *o, const struct command *command, struct error *reason);
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

/* --- watch.c: a command runs once, or again and again until Ctrl-C */

/* Writes cli->out to standard output, and empties it; -errno. */
int watch_flush(struct cli *cli);
/* Until a full period after start_ns (monotonic), or a signal that is caught. */
void watch_wait(int64_t start_ns, int64_t period_ns);
/* Becomes true with SIGINT or SIGTERM once watch_catch_signals() was called. */
extern volatile sig_atomic_t watch_stop;
void watch_catch_signals(void);
/* Runs it: what it prints is in cli->out; the exit code. */
int watch_run(struct cli *cli, const struct command *command);
/* Runs it and writes what it gives to standard output and standard error; the exit code. */
int watch_once(struct cli *cli, const struct command *command);
/* The same every 2 s; CLI_OK when stopped. Only the first run's errors end it. */
int watch_loop(struct cli *cli, const struct command *command);
/* Colour and width by the options and the terminal. */
void watch_look_at_terminal(struct cli *cli);
