/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in answers. */
#pragma once

#include <stdbool.h>

#include "aggregator/api/api.h"
#include "aggregator/planner/plan.h"
#include "aggregator/policy/drain/drain.h"
#include "shared/jsonw.h"

/*
 * The planner's newest, or without a planner one that is made at once. The caller drops it; NULL:
 * *rs says why (503: nodes and pods unknown, or no plan yet).
 */
struct plan_result *plan_ask(const struct api_context *ctx, struct api_response *rs);
/*
 * Writes what tells plans apart, and whether one may be acted on:
 *
 *   [,"stale":S][,"aggregatorRun":ID],"id":ID[,"peer":{"plan","seconds"[,"id"]}]
 *
 *   stale          why the plan may not be true any more: it is old, or the cluster's objects are
 *   aggregatorRun  of the aggregator that planned: times of equal runs are of one clock
 *   id             of the wave: equal nodes and moves have equal ids
 *   peer           the other aggregator (--peer) and its newest plan. plan: same, that is of the
 *                  same id; other, for so many seconds; or unknown: no plan was told for so long
 *
 * Returns a hash of the plan and of all that.
 */
uint64_t plan_ask_write_head(const struct plan_result *r, struct plan_peer *peer, int64_t now_ns,
			     struct jsonw *w);

/* --- drain.c: a plan of drains; its top has the shapes */

/* The version of the policy API that evictions are sent to: that of its budgets. */
const char *drain_json_eviction_api(const struct view *v);

/* Each writes members of the object that is open. */

/* "planned" to "owed": what holds for all nodes. */
void drain_json_write_head(struct jsonw *w, const struct drain_plan *p);
/* "wave":{..}, or null where nothing goes. */
void drain_json_write_wave(struct jsonw *w, const struct drain_plan *p);
/* A node: verdict, numbers and reasons; moves: also where its pods went in the simulation. */
void drain_json_write_node(struct jsonw *w, const struct drain_plan *p,
			   const struct drain_plan_node *n, bool moves);
