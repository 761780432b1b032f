/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/score_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
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

void score_fixture_judge(const struct score_query *q, enum score_plugin_id plugin,
			 const struct score_scale *scale, const struct score_node *node,
			 struct score_result *r)
{
	struct score_result bare;

	score_node_by(q, plugin, scale, node, SCORE_BARE, &bare);
	score_node_by(q, plugin, scale, node, SCORE_TERMS, r);
	assert_int_equal(bare.score, r->score);
	assert_true(bare.raw == r->raw || (isnan(bare.raw) && isnan(r->raw)));
	assert_true(bare.outside == r->outside && bare.unknown == r->unknown);
	assert_int_equal(bare.term_count, 0);
	assert_string_equal(bare.reason, "");
}

void score_fixture_add_pod(struct score_load *load, const struct pod_spec *pod)
{
	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++)
		pod_load_add(&load->of[r], pod, score_resource_id(r));
}
