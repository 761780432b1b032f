/* SPDX-License-Identifier: Apache-2.0 */
/* What a placement is worth, by the true use of its pods. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/bench_placement/bursts.h"

/* The share of a node's CPU above which it is overloaded. */
#define FIGURES_CAP 0.85

/* Millicores of the nodes, as the pods that are placed use and request them. */
struct figures_nodes {
	double used_milli[NODES];
	int64_t requested_milli[NODES];
};

struct figures {
	double over; /* nodes above the cap */
	double highest, deviation; /* over nodes, in % of a node */
	double pending; /* pods without a node */
	double needless; /* of those the ones a node below the cap had room for */
	double rate; /* pods placed per second */
};

/*
 * Pods without a node are put, one after the other, on the node that uses least and has room for
 * their request: one that stays below the cap so was pending needlessly. rate is left to the caller.
 */
struct figures figures_of(struct figures_nodes nodes, const struct burst_pod *pending,
			  size_t count);

/* One figure over several runs. */
struct spread {
	double mean, p95, max;
};

/* Sorts the values; the 95th percentile is the nearest rank. */
struct spread figures_spread(double *values, size_t count);
