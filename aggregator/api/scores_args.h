/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the score plugins as JSON gives them, by upstream's names. */
#ifndef EVENKEEL_AGGREGATOR_API_SCORES_ARGS_H
#define EVENKEEL_AGGREGATOR_API_SCORES_ARGS_H

#include <cjson/cJSON.h>

#include "aggregator/policy/score.h"

enum { SCORES_FIELD_MAX = 256 };

struct scores_args {
	struct score_args values; /* names point into the JSON */
	struct power_model *models; /* owned; names point into the JSON */
};

/*
 * Reads {ARGUMENT: VALUE, ..} of one plugin and checks the ranges:
 *
 *   TargetLoadPacking           targetUtilization, defaultRequestsMultiplier, defaultRequests {cpu}; useLimits is ours
 *                               and not for upstream
 *   LoadVariationRiskBalancing  safeVarianceMargin, safeVarianceSensitivity
 *   LowRiskOverCommitment       smoothingWindowSize, riskLimitWeights {cpu, memory}
 *   Peaks                       nodePowerModel {NODE: {k0, k1, k2}}, also NodePowerModel as upstream spells it
 *   NodeResourcesAllocatable    resources [{name: cpu|memory, weight}], mode Least|Most
 *   LimitAware                  resources [{name: cpu|memory|ephemeral-storage|hugepages-SIZE|DOMAIN/NAME, weight}];
 *                               ours and not for upstream: unlimited allocatable or {cpu, memory,
 *                               ephemeral-storage}: QUANTITY, init count|ignore, normalization MinMax|Quantiles
 *
 * Trimaran's watcherAddress and metricProvider {type, address, token, insecureSkipVerify} are read
 * for upstream only, and have no effect: measurements come from the agents.
 *
 * 0, or -EINVAL: field is the path below the plugin ("resources[0].weight", "" the object itself).
 */
int scores_args_parse(struct scores_args *args, enum score_plugin_id plugin,
		      enum score_variant variant, const cJSON *object, char field[SCORES_FIELD_MAX],
		      struct reason *reason);
void scores_args_fini(struct scores_args *args);

#endif
