/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random cluster in a real API server for tests of drains: nodes of several sizes in three zones,
 * and workloads with rules and budgets, whose pods real controllers make and a real scheduler
 * binds. Everything but the scheduler's choice among equal nodes follows from the seed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "tests/kube_testbed.h"
#include "tests/place_world.h"

enum { KUBE_DRAIN_NODES_MAX = 20, KUBE_DRAIN_WORKLOADS_MAX = 40 };

enum kube_drain_kind { KUBE_DRAIN_DEPLOYMENT, KUBE_DRAIN_REPLICA_SET, KUBE_DRAIN_STATEFUL_SET };

/* Its pods have the label app, which is its name. */
struct kube_drain_workload {
	char name[8];
	enum kube_drain_kind kind;
	size_t replicas; /* all of which have a node */
};

struct kube_drain_world {
	struct kube_testbed *bed; /* borrowed */
	struct place_world dice; /* only its random numbers */
	uint64_t seed;
	char namespace[24];
	size_t node_count, workload_count, budget_count;
	struct kube_drain_workload workloads[KUBE_DRAIN_WORKLOADS_MAX];
	bool has_daemons;
	bool keeps_grace; /* deleted pods are ready until their grace ends, and not until a look */
	bool has_balloons; /* objects of `evenkeel slack -o balloons` are applied */
};

/*
 * Nodes, workloads and budgets, until every pod is bound and runs, and the budgets' status says so.
 * What fitted nowhere is scaled away. It needs controllers, and a scheduler that tells its metrics.
 */
void kube_drain_world_make(struct kube_drain_world *w, struct kube_testbed *bed, uint64_t seed);
/* All of it goes, balloons as well; the namespace stays, empty. */
void kube_drain_world_clear(struct kube_drain_world *w);

/* What pods are like. */
struct kube_drain_look {
	cJSON *pods; /* owned: their list */
	size_t bound; /* of workloads, to a node and not leaving */
	size_t unbound; /* of anybody, without a node */
	size_t leaving;
	size_t daemons; /* bound ones */
	size_t balloons; /* bound ones */
	size_t waiting; /* balloons among the unbound */
};

/*
 * Lists all pods, and does as kubelets would: who has a node runs and is ready, who is deleted
 * ends (keeps_grace: when its grace does). False: the API does not answer. The caller ends it with kube_drain_look_fini().
 */
bool kube_drain_world_look(struct kube_drain_world *w, struct kube_drain_look *out);
void kube_drain_look_fini(struct kube_drain_look *l);
/*
 * Whether nothing more will happen by itself: all pods of all workloads are there, none is leaving,
 * and the scheduler has judged each without a node since anything changed.
 */
bool kube_drain_world_is_settled(const struct kube_drain_world *w, const struct kube_drain_look *l);
/* The list of budgets; the caller deletes it. NULL: the API does not answer. */
cJSON *kube_drain_world_budgets(const struct kube_drain_world *w);
bool kube_drain_budget_selects(const cJSON *budget, const cJSON *pod);
/* Whether each budget's status counts the pods that are ready now. */
bool kube_drain_world_budgets_are_true(const cJSON *budgets, const struct kube_drain_look *l);

/* How many budgets have fewer healthy pods than they desire; those of too few pods at all do not count. */
size_t kube_drain_world_violations(const cJSON *budgets);

/* An object of the API; NULL: it is not there. The caller deletes it. */
cJSON *kube_drain_world_get(const struct kube_drain_world *w, const char *path);
/* The workload's name that a pod has, or "": it is a daemon's, or a balloon. */
const char *kube_drain_pod_app(const cJSON *pod);
bool kube_drain_is_balloon(const cJSON *pod);
/* The text at a path ("metadata.name"), or ""; the number, or 0. */
const char *kube_drain_text(const cJSON *json, const char *path);
double kube_drain_number(const cJSON *json, const char *path);
