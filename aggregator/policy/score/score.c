/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of plugins, and their common rules (but for upstream):
 *
 *   - The unknown never wins. A node without a measurement is estimated if its requests are known
 *     (next rule), else it gets 0 and is not normalised. Plugins that can do without a resource
 *     leave an unmeasured one out.
 *   - An unmeasured node with known requests is estimated: 100 * (1 - max over CPU and memory of
 *     (requests on the node + pod) / allocatable). Beside measured nodes, which get at least 1, all
 *     estimates stay below the least of those (score_scale.c).
 *   - Contention and OOM kills cost (corrected only):
 *
 *         score * (1 - max(0, contention - 0.1) / 0.9) * (1 - oom_cost * min(1, OOM kills / 5))
 *
 *     contention is the share of the window in which a task waited for CPU or memory, the larger of
 *     the two. A healthy, busy machine shows a tenth. Not measured costs nothing.
 *
 * Defects of upstream, with both scores: packaging/docs/scheduler.md.
 */
#include "aggregator/policy/score/score.h"

#include <errno.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/plugin.h"
#include "shared/array.h"
#include "shared/units.h"

#define CONTENTION_FREE 0.1
#define OOM_KILLS_MOST	5 /* that many take all that they may take */

static const struct plugin {
	const char *name;
	score_plugin *score;
	score_column *column; /* the same, of many nodes */
	score_normalizer *normalize; /* NULL: the score of a node does not depend on others */
	double weight, weight_upstream; /* in the default blend */
	enum { LOAD_NONE, LOAD_CPU, LOAD_ANY, LOAD_BOTH } load; /* which measured use it needs */
	bool kep;
} plugins[SCORE_PLUGINS] = {
#define X(id, name, heading, function, normalize, load, weight, upstream, kep)                     \
	[PLUGIN_##id] = {name, function, function##_column, normalize, weight, upstream, load, kep},
	SCORE_PLUGIN_ROWS(X)
#undef X
};

static const char *const variants[] = {
	[SCORE_CORRECTED] = "corrected",
	[SCORE_UPSTREAM] = "upstream",
	[SCORE_KEP] = "kep",
};

const char *score_plugin_name(enum score_plugin_id plugin)
{
	return plugins[plugin].name;
}

const char *score_plugin_names(void)
{
#define X(id, name, ...) ", " name
	static const char names[] = SCORE_PLUGIN_ROWS(X);
#undef X

	return names + strlen(", ");
}

int score_plugin_find(const char *name, enum score_plugin_id *plugin)
{
	const struct plugin *found =
		array_find_text(plugins, SCORE_PLUGINS, sizeof(*plugins), name);

	if (!found)
		return -ENOENT;
	*plugin = (enum score_plugin_id)(found - plugins);
	return 0;
}

double score_plugin_weight(enum score_plugin_id plugin, enum score_variant variant)
{
	return variant == SCORE_UPSTREAM ? plugins[plugin].weight_upstream : plugins[plugin].weight;
}

const char *score_variant_name(enum score_variant variant)
{
	return variants[variant];
}

const char *score_variant_names(void)
{
	return "corrected, upstream, kep";
}

int score_variant_find(const char *name, enum score_variant *variant)
{
	const char *const *found = array_find_text(variants, sizeof(variants) / sizeof(variants[0]),
						   sizeof(*variants), name);

	if (!found)
		return -ENOENT;
	*variant = (enum score_variant)(found - variants);
	return 0;
}

bool score_plugin_has(enum score_plugin_id plugin, enum score_variant variant)
{
	return variant != SCORE_KEP || plugins[plugin].kep;
}

score_column *score_plugin_column(enum score_plugin_id plugin)
{
	return plugins[plugin].column;
}

score_normalizer *score_plugin_normalizer(enum score_plugin_id plugin)
{
	return plugins[plugin].normalize;
}

bool score_plugin_estimates(enum score_plugin_id plugin, enum score_variant variant,
			    const struct score_node *node)
{
	return variant != SCORE_UPSTREAM && node->estimated &&
	       (plugins[plugin].load != LOAD_NONE || node->fallback != FALLBACK_ALLOCATION);
}

/* --- nodes that cannot be judged */

/* The reason, or NULL. */
static const char *unknown(enum score_plugin_id plugin, const struct score_node *n)
{
	if (n->cpu_allocatable_milli <= 0 || n->mem_allocatable_bytes <= 0)
		return n->measured ? "no allocatable CPU or memory"
				   : "no measurement of CPU and memory";
	if (n->estimated)
		return NULL;
	if (!n->cpu.known && !n->mem.known)
		return "no measurement of CPU and memory";
	if (!n->cpu.known &&
	    (plugins[plugin].load == LOAD_CPU || plugins[plugin].load == LOAD_BOTH))
		return "no measurement of CPU";
	if (!n->mem.known && plugins[plugin].load == LOAD_BOTH)
		return "no measurement of memory";
	return NULL;
}

bool score_is_ordinary(const struct score_node *node)
{
	return !node->estimated && node->cpu.known && node->mem.known &&
	       node->cpu_allocatable_milli > 0 && node->mem_allocatable_bytes > 0;
}

static void tell_unknown(const char *what, const struct score_node *node,
			 struct score_result *result)
{
	char fallback[SCORE_FALLBACK_LEN];

	score_fallback_text(node, fallback);
	score_write(result, "%s (%s)", what, fallback);
	if (node->age_seconds > 0)
		score_write(result, ", last heard %.0f s ago", node->age_seconds);
	score_write(result, ": the least score, since nothing unknown may win");
}

/* Upstream: the least score only if all metrics that the plugin reads are missing; never for Peaks. */
static const char *unknown_upstream(enum score_plugin_id plugin, const struct score_node *n)
{
	switch (plugin) {
	case PLUGIN_TARGET_LOAD_PACKING:
		return n->cpu.known ? NULL : "no measurement of CPU";
	case PLUGIN_LOAD_VARIATION_RISK_BALANCING:
		return n->cpu.known || n->mem.known ? NULL : "no measurement of CPU and memory";
	case PLUGIN_LOW_RISK_OVER_COMMITMENT:
		return n->measured ? NULL : "no measurement";
	default:
		return NULL;
	}
}

/* --- nodes that are estimated */

static double share_with_pod(const struct score_query *q, const struct score_node *node,
			     enum score_resource resource)
{
	struct score_side side = score_side(node, resource);
	double sum = (double)side.sums->requests + (double)score_request(q, resource);

	return sum / (double)side.allocatable;
}

static void tell_estimate(const struct score_node *node, double cpu, double mem,
			  struct score_result *r)
{
	char fallback[SCORE_FALLBACK_LEN];

	score_fallback_text(node, fallback);
	score_write(
		r,
		"estimated from requests, as the node is not measured (%s): with the pod %.1f %% "
		"of CPU and %.1f %% of memory%s%s",
		fallback, 100 * cpu, 100 * mem, fmax(cpu, mem) > 1 ? ", which does not fit" : "",
		node->fallback != FALLBACK_ALLOCATION ? "; below every node that is measured" : "");
}

/* Spreads by requests, as the kube-scheduler's LeastAllocated. */
static void estimate(const struct score_query *q, const struct score_scale *scale,
		     const struct score_node *node, struct score_result *r)
{
	double cpu = share_with_pod(q, node, SCORE_CPU);
	double mem = share_with_pod(q, node, SCORE_MEMORY);
	double free = at_least(100 * (1 - fmax(cpu, mem)), 0);

	score_term(r, "cpuRequested", "fraction", cpu);
	score_term(r, "memoryRequested", "fraction", mem);
	score_term(r, "unrounded", "", free);
	r->outside = true;
	r->score = score_round(free);
	if (node->fallback != FALLBACK_ALLOCATION) {
		r->score = (int64_t)(free / 100 * (double)scale->estimated_most);
		score_term(r, "belowMeasured", "", (double)r->score);
	}
	if (score_tells(r))
		tell_estimate(node, cpu, mem, r);
}

/* --- contention and OOM kills */

static void tell_strain(const struct score_node *node, double waited, double factor,
			struct score_result *r)
{
	score_write(r, "; times %.2f for ", factor);
	if (waited > 0)
		score_write(r, "tasks waiting for each other %.1f %% of the time",
			    100 * node->contention);
	if (node->oom_kills > 0)
		score_write(r, "%s%.*f OOM kill%s", waited > 0 ? " and " : "",
			    node->oom_kills == floor(node->oom_kills) ? 0 : 2, node->oom_kills,
			    units_plural(node->oom_kills));
}

/* The share of contention that costs, from 0. */
static double waiting(const struct score_node *node)
{
	double contention = at_least(node->contention, 0); /* NaN: not measured */

	return at_least(contention - CONTENTION_FREE, 0) / (1 - CONTENTION_FREE);
}

double score_strain(const struct score_args *args, const struct score_node *node)
{
	double kills = at_most(node->oom_kills / OOM_KILLS_MOST, 1);

	return (1 - at_most(waiting(node), 1)) * (1 - args->oom_cost * kills);
}

static void strain(const struct score_args *args, const struct score_node *node,
		   struct score_result *r)
{
	double factor = score_strain(args, node);

	score_term(r, "contention", "fraction", node->contention);
	score_term(r, "oomKills", "", node->oom_kills);
	if (factor >= 1 || r->score == 0)
		return;
	score_term(r, "beforeStrain", "", (double)r->score);
	score_term(r, "strainFactor", "", factor);
	r->score = score_strained(r->score, factor);
	if (score_tells(r))
		tell_strain(node, waiting(node), factor, r);
}

/* --- pods on their way */

static void tell_assumed(const struct score_node *node, struct score_result *r)
{
	if (!node->assumed_pods)
		return;
	score_term(r, "assumedPods", "", (double)node->assumed_pods);
	score_term(r, "assumedCpu", "millicores", (double)node->assumed_cpu_milli);
	score_say(r, "; with %s/%s", node->assumed_namespace, node->assumed_name);
	if (node->assumed_pods > 1)
		score_say(r, " and %" PRId64 " other pod%s", (int64_t)node->assumed_pods - 1,
			  node->assumed_pods == 2 ? "" : "s");
	score_say(r, " assumed here");
}

/* --- one node */

void score_result_start(struct score_result *r, enum score_detail detail)
{
	r->detail = detail;
	r->score = 0;
	r->raw = 0;
	r->outside = r->unknown = false;
	r->term_count = 0;
	r->reason[0] = '\0';
	r->reason_len = 0;
}

bool score_before_scale(const struct score_query *q, enum score_plugin_id plugin,
			const struct score_node *node, enum score_detail detail,
			struct score_result *r)
{
	const char *what = q->variant == SCORE_UPSTREAM ? unknown_upstream(plugin, node)
							: unknown(plugin, node);

	score_result_start(r, detail);
	if (what) {
		r->outside = r->unknown = true;
		if (score_tells(r))
			tell_unknown(what, node, r);
		return false;
	}
	/* It widened the deviations, but upstream's. */
	score_term(r, "age", "seconds", node->age_seconds);
	if (score_plugin_estimates(plugin, q->variant, node)) {
		r->outside = true;
		return true;
	}
	plugins[plugin].score(q, node, r);
	return true;
}

void score_after_scale(const struct score_query *q, enum score_plugin_id plugin,
		       const struct score_scale *scale, const struct score_node *node,
		       struct score_result *result)
{
	if (score_plugin_estimates(plugin, q->variant, node))
		estimate(q, scale, node, result);
	else if (plugins[plugin].normalize && !result->outside)
		plugins[plugin].normalize(q, scale, result);
	if (q->variant == SCORE_CORRECTED)
		strain(q->args, node, result);
	tell_assumed(node, result);
}

void score_node_by(const struct score_query *q, enum score_plugin_id plugin,
		   const struct score_scale *scale, const struct score_node *node,
		   enum score_detail detail, struct score_result *result)
{
	assert(score_plugin_has(plugin, q->variant));
	if (score_before_scale(q, plugin, node, detail, result))
		score_after_scale(q, plugin, scale, node, result);
	if (!node->measured || result->score >= scale->measured_least)
		return;
	/* A measured node is above unmeasured ones. */
	result->score = scale->measured_least;
	score_term(result, "aboveUnmeasured", "", (double)result->score);
	score_say(result, "; at least 1, above nodes that are not measured");
}

double score_blend(const int64_t *scores, const double *weights, size_t count)
{
	double sum = 0, weight = 0;

	for (size_t i = 0; i < count; i++) {
		sum += (double)scores[i] * weights[i];
		weight += weights[i];
	}
	return weight > 0 ? sum / weight : 0;
}
