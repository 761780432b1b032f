/* SPDX-License-Identifier: Apache-2.0 */
/* Which cgroups are workloads, what kind each is, and what is kept of one while it lives. Pure. */
#ifndef EVENKEEL_AGENT_WORKLOAD_H
#define EVENKEEL_AGENT_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/account_stats.h"
#include "agent/topology.h"
#include "shared/interval.h"

enum { NOT_LISTED = -1 };

struct workload {
	struct entity *entity; /* held */
	struct kernel_limits limits;
	bool fresh; /* entity or limits are newer than the last publish */
	bool gone; /* its cgroup is no longer this workload; lives until the next publish */
	struct stats stats;
};

/*
 * kinds[i], one per cgroup of the table, becomes its enum entity_kind or NOT_LISTED.
 *
 * With a pod in the tree: pods and the containers in pods, nothing else. A container's sub-cgroups,
 * its monitor and whatever else is in a pod are in the totals of what holds them. Without: the
 * outermost cgroup named like a systemd unit that holds processes, or the outermost container, is
 * one workload with all below it; the cgroups above them are slices; a plain cgroup is a slice when
 * it has children and a unit when it has none. The root is the node and is not listed.
 */
void workload_classify(struct topology *t, int8_t *kinds);

/* parent: ref of the pod of a container, else 0. */
struct workload *workload_new(uint32_t ref, enum entity_kind kind, uint32_t parent,
			      const struct cgroup *c);
void workload_free(struct workload *w);
/* What is enforced now; a difference makes the workload fresh. */
void workload_set_limits(struct workload *w, const struct kernel_limits *limits);

#endif
