/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of kinds score and kep_score: a pod and nodes in, a score per node out. */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/load_variation_risk_balancing.h"
#include "aggregator/policy/recent_pods.h"
#include "aggregator/policy/target_load_packing.h"
#include "tests/conformance/values.h"

struct scene {
	enum score_plugin_id plugin;
	enum score_variant variant;
	struct score_args args;
	int64_t window_end;
	struct pod_spec pod;
	const cJSON *nodes, *expect;
};

static bool read_multiplier(const cJSON *args, double *out, struct reason *why)
{
	const cJSON *item = values_get(args, "requests_multiplier");

	if (!cJSON_IsString(item))
		return values_number(args, "requests_multiplier", out, why);
	*out = strtod(item->valuestring, NULL);
	return true;
}

/* As a plugin gets them: after defaulting, which is a kind of case of its own. */
static bool read_args(const cJSON *args, struct score_args *out, struct reason *why)
{
	static const char *const keys[] = {"target_utilization",
					   "requests_multiplier",
					   "default_requests_cpu_m",
					   "margin",
					   "sensitivity",
					   "ita",
					   NULL};

	score_args_default(out);
	if (!values_only(args, keys, why))
		return false;
	return (!values_get(args, "target_utilization") ||
		values_number(args, "target_utilization", &out->target_utilization, why)) &&
	       (!values_get(args, "requests_multiplier") ||
		read_multiplier(args, &out->default_requests_multiplier, why)) &&
	       (!values_get(args, "default_requests_cpu_m") ||
		values_int(args, "default_requests_cpu_m", &out->default_requests_cpu_milli,
			   why)) &&
	       (!values_get(args, "margin") ||
		values_number(args, "margin", &out->safe_variance_margin, why)) &&
	       (!values_get(args, "ita") ||
		values_number(args, "ita", &out->safe_variance_margin, why)) &&
	       (!values_get(args, "sensitivity") ||
		values_number(args, "sensitivity", &out->safe_variance_sensitivity, why));
}

static bool read_recent(const struct scene *s, const cJSON *list, int64_t *milli,
			struct reason *why)
{
	*milli = 0;
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
		struct pod_spec pod;
		int64_t ts = 0;
		bool ok = values_pod(values_get(item, "pod"), &pod, why) &&
			  values_int(item, "ts", &ts, why);

		if (ok && recent_pod_counts(ts, s->window_end))
			*milli = add_saturating(*milli,
						target_load_packing_predict(&pod, &s->args, true));
		pod_spec_free_members(&pod);
		if (!ok)
			return false;
	}
	return true;
}

static bool take_metrics(const struct scene *s, const cJSON *list, struct score_node *node,
			 struct reason *why)
{
	struct metric_entry *metrics;
	size_t count;
	bool ok = values_metrics(list, &metrics, &count, why);

	if (ok && s->plugin == PLUGIN_TARGET_LOAD_PACKING) {
		node->cpu = metric_select_last(metrics, count, "CPU");
	} else if (ok) {
		node->cpu = metric_select_mean_stddev(metrics, count, "CPU");
		node->mem = metric_select_mean_stddev(metrics, count, "Memory");
	}
	free(metrics);
	return ok;
}

static bool read_node(const struct scene *s, const cJSON *item, struct score_node *node,
		      struct reason *why)
{
	static const char *const keys[] = {"name", "capacity", "allocatable", "metrics",
					   "pods", "recent",   NULL};
	struct resource_list capacity, allocatable;

	memset(node, 0, sizeof(*node));
	node->name = cJSON_GetStringValue(values_get(item, "name"));
	node->rung = node->window = "";
	if (!node->name) {
		values_fail(why, "a node must have a name");
		return false;
	}
	if (!values_only(item, keys, why) ||
	    !values_resources(values_get(item, "capacity"), &capacity, why) ||
	    !values_resources(values_get(item, "allocatable"), &allocatable, why) ||
	    !take_metrics(s, values_get(item, "metrics"), node, why))
		return false;
	node->cpu_capacity_milli = capacity.cpu_milli;
	node->mem_capacity_bytes = capacity.mem_bytes;
	node->cpu_allocatable_milli = allocatable.cpu_milli;
	node->mem_allocatable_bytes = allocatable.mem_bytes;
	return read_recent(s, values_get(item, "recent"), &node->pending_cpu_milli, why);
}

/* What only the KEP's cases expect: the arithmetic per resource. */
static double term_of(const struct score_result *r, const char *name)
{
	for (size_t i = 0; i < r->term_count; i++)
		if (strcmp(r->terms[i].name, name) == 0)
			return r->terms[i].value;
	return NAN;
}

static bool check_kep_node(const cJSON *expect, const char *node, const struct score_result *r,
			   struct reason *why)
{
	static const char *const keys[] = {"S_cpu", "S_mem", "U_cpu", "U_mem", "U", NULL};
	static const char *const mu_keys[] = {"cpu", "mem", NULL};
	const cJSON *want = values_get(values_get(expect, "per_node"), node);
	const cJSON *mu = values_get(values_get(expect, "after_placement_mu"), node);

