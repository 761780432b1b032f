/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the score plugins and of their numeric arguments. Ids, functions, names, columns,
 * completions, help, defaults, bounds and parsing follow from them.
 */
#pragma once

/*
 * X(id, name, heading of its column, functions (plugin.h), how it normalises, measured use that it
 * needs, weight in the default blend, the same of variant upstream, whether variant kep exists)
 */
#define SCORE_PLUGIN_ROWS(X)                                                                       \
	X(TARGET_LOAD_PACKING, "TargetLoadPacking", "TLP", target_load_packing, NULL, LOAD_CPU, 0, \
	  1, false)                                                                                \
	X(LOAD_VARIATION_RISK_BALANCING, "LoadVariationRiskBalancing", "LVRB",                     \
	  load_variation_risk_balancing, NULL, LOAD_ANY, 1, 1, true)                               \
	X(LOW_RISK_OVER_COMMITMENT, "LowRiskOverCommitment", "LROC", low_risk_over_commitment,     \
	  NULL, LOAD_BOTH, 0, 0, false)                                                            \
	X(PEAKS, "Peaks", "PEAKS", peaks, peaks_normalize, LOAD_CPU, 0, 0, false)                  \
	X(ALLOCATABLE, "NodeResourcesAllocatable", "ALLOC", node_resources_allocatable,            \
	  node_resources_allocatable_normalize, LOAD_NONE, 0, 0, false)                            \
	X(LIMIT_AWARE, "LimitAware", "LIMITS", limit_aware, limit_aware_normalize, LOAD_NONE,      \
	  0.01, 1, false)

/*
 * X(plugin's id, upstream's name, member of struct score_args, type of the member, default, default
 * of variant upstream, whether 0 is allowed, greatest value, values that upstream replaces by the
 * default)
 */
#define SCORE_NUMBER_ROWS(X)                                                                       \
	X(TARGET_LOAD_PACKING, "targetUtilization", target_utilization, PERCENT, 40, 40, false,    \
	  100, TO_ZERO)                                                                            \
	X(TARGET_LOAD_PACKING, "defaultRequestsMultiplier", default_requests_multiplier, TEXT, 1,  \
	  1.5, false, 1000, NONE)                                                                  \
	X(TARGET_LOAD_PACKING, "defaultRequests.cpu", default_requests_cpu_milli, WHOLE, 100,      \
	  1000, true, 1e12, NONE)                                                                  \
	X(LOAD_VARIATION_RISK_BALANCING, "safeVarianceMargin", safe_variance_margin, REAL, 1, 1,   \
	  true, 1000, NEGATIVE)                                                                    \
	X(LOAD_VARIATION_RISK_BALANCING, "safeVarianceSensitivity", safe_variance_sensitivity,     \
	  REAL, 1, 1, false, 1000, NEGATIVE)                                                       \
	X(LOW_RISK_OVER_COMMITMENT, "smoothingWindowSize", smoothing_window_size, WHOLE, 1, 5,     \
	  false, 1000, TO_ZERO)                                                                    \
	X(LOW_RISK_OVER_COMMITMENT, "riskLimitWeights.cpu", risk_limit_weights[SCORE_CPU], REAL,   \
	  0.5, 0.5, true, 1, OUTSIDE)                                                              \
	X(LOW_RISK_OVER_COMMITMENT, "riskLimitWeights.memory", risk_limit_weights[SCORE_MEMORY],   \
	  REAL, 0.5, 0.5, true, 1, OUTSIDE)
