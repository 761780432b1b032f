/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kube-scheduler's filters over again, slowly and from the definitions: what the placement core
 * is held against.
 *
 * It works on the JSON of objects as an API server gives them, keeps no counters and no index, and
 * looks at every pod and node for every answer. It shares no code with the placement core, nor with
 * the records that is made of.
 */
#ifndef EVENKEEL_TESTS_PLACE_CHECKER_H
#define EVENKEEL_TESTS_PLACE_CHECKER_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "aggregator/policy/place/place.h"
#include "shared/error.h"

enum {
	PLACE_CHECKER_NOWHERE = -1,
	PLACE_CHECKER_LOST =
		-2, /* on a node that nobody knows: it holds its claims, and counts for nothing else */
	PLACE_CHECKER_CLAIMS = 8, /* of a pod, at most */
};

/* A cluster and where its pods are. All is borrowed. */
struct place_checker {
	size_t node_count, pod_count, other_count;
	const cJSON *const *nodes;
	const cJSON *const *pods;
	const cJSON *const
		*others; /* Namespace, PersistentVolume, PersistentVolumeClaim, StorageClass */
	const int *where; /* by pod: which node, or PLACE_CHECKER_NOWHERE */
	const bool *removed; /* by node: no destination, though its domains still count */
};

/* How far the verdict binds others. */
enum place_certainty {
	PLACE_CERTAIN, /* it is the only right one */
	/*
	 * Something in the pod cannot be judged: any filter may be the one that refuses, but one
	 * must.
	 */
	PLACE_UNJUDGED,
};

struct place_verdict {
	enum place_filter filter; /* the first that refuses */
	enum place_certainty certainty;
	struct error error; /* "" where it fits */
};

/* Whether somebody else's verdict agrees with this one. */
bool place_verdict_allows(const struct place_verdict *v, enum place_filter other);

/* May this pod, which is nowhere, go to this node? */
struct place_verdict place_checker_ask(const struct place_checker *c, size_t pod, size_t node);
/* What a claim that waits is bound to when its pod comes to a node. */
struct place_binding {
	const cJSON *claim;
	const cJSON *volume; /* NULL: one is made there */
};

/* Those of the pod on that node; 0: none waits, or the volumes refuse. */
size_t place_checker_bindings(const struct place_checker *c, size_t pod, size_t node,
			      struct place_binding out[PLACE_CHECKER_CLAIMS]);
/*
 * Whether all that was placed may stand together: for each pod that is marked (NULL: all that are
 * somewhere) those filters are asked again, as if it came last, whose answer cannot turn by what
 * comes later: all but cordons, affinity and spread. False: the reason names pod, node and filter.
 */
bool place_checker_is_legal(const struct place_checker *c, const bool *marked, struct error *error);

#endif
