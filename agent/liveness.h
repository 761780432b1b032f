/* SPDX-License-Identifier: Apache-2.0 */
/* --healthy, the liveness probe: whether the loop of the agent in this container still runs. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "shared/error.h"

/*
 * Waits up to five seconds for a tick. 0 with the text of the agent's status file (path; NULL: none)
 * in *status, "" if all is well, or -errno with the reason: no agent, several, or no tick.
 */
int liveness_check(const char *path, struct error *status, struct error *error);

/* The agent's status file, empty: a descriptor that the caller closes, or -errno with the reason. */
int liveness_open(const char *path, struct error *error);
/* Replaces the text of the file; "": all is well. A failure is logged. */
void liveness_write(int fd, const struct error *status);

/*
 * --- for tests: `proc` is the root of procfs ----------------------------------------------------
 */

/*
 * The other process with the name of `self`: process 1 if it has that name, else the only one in
 * the cgroups of `self`. -ENOENT: none; -ENOTUNIQ: several; with the reason.
 */
int liveness_find(const char *proc, pid_t self, pid_t *found, struct error *error);
/* Voluntary context switches of the main thread. -ENOENT or -EINVAL with the reason. */
int liveness_count_waits(const char *proc, pid_t pid, uint64_t *waits, struct error *error);
