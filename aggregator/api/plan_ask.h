/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of an answer: the planner's newest, or without a planner one that is made at once. */
#pragma once

#include "aggregator/api/api.h"
#include "aggregator/planner/plan.h"

/* The caller drops it; NULL: *rs says why (503: nodes and pods unknown, or no plan yet). */
struct plan_result *plan_ask(const struct api_context *ctx, struct api_response *rs);
/* Why the plan may be stale: it is old, or the cluster's objects are; "": it is not. */
void plan_ask_stale(const struct plan_result *r, int64_t now_ns, struct error *error);
