/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the placement core is held against: the filters of the checker of plans, asked in the order
 * of the kube-scheduler, with claims that wait for their first pod besides.
 */
#pragma once

#include "aggregator/policy/place/place.h"
#include "aggregator/verify/verify_internal.h"

enum { PLACE_CHECKER_CLAIMS = 8 }; /* of a pod, at most */

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
struct place_verdict place_checker_ask(const struct verify_world *w, size_t pod, size_t node);
/* What a claim that waits is bound to when its pod comes to a node. */
struct place_binding {
	const cJSON *claim;
	const cJSON *volume; /* NULL: one is made there */
};

/* Those of the pod on that node; 0: none waits, or the volumes refuse. */
size_t place_checker_bindings(const struct verify_world *w, size_t pod, size_t node,
			      struct place_binding out[PLACE_CHECKER_CLAIMS]);
/* As the invariant of volumes, and all claims that wait get something. */
bool place_checker_volumes(const struct verify_question *q);
/*
 * Whether all that was placed may stand together: for each pod that is marked (NULL: all that are
 * somewhere) those filters are asked again, as if it came last, whose answer cannot turn by what
 * comes later: all but cordons, affinity and spread. False: the reason names pod, node and filter.
 */
bool place_checker_is_legal(const struct verify_world *w, const bool *marked, struct error *error);
