/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefers nodes whose load plus its variation stays low, so that all nodes approach the line mu +
 * sigma = c (KEP-61). Per resource, as fractions of the node:
 *
 *     mu = (mean + request) / C        sigma = margin * (stddev / C)^(1 / sensitivity), each within 0..1
 *
 * corrected takes the pod's expected use (expected_use.h; of CPU the high estimate) as its request.
 *
 *     upstream   risk = (mu + sigma) / 2          never below a score of 50 on a full, steady node
 *     kep        risk = min(1, mu + margin * stddev / C)                no sensitivity in the KEP
 *     corrected  risk = min(1, mu + sigma)
 *
 * The score is 100 * (1 - risk) of the worst resource.
 *
 * upstream reads percentages of capacity as percentages of the allocatable, leaves an unmeasured
 * resource out, does not count new pods, leaves sigma < 1 out at sensitivity 0, and sums
 * containers by Trimaran's helper. kep and corrected divide by the allocatable, count pending pods,
 * and never score a node with an unknown resource (score.c).
 */
#include "aggregator/policy/score/risk.h"

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/plugin.h"

static const struct rules {
	bool halved;
	bool root;
	bool percent_of_allocatable;
	bool pending;
	bool exact; /* round binary64's result as it is */
} rules_of[] = {
	[SCORE_UPSTREAM] = {.halved = true,
			    .root = true,
			    .percent_of_allocatable = true,
			    .exact = true},
	[SCORE_CORRECTED] = {.root = true, .pending = true},
	[SCORE_KEP] = {.pending = true},
};

/* As Go's math.Pow: the square root for 1/2, correctly rounded. 1 is the default. */
static double power(double x, double y)
{
	if (y == 1)
		return x;
	return y == 0.5 ? sqrt(x) : pow(x, y);
}

void variation_risk(enum score_variant variant, const struct score_args *args,
		    const struct resource_stats *stats, struct variation_risk *out)
{
	const struct rules *rules = &rules_of[variant];
	struct resource_stats s = *stats;

	*out = (struct variation_risk){.risk = 1};
	if (s.capacity <= 0)
		return;
	s.request = at_least(s.request, 0);
	s.used_mean = clamp(s.used_mean, 0, s.capacity);
	s.used_stddev = clamp(s.used_stddev, 0, s.capacity);
	resource_stats_mu_sigma(&s, &out->mu, &out->sigma);
	if (rules->root && args->safe_variance_sensitivity >= 0)
		out->sigma = power(out->sigma, 1 / args->safe_variance_sensitivity);
	out->sigma = clamp(out->sigma * args->safe_variance_margin, 0, 1);
	out->risk = rules->halved ? (out->mu + out->sigma) / 2 : at_most(out->mu + out->sigma, 1);
	out->score = (1 - out->risk) * 100;
	if (!rules->exact)
		out->score = score_on_paper(out->score);
}

/* Names of the terms of a resource, in the order of the terms. */
static const struct names {
	const char *label, *unit, *mean, *stddev, *capacity, *used, *request, *pending, *mu, *sigma,
		*risk, *score;
} names_of[SCORE_RESOURCES] = {
/* clang-format off */
#define NAMES(label, unit, of, behind)                                                            \
	{label, unit, of "Mean", of "Stddev", of "Allocatable", of "Used", "pod" behind,           \
	 "pending" behind, of "Mu", of "Sigma", of "Risk", of "Score"}
	[SCORE_CPU] = NAMES("CPU", "millicores", "cpu", "Cpu"),
	[SCORE_MEMORY] = NAMES("memory", "bytes", "memory", "Memory"),
	/* clang-format on */
};

SCORE_ARITHMETIC void weigh(enum score_variant variant, const struct score_args *args,
			    const struct names *names, const struct score_side *side, int64_t pod,
			    struct score_result *r, struct variation_risk *risk)
{
	const struct rules *rules = &rules_of[variant];
	double request = (double)pod + (rules->pending ? (double)side->pending : 0);
	struct resource_stats stats;

	resource_stats_init(&stats, side->metric,
			    (double)(rules->percent_of_allocatable ? side->allocatable
								   : side->capacity),
			    (double)side->allocatable, request);
	variation_risk(variant, args, &stats, risk);
	score_term(r, names->mean, "percent", side->metric->mean);
	score_term(r, names->stddev, "percent", side->metric->stddev);
	score_term(r, names->capacity, names->unit, stats.capacity);
	score_term(r, names->used, names->unit, stats.used_mean);
	score_term(r, names->request, names->unit, (double)pod);
	if (rules->pending)
		score_term(r, names->pending, names->unit, (double)side->pending);
	score_term(r, names->mu, "fraction", risk->mu);
	score_term(r, names->sigma, "fraction", risk->sigma);
	score_term(r, names->risk, "fraction", risk->risk);
	score_term(r, names->score, "", risk->score);
}

SCORE_ARITHMETIC void judge(const struct score_query *q, const struct score_node *node,
			    struct score_result *r)
{
	const enum score_variant variant = q->variant;
	const struct score_args *args = q->args;
	const struct expected_use expected = score_expected(q);
	struct variation_risk risk[SCORE_RESOURCES];
	enum score_resource worst = SCORE_RESOURCES;

	score_term(r, "safeVarianceMargin", "", args->safe_variance_margin);
	if (rules_of[variant].root)
		score_term(r, "safeVarianceSensitivity", "", args->safe_variance_sensitivity);
	for (enum score_resource i = 0; i < SCORE_RESOURCES; i++) {
		struct score_side side = score_side(node, i);
		int64_t pod = score_request(q, i);

		if (!side.metric->known)
			continue;
		if (variant == SCORE_CORRECTED) {
			pod = i == SCORE_CPU ? expected.cpu_high_milli : expected.mem_bytes;
			if (i == SCORE_CPU)
				side.pending = node->pending_high_cpu_milli;
		}
		weigh(variant, args, &names_of[i], &side, pod, r, &risk[i]);
		if (worst == SCORE_RESOURCES || risk[i].score < risk[worst].score)
			worst = i;
	}
	if (worst == SCORE_RESOURCES)
		return;
	r->score = round_away(risk[worst].score);
	score_say(r, "%s decides: mean with the pod %.1f %%, variation %.1f %%, risk %.1f %%",
		  names_of[worst].label, 100 * risk[worst].mu, 100 * risk[worst].sigma,
		  100 * risk[worst].risk);
}

SCORE_PLUGIN_FUNCTIONS(load_variation_risk_balancing, false)
