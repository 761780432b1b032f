/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the extender refuses beside what the kube-scheduler has checked, and how it ranks; set by
 * options at start.
 */
#ifndef EVENKEEL_AGGREGATOR_API_EXTENDER_H
#define EVENKEEL_AGGREGATOR_API_EXTENDER_H

#include "aggregator/policy/node_limits.h"
#include "aggregator/policy/score.h"
#include "shared/reason.h"

struct score_mix;

struct extender_options {
	struct node_limits limits;
	/* The blend of prioritize, by plugin; weights of 0: not in it. All 0: the default blend. */
	double weights[SCORE_PLUGINS];
	/* Defaults of questions: see struct score_args. */
	int64_t default_pod_cpu_milli;
	bool unlimited_is_allocatable;
	double oom_cost;
};

/* No limits, the default blend. */
void extender_options_default(struct extender_options *o);
/*
 * "TargetLoadPacking=3,LimitAware=1", or "" for the default blend. -EINVAL with the reason, and *o
 * is as it was.
 */
int extender_options_parse_blend(struct extender_options *o, const char *text,
				 struct reason *reason);
/* The arguments of a question that states none; of another variant, or without options, its own. */
void extender_options_args(const struct extender_options *o, enum score_variant variant,
			   struct score_args *args);
/*
 * How nodes are ranked, by arguments that extender_options_args() gave, where a question does not
 * say: in the corrected variant by the weights of
 * the options (NULL: none), else by the default blend (score_plugin_weight()).
 */
void extender_options_mix(const struct extender_options *o, enum score_variant variant,
			  struct score_mix *mix, struct score_args *args);

#endif
