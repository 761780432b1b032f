/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of stats in JSON, for snapshots in both directions and for answers of the API (json_io.h).
 * In answers millicores have 3 decimals, bytes none, seconds and shares 6: finer than what is
 * measured, and short.
 */
#pragma once

#include "aggregator/state/node_stats.h"
#include "aggregator/state/json_io.h"

#define SECOND_NS 1000000000LL

/* The likely cause of a pod's contention. */
struct stats_json_cause {
	float share; /* 0: none is named */
	/* In answers as the API has them, else NULL and the cgroup's path. NULL: tasks in no pod. */
	const char *namespace, *name;
};

/* A pod between JSON and its stats. */
struct stats_json_pod {
	const char *node;
	int64_t end_ns; /* of the node's stats; 0: never heard */
	struct pod_stats pod; /* without limits, containers, peaks, cause and usage, which are: */
	struct kernel_limits limits;
	struct pod_peaks peaks;
	bool has_peaks;
	struct stats_json_cause cause;
	struct usage_summary usage;
};

struct stats_json_pod stats_json_pod_of(const struct node_stats *p, const struct pod_stats *pod);

void stats_json_do_node(struct json_io *io, struct node_stats *p);
void stats_json_do_pod(struct json_io *io, struct stats_json_pod *p); /* but its containers */
void stats_json_do_container_item(struct json_io *io, size_t index, struct container_stats *c,
				  struct kernel_limits *limits, int64_t end_ns);
/* The members of a node's "source" that its agent told; an answer flags the clock. */
void stats_json_do_source(struct json_io *io, struct node_stats *p);
/* machine, usage, contention */
void stats_json_do_node_use(struct json_io *io, struct node_stats *p);
/* usage, contention, hourlyPeaks */
void stats_json_do_pod_use(struct json_io *io, struct stats_json_pod *p);
/* All but its name; end_ns is that of the stats. */
void stats_json_do_container(struct json_io *io, struct container_stats *c,
			     struct kernel_limits *limits, int64_t end_ns);
/* "usage":{..}; windows NULL: latest values only. */
void stats_json_do_usage(struct json_io *io, struct latest_usage *latest,
			 struct window_set *windows, int64_t end_ns);
/* "recent":{..} */
void stats_json_do_recent(struct json_io *io, struct window_recent *r);
/*
 * "contention":{..}; an answer always has it, of the first window alone. cause NULL: not of a pod.
 */
void stats_json_do_contention(struct json_io *io, struct window_set *windows,
			      struct stats_json_cause *cause);
/* "contention":{..} of a container, in the newest interval. */
void stats_json_do_pressure(struct json_io *io, struct container_stats *c);
