/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of kinds score and kep_score: a pod and nodes in, a score per node out. Run in upstream's
 * variant against expect, and where want_better is an object of the same shape, in corrected
 * against that.
 */
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/risk.h"
#include "aggregator/policy/recent_pods.h"
#include "aggregator/policy/score/score_load.h"
#include "aggregator/policy/score/plugin.h"
#include "shared/mem.h"
#include "tests/conformance/values.h"
#include "tests/score_fixture.h"

struct scene {
	enum score_plugin_id plugin;
	enum score_variant variant;
	struct score_args args;
	int64_t window_end;
	struct pod_spec pod;
	struct power_model *models; /* owned */
	struct score_node *nodes; /* owned */
	size_t node_count;
	const cJSON *expect;
};

static bool read_multiplier(const cJSON *args, double *out, struct error *error)
{
	const cJSON *item = values_get(args, "requests_multiplier");

	if (!cJSON_IsString(item))
		return values_number(args, "requests_multiplier", out, error);
	*out = strtod(item->valuestring, NULL);
	return true;
}

static bool maybe_number(const cJSON *object, const char *key, double *out, struct error *error)
{
	return !values_get(object, key) || values_number(object, key, out, error);
}

static bool maybe_int(const cJSON *object, const char *key, int64_t *out, struct error *error)
{
	return !values_get(object, key) || values_int(object, key, out, error);
}

static int compare_models(const void *a, const void *b)
{
	return strcmp(((const struct power_model *)a)->node, ((const struct power_model *)b)->node);
}

static bool read_models(const cJSON *object, struct scene *s, struct error *error)
{
	static const char *const keys[] = {"k0", "k1", "k2", NULL};
	size_t count = 0;

	if (!object)
		return true;
	s->models = mem_zalloc((size_t)cJSON_GetArraySize(object) + 1, sizeof(*s->models));
	for (const cJSON *item = object->child; item; item = item->next) {
		struct power_model *m = &s->models[count++];

		m->node = item->string;
		if (!values_only(item, keys, error) || !values_number(item, "k0", &m->k0, error) ||
		    !values_number(item, "k1", &m->k1, error) ||
		    !values_number(item, "k2", &m->k2, error))
			return false;
	}
	qsort(s->models, count, sizeof(*s->models), compare_models);
	s->args.power_models = s->models;
	s->args.power_model_count = count;
	return true;
}

/* As a plugin gets them: after defaulting, which is a kind of case of its own. */
static bool read_args(const cJSON *args, struct scene *s, struct error *error)
{
	static const char *const keys[] = {"target_utilization",
					   "requests_multiplier",
					   "default_requests_cpu_m",
					   "margin",
					   "sensitivity",
					   "ita",
					   "smoothing_window_size",
					   "risk_limit_weights",
					   "node_power_model",
					   NULL};
	struct score_args *out = &s->args;

	score_args_default(out, s->variant);
	return values_only(args, keys, error) &&
	       maybe_number(args, "target_utilization", &out->target_utilization, error) &&
	       (!values_get(args, "requests_multiplier") ||
		read_multiplier(args, &out->default_requests_multiplier, error)) &&
	       maybe_int(args, "default_requests_cpu_m", &out->default_requests_cpu_milli, error) &&
	       maybe_number(args, "margin", &out->safe_variance_margin, error) &&
	       maybe_number(args, "ita", &out->safe_variance_margin, error) &&
	       maybe_number(args, "sensitivity", &out->safe_variance_sensitivity, error) &&
	       values_risk_args(args, out, error) &&
	       read_models(values_get(args, "node_power_model"), s, error);
}

static bool read_recent(const struct scene *s, const cJSON *list, int64_t *milli,
			struct error *error)
{
	*milli = 0;
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
		struct pod_spec pod;
		int64_t ts = 0;
		bool ok = values_pod(values_get(item, "pod"), &pod, error) &&
			  values_int(item, "ts", &ts, error);

		if (ok && recent_pod_counts(ts, s->window_end))
			*milli =
				add_saturating(*milli, target_load_packing_predict(&pod, &s->args));
		pod_spec_free_members(&pod);
		if (!ok)
			return false;
	}
	return true;
}

static bool take_metrics(const struct scene *s, const cJSON *list, struct score_node *node,
			 struct error *error)
{
	struct metric_entry *metrics;
	size_t count;
	bool ok = values_metrics(list, &metrics, &count, error);

	node->measured = count > 0;
	if (ok)
		node->mem = metric_select_mean_stddev(metrics, count, "Memory");
	if (ok && s->plugin == PLUGIN_TARGET_LOAD_PACKING) {
		node->cpu = metric_select_last(metrics, count, "CPU");
	} else if (ok && s->plugin == PLUGIN_PEAKS) {
		node->cpu = metric_select_first(metrics, count, "CPU");
	} else if (ok) {
		node->cpu = metric_select_mean_stddev(metrics, count, "CPU");
	}
	free(metrics);
	return ok;
}

