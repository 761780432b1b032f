/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes over the nodes. Plugins that normalise need the extremes of all nodes first, so only raw
 * values are kept between the passes:
 *
 *     every plugin, a block of nodes at a time    scores, else raw values and their extremes
 *     plugin by plugin                            scores from raw values, then estimated nodes
 *
 * A block is small enough to stay in the cache for all plugins. With args->quantiles the extremes are
 * the 5 % and 95 % quantiles (nearest rank), so that one odd node does not compress the others.
 *
 * An estimate never wins over a measurement: beside unmeasured nodes a measured one gets at least 1,
 * and an unmeasured one less than every measured one.
 */
#include <stdlib.h>

#include "aggregator/policy/score/plugin.h"
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

/* --- the passes */

/* Shared by all plugins. */
struct passes {
	const struct score_query *q;
	const struct score_node *nodes;
	size_t count;
	double *strains; /* of nodes judged by columns; else NaN */
	size_t unmeasured; /* nodes; 0 for upstream */
};

/* One plugin between the passes. */
struct column {
	enum score_plugin_id plugin;
	struct score_scale *scale;
	int64_t *scores;
	double *raws; /* NULL: the plugin does not normalise; NaN: kept out */
};

/* Nodes of a block, which begins at nodes. */
struct block {
	const struct score_node *nodes;
	size_t from, count;
	struct score_batch ordinary;
	uint8_t which[BLOCK], others[BLOCK];
	size_t other_count;
};

static void sort_block(struct passes *p, size_t from, struct block *b)
{
	bool by_column = p->q->variant == SCORE_CORRECTED && p->q->sums;

	b->nodes = p->nodes + from;
	b->from = from;
	b->count = from + BLOCK < p->count ? BLOCK : p->count - from;
	b->ordinary = (struct score_batch){p->q, b->nodes, b->which, 0};
	b->other_count = 0;
	for (size_t i = 0; i < b->count; i++) {
		const struct score_node *n = &b->nodes[i];

		if (by_column && score_is_ordinary(n)) {
			p->strains[from + i] = score_strain(p->q->args, n);
			b->which[b->ordinary.count++] = (uint8_t)i;
		} else {
			p->strains[from + i] = NAN;
			b->others[b->other_count++] = (uint8_t)i;
		}
		p->unmeasured += !n->measured && p->q->variant != SCORE_UPSTREAM;
	}
}

static void judge_other(const struct passes *p, struct column *c, size_t i)
{
	const struct score_node *n = &p->nodes[i];
	struct score_result r;

	if (!c->raws) {
		score_node_by(p->q, c->plugin, c->scale, n, SCORE_BARE, &r);
		c->scores[i] = r.score;
		return;
	}
	c->raws[i] = NAN;
	if (score_before_scale(p->q, c->plugin, n, SCORE_BARE, &r) && !r.outside)
		c->raws[i] = r.raw;
}

static void judge(const struct passes *p, struct column *c, const struct block *b)
{
	double values[BLOCK];

	if (b->ordinary.count)
		score_plugin_column(c->plugin)(&b->ordinary, values);
	for (size_t k = 0; k < b->ordinary.count; k++) {
		size_t i = b->from + b->which[k];

		if (c->raws)
			c->raws[i] = values[k];
		else
			c->scores[i] = score_strained((int64_t)values[k], p->strains[i]);
	}
	for (size_t k = 0; k < b->other_count; k++)
		judge_other(p, c, b->from + b->others[k]);
	for (size_t i = b->from; c->raws && i < b->from + b->count; i++)
		if (!isnan(c->raws[i]))
			score_scale_add(c->scale, c->raws[i]);
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

static void normalize(const struct passes *p, struct column *c)
{
	score_normalizer *by_scale = score_plugin_normalizer(c->plugin);
	struct score_result r;

	for (size_t i = 0; i < p->count; i++) {
		score_result_start(&r, SCORE_BARE);
		r.raw = c->raws[i];
		if (isnan(r.raw))
			c->scores[i] = 0;
		else if (isnan(p->strains[i])) {
			score_after_scale(p->q, c->plugin, c->scale, &p->nodes[i], &r);
			c->scores[i] = r.score;
		} else {
			by_scale(p->q, c->scale, &r);
			c->scores[i] = score_strained(r.score, p->strains[i]);
		}
	}
}

/* Of the measured nodes, once their scores are there; raised to 1. INT64_MAX: none is measured. */
static int64_t raise_measured(const struct passes *p, struct column *c)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < p->count; i++) {
		if (!p->nodes[i].measured)
			continue;
		if (c->scores[i] < 1)
			c->scores[i] = 1;
		if (c->scores[i] < least)
			least = c->scores[i];
	}
	return least;
}

static void estimate(const struct passes *p, struct column *c)
{
	int64_t least = raise_measured(p, c);
	struct score_result r;

	if (least < INT64_MAX) {
		c->scale->measured_least = 1;
		c->scale->estimated_most = least - 1;
	}
	for (size_t i = 0; i < p->count; i++) {
		if (!score_plugin_estimates(c->plugin, p->q->variant, &p->nodes[i]))
			continue;
		score_node_by(p->q, c->plugin, c->scale, &p->nodes[i], SCORE_BARE, &r);
		c->scores[i] = r.score;
	}
}

static void finish(const struct passes *p, struct column *c)
{
	if (c->raws && c->plugin == PLUGIN_LIMIT_AWARE && p->q->args->quantiles &&
	    p->q->variant == SCORE_CORRECTED)
		cut_extremes(c, p->count);
	if (c->raws)
		normalize(p, c);
	if (p->unmeasured)
		estimate(p, c);
}

static void start_columns(struct column *columns, const enum score_plugin_id *plugins,
			  size_t plugin_count, size_t count, struct score_scale *scales,
			  int64_t *scores, double *raws)
{
	assert(plugin_count <= SCORE_PLUGINS);
	for (size_t c = 0; c < plugin_count; c++) {
		scales[c] = (struct score_scale){.estimated_most = 100};
		columns[c] = (struct column){plugins[c], &scales[c], scores + c * count,
					     score_plugin_normalizer(plugins[c]) ? raws + c * count
										 : NULL};
	}
}

void score_columns(const struct score_query *q, const enum score_plugin_id *plugins,
		   size_t plugin_count, const struct score_node *nodes, size_t count,
		   struct score_scale *scales, int64_t *scores)
{
	double *numbers = mem_alloc(((plugin_count + 1) * count + 1) * sizeof(*numbers));
	struct passes passes = {
		.q = q, .nodes = nodes, .count = count, .strains = numbers + plugin_count * count};
	struct column columns[SCORE_PLUGINS];
	struct block block;

	start_columns(columns, plugins, plugin_count, count, scales, scores, numbers);
	for (size_t from = 0; from < count; from += BLOCK) {
		sort_block(&passes, from, &block);
		for (size_t c = 0; c < plugin_count; c++)
			judge(&passes, &columns[c], &block);
	}
	for (size_t c = 0; c < plugin_count; c++)
		finish(&passes, &columns[c]);
	free(numbers);
}
