/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a fleet, and when: the same for the same seed. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/fleet/cluster.h"

struct trouble {
	int64_t epoch_ns; /* Unix time at which all agents began their first lives */
	int64_t node_life_ns; /* from one start of an agent to the next; 0: they run for ever */
	/* at the end of each life it is silent for so long; <= node_life_ns */
	int64_t node_down_ns;
	int64_t skew_ns; /* clocks are off by up to so much, either way */
	double ack_loss; /* share of acks that never arrive, 0 to 1 */
	int64_t ack_delay_ns; /* those that do arrive late by up to so much */
};

/*
 * Whether a node's agent is dead at a Unix time, and until when things stay as they are. *life
 * counts its starts from 0; lives of different nodes end at different times.
 */
bool trouble_is_down(const struct trouble *t, const struct cluster *c, uint32_t node, int64_t at_ns,
		     uint32_t *life, int64_t *until_ns);
/* How far a node's clock is ahead. */
int64_t trouble_skew_ns(const struct trouble *t, const struct cluster *c, uint32_t node);
/* Whether the nth ack that came for a node is lost. */
bool trouble_loses_ack(const struct trouble *t, const struct cluster *c, uint32_t node, uint64_t n);
/* By how much it is late otherwise. */
int64_t trouble_ack_delay_ns(const struct trouble *t, const struct cluster *c, uint32_t node,
			     uint64_t n);
