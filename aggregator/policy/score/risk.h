/* SPDX-License-Identifier: Apache-2.0 */
/* The risk of one resource of one node, as LoadVariationRiskBalancing and LowRiskOverCommitment see it. Pure. */
#pragma once

#include <stdbool.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/score.h"

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

void variation_risk(enum score_variant variant, const struct score_args *args,
		    const struct resource_stats *stats, struct variation_risk *risk);

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
