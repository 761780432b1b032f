/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kube-scheduler's filters over again, slowly and from the definitions: what the placement core is held against.
 *
 * It works on the JSON of objects as an API server gives them, keeps no counters and no index, and looks at every pod and node for every
 * answer. It shares no code with the placement core, nor with the records that is made of.
 */
#ifndef EVENKEEL_TESTS_PLACE_CHECKER_H
#define EVENKEEL_TESTS_PLACE_CHECKER_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "aggregator/policy/place/place.h"
#include "shared/reason.h"

enum { PLACE_CHECKER_NOWHERE = -1 };

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
	 * The kube-scheduler looks for a volume or storage that is not there yet. Who does not may refuse by PLACE_VOLUMES or PLACE_UNKNOWN
	 * where it fits, and by the other of the two where it does not.
	 */
	PLACE_CAUTIOUS,
	/* Something in the pod cannot be judged: any filter may be the one that refuses, but one must. */
	PLACE_UNJUDGED,
};

struct place_verdict {
	enum place_filter filter; /* the first that refuses */
	enum place_certainty certainty;
	struct reason why; /* "" where it fits */
};

/* Whether somebody else's verdict agrees with this one. */
bool place_verdict_allows(const struct place_verdict *v, enum place_filter other);

/* May this pod, which is nowhere, go to this node? */
struct place_verdict place_checker_ask(const struct place_checker *c, size_t pod, size_t node);
/*
 * Whether all that was placed may stand together: for each pod that is marked (NULL: all that are somewhere) those filters are asked again, as
 * if it came last, whose answer cannot turn by what comes later: all but cordons, affinity and spread. False: the reason names pod,
 * node and filter.
 */
bool place_checker_is_legal(const struct place_checker *c, const bool *marked, struct reason *why);

#endif
