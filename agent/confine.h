/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops all privileges that the agent does not need after its files are open and its programs
 * attached.
 */
#pragma once

#include <stdbool.h>

#include "shared/error.h"

struct confine_config {
	/* Tries what the process still must be able to do: 0, or -errno with the reason. */
	int (*trial)(void *ctx, struct error *error);
	void *ctx; /* of trial */
	bool unix_sockets; /* are allowed */
};

/*
 * Confines the calling thread, which must be the only one, and all later threads. The process then
 * has no capability (or CAP_BPF and CAP_PERFMON if the trial fails without them), can gain none,
 * leaves no core dump, and can make only the system calls in shared/syscalls.c. Logs what it kept;
 * a kernel without seccomp filters is a warning. 0, or -errno with the reason; dropped privileges
 * stay dropped.
 */
int confine(const struct confine_config *config, struct error *error);