	return values_only(want, keys, why) && values_only(mu, mu_keys, why) &&
	       values_same(want, "S_cpu", term_of(r, "cpuRisk"), why) &&
	       values_same(want, "S_mem", term_of(r, "memoryRisk"), why) &&
	       values_same_int(want, "U_cpu", round_away(term_of(r, "cpuScore")), why) &&
	       values_same_int(want, "U_mem", round_away(term_of(r, "memoryScore")), why) &&
	       values_same_int(want, "U", r->score, why) &&
	       values_same(mu, "cpu", term_of(r, "cpuMu"), why) &&
	       values_same(mu, "mem", term_of(r, "memoryMu"), why);
}

/* placement is the single highest node. */
struct best {
	const char *node;
	int64_t score;
	bool single;
};

static void compare(struct best *best, const char *node, int64_t score)
{
	if (!best->node || score > best->score)
		*best = (struct best){node, score, true};
	else if (score == best->score)
		best->single = false;
}

static bool score_node(const struct scene *s, const cJSON *item, struct best *best,
		       struct reason *why)
{
	const cJSON *scores = values_get(s->expect, "scores");
	struct score_result result;
	struct score_node node;

	if (!read_node(s, item, &node, why))
		return false;
	score_node_by(s->plugin, s->variant, &s->args, &s->pod, &node, &result);
	compare(best, node.name, result.score);
	if (scores && !values_get(scores, node.name)) {
		values_fail(why, "no score is expected for %s", node.name);
		return false;
	}
	if (!values_same_int(scores, node.name, result.score, why))
		return false;
	return s->variant != SCORE_KEP || check_kep_node(s->expect, node.name, &result, why);
}

static bool check_placement(const struct scene *s, const struct best *best, struct reason *why)
{
	const cJSON *want = values_get(s->expect, "placement");

	if (!want ||
	    (best->single && cJSON_IsString(want) && strcmp(want->valuestring, best->node) == 0))
		return true;
	values_fail(why, "the pod goes to %s%s", best->node ? best->node : "no node",
		    best->single ? "" : " and others");
	return false;
}

static bool check_names(const struct scene *s, const char *key, struct reason *why)
{
	const cJSON *list = values_get(s->expect, key);

	for (const cJSON *want = list ? list->child : NULL; want; want = want->next) {
		const cJSON *node = s->nodes->child;

		while (node &&
		       strcmp(want->string, cJSON_GetStringValue(values_get(node, "name"))) != 0)
			node = node->next;
		if (!node) {
			values_fail(why, "%s expects a node %s that is not there", key,
				    want->string);
			return false;
		}
	}
	return true;
}

static bool run_scene(struct scene *s, const cJSON *c, struct reason *why)
{
	static const char *const keys[] = {"scores", "placement", NULL};
	static const char *const kep_keys[] = {"scores", "placement", "per_node",
					       "after_placement_mu", NULL};
	struct best best = {NULL, 0, false};

	s->nodes = values_get(c, "nodes");
	s->expect = values_get(c, "expect");
	if (!cJSON_IsArray(s->nodes) || !cJSON_IsObject(s->expect) || !s->expect->child) {
		values_fail(why, "a case must have nodes and expect something");
		return false;
	}
	if (!values_only(s->expect, s->variant == SCORE_KEP ? kep_keys : keys, why) ||
	    !read_args(values_get(c, "args"), &s->args, why) ||
	    !values_pod(values_get(c, "pod"), &s->pod, why))
		return false;
	if (values_get(c, "window_end") && !values_int(c, "window_end", &s->window_end, why))
		return false;
	for (const cJSON *item = s->nodes->child; item; item = item->next)
		if (!score_node(s, item, &best, why))
			return false;
	return check_names(s, "scores", why) && check_names(s, "per_node", why) &&
	       check_names(s, "after_placement_mu", why) && check_placement(s, &best, why);
}

static enum outcome run(enum score_plugin_id plugin, enum score_variant variant, const cJSON *c,
			struct reason *why)
{
	struct scene s = {.plugin = plugin, .variant = variant};
	bool ok = run_scene(&s, c, why);

	pod_spec_free_members(&s.pod);
	return ok ? PASSED : FAILED;
}

enum outcome run_target_load_packing_score(const cJSON *c, struct reason *why)
{
	return run(PLUGIN_TARGET_LOAD_PACKING, SCORE_UPSTREAM, c, why);
}

enum outcome run_load_variation_score(const cJSON *c, struct reason *why)
{
	return run(PLUGIN_LOAD_VARIATION_RISK_BALANCING, SCORE_UPSTREAM, c, why);
}

enum outcome run_load_variation_kep(const cJSON *c, struct reason *why)
{
	return run(PLUGIN_LOAD_VARIATION_RISK_BALANCING, SCORE_KEP, c, why);
}
