/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three rules refuse a node, the first two each for CPU and for memory:
 *
 *     real use      used + expected > cap * allocatable
 *     limits        (limits on the node + the pod's) / allocatable > ratio
 *     unmeasured    it has no measurements while others have (--extender-refuse-unmeasured)
 *
 * Used is the 99th percentile of the node's recent use + z * (sigma widened for its age - measured
 * sigma); without a percentile it is mean + z * widened sigma. Expected is the use of pods that the
 * measurements lack: pods not measured yet, pods on their way, and the pod itself
 * (expected_use.h). For a node without measurements, used is the sum of its pods' requests. A node
 * exactly at the cap passes.
 *
 * Drains, slack and /v1/fit have a stricter cap, which a whole plan must keep: place/place_use.c.
 *
 * A rule without its numbers does not apply: else a failure of monitoring would stop placement.
 */
#include "aggregator/policy/node_limits.h"

#include <stdio.h>

#include "aggregator/policy/expected_use.h"
#include "aggregator/policy/score/plugin.h"
#include "aggregator/policy/score/score_load.h"

#define GIB 1073741824.0

static const struct names {
	const char *label, *unit, *flag;
	double scale; /* of the unit */
	enum node_refusal over_cap, over_ratio;
} names_of[SCORE_RESOURCES] = {
	[SCORE_CPU] = {"CPU", " cores", "cpu", 1000, NODE_OVER_USE_CAP_CPU,
		       NODE_OVER_LIMIT_RATIO_CPU},
	[SCORE_MEMORY] = {"memory", " GiB", "memory", GIB, NODE_OVER_USE_CAP_MEMORY,
			  NODE_OVER_LIMIT_RATIO_MEMORY},
};

bool node_limits_cap_use(const struct node_limits *l)
{
	return l->use_cap[SCORE_CPU] > 0 || l->use_cap[SCORE_MEMORY] > 0;
}

bool node_limits_any(const struct node_limits *l)
{
	return node_limits_cap_use(l) || l->ratio[SCORE_CPU] > 0 || l->ratio[SCORE_MEMORY] > 0 ||
	       l->refuse_unmeasured;
}

static bool is_use_known(const struct score_node *node, enum score_resource resource)
{
	struct score_side side = score_side(node, resource);

	return (node->estimated || (node->measured && side.metric->known)) && side.allocatable > 0;
}

bool node_limits_use_known(const struct node_limits *l, const struct score_node *node)
{
	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++)
		if (l->use_cap[r] > 0 && !is_use_known(node, r))
			return false;
	return true;
}

/* --- real use --------------------------------------------------------------------------------- */

struct use {
	double used, expected, cap;
};

/* In percent of the capacity, at most 100. */
static double highest_use(const struct node_limits *l, const struct score_node *node,
			  enum score_resource resource)
{
	const struct score_metric *metric = score_side(node, resource).metric;
	double late = metric->stddev * (1 - 1 / at_least(node->widening, 1));
	double p99 = node->p99[resource];

	return at_most(isnan(p99) ? metric->mean + l->z * metric->stddev : p99 + l->z * late, 100);
}

static struct use use_of(const struct node_limits *l, const struct score_query *q,
			 const struct score_node *node, enum score_resource resource)
{
	struct score_side side = score_side(node, resource);
	const struct expected_use expected = score_expected(q);
	int64_t own = resource == SCORE_CPU ? expected.cpu_milli : expected.mem_bytes;
	struct use u = {.cap = l->use_cap[resource] * (double)side.allocatable};

	if (node->estimated) {
		u.used = (double)side.sums->requests;
		u.expected = (double)own;
	} else {
		u.used = highest_use(l, node, resource) / 100 * (double)side.capacity;
		u.expected = (double)node->unseen[resource] + (double)own;
	}
	return u;
}

