/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of all nodes for the usual query: the corrected variant with default arguments. A row of
 * a fresh node is valid for any age below FRESH_NS; other ages and other queries read the node again.
 * The load risk of LowRiskOverCommitment without the pod, most of its arithmetic, is cached as well.
 *
 * score_node_from_view() fills the rows, as of the end of the node's newest measurement.
 */
#include "aggregator/policy/score/score_rows.h"

#include <stdlib.h>

#include "aggregator/policy/score/risk.h"
#include "aggregator/policy/recent_pods.h"
#include "shared/mem.h"

enum { AHEAD = 8 };

static void free_rows(struct view_cached *cached)
{
	free(cached);
}

/* Compares what score_node_from_view() reads of variant and arguments. */
static bool is_usual(const struct score_args *usual, const struct score_query *q)
{
	return q->variant != SCORE_UPSTREAM && q->args->use_limits == usual->use_limits &&
	       q->args->default_requests_multiplier == usual->default_requests_multiplier &&
	       q->args->default_requests_cpu_milli == usual->default_requests_cpu_milli &&
	       q->args->guess_cpu_milli == usual->guess_cpu_milli;
}

static void make_row(const struct view *v, const struct view_node *n, const struct score_query *q,
		     struct score_row *row)
{
	const struct node_stats *stats = n->stats;
	int64_t fresh_ns = stats->end_ns;
	enum freshness freshness = node_stats_freshness(stats, fresh_ns);

	row->serial = n->serial;
	row->end_ns = stats->end_ns;
	row->aside_ns = stats->aside_ns;
	row->heard = freshness != NEVER;
	row->reusable = freshness == NEVER || freshness == FRESH;
	score_node_from_view(v, n, fresh_ns, q, &row->node);
	row->node.age_seconds = 0;
	row->recent = n->recent_count && row->node.measured && row->node.load.requests_known;
	low_risk_over_commitment_read(q->args, &row->node);
}

/* Names live as long as the view; the expected use of recent pods depends on its owners. */
static void renew_row(const struct view *v, const struct view_node *n, const struct score_query *q,
		      const struct score_row *before, struct score_row *row)
{
	if (before->recent) {
		make_row(v, n, q, row);
		return;
	}
	*row = *before;
	row->node.name = n->name;
}

/* The row of the node in the view before, or NULL. Nodes keep their order, so it is near *at. */
static const struct score_row *find_before(const struct score_rows *before, size_t *at,
					   const struct view_node *n)
{
	size_t i = *at;

	if (!before)
		return NULL;
	for (size_t tries = 0; i < before->count && tries < AHEAD; i++, tries++)
		if (before->of[i].serial == n->serial) {
			*at = i + 1;
			return &before->of[i];
		}
	return NULL;
}

static struct view_cached *make_rows(const struct view *v, const struct view_cached *cached_before)
{
	const struct score_rows *before = (const struct score_rows *)cached_before;
	struct score_rows *rows = mem_alloc(sizeof(*rows) + v->node_count * sizeof(rows->of[0]));
	const struct score_query q = {.variant = SCORE_CORRECTED, .args = &rows->usual};
	size_t at = 0;

	view_cached_init(&rows->cached, free_rows);
	rows->count = v->node_count;
	rows->knows_pods = view_knows(v, OBJECT_POD);
	if (before && before->knows_pods != rows->knows_pods)
		before = NULL;
	score_args_default(&rows->usual, SCORE_CORRECTED);
	for (size_t i = 0; i < v->node_count; i++) {
		const struct view_node *n = v->nodes[i];
		const struct score_row *old = find_before(before, &at, n);

		if (old)
			renew_row(v, n, &q, old, &rows->of[i]);
		else
			make_row(v, n, &q, &rows->of[i]);
	}
	return &rows->cached;
}

const struct score_rows *score_rows_of(const struct view *v)
{
	return (const struct score_rows *)view_cache_get(v, VIEW_CACHE_SCORES, make_rows);
}

void score_rows_read(const struct score_rows *rows, const struct view *v, size_t i, int64_t now_ns,
		     const struct score_query *q, struct score_node *node)
{
	const struct score_row *row = &rows->of[i];
	int64_t age_ns = stats_age_ns(row->end_ns, row->aside_ns, now_ns);

	if (!row->reusable || (row->heard && age_ns >= FRESH_NS) || !is_usual(&rows->usual, q)) {
		score_node_from_view(v, v->nodes[i], now_ns, q, node);
		return;
	}
	*node = row->node;
	if (row->heard)
		node->age_seconds = (double)age_ns / 1e9;
	if (q->args->smoothing_window_size != rows->usual.smoothing_window_size)
		node->load_risk_known = false;
}
