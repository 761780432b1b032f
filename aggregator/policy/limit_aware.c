/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefers nodes whose limits are least over-subscribed, so that limits spread over the cluster
 * (KEP-217, which was never implemented by others):
 *
 *     raw = weighted mean over CPU and memory of 100 * (allocatable - limits on the node - pod's limit) / allocatable
 *     score = 100 * (raw - lowest) / (highest - lowest) over the nodes asked about
 *
 * upstream is the KEP to the letter: scores are truncated; all get 0 where all are equal (the KEP
 * divides by zero, the plugin it refers to does this); a container without a limit counts as
 * nothing; init containers and overhead count for the new pod but not for those on the node. Where
 * a resource has no allocatable, which the KEP divides by, the node gets 0 and stays out of the
 * normalisation.
 *
 * What the KEP leaves open, and what corrected does:
 *
 *   equal nodes            100: none is worse than another, and all are better than one nothing is known of
 *   no allocatable         the node gets 0 and stays out (score.c)
 *   sum or mean            mean, so that raw is a percentage whatever the weights
 *   the pod itself         counts, as in the KEP's formula (its prose leaves it out)
 *   old and new pods       counted alike: containers, sidecars, overhead, or what is stated for the whole pod; other init
 *                          containers are gone when neighbours compete
 *   container without      counts as args->unlimited, by default what it is expected to use, but no less than it
 *   a limit                requests: as nothing, the most dangerous pod would be the most welcome one; as the whole
 *                          node, nodes would be ranked by their number of such containers alone
 *   just placed pods       count as any other, and with their requests as long as the API does not tell of them
 *   little differences     highest - lowest is at least 50, half the allocatable: else one percent would be all
 *   min-max                with args->quantiles from the 5 % to the 95 % quantile, so that one node at six times its
 *                          allocatable does not make all others equal
 *   truncation             none before the end; then to the nearest, halves away from zero
 *   terminated pods        not on the node: the kernel, and the model of the API, count what runs
 *   cost                   sums are kept per node (score_load.h, page_bounds.h), a score does not look at pods
 *   other resources        CPU and memory only; naming another is an error
 *   a filter               none: an over-subscribed node is a worse one, not a forbidden one
 *   a limit that could     counts as all of the node's allocatable
 *   not be read
 *   limits unknown         (nothing is known of the pods) the node gets 0 and stays out
 */
#include "aggregator/policy/arith.h"
#include "aggregator/policy/plugin.h"
#include "aggregator/policy/score_load.h"

#define RANGE_LEAST 50.0 /* percent of the allocatable */

/* What the terms of one resource are called. */
static const struct names {
	const char *label, *unit, *allocatable, *limits, *unlimited, *unlimited_as, *unknown, *pod,
		*before, *after, *raw;
} names_of[SCORE_RESOURCES] = {
	[SCORE_CPU] = {"CPU", "millicores", "cpuAllocatable", "cpuLimits", "cpuUnlimited",
		       "cpuUnlimitedAs", "cpuLimitUnknown", "podCpuLimit", "cpuLimitRatioBefore",
		       "cpuLimitRatio", "cpuRaw"},
	[SCORE_MEMORY] = {"memory", "bytes", "memoryAllocatable", "memoryLimits", "memoryUnlimited",
			  "memoryUnlimitedAs", "memoryLimitUnknown", "podMemoryLimit",
			  "memoryLimitRatioBefore", "memoryLimitRatio", "memoryRaw"},
};

struct limits {
	double allocatable, on_node, pod;
	double after; /* ratio to the allocatable, with the pod */
};

static void add_upstream(const struct score_query *q, enum score_resource resource,
			 const struct score_side *side, struct limits *l)
{
	l->on_node = (double)side->sums->limits_containers;
	l->pod = (double)score_pod_need(q->pod, resource, true, true);
}

SCORE_ARITHMETIC void add_corrected(const struct score_query *q, enum score_resource resource,
				    const struct score_side *side, struct limits *l,
				    struct score_result *r)
{
	const struct names *names = &names_of[resource];
	const struct pod_load *sums = side->sums;
	int64_t each = score_unlimited_as(q->args, resource, side->allocatable);
	struct pod_bound pod = score_pod_bound(q, resource);

	l->on_node = score_limits_on_node(sums, each, side->allocatable);
	l->pod = score_limits_of_pod(&pod, each);
	score_term(r, names->unlimited, "containers", (double)sums->unlimited + pod.unlimited);
	score_term(r, names->unlimited_as, names->unit, (double)each);
	if (sums->unknown)
		score_term(r, names->unknown, "containers", (double)sums->unknown);
}

SCORE_ARITHMETIC bool weigh(const struct score_query *q, const struct score_node *node,
			    enum score_resource resource, struct limits *l, struct score_result *r)
{
	const struct names *names = &names_of[resource];
	struct score_side side = score_side(node, resource);

	l->allocatable = (double)side.allocatable;
	if (q->variant == SCORE_UPSTREAM)
		add_upstream(q, resource, &side, l);
	else
		add_corrected(q, resource, &side, l, r);
	if (side.allocatable <= 0)
		return false;
	l->after = (l->on_node + l->pod) / l->allocatable;
	score_term(r, names->limits, names->unit, l->on_node);
	score_term(r, names->pod, names->unit, l->pod);
	score_term(r, names->allocatable, names->unit, l->allocatable);
	score_term(r, names->before, "ratio", l->on_node / l->allocatable);
	score_term(r, names->after, "ratio", l->after);
	return true;
}

static void tell(const struct score_query *q, const struct limits limits[SCORE_RESOURCES],
		 struct score_result *r)
{
	struct sentence s = score_reason(r);
	bool first = true;

	sentence_add(&s, "limits with the pod are ");
	for (enum score_resource i = 0; i < SCORE_RESOURCES; i++) {
		if (!q->args->limit_weights[i])
			continue;
		sentence_add(&s, first ? "" : " and ");
		sentence_add_fixed(&s, limits[i].after, 2);
		sentence_add(&s, " times the allocatable ");
		sentence_add(&s, names_of[i].label);
		first = false;
	}
}

SCORE_ARITHMETIC void judge(const struct score_query *q, const struct score_node *node,
			    struct score_result *r)
{
	struct limits limits[SCORE_RESOURCES] = {{0}};
	double sum = 0, weights = 0;

	if (q->variant == SCORE_CORRECTED && !node->load.limits_known) {
		score_keep_out("the limits of its pods are not known", r);
		return;
	}
	for (enum score_resource i = 0; i < SCORE_RESOURCES; i++) {
		double weight = (double)q->args->limit_weights[i], raw;

		if (weight <= 0)
			continue;
		if (!weigh(q, node, i, &limits[i], r)) {
			score_keep_out("a resource has no allocatable", r);
			return;
		}
		raw = (limits[i].allocatable - limits[i].on_node - limits[i].pod) * 100 /
		      limits[i].allocatable;
		score_term(r, names_of[i].raw, "percent", raw);
		sum += weight * raw;
		weights += weight;
	}
	r->raw = sum / weights;
	score_term(r, "raw", "percent", r->raw);
	if (score_tells(r))
		tell(q, limits, r);
}

void limit_aware(const struct score_query *q, const struct score_node *node, struct score_result *r)
{
	judge(q, node, r);
}

void limit_aware_column(const struct score_batch *b, double *restrict values)
{
	score_column_by(judge, true, b, values);
}

static int64_t spread_upstream(double raw, const struct score_scale *scale)
{
	if (scale->lowest == scale->highest)
		return 0;
	return (int64_t)((raw - scale->lowest) * 100 / (scale->highest - scale->lowest));
}

static int64_t spread(double raw, const struct score_scale *scale)
{
	struct score_scale wide = *scale;

	wide.lowest = at_most(scale->lowest, scale->highest - RANGE_LEAST);
	return score_spread(raw, &wide);
}

void limit_aware_normalize(const struct score_query *q, const struct score_scale *scale,
			   struct score_result *r)
{
	score_term(r, "lowest", "percent", scale->lowest);
	score_term(r, "highest", "percent", scale->highest);
	r->score = q->variant == SCORE_UPSTREAM ? spread_upstream(r->raw, scale)
						: spread(r->raw, scale);
	if (score_tells(r)) {
		struct sentence s = score_reason_more(r);

		sentence_add(&s, "; ");
		sentence_add_fixed(&s, r->raw, 1);
		sentence_add(&s, " % free of limits, these nodes from ");
		sentence_add_fixed(&s, scale->lowest, 1);
		sentence_add(&s, " to ");
		sentence_add_fixed(&s, scale->highest, 1);
		sentence_add(&s, " %");
	}
}
