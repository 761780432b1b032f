/* SPDX-License-Identifier: Apache-2.0 */
/* Score plugins one at a time, on nodes whose pods are given one by one. */
#pragma once

#include "aggregator/policy/score/score.h"

/* First pass of score_columns(), for score_node_by(). */
void score_fixture_scale(const struct score_query *q, enum score_plugin_id plugin,
			 const struct score_node *nodes, size_t count, struct score_scale *scale);
/* score_node_by() with terms, after checking that a score without any has the same numbers. */
void score_fixture_judge(const struct score_query *q, enum score_plugin_id plugin,
			 const struct score_scale *scale, const struct score_node *node,
			 struct score_result *r);
/* One more pod on the node; both known flags are the caller's to set. */
void score_fixture_add_pod(struct score_load *load, const struct pod_spec *pod);
