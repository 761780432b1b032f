/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of nodes that grow and shrink together, their least size, and whether one more node may go.
 *
 * A node's group is the value of the first of drain.groupLabels that it has, else "". Nodes of the
 * control plane have no group and are never drained. Rules of drain.groups without nodes are harmless.
 *
 *     room of a group     size - in deletion - min
 *     room of the cluster max(0, sum over nodes - drain.clusterMin), of each resource, all or nothing
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/object.h"
#include "aggregator/policy/drain/drain_options.h"
#include "shared/error.h"

/* A row of drain.groups. */
struct drain_group_rule {
	const char *name;
	int64_t min, max; /* max -1: none */
	bool atomic; /* all of its nodes go at once, or none */
};

struct drain_group {
	char *name; /* owned */
	int64_t min;
	bool atomic;
	int64_t size; /* nodes it is meant to have */
	int64_t registered; /* nodes the API knows */
	int64_t in_deletion; /* of them, those on their way */
	int64_t leaving; /* of them, those that this run accepted: drain_groups_accept() */
};

#define DRAIN_NO_GROUP UINT32_MAX

/* drain.clusterMin, or what is left above it; -1: not limited. */
struct drain_floor {
	int64_t nodes, cpu_milli, mem_bytes;
};

/* Sorted by name. */
struct drain_groups {
	struct drain_group *of; /* owned */
	size_t count;
	struct drain_floor left; /* what may go yet */
};

/* False for DRAIN_NO_GROUP. */
static inline bool drain_group_is_atomic(const struct drain_groups *g, uint32_t group)
{
	return group != DRAIN_NO_GROUP && g->of[group].atomic;
}

/* -EINVAL for a rule with min < 0, min above max, or a name twice; the reason names it. */
int drain_groups_check(const struct drain_group_rule *rules, size_t count, struct error *error);
/* No nodes yet; what is left is unlimited. */
void drain_groups_init(struct drain_groups *g, const struct drain_group_rule *rules, size_t count);
void drain_groups_fini(struct drain_groups *g);
/* The label that makes it a node of the control plane; NULL: none. */
const char *drain_control_plane_label(const struct kube_node *node);
/* The name of its group, owned by the node; NULL: no group. */
const char *drain_group_name(const struct kube_node *node, const char *const *labels, size_t count);
/* Finds or adds the group; later additions may shift its number. */
uint32_t drain_groups_add(struct drain_groups *g, const char *name);
uint32_t drain_groups_find(const struct drain_groups *g, const char *name); /* DRAIN_NO_GROUP */
/* Adds a node to the group. */
void drain_groups_count(struct drain_groups *g, uint32_t group, bool in_deletion);
/* sums: over nodes that are not in deletion; min: what must remain. */
void drain_groups_set_floor(struct drain_groups *g, const struct drain_floor *sums,
			    const struct drain_floor *min);

/*
 * NONE: the room of group and cluster allows one more node, and is used. Else GROUP_MIN_SIZE,
 * MINIMAL_LIMIT, or NOT_AUTOSCALED for DRAIN_NO_GROUP, with the numbers. node: its size (nodes 1).
 */
enum drain_reason drain_groups_accept(struct drain_groups *g, uint32_t group,
				      const struct drain_floor *node, struct error *why);
/* Undoes drain_groups_accept(). */
void drain_groups_release(struct drain_groups *g, uint32_t group, const struct drain_floor *node);

/* Whether that many nodes are the whole group: its size, or all registered nodes. */
bool drain_group_is_covered(const struct drain_group *g, int64_t nodes);
