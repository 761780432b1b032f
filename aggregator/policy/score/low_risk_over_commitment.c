/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefers nodes with few promises beyond the allocatable and a load that rarely exceeds requests. Per
 * resource, with C the allocatable, and requests and limits summed over pods (a limit is at least the
 * request):
 *
 *     risk of limits = (limit - C) / (limit - request) if limit > C, else 0      with the new pod
 *     risk of load   = 1 - P(load <= threshold), threshold = request / C         without it
 *     risk           = w * risk of limits + (1 - w) * risk of load
 *     score          = 100 * (1 - larger risk)
 *
 * P is of a beta distribution with the measured mean and deviation. If all limits together are below
 * C the load cannot exceed L = limit / C, so P is divided by P(load <= L).
 *
 * upstream multiplies the deviation by sqrt(smoothingWindowSize), 5 by default; computes the variance
 * as a difference of squares, so a steady load has risk 1; has L = 0 without pods, and then no risk of
 * load; has none for an unmeasured resource either; gives 0 to pods without requests; reads
 * percentages of the capacity as of the allocatable; and adds only the request of a container without
 * a limit.
 *
 * corrected takes the variance as it is (smoothing 1), and a step for a steady load. It divides by
 * P(load <= L) only if the mean is below L > 0. The load is a share of the machine, and capacity -
 * allocatable adds to the threshold, as daemons use it. New pods count by requests and by expected
 * use; a container without a limit may use all of C. With unknown requests the node gets 0.
 */
#include "aggregator/policy/score/risk.h"

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/plugin.h"
#include "aggregator/policy/score/score_load.h"

#define VARIANCE_SHARE_MAX 0.99 /* of the largest there can be */
#define CERTAIN		   28 /* exp(-28) = 7e-13 */

/*
 * A beta distribution is sub-Gaussian with variance 1 / (4 (a + b + 1)) (Marchal and Arbel, 2017), so
 * nothing is left this far from the mean, which most nodes are.
 */
static bool is_certain(struct beta d, double mu, double threshold)
{
	double distance = threshold - mu;

	return 2 * distance * distance * (d.a + d.b + 1) > CERTAIN;
}

double commitment_probability(enum score_variant variant, double mu, double sigma, double threshold,
			      bool *fitted, struct beta *fit)
{
	bool upstream = variant == SCORE_UPSTREAM;
	double variance = upstream ? sigma * sigma + mu * mu - mu * mu : sigma * sigma;

	*fitted = false;
	if (mu == 0 || (sigma == 0 && mu <= threshold))
		return 1;
	if (sigma == 0)
		return 0;
	if (!beta_match(mu, variance, fit))
		return !upstream && mu <= threshold ? 1 : 0;
	*fitted = true;
	if (!upstream && (!isfinite(fit->a + fit->b) || is_certain(*fit, mu, threshold)))
		return mu <= threshold ? 1 : 0;
	return beta_distribution(*fit, threshold);
}

static double share(double part, const struct commitment *c)
{
	return (part + c->reserved) / c->machine;
}

/* P, given that the load stays below all limits together. */
static double within_limits(enum score_variant variant, const struct commitment *c,
			    const struct commitment_risk *risk)
{
	double most = share(c->limit_minus_pod, c), p;

	if (!(c->limit_minus_pod < c->allocatable && c->request_minus_pod <= c->limit_minus_pod))
		return risk->within;
	if (variant == SCORE_UPSTREAM && most == 0)
		return 1;
	if (!risk->fitted)
		return risk->within;
	if (variant != SCORE_UPSTREAM &&
	    (c->limit_minus_pod <= 0 || c->mu > most || is_certain(risk->fit, c->mu, most)))
		return risk->within;
	p = beta_distribution(risk->fit, most);
	return p > 0 ? clamp(risk->within / p, 0, 1) : risk->within;
}

static double limit_risk(const struct commitment *c)
{
	return c->limit > c->allocatable ? (c->limit - c->allocatable) / (c->limit - c->request)
					 : 0;
}

/* Without the new pod. */
static void weigh_load(enum score_variant variant, int64_t smoothing, const struct commitment *c,
		       struct commitment_risk *risk)
{
	if (!c->measured || c->machine <= 0)
		return;
	risk->sigma = at_most(c->sigma * sqrt((double)smoothing),
			      sqrt(beta_variance_max(c->mu) * VARIANCE_SHARE_MAX));
	risk->threshold = clamp(share(c->request_minus_pod, c), 0, 1);
	risk->within = commitment_probability(variant, c->mu, risk->sigma, risk->threshold,
					      &risk->fitted, &risk->fit);
	risk->within = within_limits(variant, c, risk);
	risk->load = 1 - risk->within;
}

