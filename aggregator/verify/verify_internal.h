/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the checker share: the cluster, a question about it, and reading objects. */
#ifndef EVENKEEL_AGGREGATOR_VERIFY_VERIFY_INTERNAL_H
#define EVENKEEL_AGGREGATOR_VERIFY_VERIFY_INTERNAL_H

#include "aggregator/verify/verify.h"

enum {
	VERIFY_NOWHERE = -1,
	VERIFY_LOST = -2, /* on a node that the API does not know: the pod only holds its claims */
};

/* A cluster and where its pods are. All is borrowed. */
struct verify_world {
	size_t node_count, pod_count, other_count;
	const cJSON *const *nodes;
	const cJSON *const *pods;
	const cJSON *const *others; /* objects of all other kinds */
	const int *where; /* by pod: its node, or one of the above */
	const bool *removed; /* by node: no destination, though its domains still count */
	const bool *drained; /* by node: cordoned by the plan; NULL: none */
};

/* May this pod, which counts as being nowhere, go to this node? */
struct verify_question {
	const struct verify_world *w;
	size_t pod_at, node_at;
	const cJSON *pod, *node;
	struct error *error; /* set where the answer is no; may be NULL */
};

/* --- verify_json.c: null is the same as absent; what is absent is NULL, or `absent` */

const cJSON *verify_get(const cJSON *object, const char *key);
/* Members are named as in "spec.affinity.podAffinity". */
const cJSON *verify_at(const cJSON *object, const char *path);
const cJSON *verify_first(const cJSON *list); /* element or member */
const char *verify_text(const cJSON *object, const char *path, const char *absent);
double verify_number(const cJSON *object, const char *path, double absent);
bool verify_equal(const char *a, const char *b); /* NULL equals nothing */
const char *verify_name(const cJSON *object);
const char *verify_namespace(const cJSON *object);
const char *verify_label(const cJSON *object, const char *key);
bool verify_contains(const cJSON *list, const char *text);
const cJSON *verify_controller(const cJSON *object); /* its ownerReference */
bool verify_is_kind(const cJSON *object, const char *kind);
bool verify_has_ended(const cJSON *pod); /* Succeeded or Failed */
bool verify_is_ready(const cJSON *object); /* by its condition Ready */
/* CPU in millicores, all else in whole units, rounded up; 0 where it is absent or unreadable. */
int64_t verify_amount(const cJSON *list, const char *resource);
bool verify_is_sidecar(const cJSON *init);
/* What the pod needs at its worst moment: beside the sidecars, one init container or all others. */
int64_t verify_request(const cJSON *pod, const char *resource);
/* A label selector that is absent selects nothing, an empty one everything. */
bool verify_selects(const cJSON *selector, const cJSON *object);
/* matchLabelKeys: the other has the same value of each of these labels that the pod has. */
bool verify_same_labels(const cJSON *keys, const cJSON *pod, const cJSON *other);
/* {nodeSelectorTerms} on labels and name of a node; absent: every node. name NULL: no name matches. */
bool verify_node_selector(const cJSON *selector, const cJSON *node, const char *name);

/* --- verify_place.c, verify_volumes.c: one filter each */

bool verify_room(const struct verify_question *q);
bool verify_taints(const struct verify_question *q);
bool verify_node_affinity(const struct verify_question *q);
bool verify_cordon(const struct verify_question *q);
bool verify_anti_affinity(const struct verify_question *q);
bool verify_affinity(const struct verify_question *q);
bool verify_spread(const struct verify_question *q);
bool verify_host_ports(const struct verify_question *q);
bool verify_volumes(const struct verify_question *q);
bool verify_destination(const struct verify_question *q);
bool verify_judged(const struct verify_question *q);

/* The node is on its way out of the cluster. */
bool verify_is_leaving(const cJSON *node);
const cJSON *verify_find_other(const struct verify_world *w, const char *kind,
			       const char *namespace, const char *name);
/* The pod counts where it is, and is not the one that is asked about. */
bool verify_is_there(const struct verify_question *q, size_t pod);
/* Whether the claim is bound; else its volume is still to be chosen. */
bool verify_is_bound(const cJSON *claim);
/* Whether the claim stays, and no other pod excludes this one from it. */
bool verify_claim_is_free(const struct verify_question *q, const cJSON *claim);
bool verify_volume_reaches(const cJSON *volume, const cJSON *node);
/* Whether the pod may have the bound claim on this node. */
bool verify_bound_allows(const struct verify_question *q, const cJSON *claim);

/* --- verify_use.c: real use */

struct verify_use;
struct verify_use *verify_use_new(const struct verify_world *w, const cJSON *snapshot,
				  int64_t now_ns);
void verify_use_free(struct verify_use *u);
bool verify_measured(const struct verify_use *u, const struct verify_plan *p,
		     const struct verify_question *q);
/* The pod is on the node already. */
bool verify_use_cap(const struct verify_use *u, const struct verify_plan *p,
		    const struct verify_question *q);

/* --- verify_limits.c: the plan as a whole */

/* A plan in a world. */
struct verify_case {
	const struct verify_plan *plan;
	const struct verify_world *world;
	const int *pod_of; /* by move: its pod; VERIFY_NOWHERE: there is none */
	struct verify_report *report;
};

void verify_say(const struct verify_case *c, enum verify_invariant i,
		const struct verify_move *move, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void verify_check_limits(const struct verify_case *c);

#endif
