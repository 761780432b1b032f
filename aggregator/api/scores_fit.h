/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the pod that is scored fits, told beside its scores: at the top of the ScoreList "fits"
 * and "refused" as in a FitList, of all nodes of the cluster, and per item "fits", and where it is
 * false "filter" and "fitReason". Only where explain or fits is asked for and Kubernetes objects
 * are known.
 */
#ifndef EVENKEEL_AGGREGATOR_API_SCORES_FIT_H
#define EVENKEEL_AGGREGATOR_API_SCORES_FIT_H

#include <cjson/cJSON.h>

#include "aggregator/api/place_pool.h"
#include "aggregator/state/ledger.h"
#include "shared/jsonw.h"

struct scores_fit;
/*
 * NULL: nothing is to be told, as nothing is known of nodes and pods. The pod is that of the
 * request, NULL: one that asks for nothing. A pod that scores can be told of and fitness cannot is
 * refused everywhere, by Unknown.
 */
struct scores_fit *scores_fit_open(struct place_pool *pool, struct view *v,
				   const struct ledger_copy *ledger, const cJSON *pod,
				   int64_t now_ns);
void scores_fit_close(
	struct scores_fit *f); /* NULL is allowed, here and below: nothing is written */
void scores_fit_write_counts(const struct scores_fit *f, struct jsonw *w);
void scores_fit_write_node(const struct scores_fit *f, struct jsonw *w, const char *node);

#endif