static void tell_use(const struct node_limits *l, const struct score_query *q,
		     const struct score_node *node, enum score_resource resource,
		     const struct use *u, char text[NODE_REFUSAL_TEXT])
{
	const struct names *n = &names_of[resource];
	double room = u->cap - u->expected;
	size_t len = textbuf_add(text, NODE_REFUSAL_TEXT, 0, "%s %s %.2f+%.2f%s", n->label,
				 node->estimated ? "requests" : "in use", u->used / n->scale,
				 u->expected / n->scale, n->unit);

	if (resource == SCORE_CPU)
		len = textbuf_add(text, NODE_REFUSAL_TEXT, len, " (by %s)",
				  expected_use_source_name(score_expected(q).source));
	len = textbuf_add(text, NODE_REFUSAL_TEXT, len,
			  " is over %.2f of %.2f: ", l->use_cap[resource],
			  (double)score_side(node, resource).allocatable / n->scale);
	if (room > 0)
		len = textbuf_add(text, NODE_REFUSAL_TEXT, len,
				  "there is room once less than %.2f%s is in use", room / n->scale,
				  n->unit);
	else
		len = textbuf_add(text, NODE_REFUSAL_TEXT, len, "the pod needs a larger node");
	textbuf_add(text, NODE_REFUSAL_TEXT, len, ", or with a higher --extender-use-cap-%s",
		    n->flag);
}

static bool is_over_cap(const struct node_limits *l, const struct score_query *q,
			const struct score_node *node, enum score_resource resource, struct use *u)
{
	if (l->use_cap[resource] <= 0 || !is_use_known(node, resource))
		return false;
	*u = use_of(l, q, node, resource);
	return u->used + u->expected > u->cap;
}

bool node_limits_over_cap(const struct node_limits *l, const struct score_query *q,
			  const struct score_node *node)
{
	struct use u;

	return is_over_cap(l, q, node, SCORE_CPU, &u) || is_over_cap(l, q, node, SCORE_MEMORY, &u);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void tell_ratio(const struct node_limits *l, enum score_resource resource, double on_node,
		       double pod, double allocatable, char text[NODE_REFUSAL_TEXT])
{
	const struct names *n = &names_of[resource];

	textbuf_add(text, NODE_REFUSAL_TEXT, 0,
		    "%s limits %.2f+%.2f%s are over %.2f times %.2f: lower the pod's limit, where "
		    "a missing one counts as --unlimited says, or set a higher "
		    "--extender-limit-ratio-%s",
		    n->label, on_node / n->scale, pod / n->scale, n->unit, l->ratio[resource],
		    allocatable / n->scale, n->flag);
}

static bool is_over_ratio(const struct node_limits *l, const struct score_query *q,
			  const struct score_node *node, enum score_resource resource,
			  char text[NODE_REFUSAL_TEXT])
{
	struct score_side side = score_side(node, resource);
	int64_t each = score_unlimited_as(q->args, resource, side.allocatable);
	double allocatable = (double)side.allocatable;
	struct score_limits on_node, pod;
	struct pod_bound bound;

	if (l->ratio[resource] <= 0 || !node->load.limits_known || allocatable <= 0)
		return false;
	on_node = score_limits_on_node(q->args, side.sums, each, side.allocatable);
	bound = score_pod_bound(q, resource);
	pod = score_limits_of_pod(q->args, &bound, each);
	on_node.stated += on_node.unlimited;
	pod.stated += pod.unlimited;
	if (on_node.stated + pod.stated <= l->ratio[resource] * allocatable)
		return false;
	tell_ratio(l, resource, on_node.stated, pod.stated, allocatable, text);
	return true;
}

/* FALLBACK_ALLOCATION: no node is measured, so a refusal would leave no node at all. */
static bool is_unmeasured(const struct node_limits *l, const struct score_node *node,
			  char text[NODE_REFUSAL_TEXT])
{
	char fallback[SCORE_FALLBACK_LEN];

	if (!l->refuse_unmeasured || node->measured || node->fallback == FALLBACK_ALLOCATION)
		return false;
	score_fallback_text(node, fallback);
	snprintf(text, NODE_REFUSAL_TEXT,
		 "the node is not measured (%s) while others are: start its agent, or leave "
		 "--extender-refuse-unmeasured out",
		 fallback);
	return true;
}

enum node_refusal node_limits_check(const struct node_limits *l, const struct score_query *q,
				    const struct score_node *node, char text[NODE_REFUSAL_TEXT])
{
	struct use u;

	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++)
		if (is_over_cap(l, q, node, r, &u)) {
			tell_use(l, q, node, r, &u, text);
			return names_of[r].over_cap;
		}
	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++)
		if (is_over_ratio(l, q, node, r, text))
			return names_of[r].over_ratio;
	return is_unmeasured(l, node, text) ? NODE_UNMEASURED : NODE_PASSES;
}
