/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the checker: the cluster, a question about it, and reading objects. */
#ifndef EVENKEEL_AGGREGATOR_VERIFY_VERIFY_INTERNAL_H
#define EVENKEEL_AGGREGATOR_VERIFY_VERIFY_INTERNAL_H

#include "aggregator/verify/verify.h"

#define AUTOSCALER "cluster-autoscaler.kubernetes.io/"

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
	bool pending; /* the pod does not run yet: its claims may wait for their volumes */
	struct error *error; /* set where the answer is no; may be NULL */
};

/* --- verify_json.c: null is the same as absent; what is absent is NULL, or `absent` */

const cJSON *verify_get(const cJSON *object, const char *key);
/* Members are named as in "spec.affinity.podAffinity". */
const cJSON *verify_at(const cJSON *object, const char *path);
const cJSON *verify_first(const cJSON *list); /* NULL where it is no list */
const cJSON *verify_first_member(const cJSON *object);
/* Loops over a list, and over the members of an object, whose item->string is never NULL. */
#define VERIFY_EACH(item, list)                                                                    \
	for (const cJSON *item = verify_first(list); item; item = (item)->next)
#define VERIFY_EACH_MEMBER(item, object)                                                           \
	for (const cJSON *item = verify_first_member(object); item; item = (item)->next)
const char *verify_text(const cJSON *object, const char *path, const char *absent);
double verify_number(const cJSON *object, const char *path, double absent);
int64_t verify_whole(double value); /* the nearest int64_t */
bool verify_equal(const char *a, const char *b); /* NULL equals nothing */
const char *verify_name(const cJSON *object);
const char *verify_namespace(const cJSON *object);
const char *verify_label(const cJSON *object, const char *key);
const char *verify_annotation(const cJSON *object, const char *key);
bool verify_contains(const cJSON *list, const char *text);
const cJSON *verify_controller(const cJSON *object); /* its ownerReference */
bool verify_is_kind(const cJSON *object, const char *kind);
bool verify_has_ended(const cJSON *pod); /* Succeeded or Failed */
bool verify_has_condition(const cJSON *object, const char *type); /* it is True */
bool verify_is_bound_to_node(const cJSON *pod); /* of a DaemonSet, or static */
/* A drain moves or deletes it: it is not bound to its node, and neither ended nor ends. */
bool verify_must_leave(const cJSON *pod);
/* Sets the error, if any. Returns false. */
bool verify_refuse(const struct verify_question *q, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* CPU in millicores, all else in whole units, rounded up; 0 where it is absent or unreadable. */
int64_t verify_amount(const cJSON *list, const char *resource);
bool verify_is_sidecar(const cJSON *init);
/* The most that the pod needs: its sidecars, and one init container or all others. */
int64_t verify_request(const cJSON *pod, const char *resource);
/* A label selector that is absent selects nothing, an empty one everything. */
bool verify_selects(const cJSON *selector, const cJSON *object);
/* matchLabelKeys: the other has the same value of each of these labels that the pod has. */
bool verify_same_labels(const cJSON *keys, const cJSON *pod, const cJSON *other);
/* {nodeSelectorTerms} on labels and name of a node; absent: every node. name NULL: no name matches. */
bool verify_node_selector(const cJSON *selector, const cJSON *node, const char *name);

/* --- verify_place.c, verify_volumes.c: the filters */

/* The filter of an invariant: destination to volumes, and judged; true for others. */
bool verify_filter(enum verify_invariant i, const struct verify_question *q);
bool verify_volumes(const struct verify_question *q);

/* By its deletion, or a taint of an autoscaler. */
bool verify_is_taken_away(const cJSON *node);
/* It is taken away, or drained by others. */
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

/* Places of objects in an array, by name or uid. */
struct verify_index {
	size_t count;
	struct verify_key {
		const char *name; /* borrowed */
		int at;
	} * of; /* owned; sorted by name */
};

struct verify_use;
/* nodes: by name; pods: by uid. */
struct verify_use *verify_use_new(const struct verify_world *w, const struct verify_index *nodes,
				  const struct verify_index *pods, const cJSON *snapshot,
				  int64_t now_ns);
void verify_use_free(struct verify_use *u);
bool verify_measured(const struct verify_use *u, const struct verify_plan *p,
		     const struct verify_question *q);
/* The pod is on the node already. */
bool verify_use_cap(const struct verify_use *u, const struct verify_plan *p,
		    const struct verify_question *q);

/* --- verify.c */

int verify_find(const struct verify_index *x, const char *name); /* VERIFY_NOWHERE: not there */

/* --- verify_limits.c: the plan as a whole */

/* A plan in a world. */
struct verify_case {
	const struct verify_plan *plan;
	const struct verify_world *world;
	const int *pod_of; /* by move: its pod; VERIFY_NOWHERE: there is none */
	const int *move_of; /* by pod: its first move, or VERIFY_NOWHERE */
	bool *falls; /* by move: its group of pods goes below its minimum, and leaves as a whole */
	struct verify_report *report;
};

void verify_say(const struct verify_case *c, enum verify_invariant i,
		const struct verify_move *move, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void verify_check_limits(const struct verify_case *c);

#endif
