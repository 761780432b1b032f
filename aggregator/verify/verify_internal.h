/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the checker: the cluster, a question about it, and reading objects. */
#pragma once

#include <string.h>

#include "aggregator/model/object_json.h"
#include "aggregator/verify/verify.h"
#include "shared/document.h"

#define AUTOSCALER    "cluster-autoscaler.kubernetes.io/"
#define REQUIRED      ".requiredDuringSchedulingIgnoredDuringExecution"
#define ANTI_AFFINITY "spec.affinity.podAntiAffinity" REQUIRED

enum {
	VERIFY_NOWHERE = -1,
	VERIFY_LOST = -2, /* on a node that the API does not know: the pod only holds its claims */
};

/* A cluster and where its pods are. All is borrowed. */
struct verify_world {
	size_t node_count, pod_count, other_count;
	const cJSON **nodes, **pods, **others; /* others: objects of all other kinds */
	int *where; /* by pod: its node, or one of the above */
	bool *removed; /* by node: no destination, though its domains still count */
	bool *drained; /* by node: cordoned by the plan; NULL: none */
	/*
	 * By pod, read once: 150 moves among 60,000 pods are judged in 1.5 s instead of 11 s. NULL: read
	 * each time.
	 */
	struct verify_facts {
		const char *namespace;
		const char *owner; /* the uid of its controller; NULL: none */
		bool keeps_apart; /* it has anti-affinity */
	} * facts;
};

/* Places of objects in an array, sorted by name or uid. */
struct verify_index {
	size_t count;
	struct verify_key {
		const char *name;
		int at;
	} * of;
};

/* A plan in the cluster of a snapshot. Arrays are owned. */
struct verify_case {
	const struct verify_plan *plan;
	struct verify_report *report;
	struct verify_world w;
	struct verify_index nodes, pods; /* by name; by uid */
	int *home; /* by pod: where it is in the snapshot */
	int *pod_of; /* by move: its pod; VERIFY_NOWHERE: there is none */
	int *move_of; /* by pod: its first move, or VERIFY_NOWHERE */
	bool *falls; /* by move: its group of pods goes below its minimum, and leaves as a whole */
	struct verify_use *pod_use, *own_use; /* own: by node, beyond its measured pods */
	double now; /* Unix seconds */
	void *owned[20];
	size_t owned_count;
};

/* May this pod, which counts as being nowhere, go to this node? */
struct verify_question {
	const struct verify_world *w;
	size_t pod_at, node_at;
	const cJSON *pod, *node;
	const struct verify_case *c; /* NULL: neither readiness nor real use matters */
	bool pending; /* the pod does not run yet: its claims may wait for their volumes */
	struct error *error; /* set where the answer is no; may be NULL */
};

/* Sets the error. False. */
#define REFUSE(q, ...) (error_set((q)->error, __VA_ARGS__), false)
/* Reports a violation. The move is NULL where it is no single one. */
#define SAY(c, invariant, move, ...) error_set(verify_add(c, VERIFY_##invariant, move), __VA_ARGS__)
/* Loops over a list below an object, and over the members of an object below it. */
#define VERIFY_EACH(item, object, path)                                                            \
	for (const cJSON *item = document_first(object, path); item; item = (item)->next)
#define VERIFY_EACH_OTHER(item, w, is)                                                             \
	for (size_t item##_at = 0; item##_at < (w)->other_count; item##_at++)                      \
		for (const cJSON *item = (w)->others[item##_at];                                   \
		     item && document_is(item, "kind", is); item = NULL)
#define VERIFY_EACH_MEMBER(item, object, path)                                                     \
	for (const cJSON *item = verify_first_member(object, path); item; item = (item)->next)

/* --- verify.c */

/* The text of a new violation. */
struct error *verify_add(const struct verify_case *c, enum verify_invariant i,
			 const struct verify_move *move);
/* Zeroed room for one element more; freed with the case. */
void *verify_own(struct verify_case *c, size_t count, size_t size);
int verify_find(const struct verify_index *x, const char *name); /* VERIFY_NOWHERE: not there */
const cJSON *verify_pod_of(const struct verify_case *c, size_t move); /* NULL: there is none */

/* --- objects: a value of null, or of another type than the API has, counts as absent */

/* "": absent. */
static inline const char *verify_text(const cJSON *object, const char *path)
{
	return document_text_or(object, path, "");
}

/* NULL equals nothing. */
static inline bool verify_equal(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* The same text, or absent in both. */
static inline bool verify_same(const cJSON *a, const cJSON *b, const char *path)
{
	return verify_equal(verify_text(a, path), verify_text(b, path));
}

static inline const char *verify_name(const cJSON *object)
{
	return verify_text(object, "metadata.name");
}

static inline const char *verify_namespace(const cJSON *object)
{
	return verify_text(object, "metadata.namespace");
}

static inline bool verify_is_deleted(const cJSON *object)
{
	return document_text(object, "metadata.deletionTimestamp");
}

const cJSON *verify_first_member(const cJSON *object, const char *path);
double verify_number(const cJSON *object, const char *path, double absent);
bool verify_contains(const cJSON *object, const char *path, const char *text);
bool verify_has_ended(const cJSON *pod); /* Succeeded or Failed */
bool verify_is_bound_to_node(const cJSON *pod); /* of a DaemonSet, or static */
/* A drain moves or deletes it: it is not bound to its node, and neither ended nor ends. */
bool verify_must_leave(const cJSON *pod);
/* CPU in millicores, all else in whole units, rounded up; 0 where it is absent or unreadable. */
int64_t verify_amount(const cJSON *list, const char *resource);
/* The most that the pod needs: its sidecars, and one init container or all others. */
int64_t verify_request(const cJSON *pod, const char *resource);
/* A label selector that is absent selects nothing, an empty one everything. */
bool verify_selects(const cJSON *selector, const cJSON *object);
/* {nodeSelectorTerms} on labels and name of a node; absent: every node. name NULL: no name matches. */
bool verify_node_selector(const cJSON *selector, const cJSON *node, const char *name);

/* --- verify_place.c, verify_use.c: invariants of a move */

/* Whether the invariant holds, from destination to judged; true for others. */
bool verify_filter(enum verify_invariant i, const struct verify_question *q);
bool verify_measured(const struct verify_question *q);
bool verify_use_cap(const struct verify_question *q);
void verify_read_use(struct verify_case *c, const cJSON *snapshot);

/* It is taken away by its deletion, or a taint of an autoscaler. */
bool verify_is_taken_away(const cJSON *node);
/* It is taken away, or drained by others. */
bool verify_is_leaving(const cJSON *node);
const cJSON *verify_find_other(const struct verify_world *w, const char *kind,
			       const char *namespace, const char *name);
/* The pod is on a node, and has not ended. */
bool verify_runs(const struct verify_world *w, size_t pod);
/* Whether the claim is bound; else its volume is still to be chosen. */
bool verify_is_bound(const cJSON *claim);
/* Whether the claim stays, and no other pod excludes this one from it. */
bool verify_claim_is_free(const struct verify_question *q, const cJSON *claim);
bool verify_volume_reaches(const cJSON *volume, const cJSON *node);
/* Whether the pod may have the bound claim on this node. */
bool verify_bound_allows(const struct verify_question *q, const cJSON *claim);

/* --- verify_limits.c: the plan as a whole */

void verify_check_limits(const struct verify_case *c);