static double total_risk(double weight, const struct commitment_risk *risk)
{
	return clamp(weight * risk->limit + (1 - weight) * risk->load, 0, 1);
}

void commitment_risk(enum score_variant variant, double weight, int64_t smoothing,
		     const struct commitment *c, struct commitment_risk *risk)
{
	*risk = (struct commitment_risk){.within = 1, .limit = limit_risk(c)};
	weigh_load(variant, smoothing, c, risk);
	risk->total = total_risk(weight, risk);
}

/* --- the inputs of a node */

SCORE_ARITHMETIC void measure(const struct score_side *side, double percent_of, double pending,
			      struct commitment *c)
{
	struct resource_stats stats;

	c->measured = side->metric->known;
	if (!c->measured)
		return;
	resource_stats_init(&stats, side->metric, percent_of, c->machine, pending);
	resource_stats_mu_sigma(&stats, &c->mu, &c->sigma);
}

static void commit_upstream(const struct score_query *q, enum score_resource resource,
			    const struct score_side *side, struct commitment *c)
{
	struct node_sums sums =
		score_sums_with_pod(side->sums, q->pod, resource, side->allocatable);

	c->allocatable = c->machine = (double)side->allocatable;
	c->request = (double)sums.request;
	c->limit = (double)sums.limit;
	c->request_minus_pod = (double)sums.request_minus_pod;
	c->limit_minus_pod = (double)sums.limit_minus_pod;
	measure(side, c->allocatable, 0, c);
}

SCORE_ARITHMETIC void commit_corrected(const struct score_query *q, enum score_resource resource,
				       const struct score_side *side, struct commitment *c)
{
	const struct pod_load *sums = side->sums;
	struct pod_bound pod = score_pod_bound(q, resource);
	double request = (double)score_request(q, resource);
	double unlimited = (double)score_unlimited(sums->unlimited + sums->unknown,
						   sums->unlimited_requests, side->allocatable);
	double pod_unlimited =
		(double)score_unlimited(pod.unlimited, pod.unlimited_requests, side->allocatable);

	c->allocatable = (double)side->allocatable;
	c->machine = at_least((double)side->capacity, c->allocatable);
	c->reserved = c->machine - c->allocatable;
	c->request_minus_pod = at_most((double)sums->requests, c->allocatable);
	c->limit_minus_pod =
		at_least((double)sums->limits_running + unlimited, (double)sums->requests);
	c->request = at_most((double)sums->requests + request, c->allocatable);
	c->limit =
		c->limit_minus_pod + at_least((double)pod.limit_running + pod_unlimited, request);
	measure(side, (double)side->capacity, (double)side->pending, c);
}

/* --- the terms */

static const struct names {
	const char *label, *unit, *mean, *stddev, *allocatable, *request, *limit, *mu, *sigma,
		*threshold, *within, *limit_risk, *load_risk, *risk;
} names_of[SCORE_RESOURCES] = {
/* clang-format off */
#define NAMES(label, unit, of)                                                                    \
	{label, unit, of "Mean", of "Stddev", of "Allocatable", of "Requests", of "Limits",        \
	 of "Mu", of "Sigma", of "Threshold", of "Within", of "LimitRisk", of "LoadRisk",          \
	 of "Risk"}
	[SCORE_CPU] = NAMES("CPU", "millicores", "cpu"),
	[SCORE_MEMORY] = NAMES("memory", "bytes", "memory"),
	/* clang-format on */
};

SCORE_ARITHMETIC void write_terms(const struct names *n, const struct score_side *side,
				  const struct commitment *c, const struct commitment_risk *risk,
				  struct score_result *r)
{
	score_term(r, n->allocatable, n->unit, c->allocatable);
	score_term(r, n->request, n->unit, c->request);
	score_term(r, n->limit, n->unit, c->limit);
	score_term(r, n->limit_risk, "fraction", risk->limit);
	if (c->measured) {
		score_term(r, n->mean, "percent", side->metric->mean);
		score_term(r, n->stddev, "percent", side->metric->stddev);
		score_term(r, n->mu, "fraction", c->mu);
		score_term(r, n->sigma, "fraction", risk->sigma);
		score_term(r, n->threshold, "fraction", risk->threshold);
		score_term(r, n->within, "fraction", risk->within);
	}
	score_term(r, n->load_risk, "fraction", risk->load);
	score_term(r, n->risk, "fraction", risk->total);
}

