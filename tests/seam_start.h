/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon that begins while something fails: it becomes ready, or it ends and says why. */
#pragma once

#include <sys/types.h>

#include "tests/seam.h"

enum seam_end {
	SEAM_READY,
	SEAM_FAILED, /* exit status 1, and a message */
	SEAM_ABORTED, /* SIGABRT, and a message */
	/* another end, or without a word; or neither ready nor at its end for long */
	SEAM_OTHERWISE,
};

struct seam_daemon {
	struct seam *seam; /* borrowed */
	const char *log; /* borrowed; overwritten */
	char *const *argv; /* borrowed */
	const char *ready; /* borrowed; a part of the line that it says then */
	pid_t pid; /* 0: it does not run */
	int status; /* what process_stop() would say; 0 while it runs */
};

/* Starts it and awaits one of these. */
enum seam_end seam_daemon_start(struct seam_daemon *d);
/* The same for one that runs: whether it still does, and how it ended. */
enum seam_end seam_daemon_look(struct seam_daemon *d);
/*
 * Ends it by that signal; its exit status, or 128 + the signal that ended it: SIGKILL when it took
 * too long.
 */
int seam_daemon_stop(struct seam_daemon *d, int signal_number);
/* Whether it said that. */
bool seam_daemon_said(const struct seam_daemon *d, const char *text);
void seam_daemon_print(const struct seam_daemon *d); /* the log, to standard error */
