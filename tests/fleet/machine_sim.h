/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent on one node of the made-up cluster would measure: patterns in, intervals out. */
#pragma once

#include <stdint.h>

#include "shared/interval.h"
#include "tests/fleet/cluster.h"

struct machine_sim;

/* The cluster is borrowed. */
struct machine_sim *machine_sim_new(const struct cluster *c, uint32_t node);
void machine_sim_free(struct machine_sim *m); /* NULL is allowed */
/*
 * What was used between two Unix times, sampled at 10 Hz; each begins where the one before ended.
 * What an interval tells for the first time is fresh. A pod that took another's place within it is
 * told as having been there throughout. The caller owns it.
 */
struct interval *machine_sim_take(struct machine_sim *m, uint64_t sequence, int64_t start_ns,
				  int64_t end_ns);

/* How many pods took another's place, not counting those that were there at first. */
uint64_t machine_sim_new_pods(const struct machine_sim *m);
