/* SPDX-License-Identifier: Apache-2.0 */
/* --healthy, the liveness probe: whether the loop of the agent in this container still runs. */
#ifndef EVENKEEL_AGENT_LIVENESS_H
#define EVENKEEL_AGENT_LIVENESS_H

#include <stdint.h>
#include <sys/types.h>

#include "shared/error.h"

/*
 * Waits up to five seconds for a tick. 0 with what the agent last told of itself in *note ("":
 * nothing), or -errno with the reason: no agent, several, or no tick.
 */
int liveness_check(struct error *note, struct error *error);

/*
 * The agent's side: what is told stands in place of its arguments, for the probe and for ps. Before
 * open and after tell(NULL) the arguments stand there. argv is borrowed.
 */
void liveness_open(int argc, char **argv);
void liveness_tell(const char *note);

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

#endif
