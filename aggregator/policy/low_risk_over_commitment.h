/* SPDX-License-Identifier: Apache-2.0 */
/* The risk of one resource of one node in LowRiskOverCommitment. Pure. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_LOW_RISK_OVER_COMMITMENT_H
#define EVENKEEL_AGGREGATOR_POLICY_LOW_RISK_OVER_COMMITMENT_H

#include "aggregator/policy/beta.h"
#include "aggregator/policy/score.h"

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
 * (score_node.load_risk), where it is known. Holds as long as nothing of the node changes but its
 * age while it is fresh.
 */
void low_risk_over_commitment_read(const struct score_args *args, struct score_node *node);
/*
 * P(load <= threshold) of a load of this mean and deviation. *fitted: by a distribution, which is
 * in *fit.
 */
double commitment_probability(enum score_variant variant, double mu, double sigma, double threshold,
			      bool *fitted, struct beta *fit);

#endif
