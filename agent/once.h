/* SPDX-License-Identifier: Apache-2.0 */
/* --once: one interval of this machine on standard output. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/sampling.h"
#include "shared/buf.h"
#include "shared/interval.h"
#include "shared/error.h"

enum once_output { ONCE_TABLE, ONCE_JSON };

struct once_config {
	const char *node; /* name of this machine; borrowed */
	int64_t interval_ns; /* duration */
	enum once_output output;
	struct sampling_config sampling;
};

/*
 * Samples for one interval, or until SIGINT or SIGTERM, and prints it. 0, or -errno with the
 * reason: no tier works, standard output fails, or a signal came before the first tick.
 */
int once_run(const struct once_config *config, struct error *error);

/* The data to print. */
struct once_sample {
	const char *node; /* borrowed, as is the interval; every entry has its entity */
	size_t cgroups; /* in all, workloads or not */
	const struct interval *interval;
};

/*
 * Three tables: the node, the sampling, the workloads. width: of the terminal; 0: no limit. Pure.
 */
void once_table_write(const struct once_sample *sample, size_t width, struct buf *out);

/*
 * A NodeSample object and a newline. Pure.
 *
 * {apiVersion, kind, time, start, end, node: {name, source, capacity, machine, usage, contention},
 * items: [{kind, name, podUID, containerID, qosClass, runtime, pod, usage, kernelLimits,
 * contention}]}
 *
 * Members, units and precision as in the aggregator's /v1/nodes and /v1/pods, but usage is of the
 * one interval: {samples, mean, stddev, p50, p95, p99 (node), min, max, last} for CPU, {mean, max,
 * last} for memory and working set, {last} for swap and tasks. null: no limit, or a contention that
 * was not measured; absent: unknown. pod: the name of a container's pod.
 */
void once_json_write(const struct once_sample *sample, struct buf *out);

/* --- for both formats. Pure. ------------------------------------------------------------------ */

struct once_item {
	const struct entry *entry; /* borrowed */
	const struct entry *leader; /* borrowed; of a container its listed pod, else entry */
};

/*
 * The workloads in the order of output: most CPU first, then by name; containers, in the same
 * order, follow their pod. The caller frees the array.
 */
struct once_item *once_items(const struct interval *i, size_t *count);

/* Share of CPU periods that hit the quota; NaN: none, or not measured. */
double once_throttled_ratio(const struct usage *u);
/* ns as a share 0..1 of the time covered; NaN if `bit` was not measured. */
double once_share(const struct usage *u, enum usage_have bit, uint64_t ns);
/* CPU time as a rate; NaN over no time. */
double once_milli(uint64_t cpu_ns, double seconds);
/* A percentile of the node's CPU use, 50th or higher; NaN: not measured. */
double once_percentile(const struct node_sample *n, double share);