static bool read_pods(const cJSON *list, struct score_load *load, struct error *error)
{
	load->requests_known = load->limits_known = true;
	for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
		struct pod_spec pod;
		bool ok = values_pod(item, &pod, error);

		if (ok)
			score_fixture_add_pod(load, &pod);
		pod_spec_free_members(&pod);
		if (!ok)
			return false;
	}
	return true;
}

static bool read_node(const struct scene *s, const cJSON *item, struct score_node *node,
		      struct error *error)
{
	static const char *const keys[] = {"name", "capacity", "allocatable", "metrics",
					   "pods", "recent",   NULL};
	struct resource_list capacity, allocatable;

	memset(node, 0, sizeof(*node));
	node->name = cJSON_GetStringValue(values_get(item, "name"));
	node->fallback = FALLBACK_WINDOW_15M;
	node->window = "";
	node->contention = NAN;
	if (!node->name) {
		values_fail(error, "a node must have a name");
		return false;
	}
	if (!values_only(item, keys, error) ||
	    !values_resources(values_get(item, "capacity"), &capacity, error) ||
	    !values_resources(values_get(item, "allocatable"), &allocatable, error) ||
	    !take_metrics(s, values_get(item, "metrics"), node, error) ||
	    !read_pods(values_get(item, "pods"), &node->load, error))
		return false;
	node->cpu_capacity_milli = capacity.cpu_milli;
	node->mem_capacity_bytes = capacity.mem_bytes;
	node->cpu_allocatable_milli = allocatable.cpu_milli;
	node->mem_allocatable_bytes = allocatable.mem_bytes;
	return read_recent(s, values_get(item, "recent"), &node->pending_cpu_milli, error);
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
			   struct error *error)
{
	static const char *const keys[] = {"S_cpu", "S_mem", "U_cpu", "U_mem", "U", NULL};
	static const char *const mu_keys[] = {"cpu", "mem", NULL};
	const cJSON *want = values_get(values_get(expect, "per_node"), node);
	const cJSON *mu = values_get(values_get(expect, "after_placement_mu"), node);

	return values_only(want, keys, error) && values_only(mu, mu_keys, error) &&
	       values_same(want, "S_cpu", term_of(r, "cpuRisk"), error) &&
	       values_same(want, "S_mem", term_of(r, "memoryRisk"), error) &&
	       values_same_int(want, "U_cpu", round_away(term_of(r, "cpuScore")), error) &&
	       values_same_int(want, "U_mem", round_away(term_of(r, "memoryScore")), error) &&
	       values_same_int(want, "U", r->score, error) &&
	       values_same(mu, "cpu", term_of(r, "cpuMu"), error) &&
	       values_same(mu, "mem", term_of(r, "memoryMu"), error);
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

static bool check_raw(const struct scene *s, const char *node, double got, struct error *error)
{
	const cJSON *raw = values_get(s->expect, "raw");
	double want, tolerance = 0;

	if (!values_get(raw, node))
		return true;
	if (!values_number(raw, node, &want, error) ||
	    !maybe_number(s->expect, "raw_rel_tol", &tolerance, error))
		return false;
	if (fabs(got - want) <= tolerance * fabs(want))
		return true;
	values_fail(error, "raw of %s is %.17g, expected %.17g", node, got, want);
	return false;
}

static bool score_node(const struct scene *s, const struct score_query *q,
		       const struct score_scale *scale, const struct score_node *node,
		       struct best *best, struct error *error)
{
	const cJSON *scores = values_get(s->expect, "scores");
	struct score_result result;

