/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of drains in JSON. drain.c writes it, and its top has the shapes. */
#pragma once

#include <stdbool.h>

#include "aggregator/policy/drain/drain.h"
#include "shared/jsonw.h"

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
