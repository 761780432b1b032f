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

#endif
