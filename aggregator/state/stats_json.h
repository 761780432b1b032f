/* SPDX-License-Identifier: Apache-2.0 */
/* Stats to and from JSON, bit for bit: what a snapshot says of use. Pure. */
#pragma once

#include "aggregator/state/node_stats.h"
#include "aggregator/state/json_io.h"

/*
 * A node and a pod of a Usage object
 * {"apiVersion":"evenkeel.io/v2","kind":"Usage","time":T,"nodes":[NODE..],"pods":[POD..]}. T are
 * times in RFC 3339 with all nanoseconds, I whole numbers (beyond 2^53 strings of digits), D
 * doubles (%.17g), F floats (%.9g). What is in brackets is there where it is known; STATS of pods
 * have F for D and no percentiles.
 *
 *   NODE   {"name"[,"end":T][,"source":SOURCE][,"capacity":{"cpuMillicores":I,"memoryBytes":I}][,"allocatable":{..}]
 *           ,"totals":{"missedTicks":I,"cpuNanoseconds":{"user":I,"system","iowait","steal"}[,"pressureNanoseconds":{
 *           ["cpu":I][,"memory"][,"cpuStalled"][,"memoryStalled"]}]}[,"machine":{"cpuMillicores":{"user":D,"system",
 *           "iowait","steal"},"memoryAvailableBytes":I}],"usage":USAGE[,"contention":CONTENTION][,"recent":{
 *           ["cpuMillicores":STATS][,"memoryBytes":STATS]}]}; without "end" it was never heard
 *   SOURCE {"tier":"T0".."T3","rateHz":F[,"clockSkewSeconds":D],"runId":hex,"missedTicks":I,"overflowCgroups":I,
 *           "agentCpuMillicores":D,"passMicroseconds":D[,"quarantine":{"count":I,"lastReason"[,"lastMessage"],
 *           "lastTime":T}],"asideNanoseconds":I}; absent where no agent told it
 *   POD    {"node"[,"end":T of the node],"name"[,"uid"],"kind":"Pod|Container|Unit|Slice"[,"qosClass"]
 *           [,"kernelLimits":LIMITS],"usage":USAGE[,"contention":CONTENTION][,"hourlyPeaks":{"end":T,
 *           "cpuMillicores":[F|null, 24 of them],"workingSetBytes":[..]}][,"containers":[CONTAINER..]]}
 *   CONTAINER {"name"[,"id"][,"runtime"][,"kernelLimits":LIMITS],"usage":{without windows}[,"contention":{"cpu":F|null,
 *           "memory","cpuStalledRatio","memoryStalledRatio"}][,"throttledSeconds":F]}
 *   LIMITS {["cpuMillicores":I|null]..}, by the rows of KERNEL_LIMITS (shared/usage_fields.h); null is no limit
 *   USAGE  {["cpuMillicores":{["latest":LATEST,]"windows":{["5m":STATS][,"10m"][,"15m"]}}]..["swapBytes":{"latest":
 *           LATEST}]..}, by the rows of USAGE_AVERAGED and USAGE_NEWEST
 *   LATEST {"value":F[,"end":T]}, of whole seconds before the end of the stats; without, that end
 *   STATS  {"start":T,"end":T[,"samples":I],"mean":D,"stddev":D[,"p50":D,"p95":D,"p99":D][,"min":D][,"max":D]}
 *   CONTENTION {COUNTS[,"windows":{["10m":{COUNTS}][,"15m"]}]}, of the newest 5 minutes, and of longer windows
 *   COUNTS "cpu":D|null,"memory","cpuStalledRatio","memoryStalledRatio","throttledRatio","throttledSeconds",
 *           "oomKills":I|null,"seconds":D; null is not measured. cpu and memory are the shares of the time in which
 *           some task waited for neighbours, the stalled ones those in which none could run
 */
void stats_json_write_node(const struct node_stats *p, struct jsonw *w);
void stats_json_write_pod(const struct node_stats *p, const struct pod_stats *pod, struct jsonw *w);

/* Of a Usage object. */
#define STATS_JSON_VERSION "evenkeel.io/v2"

enum {
	STATS_JSON_NODES_MAX = 100000,
	STATS_JSON_PODS_MAX = 4000000,
	STATS_JSON_CONTAINERS_MAX = 16384
};

/* Stats in the making: nodes and pods in any order. */
struct stats_json_set;

struct stats_json_set *stats_json_set_new(void);
void stats_json_set_free(struct stats_json_set *s); /* NULL is allowed */
/*
 * Each takes over an item of "nodes" or "pods", which it frees. -EINVAL: field is the path in the
 * item ("" the item itself), and nothing was added. Everything unknown is refused. 0 with a reason:
 * a window contradicts itself (its path and why are the reason), and is not known.
 */
int stats_json_add_node(struct stats_json_set *s, cJSON *item, char field[JSON_IO_FIELD_MAX],
			struct error *error);
int stats_json_add_pod(struct stats_json_set *s, cJSON *item, char field[JSON_IO_FIELD_MAX],
		       struct error *error);
/* Stats without pods from elsewhere, copied. */
void stats_json_add_stats(struct stats_json_set *s, const struct node_stats *stats);
/*
 * The stats, sorted by name; the caller drops each and frees the array. -EINVAL: two nodes of one
 * name, a pod of a node that is not there, or that says another end than its node.
 */
int stats_json_set_stats(struct stats_json_set *s, struct node_stats ***node_stats, size_t *count,
			 struct error *error);
