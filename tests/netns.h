/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces of a test's own, joined by pairs of veth devices. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct netns {
	int fd;
	pid_t holder; /* keeps it alive; 0: this program itself does */
};

/* Runs a shell command; false, with what it printed: it failed. */
bool netns_shell(const char *command);
/*
 * Moves this program into a fresh namespace with a loopback device. False: that takes root and ip(8).
 */
bool netns_begin(struct netns *own);
/* Another namespace with a loopback device, which lives until netns_close(). */
void netns_open(struct netns *n);
/* Ends its holder. One that was never opened is allowed. */
void netns_close(struct netns *n);
/* This thread, and programs that it starts, are in the namespace from now on. */
void netns_enter(const struct netns *n);
