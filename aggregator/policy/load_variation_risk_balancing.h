/* SPDX-License-Identifier: Apache-2.0 */
/* The risk of one resource of one node, in the three variants of LoadVariationRiskBalancing. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_LOAD_VARIATION_RISK_BALANCING_H
#define EVENKEEL_AGGREGATOR_POLICY_LOAD_VARIATION_RISK_BALANCING_H

#include "aggregator/policy/resource_stats.h"
#include "aggregator/policy/score.h"

struct variation_risk {
	double mu, sigma; /* fractions; sigma after root and margin */
	double risk, score; /* 0..1; 0..100 unrounded */
};

void variation_risk(enum score_variant variant, const struct score_args *args,
		    const struct resource_stats *stats, struct variation_risk *risk);

#endif
