/* SPDX-License-Identifier: Apache-2.0 */
/* What the extender refuses beside what the kube-scheduler has checked, and how it ranks; set by options at start. */
#ifndef EVENKEEL_AGGREGATOR_API_EXTENDER_H
#define EVENKEEL_AGGREGATOR_API_EXTENDER_H

#include <stdbool.h>

#include "aggregator/policy/score.h"

struct extender_options {
	/* Hard limits of a node with the pod on it; 0: none. */
	double limit_ratio_cpu,
		limit_ratio_memory; /* sum of limits / allocatable, unlimited containers as for LimitAware */
	double use_cap_cpu,
		use_cap_memory; /* mean + z * sigma of measured use and expected pods / allocatable */
	double z; /* 2.33: one in a hundred, if use is normal */
	/* The blend of prioritize; weights of 0: the default blend. */
	double weights[SCORE_PLUGINS];
};

void extender_options_default(struct extender_options *o);

#endif
