/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes over the nodes that are asked about. Plugins that spread their scores between the
 * worst and the best node need both before they can score one; between the passes only the raw
 * value of each node is kept:
 *
 *     every plugin, a block of nodes at a time    what is a score already, else the raw value, and the extremes
 *     plugin by plugin                            scores from raw values, then those of nodes that are guessed
 *
 * A block is small enough to stay near the processor while all plugins look at it.
 *
 * The extremes, or with args->quantiles what 5 % of the nodes stay below or at and 95 % do (nearest
 * rank): then one odd node does not press all others together, and what lies beyond gets 0 or 100.
 *
 * A node on the allocation rung beside measured ones may get at most one less than the best of
 * those: a guess never wins over a measurement. That best is looked for only where there are both.
 */
#include <stdlib.h>

#include "aggregator/policy/plugin.h"
#include "shared/mem.h"

enum { BLOCK = 64 };

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

/* --- the passes ------------------------------------------------------------------------------- */

/* What one plugin knows of all nodes between the passes. */
struct column {
	enum score_plugin_id plugin;
	struct score_scale *scale;
	int64_t *scores;
	double *raws; /* of plugins that normalise, else NULL; NaN: kept out, which no other raw value is */
};

static void judge(const struct score_query *q, struct column *c, const struct score_node *nodes,
		  size_t from, size_t to)
{
	struct score_result r;

	for (size_t i = from; i < to; i++) {
		const struct score_node *n = &nodes[i];

		if (!c->raws) {
			score_node_by(q, c->plugin, c->scale, n, SCORE_BARE, &r);
			c->scores[i] = r.score;
		} else if (score_before_scale(q, c->plugin, n, SCORE_BARE, &r) && !r.outside) {
			c->raws[i] = r.raw;
			score_scale_add(c->scale, r.raw);
		} else {
			c->raws[i] = NAN;
		}
	}
}

static void cut_extremes(struct column *c, size_t count)
{
	double *values = mem_alloc((count + 1) * sizeof(*values));
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(c->raws[i]))
			values[known++] = c->raws[i];
	if (known) {
		qsort(values, known, sizeof(*values), compare);
		c->scale->lowest = quantile(values, known, QUANTILE_LOW);
		c->scale->highest = quantile(values, known, QUANTILE_HIGH);
	}
	free(values);
}

static void normalize(const struct score_query *q, struct column *c, const struct score_node *nodes,
		      size_t count)
{
	struct score_result r;

	for (size_t i = 0; i < count; i++) {
		score_result_start(&r, SCORE_BARE);
		r.raw = c->raws[i];
		if (!isnan(r.raw))
			score_after_scale(q, c->plugin, c->scale, &nodes[i], &r);
		c->scores[i] = r.score;
	}
}

/* Those that are guessed, below the best of those that are not. */
static void guess(const struct score_query *q, struct column *c, const struct score_node *nodes,
		  size_t count)
{
	struct score_result r;
	size_t guessed = 0;
	int64_t best = -1;

	for (size_t i = 0; i < count; i++) {
		if (score_plugin_guesses(c->plugin, q->variant, &nodes[i]))
			guessed++;
		else if (c->scores[i] > best && !score_is_unknown(q, c->plugin, &nodes[i]))
			best = c->scores[i];
	}
	if (!guessed)
		return;
	if (best >= 0)
		c->scale->estimated_most = best > 0 ? best - 1 : 0;
	for (size_t i = 0; i < count; i++) {
		if (!score_plugin_guesses(c->plugin, q->variant, &nodes[i]))
			continue;
		score_node_by(q, c->plugin, c->scale, &nodes[i], SCORE_BARE, &r);
		c->scores[i] = r.score;
	}
}

static void finish(const struct score_query *q, struct column *c, const struct score_node *nodes,
		   size_t count)
{
	if (c->raws && c->plugin == PLUGIN_LIMIT_AWARE && q->args->quantiles &&
	    q->variant == SCORE_CORRECTED)
		cut_extremes(c, count);
	if (c->raws)
		normalize(q, c, nodes, count);
	guess(q, c, nodes, count);
}

void score_columns(const struct score_query *q, const enum score_plugin_id *plugins,
		   size_t plugin_count, const struct score_node *nodes, size_t count,
		   struct score_scale *scales, int64_t *scores)
{
	double *raws = mem_alloc((plugin_count * count + 1) * sizeof(*raws));
	struct column columns[SCORE_PLUGINS];

	assert(plugin_count <= SCORE_PLUGINS);
	for (size_t p = 0; p < plugin_count; p++) {
		scales[p] = (struct score_scale){.estimated_most = 100};
		columns[p] = (struct column){plugins[p], &scales[p], scores + p * count,
					     score_plugin_normalizes(plugins[p]) ? raws + p * count
										 : NULL};
	}
	for (size_t from = 0; from < count; from += BLOCK)
		for (size_t p = 0; p < plugin_count; p++)
			judge(q, &columns[p], nodes, from,
			      from + BLOCK < count ? from + BLOCK : count);
	for (size_t p = 0; p < plugin_count; p++)
		finish(q, &columns[p], nodes, count);
	free(raws);
}

void score_prepare(const struct score_query *q, enum score_plugin_id plugin,
		   const struct score_node *nodes, size_t count, struct score_scale *scale)
{
	int64_t *scores = mem_alloc((count + 1) * sizeof(*scores));

	score_columns(q, &plugin, 1, nodes, count, scale, scores);
	free(scores);
}
