/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls that a running program may make: a seccomp filter. */
#ifndef EVENKEEL_SHARED_SYSCALLS_H
#define EVENKEEL_SHARED_SYSCALLS_H

#include "shared/reason.h"

enum syscalls_of {
	SYSCALLS_AGENT,
	SYSCALLS_AGENT_IPC, /* it may make Unix sockets, too */
	SYSCALLS_AGGREGATOR,
};

/*
 * Makes the filter; call it while there is one thread. 0 with a descriptor for the next, -ENOSYS
 * when the kernel has no such filters, or another -errno, with the reason.
 */
int syscalls_prepare(enum syscalls_of program, int *fd, struct reason *reason);
/*
 * Installs it for all threads, for good, and closes the descriptor; needs no_new_privs. 0, or
 * -errno with the reason.
 */
int syscalls_restrict(int fd, struct reason *reason);

#endif
