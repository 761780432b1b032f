/* SPDX-License-Identifier: Apache-2.0 */
/* Which cgroups are workloads and of which kind, and the state of a workload. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/account_stats.h"
#include "agent/cpu_demand.h"
#include "agent/topology.h"
#include "shared/interval.h"

enum { NOT_LISTED = -1 };

struct workload {
	struct entity *entity; /* held */
	struct kernel_limits limits;
	bool fresh; /* entity or limits changed since the last publish */
	bool gone; /* ended; exists until the next publish */
	float waiting; /* share of the last seconds, less throttling (account_culprit.c) */
	struct stats stats;
	struct demand *demand; /* owned; of containers and units, else NULL */
	int64_t born_ns; /* monotonic time of its first sample; less if it existed at start; 0: none */
};

/*
 * Sets kinds[i], one per cgroup of the topology, to its enum entity_kind or NOT_LISTED.
 *
 * With a pod in the tree: pods and their containers. All other cgroups of a pod are in its totals.
 * Without: the outermost cgroup named like a systemd unit that has processes, or the outermost
 * container, is one workload with all below; the cgroups above are slices; a plain cgroup is a
 * slice with children and a unit without. The root is the node and is not listed.
 */
void workload_classify(struct topology *t, int8_t *kinds);

/* parent: ref of the pod of a container, else 0. */
struct workload *workload_new(uint32_t ref, enum entity_kind kind, uint32_t parent,
			      const struct cgroup *c);
void workload_free(struct workload *w);
/* Sets the limits; a difference makes the workload fresh. */
void workload_set_limits(struct workload *w, const struct kernel_limits *limits);
