/* SPDX-License-Identifier: Apache-2.0 */
/* --healthy: whether the agent of this container still turns its loop, asked from outside of it. */
#ifndef EVENKEEL_AGENT_LIVENESS_H
#define EVENKEEL_AGENT_LIVENESS_H

#include <stdint.h>
#include <sys/types.h>

#include "shared/reason.h"

/*
 * Waits up to five seconds for a sign of life. 0, or -errno with the reason: no agent, several, or
 * none that turns.
 */
int liveness_check(struct reason *reason);

/* --- its parts, for tests: `proc` is where processes are told of ------------------------------ */

/*
 * The other process with the name of `self`: the first of all if it is that, else the only one in
 * the control groups of `self`. -ENOENT if there is none, -ENOTUNIQ if there are several, with the
 * reason.
 */
int liveness_find(const char *proc, pid_t self, pid_t *found, struct reason *reason);
/* How often the main thread of a process has gone to wait. -ENOENT or -EINVAL with the reason. */
int liveness_count_waits(const char *proc, pid_t pid, uint64_t *waits, struct reason *reason);

#endif
