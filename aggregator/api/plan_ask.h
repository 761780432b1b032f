/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan that an answer is made from: the planner's newest, or one made at once where there is no
 * planner.
 */
#ifndef EVENKEEL_AGGREGATOR_API_PLAN_ASK_H
#define EVENKEEL_AGGREGATOR_API_PLAN_ASK_H

#include "aggregator/api/api.h"
#include "aggregator/planner/plan.h"

/*
 * The caller drops it; NULL: *rs says why there is none (503: nodes and pods are not known, or
 * nobody planned yet).
 */
struct plan_result *plan_ask(const struct api_context *ctx, struct api_response *rs);
/* Why the plan may not be true any more: it is old, or the cluster's objects are; "" it is not. */
void plan_ask_stale(const struct plan_result *r, int64_t now_ns, struct error *error);

#endif
