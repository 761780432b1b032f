/* SPDX-License-Identifier: Apache-2.0 */
/* Running a command once, or again and again until Ctrl-C; and what standard output is. */
#ifndef EVENKEEL_AGGREGATOR_CLI_WATCH_H
#define EVENKEEL_AGGREGATOR_CLI_WATCH_H

#include <signal.h>

#include "aggregator/cli/cli.h"

/* Becomes true with SIGINT or SIGTERM once watch_catch_signals() was called. */
extern volatile sig_atomic_t watch_stop;
void watch_catch_signals(void);
/* Runs it and writes what it gives to standard output and standard error; the exit code. */
int watch_once(struct cli *cli, const struct command *command);
/* The same every 2 s; CLI_OK when stopped. Only the first run's errors end it. */
int watch_loop(struct cli *cli, const struct command *command);
/* Colour and width by the options and the terminal. */
void watch_look_at_terminal(struct cli *cli);

#endif
