/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/score_fixture.h"

#include <stdlib.h>

#include "aggregator/policy/score/score_load.h"
#include "shared/mem.h"

void score_fixture_scale(const struct score_query *q, enum score_plugin_id plugin,
			 const struct score_node *nodes, size_t count, struct score_scale *scale)
{
	int64_t *scores = mem_alloc((count + 1) * sizeof(*scores));

	score_columns(q, &plugin, 1, nodes, count, scale, scores);
	free(scores);
}

void score_fixture_add_pod(struct score_load *load, const struct pod_spec *pod)
{
	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++)
		pod_load_add(&load->of[r], pod, score_resource_id(r));
}
