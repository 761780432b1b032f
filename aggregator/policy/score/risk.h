/* SPDX-License-Identifier: Apache-2.0 */
/* The risk of one resource of one node, as LoadVariationRiskBalancing and LowRiskOverCommitment see it. Pure. */
#pragma once

#include <stdbool.h>

#include "aggregator/policy/score/plugin.h"

/* All in the unit of the resource: millicores, bytes. */
struct resource_stats {
	double capacity;
	double request; /* of the pod to be placed, or its expected use */
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

/* mu = (mean + request) / capacity, sigma = stddev / capacity, within 0..1; no capacity: 0. */
static inline void resource_stats_mu_sigma(const struct resource_stats *s, double *mu,
					   double *sigma)
{
	*mu = *sigma = 0;
	if (s->capacity <= 0)
		return;
	*mu = clamp((s->used_mean + s->request) / s->capacity, 0, 1);
	*sigma = clamp(s->used_stddev / s->capacity, 0, 1);
}

/* --- LoadVariationRiskBalancing, in its three variants */

struct variation_risk {
	double mu, sigma; /* fractions; sigma after root and margin */
	double risk, score; /* 0..1; 0..100 unrounded */
};

static const struct variation_rules {
	bool halved;
	bool root;
	bool percent_of_allocatable;
	bool pending;
	bool exact; /* round binary64's result as it is */
} variation_rules_of[] = {
	[SCORE_UPSTREAM] = {.halved = true,
			    .root = true,
			    .percent_of_allocatable = true,
			    .exact = true},
	[SCORE_CORRECTED] = {.root = true, .pending = true},
	[SCORE_KEP] = {.pending = true},
};

/* As Go's math.Pow: the square root for 1/2, correctly rounded. 1 is the default. */
static inline double variation_power(double x, double y)
{
	if (y == 1)
		return x;
	return y == 0.5 ? sqrt(x) : pow(x, y);
}

/* Inlined: with a call the handler of /v1/scores takes 8 % longer. */
SCORE_ARITHMETIC void variation_risk(enum score_variant variant, const struct score_args *args,
				     const struct resource_stats *stats, struct variation_risk *out)
{
	const struct variation_rules *rules = &variation_rules_of[variant];
	struct resource_stats s = *stats;

	*out = (struct variation_risk){.risk = 1};
	if (s.capacity <= 0)
		return;
	s.request = at_least(s.request, 0);
	s.used_mean = clamp(s.used_mean, 0, s.capacity);
	s.used_stddev = clamp(s.used_stddev, 0, s.capacity);
	resource_stats_mu_sigma(&s, &out->mu, &out->sigma);
	if (rules->root && args->safe_variance_sensitivity >= 0)
		out->sigma = variation_power(out->sigma, 1 / args->safe_variance_sensitivity);
	out->sigma = clamp(out->sigma * args->safe_variance_margin, 0, 1);
	out->risk = rules->halved ? (out->mu + out->sigma) / 2 : at_most(out->mu + out->sigma, 1);
	out->score = (1 - out->risk) * 100;
	if (!rules->exact)
		out->score = score_on_paper(out->score);
}

/* --- the beta distribution on 0..1 (beta.c) */

struct beta {
	double a, b; /* shapes, > 0 */
};

/* The largest variance of a distribution on 0..1 with this mean; 0 outside of 0 < mean < 1. */
double beta_variance_max(double mean);
/* The distribution of this mean and variance. False: it does not exist. */
bool beta_match(double mean, double variance, struct beta *fit);
/* P(X <= x): regularised incomplete beta, relative error < 1e-11. 0 for invalid shapes and NaN. */
double beta_distribution(struct beta d, double x);

/* --- LowRiskOverCommitment */

/* One unit throughout: millicores or bytes. */
struct commitment {
	double allocatable;
	double request, limit; /* of all pods and the new one; requests at most the allocatable */
	double request_minus_pod, limit_minus_pod;
	bool measured;
	double mu, sigma; /* load as fractions of `machine` */
	double machine, reserved; /* upstream: the allocatable and 0 */
};

struct commitment_risk {
	double limit, load, total; /* 0..1 */
	double sigma; /* after smoothing, at most what the mean allows */
	double threshold; /* the share of the machine that is promised */
	double within; /* probability that the load stays within it */
	bool fitted; /* a beta distribution was */
	struct beta fit;
};

void commitment_risk(enum score_variant variant, double weight, int64_t smoothing,
		     const struct commitment *c, struct commitment_risk *risk);
/*
 * Works out beforehand what of a node's score the pod has no part in, for these arguments
 * (score_node.load_risk), where it is known. Holds while of a fresh node only the age changes.
 */
void low_risk_over_commitment_read(const struct score_args *args, struct score_node *node);
/* P(load <= threshold) of a load of this mean and deviation. *fitted: *fit is set. */
double commitment_probability(enum score_variant variant, double mu, double sigma, double threshold,
			      bool *fitted, struct beta *fit);
