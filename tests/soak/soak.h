/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One aggregator under one fleet: brought up, measured in its steady state, and, if wanted, killed
 * and started again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All strings are borrowed, and NULL where the fleet's own default will do. */
struct soak_config {
	int64_t nodes, pods_per_node;
	int64_t duration_ns; /* of the steady state */
	int64_t reading_ns; /* between looks at memory; 0: sixty in all */
	int64_t query_ns;
	/* ask on after it until there are so many of each question; 0: do not */
	size_t answers_each;
	bool objects; /* it knows the cluster's objects, too */
	bool restart;
	int64_t outage_ns; /* between its kill and its start */
	int64_t interval_ns; /* that agents publish */
	int64_t ring_span_ns; /* how long they keep intervals; 0: a minute */
	int64_t history_ns; /* what they have measured before they can tell anybody */
	bool budgets; /* this is the size that they are given for */
	const char *pod_life, *node_life, *node_down, *skew, *ack_loss, *ack_delay;
	const char *prefix; /* of all rows; "" for none */
};

struct soak_result {
	double cpu_percent, resident_mib;
	double ack_ms[2], scores_ms[2], prioritize_ms[2], nodes_ms[2]; /* median, 99 of 100 */
	double plan_s; /* the last plan of drains and slack */
	double heard_s, restart_s; /* until all agents were, and caught up; NAN: no restart */
};

/*
 * Writes rows into the bench that is open. 0, or 1 when something ended that should not have, with
 * the logs printed.
 */
int soak_run(const struct soak_config *config, struct soak_result *result);
