/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small cluster whose drains are planned step by step. Nodes have 4 CPUs, 8 GiB and 110 pods; pods
 * are of ReplicaSets in namespace default, have the label app=OWNER and request 128 MiB.
 */
#pragma once

#include "aggregator/policy/drain/drain.h"
#include "tests/place_fixture.h"

enum { DRAIN_WORLD_STATS = 5 };

struct drain_world {
	struct place_fixture cluster;
	struct drain_state *state;
	struct drain_config config; /* the default */
	struct drain_input input; /* place, view and now_ns are those of the last step */
	struct drain_plan *plan; /* of the last step */
	struct node_stats *stats[DRAIN_WORLD_STATS]; /* sorted */
	size_t stats_count;
};

void drain_world_init(struct drain_world *w);
void drain_world_fini(struct drain_world *w);

void drain_world_node(struct drain_world *w, const char *name);
/* labels, annotations and spec: further members ("'pool':'a'"), "" none. */
void drain_world_node_with(struct drain_world *w, const char *name, const char *labels,
			   const char *annotations, const char *spec);
void drain_world_owner(struct drain_world *w, const char *name, int replicas);
/* Running and ready; node "": pending. */
void drain_world_pod(struct drain_world *w, const char *name, const char *owner, const char *node,
		     int cpu_milli);
/* spec: members of it. */
void drain_world_pod_with(struct drain_world *w, const char *name, const char *owner,
			  const char *node, int cpu_milli, bool ready, const char *spec);
/* Of the pods of an owner; pods that are not ready may always leave. */
void drain_world_budget(struct drain_world *w, const char *owner, int allowed);

void drain_world_step(struct drain_world *w, int64_t now_ns);
/* What the plan says of a node that it has. */
const struct drain_plan_node *drain_world_get(const struct drain_world *w, const char *name);
void drain_world_verdict(const struct drain_world *w, const char *name, const char *verdict);
void drain_world_reason(const struct drain_world *w, const char *name, size_t number,
			const char *code, const char *text);
