/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent measures of a machine on which several patterns run: patterns in, usages out. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/interval.h"
#include "tests/fleet/pattern.h"

struct use_machine {
	const struct pattern *const *patterns; /* borrowed; 0: what no pod uses; then a pod each */
	size_t count;
	int64_t cpu_milli, mem_bytes; /* capacity */
};

struct use_table {
	struct use_machine machine;
	int64_t start_ns, end_ns, tick_ns;
	size_t ticks;
	float *used; /* owned: millicores, row by row */
	float *sums; /* owned: by tick */
	double waited_ns; /* for CPU, by whoever wanted some */
};

/* What was used between two Unix times, sampled at 10 Hz. */
void use_table_init(struct use_table *t, const struct use_machine *machine, int64_t start_ns,
		    int64_t end_ns);
void use_table_fini(struct use_table *t);
void use_table_make_usage(const struct use_table *t, size_t row, struct usage *u);
/*
 * A container's share of its pod. Throttling is the pod's, and so are kills those of the container
 * that is the `first`.
 */
void use_table_make_part(const struct usage *pod, float share, bool first, struct usage *u);
/*
 * Appends a container's demand (shared/demand.h): its share of what its pod wants if the limit
 * throttles the pod, else of what the pod uses.
 */
void use_table_make_demand(const struct use_table *t, size_t row, float share, struct buf *out);
/* The node of an interval whose entries are there: the sum of its pods and the system. */
void use_table_make_node(const struct use_table *t, struct interval *interval);
/* What the kernel has for limits of a pod or container; 0: none. */
struct kernel_limits use_table_limits(int64_t cpu_milli, int64_t mem_bytes);
