/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefers nodes whose limits are least over-subscribed, so that limits spread over the cluster
 * (KEP-217, which has no other implementation):
 *
 *     raw = weighted mean over the resources of
 *           100 * (allocatable - limits on the node - pod's limit) / allocatable
 *     score = 100 * (raw - lowest) / (highest - lowest) over the nodes of the query
 *
 * upstream is the KEP to the letter: truncated scores; 0 for all nodes if all are equal; a container
 * without a limit counts as nothing; init containers and overhead count for the new pod alone. A node
 * without allocatable gets 0 and is not normalised.
 *
 * corrected decides what the KEP leaves open:
 *
 *   equal nodes            100
 *   no allocatable         0, not normalised (score.c); likewise if limits are unknown
 *   sum or mean            mean: raw is a percentage whatever the weights
 *   the new pod            counts, as in the KEP's formula (not in its prose)
 *   limit of a pod         as Kubernetes: the larger of all containers and of an init container with
 *                          the sidecars before it, or the pod's own, and overhead; with
 *                          args->init_ignored without init containers. An unreadable limit counts as
 *                          all of the allocatable
 *   container without      args->unlimited, by default its expected use, at least its request. Nothing
 *   a limit                would favour the most dangerous pod, the whole node would rank nodes by the
 *                          number of such containers
 *   new pods               count as others; assumed pods with their requests
 *   small differences      highest - lowest is at least 50, half the allocatable
 *   min-max                with args->quantiles from the 5 % to the 95 % quantile
 *   rounding               to the nearest at the end, halves away from zero
 *   terminated pods        do not count
 *   other resources        ephemeral-storage, hugepages-* and extended ones if named; of these only
 *                          ephemeral storage is used without a limit. A node without the resource and
 *                          without limits of it is free of limits
 *   cost                   sums of CPU and memory are kept per node (score_load.h, node_stats.h);
 *                          other resources are summed per query
 *   a filter               none: an over-subscribed node is worse, not forbidden
 */
#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/plugin.h"
#include "aggregator/policy/score/score_load.h"

#define RANGE_LEAST 50.0 /* percent of the allocatable */

/* Names of the terms of one resource. */
struct names {
	const char *label, *unit, *allocatable, *limits, *unlimited, *unlimited_as,
		*unlimited_limits, *unknown, *pod, *before, *after, *raw;
};

/* clang-format off */
#define NAMES(label, unit, of, pod)                                                               \
	{label, unit, of "Allocatable", of "Limits", of "Unlimited", of "UnlimitedAs",             \
	 of "UnlimitedLimits", of "LimitUnknown", pod "Limit", of "LimitRatioBefore",              \
	 of "LimitRatio", of "Raw"}
static const struct names names_of[SCORE_RESOURCES] = {
	[SCORE_CPU] = NAMES("CPU", "millicores", "cpu", "podCpu"),
	[SCORE_MEMORY] = NAMES("memory", "bytes", "memory", "podMemory"),
};

/* Behind the name of another resource and a point. */
static const struct names names_of_others = {
	"", "", "allocatable", "limits", "unlimited", "unlimitedAs", "unlimitedLimits",
	"limitUnknown", "podLimit", "limitRatioBefore", "limitRatio", "raw",
};
/* clang-format on */

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
		s.pod.limit = pod_spec_need(q->pod, score_resource_id(resource), true, true);
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
	const char *joint = "limits with the pod are ";

	for (size_t i = 0; i < SCORE_RESOURCES + args->limit_other_count; i++) {
		bool is_other = i >= SCORE_RESOURCES;

		if (!is_other && !args->limit_weights[i])
			continue;
		score_write(r, "%s%.2f times the allocatable %s", joint, after[i],
			    is_other ? args->limit_others[i - SCORE_RESOURCES].name
				     : names_of[i].label);
		joint = " and ";
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

/* Few queries name others, and a column without them takes 15 % less. */
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
	score_say(r, "; %.1f %% free of limits, these nodes from %.1f to %.1f %%", r->raw,
		  scale->lowest, scale->highest);
}
