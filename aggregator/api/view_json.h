/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that nodes, pods and containers share in JSON: use, windows, contention and limits as
 * measured; labels, amounts of resources, limits and their ratios as the Kubernetes API tells them.
 * Each function writes a key and its object.
 */
#ifndef EVENKEEL_AGGREGATOR_API_VIEW_JSON_H
#define EVENKEEL_AGGREGATOR_API_VIEW_JSON_H

#include <stdint.h>

#include "aggregator/api/limits.h"
#include "aggregator/model/labels.h"
#include "aggregator/model/resources.h"
#include "aggregator/policy/place/place.h"
#include "aggregator/state/node_stats.h"
#include "shared/jsonw.h"
#include "shared/usage_json.h"

/* key:{"cpuMillicores","memoryBytes"} */
void view_json_write_amounts(struct jsonw *w, const char *key, int64_t cpu_milli,
			     int64_t mem_bytes);
/* "refused":{FILTER: nodes}, of the filters that refused any. */
void view_json_write_refused(struct jsonw *w, const struct place_counts *counts);

/* --- what is measured: what is unknown is absent, down to the whole object */

/*
 * "usage":{"cpuMillicores":{"latest":{"value","end"},"windows":{"5m":{..},..}},..,"swapBytes":{"latest":..},..},
 * by the rows of shared/usage_fields.h; end_ns is that of the stats.
 */
void view_json_write_usage(struct jsonw *w, const struct usage_summary *u, int64_t end_ns);
/* The same of a container: latest values only. */
void view_json_write_latest(struct jsonw *w, const struct latest_usage *l, int64_t end_ns);
/*
 * "contention":{"cpu","memory","cpuStalledRatio","memoryStalledRatio","throttledRatio","throttledSeconds","oomKills"}
 * of the newest 5 minutes; here null says not measured. cpu and memory are the shares of the time
 * in which some task waited for neighbours, the stalled ones those in which none could run.
 */
void view_json_write_contention(struct jsonw *w, const struct window_counts *c);
/* The first four of a container, in the newest interval. */
void view_json_write_pressure(struct jsonw *w, const struct container_stats *c);
/* key:{"cpuMillicores","memoryBytes"} of a node; 0 is unknown. */
void view_json_write_capacity(struct jsonw *w, const char *key, int64_t cpu_milli,
			      int64_t mem_bytes);

/* --- what the Kubernetes API tells */

/* CPU and memory without an amount; other resources are always left out then. */
enum cluster_absent { ABSENT_LEFT_OUT, ABSENT_ZERO, ABSENT_NULL };

/* "labels":{..} */
void view_json_write_labels(struct jsonw *w, const struct labels *labels);
/*
 * key:{"cpuMillicores","memoryBytes","ephemeralStorageBytes","pods", and others by their own names}
 */
void view_json_write_resources(struct jsonw *w, const char *key, const struct resources *r,
			       enum cluster_absent absent);
/* "unlimitedContainers":{"cpu","memory"} */
void view_json_write_unlimited(struct jsonw *w, uint32_t cpu, uint32_t memory);
/*
 * What the pods of a node, or of several, have for limits:
 * "limits":{..},"unlimitedContainers":{"cpu","memory"},"kernelLimits":{"cpuMillicores","memoryBytes",
 * "unlimitedContainers":{"cpu","memory"},"unknownPods"}
 */
void view_json_write_limits(struct jsonw *w, const struct view_sums *sums);
/* "limitRatio":{"declared":{"cpu","memory"},"kernel":{..}}, without what is not known. */
void view_json_write_ratio(struct jsonw *w, const struct limits_shares *shares);
/*
 * "limitMismatch":{"cpuMillicores":{"declared","kernel"},"memoryBytes":{..}}, null is no limit;
 * nothing where both agree.
 */
void view_json_write_mismatch(struct jsonw *w, const struct view_node *n, const struct view_pod *p);

#endif
