/* SPDX-License-Identifier: Apache-2.0 */
/* One resource of one node as the risk plugins see it. Pure. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_RESOURCE_STATS_H
#define EVENKEEL_AGGREGATOR_POLICY_RESOURCE_STATS_H

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score.h"

/* All in the unit of the resource: millicores, bytes. */
struct resource_stats {
	double capacity;
	double request; /* of the pod to be placed */
	double used_mean, used_stddev;
};

/*
 * percent_of: what the metric is a percentage of; upstream takes the allocatable, as for capacity.
 */
static inline void resource_stats_init(struct resource_stats *s, const struct score_metric *metric,
				       double percent_of, double capacity, double request)
{
	s->capacity = capacity;
	s->request = request;
	s->used_mean = metric->mean * percent_of / 100;
	s->used_stddev = metric->stddev * percent_of / 100;
}

/*
 * mu = (mean + request) / capacity and sigma = stddev / capacity, each within 0..1; both 0 without
 * a capacity.
 */
static inline void resource_stats_mu_sigma(const struct resource_stats *s, double *mu,
					   double *sigma)
{
	*mu = *sigma = 0;
	if (s->capacity <= 0)
		return;
	*mu = clamp((s->used_mean + s->request) / s->capacity, 0, 1);
	*sigma = clamp(s->used_stddev / s->capacity, 0, 1);
}

#endif
