/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of plugins, and the one rule all of them share outside upstream's variant: nothing unknown ever wins.
 * A node without a measurement of CPU or memory gets 0 here, before any plugin could make a guess out of it.
 */
#include "aggregator/policy/score.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/plugin.h"

static const struct {
	const char *name;
	score_plugin *score;
	bool kep;
} plugins[SCORE_PLUGINS] = {
	[PLUGIN_TARGET_LOAD_PACKING] = {"TargetLoadPacking", target_load_packing, false},
	[PLUGIN_LOAD_VARIATION_RISK_BALANCING] = {"LoadVariationRiskBalancing",
						  load_variation_risk_balancing, true},
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
	return "TargetLoadPacking, LoadVariationRiskBalancing";
}

int score_plugin_find(const char *name, enum score_plugin_id *plugin)
{
	for (size_t i = 0; i < SCORE_PLUGINS; i++) {
		if (strcmp(plugins[i].name, name) == 0) {
			*plugin = (enum score_plugin_id)i;
			return 0;
		}
	}
	return -ENOENT;
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
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		if (strcmp(variants[i], name) == 0) {
			*variant = (enum score_variant)i;
			return 0;
		}
	}
	return -ENOENT;
}

bool score_plugin_has(enum score_plugin_id plugin, enum score_variant variant)
{
	return variant != SCORE_KEP || plugins[plugin].kep;
}

/* Why the node cannot be judged, or NULL. */
static const char *unknown(const struct score_node *n)
{
	if (!n->cpu.known && !n->mem.known)
		return "no measurement of CPU and memory";
	if (!n->cpu.known)
		return "no measurement of CPU";
	if (!n->mem.known)
		return "no measurement of memory";
	if (n->cpu_allocatable_milli <= 0 || n->mem_allocatable_bytes <= 0)
		return "no allocatable CPU or memory";
	return NULL;
}

static void tell_unknown(const char *what, const struct score_node *node,
			 struct score_result *result)
{
	struct sentence s = score_reason(result);

	sentence_add(&s, what);
	if (node->rung && node->rung[0]) {
		sentence_add(&s, " (");
		sentence_add(&s, node->rung);
		sentence_add(&s, ")");
	}
	if (node->age_seconds > 0) {
		sentence_add(&s, ", last heard ");
		sentence_add_fixed(&s, node->age_seconds, 0);
		sentence_add(&s, " s ago");
	}
	sentence_add(&s, ": the least score, since nothing unknown may win");
}

/* Upstream plugins give the least score too, but each only where the metrics it reads are all missing. */
static bool unknown_upstream(enum score_plugin_id plugin, const struct score_node *n)
{
	return !n->cpu.known && (plugin == PLUGIN_TARGET_LOAD_PACKING || !n->mem.known);
}

void score_node_by(enum score_plugin_id plugin, enum score_variant variant,
		   const struct score_args *args, const struct pod_spec *pod,
		   const struct score_node *node, struct score_result *result)
{
	const char *what = unknown(node);

	assert(score_plugin_has(plugin, variant));
	result->score = 0;
	result->term_count = 0;
	result->reason[0] = '\0';
	if (variant == SCORE_UPSTREAM ? unknown_upstream(plugin, node) : what != NULL) {
		tell_unknown(what, node, result);
		return;
	}
	/* It widened the deviations, but upstream's. */
	score_term(result, "age", "seconds", node->age_seconds);
	plugins[plugin].score(variant, args, pod, node, result);
}

int64_t score_blend(const int64_t *scores, const double *weights, size_t count)
{
	double sum = 0, weight = 0;

	for (size_t i = 0; i < count; i++) {
		sum += (double)scores[i] * weights[i];
		weight += weights[i];
	}
	return weight > 0 ? round_away(sum / weight) : 0;
}
