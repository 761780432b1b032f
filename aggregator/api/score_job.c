/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes: the inputs of all nodes are read first, since some plugins compare nodes (score_scale.c); then whoever
 * asks has them scored one by one, and needs room for the results of one.
 *
 *     view ----> score_node_from_view --+
 *                                       +--> estimate, power, scales --> score by score
 *     ledger --> score_node_assume -----+
 */
#include "aggregator/api/score_job.h"

#include <stddef.h>
#include <stdlib.h>

#include "aggregator/api/assumed.h"
#include "shared/mem.h"

/* How many nodes ahead memory is asked for: nodes and pages lie far apart, and to wait for each would be half of the
 * cost. */
enum { AHEAD = 8 };

void score_mix_default(struct score_mix *b, enum score_variant variant)
{
	*b = (struct score_mix){.variant = variant};
	for (int id = 0; id < SCORE_PLUGINS; id++) {
		enum score_plugin_id plugin = (enum score_plugin_id)id;

		if (!score_plugin_blended(plugin) || !score_plugin_has(plugin, variant))
			continue;
		b->plugins[b->count] = plugin;
		b->weights[b->count++] = 1;
	}
}

/* What score_node_from_view() looks at. */
static void prefetch_node(const struct view_node *n)
{
	for (size_t at = 0; at < offsetof(struct view_node, sums.requests); at += 64)
		__builtin_prefetch((const char *)n + at);
	__builtin_prefetch(&n->recent_count);
}

static void prefetch_page(const struct node_page *page)
{
	const char *window = (const char *)&page->usage.windows[WINDOW_15M];

	__builtin_prefetch(&page->end_ns);
	__builtin_prefetch(&page->cpu_capacity_milli);
	__builtin_prefetch(&page->bounds);
	for (size_t at = 0; at < sizeof(page->usage.windows[0]); at += 64)
		__builtin_prefetch(window + at);
}

static void prefetch(const struct view *v, size_t i)
{
	if (i + 2 * AHEAD < v->node_count)
		prefetch_node(v->nodes[i + 2 * AHEAD]);
	if (i + AHEAD < v->node_count)
		prefetch_page(v->nodes[i + AHEAD]->page);
}

/* Pods on their way are invisible to upstream. */
static void read_nodes(struct score_job *job, const bool *chosen)
{
	const struct score_ask *ask = job->ask;
	const struct view *v = ask->view;
	bool assumes = ask->mix->variant != SCORE_UPSTREAM;
	struct assumed assumed;
	size_t next = 0;

	assumed_read(&assumed, v, assumes ? ask->ledger : NULL, ask->pod_uid);
	job->nodes = mem_alloc((v->node_count + 1) * sizeof(*job->nodes));
	for (size_t i = 0; i < v->node_count; i++) {
		struct score_node *node = &job->nodes[job->node_count];

		prefetch(v, i);
		while (next < assumed.count && assumed.of[next].node < i)
			next++;
		if (chosen && !chosen[i])
			continue;
		score_node_from_view(v, v->nodes[i], ask->now_ns, &job->query, node);
		if (next < assumed.count && assumed.of[next].node == i)
			score_node_assume(node, &assumed.of[next].sums);
		job->node_count++;
	}
	assumed_fini(&assumed);
}

struct score_query score_ask_query(const struct score_ask *ask)
{
	const struct owner_use *owner = view_owner(ask->view, ask->owner_uid);

	return (struct score_query){
		.variant = ask->mix->variant,
		.args = ask->args,
		.pod = ask->pod,
		.owner = owner ? (struct score_owner){true, owner->cpu_milli}
			       : (struct score_owner){false, 0},
	};
}

void score_job_init(struct score_job *job, const struct score_ask *ask, const bool *chosen)
{
	const struct score_mix *b = ask->mix;

	*job = (struct score_job){.ask = ask, .query = score_ask_query(ask)};
	read_nodes(job, chosen);
	if (b->variant != SCORE_UPSTREAM)
		score_nodes_estimate(job->nodes, job->node_count,
				     score_any_measured(ask->view, ask->now_ns));
	score_nodes_power(job->nodes, job->node_count, ask->args);
	for (size_t i = 0; i < b->count; i++)
		score_prepare(&job->query, b->plugins[i], job->nodes, job->node_count,
			      &job->scales[i]);
}

void score_job_fini(struct score_job *job)
{
	free(job->nodes);
	job->nodes = NULL;
}

int64_t score_job_score(const struct score_job *job, size_t i, enum score_detail detail,
			struct score_result results[SCORE_PLUGINS], int64_t scores[SCORE_PLUGINS])
{
	const struct score_mix *b = job->ask->mix;

	for (size_t p = 0; p < b->count; p++) {
		score_node_by(&job->query, b->plugins[p], &job->scales[p], &job->nodes[i], detail,
			      &results[p]);
		scores[p] = results[p].score;
	}
	return score_blend(scores, b->weights, b->count);
}
