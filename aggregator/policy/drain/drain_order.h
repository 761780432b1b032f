/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In which order candidates are asked: by scores, one after the other, the higher first; equal ones
 * by name, so that it is always the same.
 *
 *   upstream   empty nodes, then those that only wait for pods to end, then the others; among them
 *              candidates of the run before; then as they were given (upstream sorts unstably; this
 *              order is the one it would have if it did not)
 *   corrected  the same classes; then nodes on which no pod bursts; then the run before, which
 *              keeps waves from changing; then the cheapest to move first: fewer pods, less CPU in
 *              use, less memory in use; then by name
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_ORDER_H
#define EVENKEEL_AGGREGATOR_POLICY_DRAIN_DRAIN_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "aggregator/policy/drain/drain_options.h"

/* What is known of a candidate. */
struct drain_rank {
	const char *node;
	/*
	 * there is a node of that name; else it counts as one with pods, corrected: with the most
	 */
	bool known;
	size_t movable,
		waiting; /* pods that move (a blocked one, too), and pods whose end is waited for */
	bool before; /* it was a candidate of the run before */
	bool bursting; /* some pod uses more CPU now than it usually does */
	double cpu_milli,
		working_set_bytes; /* in use by the pods that move; 0 where it is not measured */
};

enum { DRAIN_SCORES = 6 };

/* Numbers of `ranks` in their order into `out`. */
void drain_order(enum drain_variant variant, const struct drain_rank *ranks, size_t count,
		 size_t *out);

#endif
