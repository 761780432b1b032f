/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pod of a request asked about in a placement core of the pool: the one way for /v1/fit and for
 * scores that are explained.
 */
#ifndef EVENKEEL_AGGREGATOR_API_FIT_ASK_H
#define EVENKEEL_AGGREGATOR_API_FIT_ASK_H

#include <cjson/cJSON.h>

#include "aggregator/api/place_pool.h"
#include "aggregator/model/object.h"
#include "aggregator/state/ledger.h"
#include "shared/jsonw.h"

/*
 * The pod as one that is pending: what a manifest may leave out is filled in, what a pod has become
 * is forgotten; the tree is changed that way. One without a name gets one that no pod can have. 0
 * and a record for the caller to drop, or -EINVAL: field ("pod.spec.containers") is what is wrong,
 * or what nobody here can judge, and reason says why.
 */
enum { FIT_FIELD_MAX = OBJECT_FIELD_MAX + 8 };
int fit_pod_read(cJSON *pod, struct kube_pod **out, char field[FIT_FIELD_MAX],
		 struct reason *reason);

/*
 * Whether nodes and pods of the cluster are known; else no answer would be true, and the reason
 * says what is missing.
 */
bool fit_knows_cluster(const struct view *v, struct reason *reason);

struct fit_ask {
	struct place_pool *pool; /* borrowed; NULL: none */
	struct place *place; /* taken */
	place_mark mark; /* before what is only for this question */
	place_pod pod;
};

/*
 * The pod is nowhere, and what the cluster knows under its uid, or under its name where it has no
 * uid, is taken away: it is not in its own way. What the ledger (NULL: none; taken before the view)
 * has charged to nodes is there, but for what it has of that pod.
 */
void fit_ask_open(struct fit_ask *a, struct place_pool *pool, struct view *v,
		  const struct ledger_copy *ledger, const struct kube_pod *pod, int64_t now_ns);
void fit_ask_close(struct fit_ask *a);
/* "fits": how many of all nodes; "refused": {FILTER: how many}. */
void fit_ask_write_counts(const struct fit_ask *a, struct jsonw *w);

#endif