	score_node_by(q, s->plugin, scale, node, SCORE_TERMS, &result);
	compare(best, node->name, result.score);
	if (scores && !values_get(scores, node->name)) {
		values_fail(error, "no score is expected for %s", node->name);
		return false;
	}
	if (!values_same_int(scores, node->name, result.score, error) ||
	    !check_raw(s, node->name, result.raw, error))
		return false;
	return s->variant != SCORE_KEP || check_kep_node(s->expect, node->name, &result, error);
}

static bool score_nodes(struct scene *s, struct best *best, struct error *error)
{
	const struct score_query q = {.variant = s->variant, .args = &s->args, .pod = &s->pod};
	struct score_scale scale;

	for (size_t i = 0; i < s->node_count; i++)
		for (size_t m = 0; m < s->args.power_model_count; m++)
			if (strcmp(s->models[m].node, s->nodes[i].name) == 0)
				s->nodes[i].power = &s->models[m];
	score_fixture_scale(&q, s->plugin, s->nodes, s->node_count, &scale);
	for (size_t i = 0; i < s->node_count; i++)
		if (!score_node(s, &q, &scale, &s->nodes[i], best, error))
			return false;
	return true;
}

static bool check_placement(const struct scene *s, const struct best *best, struct error *error)
{
	const cJSON *want = values_get(s->expect, "placement");

	if (!want ||
	    (best->single && cJSON_IsString(want) && strcmp(want->valuestring, best->node) == 0))
		return true;
	values_fail(error, "the pod goes to %s%s", best->node ? best->node : "no node",
		    best->single ? "" : " and others");
	return false;
}

static bool check_names(const struct scene *s, const char *key, struct error *error)
{
	const cJSON *list = values_get(s->expect, key);

	for (const cJSON *want = list ? list->child : NULL; want; want = want->next) {
		size_t i = 0;

		while (i < s->node_count && strcmp(want->string, s->nodes[i].name) != 0)
			i++;
		if (i == s->node_count) {
			values_fail(error, "%s expects a node %s that is not there", key,
				    want->string);
			return false;
		}
	}
	return true;
}

static bool read_scene(struct scene *s, const cJSON *c, struct error *error)
{
	const cJSON *nodes = values_get(c, "nodes");

	if (!cJSON_IsArray(nodes)) {
		values_fail(error, "a case must have nodes");
		return false;
	}
	if (!read_args(values_get(c, "args"), s, error) ||
	    !values_pod(values_get(c, "pod"), &s->pod, error) ||
	    !maybe_int(c, "window_end", &s->window_end, error))
		return false;
	s->nodes = mem_zalloc((size_t)cJSON_GetArraySize(nodes) + 1, sizeof(*s->nodes));
	for (const cJSON *item = nodes->child; item; item = item->next)
		if (!read_node(s, item, &s->nodes[s->node_count++], error))
			return false;
	return true;
}

static bool run_scene(struct scene *s, const cJSON *c, struct error *error)
{
	static const char *const keys[] = {"scores", "placement", "raw", "raw_rel_tol", NULL};
	static const char *const kep_keys[] = {"scores", "placement", "per_node",
					       "after_placement_mu", NULL};
	struct best best = {NULL, 0, false};

	if (!cJSON_IsObject(s->expect) || !s->expect->child) {
		values_fail(error, "a case must expect something");
		return false;
	}
	return values_only(s->expect, s->variant == SCORE_KEP ? kep_keys : keys, error) &&
	       read_scene(s, c, error) && score_nodes(s, &best, error) &&
	       check_names(s, "scores", error) && check_names(s, "raw", error) &&
	       check_names(s, "per_node", error) && check_names(s, "after_placement_mu", error) &&
	       check_placement(s, &best, error);
}

static bool run_variant(enum score_plugin_id plugin, enum score_variant variant, const cJSON *c,
			const char *expect, struct error *error)
{
	struct scene s = {.plugin = plugin, .variant = variant, .expect = values_get(c, expect)};
	bool ok = run_scene(&s, c, error);

	if (!ok)
		error_prefix(error, "%s", score_variant_name(variant));
	pod_spec_free_members(&s.pod);
	free(s.models);
	free(s.nodes);
	return ok;
}

static enum outcome run(enum score_plugin_id plugin, enum score_variant variant, const cJSON *c,
			struct error *error)
{
	if (!run_variant(plugin, variant, c, "expect", error))
		return FAILED;
	/* As prose it is for people. */
	if (!cJSON_IsObject(values_get(c, "want_better")))
		return PASSED;
	return run_variant(plugin, SCORE_CORRECTED, c, "want_better", error) ? PASSED : FAILED;
}

enum outcome run_target_load_packing_score(const cJSON *c, struct error *error)
{
	return run(PLUGIN_TARGET_LOAD_PACKING, SCORE_UPSTREAM, c, error);
}

enum outcome run_load_variation_score(const cJSON *c, struct error *error)
{
	return run(PLUGIN_LOAD_VARIATION_RISK_BALANCING, SCORE_UPSTREAM, c, error);
}

enum outcome run_load_variation_kep(const cJSON *c, struct error *error)
{
	return run(PLUGIN_LOAD_VARIATION_RISK_BALANCING, SCORE_KEP, c, error);
}

enum outcome run_low_risk_score(const cJSON *c, struct error *error)
{
	return run(PLUGIN_LOW_RISK_OVER_COMMITMENT, SCORE_UPSTREAM, c, error);
}

enum outcome run_peaks_score(const cJSON *c, struct error *error)
{
	return run(PLUGIN_PEAKS, SCORE_UPSTREAM, c, error);
}
