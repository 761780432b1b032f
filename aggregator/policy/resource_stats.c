/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregator/policy/resource_stats.h"

#include "aggregator/policy/arith.h"

void resource_stats_init(struct resource_stats *s, const struct score_metric *metric,
			 double percent_of, double capacity, double request)
{
	s->capacity = capacity;
	s->request = request;
	s->used_mean = metric->mean * percent_of / 100;
	s->used_stddev = metric->stddev * percent_of / 100;
}

void resource_stats_mu_sigma(const struct resource_stats *s, double *mu, double *sigma)
{
	*mu = *sigma = 0;
	if (s->capacity <= 0)
		return;
	*mu = clamp((s->used_mean + s->request) / s->capacity, 0, 1);
	*sigma = clamp(s->used_stddev / s->capacity, 0, 1);
}
