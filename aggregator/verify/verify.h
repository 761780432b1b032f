/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second judgement of a drain plan: whether each of its moves may happen in the cluster of a
 * snapshot, after the moves before it.
 *
 * It is written from the definitions of Kubernetes, and includes nothing of policy or planner
 * (tests/lint/layers). Apart from lookups by name and uid, every answer comes from the JSON of all
 * objects. Pure. packaging/docs/verify.md explains the invariants in the order of the table.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/error.h"

/* X(constant, name) */
/* clang-format off */
#define VERIFY_TABLE(X)                                                                            \
	X(IDENTITY, "identity")           /* nodes and pods are those of the plan */               \
	X(COMPLETE, "complete")           /* the pods that must leave do, each once, no others */  \
	X(EVICTABLE, "evictable")         /* nodes and pods may be drained at all */               \
	X(ORDER, "order")                 /* steps of a node are 1, 2, .. */                       \
	X(LIMITS, "limits")               /* nodes at once */                                      \
	X(GROUPS, "groups")               /* groups that go or stay together */                    \
	X(BUDGETS, "budgets")             /* PodDisruptionBudgets */                               \
	X(OWNERS, "owners")               /* pods of an owner at once */                           \
	X(QUOTAS, "quotas")               /* replacements may be made and bound */                 \
	/* of each move, in the order of the scheduler's filters */                                \
	X(DESTINATION, "destination")     /* it is ready and stays */                              \
	X(ROOM, "room")                                                                            \
	X(TAINTS, "taints")                                                                        \
	X(NODE_AFFINITY, "nodeAffinity")                                                           \
	X(CORDON, "cordon")                                                                        \
	X(ANTI_AFFINITY, "antiAffinity")                                                           \
	X(AFFINITY, "affinity")                                                                    \
	X(SPREAD, "spread")                                                                        \
	X(HOST_PORTS, "hostPorts")                                                                 \
	X(VOLUMES, "volumes")                                                                      \
	X(MEASURED, "measured")           /* the destination is measured and not contended */      \
	X(USE_CAP, "useCap")              /* real use */                                           \
	X(JUDGED, "judged")               /* nothing in the pod is beyond this judgement */
/* clang-format on */

enum verify_invariant {
#define X(constant, name) VERIFY_##constant,
	VERIFY_TABLE(X)
#undef X
		VERIFY_INVARIANTS
};

const char *verify_invariant_name(enum verify_invariant i);

/* --- the plan (evenkeel drain -o plan) */

struct verify_move {
	size_t node; /* of the plan */
	const char *namespace, *name, *uid;
	const char *from; /* the node it runs on: another one for pods of a group that falls */
	const char *to; /* NULL: the pod has no controller, or needs no node */
	int64_t step; /* 0: none */
};

struct verify_plan_node {
	const char *name, *uid;
	size_t move_count;
	/*
	 * [{uid, to, after}]: pods that the planner placed first, pending ones or those of a node in
	 * deletion, and that move with this node, each behind so many of its moves.
	 */
	const cJSON *guests;
};

struct verify_plan {
	cJSON *document; /* owned; all texts point into it */
	bool limited; /* the limits, which are absent else */
	double node_limit, drain_limit, owner_share;
	bool capped; /* the cap of real use: shares of the allocatable */
	double cpu_share, mem_share, z, contention;
	const cJSON *reserved; /* like guests */
	const cJSON *groups; /* [{name, nodes}]: all of the nodes of a group leave, or none */
	size_t node_count, move_count;
	struct verify_plan_node *nodes; /* owned */
	struct verify_move *moves; /* owned; node after node */
};

/* 0, or -EINVAL with the member that is wrong and why; *p then needs no verify_plan_fini(). */
int verify_plan_read(const char *text, size_t len, struct verify_plan *p, struct error *error);
void verify_plan_fini(struct verify_plan *p);
/* False: the plan lacks the member that the invariant is judged by, cap or limits. */
bool verify_plan_has(const struct verify_plan *p, enum verify_invariant i);

/* --- the judgement */

struct verify_violation {
	enum verify_invariant invariant;
	const struct verify_move *move; /* of the plan; NULL: no single move */
	struct error text; /* with the numbers */
};

struct verify_report {
	size_t count;
	struct verify_violation *of; /* owned; the plan as a whole first, then pod after pod */
};

/*
 * snapshot: a Snapshot as GET /v1/snapshot gives it. 0; -EINVAL with the member that is missing;
 * -ENODATA with the reason: it has neither nodes nor pods, as that of a standalone aggregator. The
 * report is the caller's, and refers to the plan.
 */
int verify_judge(const struct verify_plan *p, const cJSON *snapshot, struct verify_report *out,
		 struct error *error);
void verify_report_fini(struct verify_report *r);
