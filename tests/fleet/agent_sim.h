/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated agent: the real schedule, ring and sender, with a made-up machine in place of a
 * sampler.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/enroller.h"
#include "shared/keyring.h"
#include "shared/error.h"
#include "tests/fleet/cluster.h"
#include "tests/fleet/tally.h"
#include "tests/fleet/trouble.h"

/* All borrowed. */
struct agent_sim_config {
	const struct cluster *cluster;
	const struct keyring *keys;
	const struct enroller *enroller; /* NULL: keys seal */
	const char *url;
	const char *also_url; /* told everything, too; NULL: nobody */
	int64_t interval_ns; /* unless the aggregator orders another */
	int64_t ring_span_ns;
	/* what an agent has measured in its first life before it can tell anybody */
	int64_t history_ns;
	size_t ring_bytes;
	int64_t warm_ns; /* monotonic; latencies of what is made before are not counted */
	const uint32_t *phase; /* whose latencies are measured now; another process writes it */
	struct trouble trouble;
};

struct agent_sim;

/* Begins to connect. */
int agent_sim_open(struct agent_sim **a, const struct agent_sim_config *config, uint32_t node,
		   struct error *error);
void agent_sim_close(struct agent_sim *a); /* NULL is allowed */
/*
 * Measures what config.history_ns says, of the time before it was opened. To be called at once, if
 * at all.
 */
void agent_sim_remember(struct agent_sim *a, struct tally *tally);
/*
 * Ends the interval that is due, unless `last` says that no more are wanted, and sends what can be
 * sent. Returns the monotonic time at which to call again at the latest. What it measured is added
 * to the tally.
 */
int64_t agent_sim_step(struct agent_sim *a, int64_t mono_ns, bool last, struct tally *tally);
/* Everything was answered. */
bool agent_sim_idle(const struct agent_sim *a);
/* What its sender did in all, to be called once. */
void agent_sim_tell(const struct agent_sim *a, struct tally *tally);
