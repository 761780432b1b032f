/* SPDX-License-Identifier: Apache-2.0 */
/* --once: one interval of this machine on standard output, without an aggregator. */
#ifndef EVENKEEL_AGENT_ONCE_H
#define EVENKEEL_AGENT_ONCE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/sampling.h"
#include "shared/buf.h"
#include "shared/interval.h"
#include "shared/reason.h"

enum once_output { ONCE_TABLE, ONCE_JSON };

struct once_config {
	const char *node; /* name of this machine; borrowed */
	int64_t interval_ns; /* how long to sample */
	enum once_output output;
	struct sampling_config sampling;
};

/*
 * Samples for one interval, or until SIGINT or SIGTERM, and prints what was measured. 0, or -errno
 * with the reason: no tier works, standard output does not take it, or the signal came before the
 * first tick.
 */
int once_run(const struct once_config *config, struct reason *reason);

/* What is printed. */
struct once_sample {
	const char *node; /* borrowed, as is the interval; every entry has its entity */
	size_t cgroups; /* how many there are, workloads or not */
	const struct interval *interval;
};

/*
 * Three tables: the node's use, how it was sampled, the workloads. width: of the terminal; 0: never
 * shorten. Pure.
 */
void once_table_write(const struct once_sample *sample, size_t width, struct buf *out);

/*
 * A NodeSample object and a newline. Pure.
 *
 * {apiVersion, kind, time, start, end, node: {name, source, capacity, machine, usage, contention},
 * items: [{kind, name, podUID, containerID, qosClass, runtime, pod, usage, kernelLimits,
 * contention}]}
 *
 * Members, units and precision are those of the aggregator's /v1/nodes and /v1/pods, but a usage is
 * of the one interval: {samples, mean, stddev, p50, p95, p99 (node), min, max, last} for CPU,
 * {mean, max, last} for memory and working set, {last} for swap and tasks. No limit is null, what
 * is unknown is absent, and a contention that was not measured is null. pod is the name of a
 * container's pod.
 */
void once_json_write(const struct once_sample *sample, struct buf *out);

/* --- for both formats. Pure. ------------------------------------------------------------------ */

struct once_item {
	const struct entry *entry; /* borrowed */
	const struct entity *pod; /* of a container whose pod is listed too; else NULL */
};

/*
 * Most CPU first, then by name; containers, ordered alike, follow their pod. The array is the
 * caller's to free.
 */
struct once_item *once_items(const struct interval *i, size_t *count);

/*
 * "Pod", "Container", "Unit", "Slice"; the words of Kubernetes for a class, and of runtimes: NULL
 * where unknown.
 */
const char *once_kind_name(enum entity_kind kind);
const char *once_qos_name(enum qos_class qos);
const char *once_runtime_name(enum container_runtime runtime);

/*
 * Share of the CPU periods that hit the quota; NaN where there were none, or it was not measured.
 */
double once_throttled_ratio(const struct usage *u);
/* ns of what `bit` says was measured, as a share 0..1 of the time covered; NaN where it was not. */
double once_share(const struct usage *u, enum usage_have bit, uint64_t ns);
/* CPU time as a rate; NaN over no time. */
double once_milli(uint64_t cpu_ns, double seconds);
/* The 50th percentile or a higher one of the node's CPU use; NaN where it was not measured. */
double once_percentile(const struct node_sample *n, double share);

#endif
