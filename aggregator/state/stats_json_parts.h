/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of stats in JSON, each for both directions: for the files that write and read them. */
#ifndef EVENKEEL_AGGREGATOR_STATE_STATS_JSON_PARTS_H
#define EVENKEEL_AGGREGATOR_STATE_STATS_JSON_PARTS_H

#include "aggregator/state/node_stats.h"
#include "aggregator/state/json_io.h"

extern const char *const stats_json_pressures[PRESSURES];

/* A pod between JSON and its stats. */
struct stats_json_pod {
	const char *node;
	int64_t end_ns; /* of the node's stats; 0: never heard */
	struct pod_stats pod; /* without limits, containers, peaks and usage, which are: */
	struct kernel_limits limits;
	struct pod_peaks peaks;
	bool has_peaks;
	struct usage_summary usage;
};

void stats_json_do_node(struct json_io *io, struct node_stats *p);
void stats_json_do_pod(struct json_io *io, struct stats_json_pod *p); /* but its containers */
void stats_json_do_container(struct json_io *io, size_t index, struct container_stats *c,
			     struct kernel_limits *limits);
/* "usage":{..} */
void stats_json_do_usage(struct json_io *io, struct usage_summary *u);
/* "recent":{..} */
void stats_json_do_recent(struct json_io *io, struct window_recent *r);
/* The members of one. */
void stats_json_do_latest(struct json_io *io, struct latest_usage *l);

#endif
