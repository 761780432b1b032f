/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives up, for good, every right the agent needs no more once its files are open and its programs
 * attached.
 */
#ifndef EVENKEEL_AGENT_CONFINE_H
#define EVENKEEL_AGENT_CONFINE_H

#include <stdbool.h>

#include "shared/reason.h"

struct confine_config {
	/* Does once what the process must still be able to do: 0, or -errno with the reason. */
	int (*trial)(void *ctx, struct reason *reason);
	void *ctx; /* of trial */
	bool unix_sockets; /* may be made */
};

/*
 * Confines the calling thread and all threads it starts from now on; call it while there is no
 * other. Afterwards the process has no capability (or CAP_BPF and CAP_PERFMON where the trial fails
 * without), can gain none, leaves no core dump, and makes no system calls but those of
 * shared/syscalls.c. The log tells what was kept. A kernel without seccomp filters is a
 * warning; 0, or -errno with the reason when anything else fails: what was given up is gone then
 * too.
 */
int confine(const struct confine_config *config, struct reason *reason);

#endif
