/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU use of a machine whose cgroups do not cover it: their sum, and the rest as /proc/stat
 * tells it. Pure.
 */
#ifndef EVENKEEL_AGENT_ACCOUNT_NODE_H
#define EVENKEEL_AGENT_ACCOUNT_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/machine.h"

/*
 * /proc/stat advances in steps of 10 ms and is read at 1 Hz, the cgroups at 10 Hz. So from one
 * reading to the next
 *
 *	rest = busy time of the machine - sum of the top-level cgroups, at least 0
 *
 * is known only afterwards. The ticks that follow assume that it goes on at the same rate; what
 * that missed or invented is settled when the interval is published. A shortfall within the
 * resolution of /proc/stat is rounding and is taken off the next rest; a larger one is forgotten.
 */
struct account_node {
	bool started;
	uint64_t busy_ns; /* the last reading */
	int64_t busy_at_ns;
	uint64_t cgroups_ns; /* used by the top-level cgroups since */
	double shortfall_ns; /* <= 0 */
	double rate; /* rest assumed per ns of wall time */
	double assumed_ns; /* since the last reading */
	double unsettled_ns; /* measured less assumed, up to the last reading */
};

/* The first reading. */
void account_node_start(struct account_node *n, const struct machine *m, int64_t mono_ns);
/*
 * A tick that ends at mono_ns, dt_ns after the one before, in which the top-level cgroups used
 * cgroups_ns. slow: the machine was read. Returns the CPU time to count for it.
 */
double account_node_tick(struct account_node *n, uint64_t cgroups_ns, const struct machine *m,
			 int64_t mono_ns, int64_t dt_ns, bool slow);
/* What was measured less what was assumed, since the last call. */
double account_node_take_unsettled(struct account_node *n);

#endif
