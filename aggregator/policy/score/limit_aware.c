/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefers nodes whose limits are least over-subscribed, so that limits spread over the cluster
 * (KEP-217, which was never implemented by others):
 *
 *     raw = weighted mean over the resources of 100 * (allocatable - limits on the node - pod's limit) / allocatable
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
 *   old and new pods       counted alike, as Kubernetes counts a pod's limit and `nodes` shows it: the larger of all
 *                          containers and an init container with the sidecars before it, or what is stated for the
 *                          whole pod, and overhead; with args->init_ignored without init containers, which are gone
 *                          when neighbours compete
 *   container without      counts as args->unlimited, by default what it is expected to use, but no less than it
 *   a limit                requests: as nothing, the most dangerous pod would be the most welcome one; as the whole
 *                          node, nodes would be ranked by their number of such containers alone
 *   just placed pods       count as any other, and with their requests as long as the API does not tell of them
 *   little differences     highest - lowest is at least 50, half the allocatable: else one percent would be all
 *   min-max                with args->quantiles from the 5 % to the 95 % quantile, so that one node at six times its
 *                          allocatable does not make all others equal
 *   truncation             none before the end; then to the nearest, halves away from zero
 *   terminated pods        not on the node: the kernel, and the model of the API, count what runs
 *   cost                   sums of CPU and memory are kept per node (score_load.h, page_bounds.h), a score does not
 *                          look at pods; those of other resources are summed for a question that names them
 *   other resources        ephemeral-storage, hugepages-* and extended ones where they are named; of these a container
 *                          without a limit uses ephemeral storage alone. A node that has none of a resource, and no
 *                          limit of it, is free of limits, since kept out it would rank below all that have the resource
 *   a filter               none: an over-subscribed node is a worse one, not a forbidden one
 *   a limit that could     counts as all of the node's allocatable
 *   not be read
 *   limits unknown         (nothing is known of the pods) the node gets 0 and stays out
 */
#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/plugin.h"
#include "aggregator/policy/score/score_load.h"

#define RANGE_LEAST 50.0 /* percent of the allocatable */

/* What the terms of one resource are called. */
struct names {
	const char *label, *unit, *allocatable, *limits, *unlimited, *unlimited_as,
		*unlimited_limits, *unknown, *pod, *before, *after, *raw;
};

static const struct names names_of[SCORE_RESOURCES] = {
	[SCORE_CPU] = {"CPU", "millicores", "cpuAllocatable", "cpuLimits", "cpuUnlimited",
		       "cpuUnlimitedAs", "cpuUnlimitedLimits", "cpuLimitUnknown", "podCpuLimit",
		       "cpuLimitRatioBefore", "cpuLimitRatio", "cpuRaw"},
	[SCORE_MEMORY] = {"memory", "bytes", "memoryAllocatable", "memoryLimits", "memoryUnlimited",
			  "memoryUnlimitedAs", "memoryUnlimitedLimits", "memoryLimitUnknown",
			  "podMemoryLimit", "memoryLimitRatioBefore", "memoryLimitRatio",
			  "memoryRaw"},
};

/* Behind the name of another resource and a point. */
static const struct names names_of_others = {"",
					     "",
					     "allocatable",
					     "limits",
					     "unlimited",
					     "unlimitedAs",
					     "unlimitedLimits",
					     "limitUnknown",
					     "podLimit",
					     "limitRatioBefore",
					     "limitRatio",
					     "raw"};

/* One resource, on a node and in the pod. */
struct subject {
	const struct names *names;
	const char *unit;
	const char *other; /* its name in args->limit_others; NULL: CPU or memory */
	int64_t allocatable;
	int64_t each; /* what a container without a limit counts as */
	const struct pod_load *on_node;
	struct pod_bound pod;
};

SCORE_ARITHMETIC struct subject standard(const struct score_query *q, const struct score_node *node,
					 enum score_resource resource)
{
	struct score_side side = score_side(node, resource);
	struct subject s = {.names = &names_of[resource],
			    .unit = names_of[resource].unit,
			    .allocatable = side.allocatable,
			    .on_node = side.sums};

	if (q->variant == SCORE_UPSTREAM) {
		s.pod.limit = score_pod_need(q->pod, resource, true, true);
		return s;
	}
	s.each = score_unlimited_as(q->args, resource, side.allocatable);
	s.pod = score_pod_bound(q, resource);
	return s;
}

static struct subject other(const struct score_query *q, const struct score_node *node, size_t i)
{
	const char *name = q->args->limit_others[i].name;
	const struct score_other *on_node = &node->others[i];
	struct subject s = {.names = &names_of_others,
			    .unit = resource_is_bytes(name) ? "bytes" : "",
			    .other = name,
			    .allocatable = on_node->allocatable,
			    .each = q->args->unlimited_storage,
			    .on_node = &on_node->load};

	if (s.each < 0)
		s.each = on_node->allocatable;
	if (q->all)
		s.pod = pod_load_bound_named(q->all, name);
	return s;
}

SCORE_ARITHMETIC void term(const struct subject *s, const char *name, const char *unit,
			   double value, struct score_result *r)
{
	score_term(r, name, unit, value);
	if (s->other && r->detail >= SCORE_TERMS)
		r->terms[r->term_count - 1].resource = s->other;
}

struct limits {
	struct score_limits on_node, pod;
};

SCORE_ARITHMETIC struct limits count(const struct score_query *q, const struct subject *s,
				     struct score_result *r)
{
	struct limits l = {.on_node = {(double)s->on_node->limits_containers, 0},
			   .pod = {(double)s->pod.limit, 0}};
	uint32_t unlimited = s->on_node->unlimited + s->pod.unlimited;

	if (q->variant == SCORE_UPSTREAM)
		return l;
	l.on_node = score_limits_on_node(q->args, s->on_node, s->each, s->allocatable);
	l.pod = score_limits_of_pod(q->args, &s->pod, s->each);
	if (!s->other || unlimited) {
		term(s, s->names->unlimited, "containers", unlimited, r);
		term(s, s->names->unlimited_as, s->unit, (double)s->each, r);
		term(s, s->names->unlimited_limits, s->unit, l.on_node.unlimited + l.pod.unlimited,
		     r);
	}
	if (s->on_node->unknown)
		term(s, s->names->unknown, "containers", s->on_node->unknown, r);
	return l;
}

struct mean {
	double sum, weights;
};

/* False: the resource has no allocatable, but limits. `after`: their ratio, with the pod. */
SCORE_ARITHMETIC bool weigh(const struct score_query *q, const struct subject *s, int64_t weight,
			    struct mean *mean, double *after, struct score_result *r)
{
	const struct names *names = s->names;
	const struct limits l = count(q, s, r);
	double allocatable = (double)s->allocatable, raw = 100;
	double on_node = l.on_node.stated + l.on_node.unlimited;
	double pod = l.pod.stated + l.pod.unlimited;

	*after = 0;
	if (s->allocatable > 0) {
		*after = (on_node + pod) / allocatable;
		raw = (allocatable - on_node - pod) * 100 / allocatable;
	} else if (!s->other || q->variant == SCORE_UPSTREAM || on_node + pod > 0) {
		return false;
	}
	term(s, names->limits, s->unit, l.on_node.stated, r);
	term(s, names->pod, s->unit, l.pod.stated, r);
	term(s, names->allocatable, s->unit, allocatable, r);
	if (s->allocatable > 0) {
		term(s, names->before, "ratio", l.on_node.stated / allocatable, r);
		term(s, names->after, "ratio", *after, r);
	}
	term(s, names->raw, "percent", raw, r);
	mean->sum += (double)weight * raw;
	mean->weights += (double)weight;
	return true;
}

enum { AFTER_MAX = SCORE_RESOURCES + SCORE_OTHERS_MAX };

static void tell(const struct score_args *args, const double after[AFTER_MAX],
		 struct score_result *r)
{
	struct textbuf s = score_reason(r);
	bool first = true;

	textbuf_add(&s, "limits with the pod are ");
	for (size_t i = 0; i < SCORE_RESOURCES + args->limit_other_count; i++) {
		bool is_other = i >= SCORE_RESOURCES;

		if (!is_other && !args->limit_weights[i])
			continue;
		textbuf_add(&s, first ? "" : " and ");
		textbuf_add_fixed(&s, after[i], 2);
		textbuf_add(&s, " times the allocatable ");
		textbuf_add(&s, is_other ? args->limit_others[i - SCORE_RESOURCES].name
					 : names_of[i].label);
		first = false;
	}
}

SCORE_ARITHMETIC bool weigh_others(const struct score_query *q, const struct score_node *node,
				   struct mean *mean, double after[SCORE_OTHERS_MAX],
				   struct score_result *r)
{
	if (!node->others) {
		score_keep_out("the limits of its pods are not known", r);
		return false;
	}
	for (size_t i = 0; i < q->args->limit_other_count; i++) {
		struct subject s = other(q, node, i);

		if (weigh(q, &s, q->args->limit_others[i].weight, mean, &after[i], r))
			continue;
		score_keep_out("a resource has no allocatable", r);
		return false;
	}
	return true;
}

SCORE_ARITHMETIC void judge(const struct score_query *q, const struct score_node *node, bool others,
			    struct score_result *r)
{
	double after[AFTER_MAX] = {0};
	struct mean mean = {0, 0};

	if (q->variant == SCORE_CORRECTED && !node->load.limits_known) {
		score_keep_out("the limits of its pods are not known", r);
		return;
	}
	for (enum score_resource i = 0; i < SCORE_RESOURCES; i++) {
		struct subject s = standard(q, node, i);

		if (q->args->limit_weights[i] <= 0)
			continue;
		if (!weigh(q, &s, q->args->limit_weights[i], &mean, &after[i], r)) {
			score_keep_out("a resource has no allocatable", r);
			return;
		}
	}
	if (others && !weigh_others(q, node, &mean, after + SCORE_RESOURCES, r))
		return;
	r->raw = mean.sum / mean.weights;
	score_term(r, "raw", "percent", r->raw);
	if (score_tells(r))
		tell(q->args, after, r);
}

void limit_aware(const struct score_query *q, const struct score_node *node, struct score_result *r)
{
	judge(q, node, q->args->limit_other_count > 0, r);
}

SCORE_ARITHMETIC void judge_standard(const struct score_query *q, const struct score_node *node,
				     struct score_result *r)
{
	judge(q, node, false, r);
}

/* Hardly any question names others, and a column without them takes 15 % less. */
void limit_aware_column(const struct score_batch *b, double *restrict values)
{
	if (b->q->args->limit_other_count)
		score_column_by(limit_aware, true, b, values);
	else
		score_column_by(judge_standard, true, b, values);
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
		struct textbuf s = score_reason_more(r);

		textbuf_add(&s, "; ");
		textbuf_add_fixed(&s, r->raw, 1);
		textbuf_add(&s, " % free of limits, these nodes from ");
		textbuf_add_fixed(&s, scale->lowest, 1);
		textbuf_add(&s, " to ");
		textbuf_add_fixed(&s, scale->highest, 1);
		textbuf_add(&s, " %");
	}
}
