/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beta distribution on 0..1: fitted to a mean and a deviation, and its distribution function.
 * Pure.
 */
#ifndef EVENKEEL_AGGREGATOR_POLICY_SCORE_BETA_H
#define EVENKEEL_AGGREGATOR_POLICY_SCORE_BETA_H

#include <stdbool.h>

struct beta {
	double a, b; /* shapes, > 0 */
};

/*
 * The largest variance a distribution on 0..1 with this mean can have; 0 outside of 0 < mean < 1.
 */
double beta_variance_max(double mean);
/*
 * The distribution of this mean and variance. False, and nothing is written, where there is none.
 */
bool beta_match(double mean, double variance, struct beta *fit);
/*
 * P(X <= x), the regularised incomplete beta function: relative error below 1e-11. 0 for shapes
 * that are no distribution and for NaN.
 */
double beta_distribution(struct beta d, double x);

#endif
