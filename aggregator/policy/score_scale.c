/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first pass over the nodes that are asked about. Plugins that spread their scores between the worst and the best
 * node need both before they can score one; nothing else of a node is kept, so that an answer about thousands of nodes
 * is written node by node.
 *
 * The extremes, or with args->quantiles what 5 % of the nodes stay below or at and 95 % do (nearest rank): then one odd
 * node does not press all others together, and what lies beyond gets 0 or 100.
 *
 * A node on the allocation rung beside measured ones may get at most one less than the best of those: a guess never
 * wins over a measurement. That best is looked for only where there are both.
 */
#include <stdlib.h>

#include "aggregator/policy/plugin.h"
#include "shared/mem.h"

#define QUANTILE_LOW  0.05
#define QUANTILE_HIGH 0.95

void score_scale_add(struct score_scale *scale, double raw)
{
	if (scale->count == 0 || raw < scale->lowest)
		scale->lowest = raw;
	if (scale->count == 0 || raw > scale->highest)
		scale->highest = raw;
	scale->count++;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Nearest rank. */
static double quantile(const double *sorted, size_t count, double share)
{
	size_t rank = (size_t)ceil(share * (double)count);

	return sorted[rank > 0 ? rank - 1 : 0];
}

static void scan_raws(const struct score_query *q, enum score_plugin_id plugin,
		      const struct score_node *nodes, size_t count, struct score_scale *scale)
{
	bool quantiles =
		plugin == PLUGIN_LIMIT_AWARE && q->args->quantiles && q->variant == SCORE_CORRECTED;
	double *values = quantiles ? mem_alloc((count + 1) * sizeof(*values)) : NULL;
	struct score_result r;

	for (size_t i = 0; i < count; i++) {
		if (!score_before_scale(q, plugin, &nodes[i], SCORE_BARE, &r) || r.outside)
			continue;
		if (values)
			values[scale->count] = r.raw;
		score_scale_add(scale, r.raw);
	}
	if (values && scale->count) {
		qsort(values, scale->count, sizeof(*values), compare);
		scale->lowest = quantile(values, scale->count, QUANTILE_LOW);
		scale->highest = quantile(values, scale->count, QUANTILE_HIGH);
	}
	free(values);
}

static int64_t best_measured(const struct score_query *q, enum score_plugin_id plugin,
			     const struct score_node *nodes, size_t count,
			     const struct score_scale *scale)
{
	struct score_result r;
	int64_t best = -1;

	for (size_t i = 0; i < count; i++) {
		if (score_plugin_guesses(plugin, q->variant, &nodes[i]))
			continue;
		score_node_by(q, plugin, scale, &nodes[i], SCORE_BARE, &r);
		if (!r.unknown && r.score > best)
			best = r.score;
	}
	return best;
}

static bool any_guessed(const struct score_query *q, enum score_plugin_id plugin,
			const struct score_node *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (score_plugin_guesses(plugin, q->variant, &nodes[i]))
			return true;
	return false;
}

void score_prepare(const struct score_query *q, enum score_plugin_id plugin,
		   const struct score_node *nodes, size_t count, struct score_scale *scale)
{
	int64_t best;

	*scale = (struct score_scale){.estimated_most = 100};
	if (score_plugin_normalizes(plugin))
		scan_raws(q, plugin, nodes, count, scale);
	if (!any_guessed(q, plugin, nodes, count))
		return;
	best = best_measured(q, plugin, nodes, count, scale);
	if (best >= 0)
		scale->estimated_most = best > 0 ? best - 1 : 0;
}
