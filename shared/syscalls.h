/* SPDX-License-Identifier: Apache-2.0 */
/* A seccomp filter of the system calls that a running program may make. */
#pragma once

#include "shared/error.h"

enum syscalls_of {
	SYSCALLS_AGENT,
	SYSCALLS_AGENT_IPC, /* with Unix sockets */
	SYSCALLS_AGGREGATOR,
};

/*
 * Makes the filter, with one thread running. 0 with a descriptor for syscalls_restrict(); -ENOSYS:
 * the kernel has no filters; or another -errno, with the reason.
 */
int syscalls_prepare(enum syscalls_of program, int *fd, struct error *error);
/* Installs the filter for all threads, closes the descriptor; needs no_new_privs. 0 or -errno. */
int syscalls_restrict(int fd, struct error *error);