/* Why the node gets the least score, or NULL. */
static const char *refuse(const struct score_query *q, const struct score_node *node)
{
	const struct pod_spec *p = q->pod;

	if (!node->load.requests_known)
		return "the requests of its pods are not known, which takes the Kubernetes API";
	if (q->variant != SCORE_UPSTREAM)
		return node->load.limits_known ? NULL : "the limits of its pods are not known";
	for (enum score_resource i = 0; i < SCORE_RESOURCES; i++) {
		enum resource_id id = score_resource_id(i);

		if (pod_spec_need(p, id, false, true) || pod_spec_need(p, id, true, true))
			return NULL;
	}
	return "a pod that asks for nothing";
}

/* Uses the risk of load computed beforehand, unless terms or reasons are wanted. */
SCORE_ARITHMETIC void weigh(const struct score_query *q, const struct score_node *node,
			    enum score_resource resource, enum score_detail detail,
			    const struct commitment *c, struct commitment_risk *risk)
{
	double weight = q->args->risk_limit_weights[resource];

	if (detail > SCORE_BARE || q->variant == SCORE_UPSTREAM || !node->load_risk_known) {
		commitment_risk(q->variant, weight, q->args->smoothing_window_size, c, risk);
		return;
	}
	*risk = (struct commitment_risk){.limit = limit_risk(c), .load = node->load_risk[resource]};
	risk->total = total_risk(weight, risk);
}

SCORE_ARITHMETIC void judge(const struct score_query *q, const struct score_node *node,
			    struct score_result *r)
{
	const struct score_args *args = q->args;
	const char *why = refuse(q, node);
	struct commitment c[SCORE_RESOURCES] = {{0}};
	struct commitment_risk risk[SCORE_RESOURCES];
	enum score_resource worst;

	if (why) {
		score_keep_out(why, r);
		return;
	}
	score_term(r, "smoothingWindowSize", "", (double)args->smoothing_window_size);
	for (enum score_resource i = 0; i < SCORE_RESOURCES; i++) {
		struct score_side side = score_side(node, i);

		if (q->variant == SCORE_UPSTREAM)
			commit_upstream(q, i, &side, &c[i]);
		else
			commit_corrected(q, i, &side, &c[i]);
		weigh(q, node, i, r->detail, &c[i], &risk[i]);
		write_terms(&names_of[i], &side, &c[i], &risk[i], r);
	}
	worst = risk[SCORE_CPU].total >= risk[SCORE_MEMORY].total ? SCORE_CPU : SCORE_MEMORY;
	r->raw = (1 - risk[worst].total) * 100;
	r->score = q->variant == SCORE_UPSTREAM ? round_away(r->raw) : score_round(r->raw);
	score_say(r,
		  "%s decides: limits are %.2f times the allocatable, the load exceeds %.1f %% of "
		  "the machine with a probability of %.1f %%, risk %.1f %%",
		  names_of[worst].label,
		  c[worst].allocatable > 0 ? c[worst].limit / c[worst].allocatable : NAN,
		  100 * risk[worst].threshold, 100 * risk[worst].load, 100 * risk[worst].total);
}

SCORE_PLUGIN_FUNCTIONS(low_risk_over_commitment, false)

void low_risk_over_commitment_read(const struct score_args *args, struct score_node *node)
{
	static const struct score_pod none;
	const struct score_query q = {.variant = SCORE_CORRECTED, .args = args, .sums = &none};

	node->load_risk_known = false;
	if (!score_is_ordinary(node) || !node->load.requests_known || !node->load.limits_known)
		return;
	for (enum score_resource i = 0; i < SCORE_RESOURCES; i++) {
		struct score_side side = score_side(node, i);
		struct commitment c = {0};
		struct commitment_risk risk = {.within = 1};

		commit_corrected(&q, i, &side, &c);
		weigh_load(q.variant, args->smoothing_window_size, &c, &risk);
		node->load_risk[i] = risk.load;
	}
	node->load_risk_known = true;
}
