/* SPDX-License-Identifier: Apache-2.0 */
/* A process's share of the fleet: up to some thousand agents on one loop. */
#pragma once

#include "tests/fleet/agent_sim.h"

enum { WORKER_AGENTS_FEW = 500, WORKER_AGENTS_MAX = 2500 };

/*
 * Runs agents for the nodes [first, first + count) until SIGTERM or SIGINT, or until the monotonic
 * time stop_ns (0: never); then waits for the last acks for at most last_acks_ns and tells the
 * tally. Blocks both signals. 0, or -errno with the reason.
 */
int worker_run(const struct agent_sim_config *config, uint32_t first, uint32_t count,
	       int64_t stop_ns, int64_t last_acks_ns, struct tally *tally, struct error *error);
