/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes: the inputs of all nodes are read first, since some plugins compare nodes
 * (score_scale.c); then whoever asks has them scored one by one, and needs room for the results of
 * one.
 *
 *     view ----> score_rows_read -------+
 *                                       +--> estimate, power, scales --> score by score
 *     ledger --> score_node_assume -----+
 */
#include "aggregator/api/score_job.h"

#include <assert.h>
#include <stdlib.h>

#include "aggregator/api/assumed.h"
#include "aggregator/policy/expected_use.h"
#include "aggregator/policy/score_rows.h"
#include "shared/mem.h"

void score_mix_default(struct score_mix *b, enum score_variant variant)
{
	*b = (struct score_mix){.variant = variant};
	for (int id = 0; id < SCORE_PLUGINS; id++) {
		enum score_plugin_id plugin = (enum score_plugin_id)id;

		double weight = score_plugin_weight(plugin, variant);

		if (weight <= 0 || !score_plugin_has(plugin, variant))
			continue;
		b->plugins[b->count] = plugin;
		b->weights[b->count++] = weight;
	}
}

/* Whether some chosen node has a measurement, and was heard in the last 5 minutes. */
static bool any_heard(const struct score_rows *rows, const bool *chosen, int64_t now_ns)
{
	for (size_t i = 0; i < rows->count; i++) {
		const struct score_row *row = &rows->of[i];

		if ((!chosen || chosen[i]) && row->heard && row->node.measured &&
		    page_age_of(row->end_ns, row->aside_ns, now_ns) < EXPIRED_NS)
			return true;
	}
	return false;
}

/* Pods on their way are invisible to upstream. */
static void read_nodes(struct score_job *job, const bool *chosen)
{
	const struct score_ask *ask = job->ask;
	const struct view *v = ask->view;
	const struct score_rows *rows = score_rows_of(v);
	bool assumes = ask->mix->variant != SCORE_UPSTREAM;
	struct assumed assumed;
	size_t next = 0;

	job->query.others_heard = any_heard(rows, chosen, ask->now_ns);
	assumed_read(&assumed, v, assumes ? ask->ledger : NULL, ask->pod_uid);
	job->nodes = mem_alloc((v->node_count + 1) * sizeof(*job->nodes));
	for (size_t i = 0; i < v->node_count; i++) {
		struct score_node *node = &job->nodes[job->node_count];

		while (next < assumed.count && assumed.of[next].node < i)
			next++;
		if (chosen && !chosen[i])
			continue;
		score_rows_read(rows, v, i, ask->now_ns, &job->query, node);
		if (next < assumed.count && assumed.of[next].node == i)
			score_node_assume(node, &assumed.of[next].sums);
		job->node_count++;
	}
	assumed_fini(&assumed);
}

/* Of all nodes, and with pods on their way. */
static void read_others(struct score_job *job)
{
	const struct score_ask *ask = job->ask;
	size_t each = ask->args->limit_other_count;

	if (!each)
		return;
	job->others = mem_zalloc(job->node_count + 1, each * sizeof(*job->others));
	for (size_t i = 0; i < job->node_count; i++)
		if (score_others_read(ask->view, ask->view->nodes[i], ask->args,
				      &job->others[i * each]))
			job->nodes[i].others = &job->others[i * each];
	if (ask->mix->variant != SCORE_UPSTREAM)
		assumed_add_others(ask->view, ask->ledger, ask->pod_uid, ask->args, job->others);
}

struct score_query score_ask_query(const struct score_ask *ask)
{
	return (struct score_query){
		.variant = ask->mix->variant,
		.args = ask->args,
		.pod = ask->pod,
		.all = ask->sums,
		.owner = expected_use_of_owner(ask->view, ask->owner_uid, ask->workload),
	};
}

struct expected_use score_ask_expected(const struct score_ask *ask)
{
	const struct score_query q = score_ask_query(ask);
	struct score_pod sums;

	score_pod_read(&q, &sums);
	return sums.expected;
}

void score_job_init(struct score_job *job, const struct score_ask *ask, const bool *chosen)
{
	const struct score_mix *b = ask->mix;

	*job = (struct score_job){.ask = ask, .query = score_ask_query(ask)};
	score_pod_read(&job->query, &job->pod);
	job->query.sums = &job->pod;
	assert(!chosen || !ask->args->limit_other_count);
	read_nodes(job, chosen);
	read_others(job);
	if (b->variant != SCORE_UPSTREAM)
		score_nodes_estimate(job->nodes, job->node_count);
	score_nodes_power(job->nodes, job->node_count, ask->args);
	job->scores = mem_alloc((b->count * job->node_count + 1) * sizeof(*job->scores));
	score_columns(&job->query, b->plugins, b->count, job->nodes, job->node_count, job->scales,
		      job->scores);
}

void score_job_fini(struct score_job *job)
{
	free(job->scores);
	free(job->nodes);
	free(job->others);
	job->scores = NULL;
	job->nodes = NULL;
	job->others = NULL;
}

double score_job_score(const struct score_job *job, size_t i, int64_t scores[SCORE_PLUGINS])
{
	const struct score_mix *b = job->ask->mix;

	for (size_t p = 0; p < b->count; p++)
		scores[p] = job->scores[p * job->node_count + i];
	return score_blend(scores, b->weights, b->count);
}

void score_job_tell(const struct score_job *job, size_t i, size_t plugin, enum score_detail detail,
		    struct score_result *result)
{
	score_node_by(&job->query, job->ask->mix->plugins[plugin], &job->scales[plugin],
		      &job->nodes[i], detail, result);
}
