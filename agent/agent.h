/* SPDX-License-Identifier: Apache-2.0 */
/* Samples on a timer, publishes intervals, keeps them until every aggregator has them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/publisher.h"
#include "agent/sampling.h"
#include "shared/error.h"

struct agent_config {
	struct publisher_config publisher; /* interval_ns: 1..15 s */
	const char *status_path; /* the file that liveness_check() reads; NULL: none */
	bool confine; /* drop capabilities and system calls after the start */
	struct sampling_config sampling;
};

struct agent;

/*
 * Opens files and sampler, takes the first sample, drops privileges, opens the sockets. config is
 * borrowed for the life of the agent.
 */
int agent_open(struct agent **a, const struct agent_config *config, struct error *error);
/*
 * Runs until SIGINT or SIGTERM; then publishes the last interval and waits up to two seconds for
 * acks. SIGHUP reads the keys again. 0, or -errno with the reason when no tier is left.
 */
int agent_run(struct agent *a, struct error *error);
void agent_close(struct agent *a);
