/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of all nodes are read, then score_columns() scores them plugin by plugin, since some
 * plugins compare nodes (score_scale.c). score_job_tell() repeats one node with its terms.
 *
 *	view ------------> score_rows_of --------+
 *						 +--> estimate, power, scales --> score_columns
 *	reservations ----> score_node_assume ----+
 */
#include "aggregator/api/score_job.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/policy/expected_use.h"
#include "aggregator/policy/score/score_rows.h"
#include "shared/arith.h"
#include "shared/array.h"
#include "shared/mem.h"

/*
 * --- reservations by node
 *
 * Reservations are sorted by pod, nodes are asked about by place: each reservation finds its node
 * once, then they are sorted by that and neighbours are added up. So the cost is that of the
 * reservations, however many nodes there are.
 */

/* By node; of one node in the order of the copy, so that the same one is always named. */
struct charge {
	size_t node, at;
};

static int compare_charges(const void *a, const void *b)
{
	const struct charge *x = a, *y = b;

	return COMPARE(x->node, y->node) ?: COMPARE(x->at, y->at);
}

static struct charge *find_charges(const struct view *v, const struct reservations_copy *copy,
				   const char *except_uid, size_t *count)
{
	uint64_t generation = v->cluster ? v->cluster->generation : 0;
	struct charge *charges = mem_alloc((copy ? copy->count + 1 : 1) * sizeof(*charges));

	*count = 0;
	for (size_t i = 0; copy && i < copy->count; i++) {
		const struct reservation *e = copy->of[i];
		size_t node;

		if (!*e->node || strcmp(e->uid, except_uid) == 0 ||
		    !reservations_counts(e, generation))
			continue;
		node = view_index(v, e->node);
		if (node < v->node_count)
			charges[(*count)++] = (struct charge){node, i};
	}
	return charges;
}

static void add(struct score_assumed *sums, const struct reservation *e)
{
	if (!sums->pods++) {
		sums->namespace = e->namespace;
		sums->name = e->name;
	}
	sums->request_cpu_milli =
		add_saturating(sums->request_cpu_milli, e->requests.of[RESOURCE_CPU]);
	sums->request_mem_bytes =
		add_saturating(sums->request_mem_bytes, e->requests.of[RESOURCE_MEMORY]);
	sums->cpu_milli = add_saturating(sums->cpu_milli, e->expected_cpu_milli);
	sums->cpu_high_milli = add_saturating(sums->cpu_high_milli, e->expected_high_cpu_milli);
	sums->mem_bytes = add_saturating(sums->mem_bytes, e->expected_mem_bytes);
}

void assumed_read(struct assumed *a, const struct view *v, const struct reservations_copy *copy,
		  const char *except_uid)
{
	size_t count;
	struct charge *charges = find_charges(v, copy, except_uid, &count);

	*a = (struct assumed){0, NULL};
	array_sort(charges, count, sizeof(*charges), compare_charges);
	a->of = mem_zalloc(count + 1, sizeof(*a->of));
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || charges[i].node != charges[i - 1].node)
			a->of[a->count++].node = charges[i].node;
		add(&a->of[a->count - 1].sums, copy->of[charges[i].at]);
	}
	free(charges);
}

/* Adds what the same pods request of args->limit_others; others has as many for each node. */
static void add_others(const struct view *v, const struct reservations_copy *copy,
		       const char *except_uid, const struct score_args *args,
		       struct score_other *others)
{
	size_t each = args->limit_other_count, count;
	struct charge *charges = find_charges(v, copy, except_uid, &count);

	for (size_t i = 0; i < count; i++)
		for (size_t r = 0; r < each; r++) {
			struct pod_load *load = &others[charges[i].node * each + r].load;
			int64_t request = 0;

			resources_find(&copy->of[charges[i].at]->requests,
				       args->limit_others[r].name, &request);
			load->limits = add_saturating(load->limits, request);
			load->limits_running = add_saturating(load->limits_running, request);
		}
	free(charges);
}

void assumed_fini(struct assumed *a)
{
	free(a->of);
	*a = (struct assumed){0, NULL};
}

const struct score_assumed *assumed_find(const struct assumed *a, uint64_t node)
{
	size_t at = array_lower_bound(&node, a->of, a->count, sizeof(*a->of), array_compare_uint64);

	return at < a->count && a->of[at].node == node ? &a->of[at].sums : NULL;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x9e3779b97f4a7c15ULL ^ (hash >> 29);
}

uint64_t assumed_hash(const struct assumed *a)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < a->count; i++) {
		const struct score_assumed *s = &a->of[i].sums;

		hash = mix(mix(hash, a->of[i].node + 1), s->pods);
		hash = mix(mix(hash, (uint64_t)s->request_cpu_milli),
			   (uint64_t)s->request_mem_bytes);
		hash = mix(hash, (uint64_t)s->cpu_milli);
	}
	return hash;
}

/* --- from a view to scores */

void score_blend_default(struct score_blend *b, enum score_variant variant)
{
	*b = (struct score_blend){.variant = variant};
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
		    stats_age_ns(row->end_ns, row->aside_ns, now_ns) <= EXPIRED_NS)
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
	bool assumes = ask->blend->variant != SCORE_UPSTREAM;
	struct assumed assumed;
	size_t next = 0;

	job->query.others_heard = any_heard(rows, chosen, ask->now_ns);
	assumed_read(&assumed, v, assumes ? ask->reservations : NULL, ask->pod_uid);
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
	if (ask->blend->variant != SCORE_UPSTREAM)
		add_others(ask->view, ask->reservations, ask->pod_uid, ask->args, job->others);
}

/* The pod, and what pods of its owner use where the view has any. */
static struct score_query make_query(const struct score_ask *ask)
{
	return (struct score_query){
		.variant = ask->blend->variant,
		.args = ask->args,
		.pod = ask->pod,
		.all = ask->sums,
		.owner = expected_use_of_owner(ask->view, ask->owner_uid, ask->workload),
	};
}

struct expected_use score_ask_expected(const struct score_ask *ask)
{
	const struct score_query q = make_query(ask);
	struct score_pod sums;

	score_pod_read(&q, &sums);
	return sums.expected;
}

void score_job_init(struct score_job *job, const struct score_ask *ask, const bool *chosen)
{
	const struct score_blend *b = ask->blend;

	*job = (struct score_job){.ask = ask, .query = make_query(ask)};
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
	const struct score_blend *b = job->ask->blend;

	for (size_t p = 0; p < b->count; p++)
		scores[p] = job->scores[p * job->node_count + i];
	return score_blend(scores, b->weights, b->count);
}

void score_job_tell(const struct score_job *job, size_t i, size_t plugin, enum score_detail detail,
		    struct score_result *result)
{
	score_node_by(&job->query, job->ask->blend->plugins[plugin], &job->scales[plugin],
		      &job->nodes[i], detail, result);
}
