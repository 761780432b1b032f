/* SPDX-License-Identifier: Apache-2.0 */
/* What a score plugin is to score.c, and what it tells its result with. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_PLUGIN_H
#define EVENKEEL_AGGREGATOR_POLICY_PLUGIN_H

#include <assert.h>

#include "aggregator/policy/score.h"
#include "aggregator/policy/sentence.h"

/* result is zeroed when it is called. */
typedef void score_plugin(enum score_variant variant, const struct score_args *args,
			  const struct pod_spec *pod, const struct score_node *node,
			  struct score_result *result);

score_plugin target_load_packing;
score_plugin load_variation_risk_balancing;

static inline void score_term(struct score_result *r, const char *name, const char *unit,
			      double value)
{
	assert(r->term_count < SCORE_TERMS_MAX);
	r->terms[r->term_count++] = (struct score_term){name, unit, value};
}

static inline struct sentence score_reason(struct score_result *r)
{
	struct sentence s;

	sentence_start(&s, r->reason, sizeof(r->reason));
	return s;
}

#endif
