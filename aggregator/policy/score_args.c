/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of the plugins. Upstream's defaulting replaces a few values silently and lets
 * everything else through: a target above 100 or a multiplier that is no number are found out by
 * the scores. Here an argument that cannot mean anything is refused by its name, so that nobody
 * wonders whether his setting took effect.
 *
 * Weights of resources are refused in both, by their place in the list, and so where the list is
 * read.
 */
#include <errno.h>
#include <math.h>

#include "aggregator/policy/score.h"

enum { SMOOTHING_UPSTREAM = 5 };

void score_args_default(struct score_args *args, enum score_variant variant)
{
	bool upstream = variant == SCORE_UPSTREAM;

	*args = (struct score_args){
		.target_utilization = 40,
		.default_requests_multiplier = upstream ? 1.5 : 1,
		.default_requests_cpu_milli = upstream ? 1000 : 100,
		.guess_cpu_milli = 500,
		.safe_variance_margin = 1,
		.safe_variance_sensitivity = 1,
		.smoothing_window_size = upstream ? SMOOTHING_UPSTREAM : 1,
		.risk_limit_weights = {0.5, 0.5},
		.allocatable_weights = {1 << 20, 1},
		.limit_weights = {1, 1},
		.oom_cost = 0.1,
	};
}

void score_args_unlimited_allocatable(struct score_args *args)
{
	args->unlimited[SCORE_CPU] = args->unlimited[SCORE_MEMORY] = args->unlimited_storage = -1;
}

static void default_upstream(struct score_args *args, enum score_plugin_id plugin)
{
	struct score_args defaults;

	score_args_default(&defaults, SCORE_UPSTREAM);
	if (plugin == PLUGIN_TARGET_LOAD_PACKING && args->target_utilization <= 0)
		args->target_utilization = defaults.target_utilization;
	if (plugin == PLUGIN_LOAD_VARIATION_RISK_BALANCING) {
		if (args->safe_variance_margin < 0)
			args->safe_variance_margin = defaults.safe_variance_margin;
		if (args->safe_variance_sensitivity < 0)
			args->safe_variance_sensitivity = defaults.safe_variance_sensitivity;
	}
	if (plugin != PLUGIN_LOW_RISK_OVER_COMMITMENT)
		return;
	if (args->smoothing_window_size <= 0)
		args->smoothing_window_size = defaults.smoothing_window_size;
	for (int r = 0; r < SCORE_RESOURCES; r++)
		if (!(args->risk_limit_weights[r] >= 0 && args->risk_limit_weights[r] <= 1))
			args->risk_limit_weights[r] = defaults.risk_limit_weights[r];
}

struct range {
	const char *field;
	double value, most;
	enum score_plugin_id plugin;
	bool above_zero; /* 0 itself is refused */
};

int score_args_check(struct score_args *args, enum score_plugin_id plugin,
		     enum score_variant variant, const char **field, struct reason *reason)
{
	const enum score_plugin_id tlp = PLUGIN_TARGET_LOAD_PACKING;
	const enum score_plugin_id lvrb = PLUGIN_LOAD_VARIATION_RISK_BALANCING;
	const enum score_plugin_id lroc = PLUGIN_LOW_RISK_OVER_COMMITMENT;
	const struct range ranges[] = {
		{"targetUtilization", args->target_utilization, 100, tlp, true},
		{"defaultRequestsMultiplier", args->default_requests_multiplier, 1000, tlp, true},
		{"defaultRequests.cpu", (double)args->default_requests_cpu_milli, 1e12, tlp, false},
		{"safeVarianceMargin", args->safe_variance_margin, 1000, lvrb, false},
		{"safeVarianceSensitivity", args->safe_variance_sensitivity, 1000, lvrb, true},
		{"smoothingWindowSize", (double)args->smoothing_window_size, 1000, lroc, true},
		{"riskLimitWeights.cpu", args->risk_limit_weights[SCORE_CPU], 1, lroc, false},
		{"riskLimitWeights.memory", args->risk_limit_weights[SCORE_MEMORY], 1, lroc, false},
	};

	if (variant == SCORE_UPSTREAM) {
		default_upstream(args, plugin);
		return 0;
	}
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *r = &ranges[i];

		if (r->plugin != plugin || (r->value > 0 && r->value <= r->most) ||
		    (r->value == 0 && !r->above_zero))
			continue;
		*field = r->field;
		reason_set(reason, "%g is not allowed: %s 0 and at most %g", r->value,
			   r->above_zero ? "above" : "at least", r->most);
		return -EINVAL;
	}
	return 0;
}
