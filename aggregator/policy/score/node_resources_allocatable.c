/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefers small nodes (mode Least) or large ones (Most) by their allocatable:
 *
 *     raw = sum of weight * allocatable / sum of weights, negated for Least
 *     score = 100 * (raw - lowest) / (highest - lowest)
 *
 * Default weights 2^20 for CPU (millicores) and 1 for memory (bytes): a core counts as about a GiB.
 *
 * upstream truncates raw and score, wraps around in 64 bits, and gives equal nodes 0, as unknown ones.
 * corrected rounds, and gives equal nodes 100.
 */
#include "aggregator/policy/score/plugin.h"

/* As upstream's int64 do: wraps around. */
static int64_t raw_upstream(const struct score_args *args, const struct score_node *node)
{
	int64_t sum = 0, weights = 0;

	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++) {
		int64_t product;

		(void)__builtin_mul_overflow(args->allocatable_weights[r],
					     score_side(node, r).allocatable, &product);
		(void)__builtin_add_overflow(sum, product, &sum);
		(void)__builtin_add_overflow(weights, args->allocatable_weights[r], &weights);
	}
	return weights > 0 ? sum / weights : 0;
}

SCORE_ARITHMETIC double raw_corrected(const struct score_args *args, const struct score_node *node)
{
	double sum = 0, weights = 0;

	for (enum score_resource r = 0; r < SCORE_RESOURCES; r++) {
		sum += (double)args->allocatable_weights[r] *
		       (double)score_side(node, r).allocatable;
		weights += (double)args->allocatable_weights[r];
	}
	return weights > 0 ? sum / weights : 0;
}

SCORE_ARITHMETIC void judge(const struct score_query *q, const struct score_node *node,
			    struct score_result *r)
{
	const struct score_args *args = q->args;
	double mean = q->variant == SCORE_UPSTREAM ? (double)raw_upstream(args, node)
						   : raw_corrected(args, node);

	score_term(r, "cpuAllocatable", "millicores", (double)node->cpu_allocatable_milli);
	score_term(r, "cpuWeight", "", (double)args->allocatable_weights[SCORE_CPU]);
	score_term(r, "memoryAllocatable", "bytes", (double)node->mem_allocatable_bytes);
	score_term(r, "memoryWeight", "", (double)args->allocatable_weights[SCORE_MEMORY]);
	r->raw = args->allocatable_mode == ALLOCATABLE_LEAST ? -mean : mean;
	score_term(r, "raw", "", r->raw);
}

SCORE_PLUGIN_FUNCTIONS(node_resources_allocatable, true)

void node_resources_allocatable_normalize(const struct score_query *q,
					  const struct score_scale *scale, struct score_result *r)
{
	bool upstream = q->variant == SCORE_UPSTREAM, equal = scale->lowest == scale->highest;

	score_term(r, "lowest", "", scale->lowest);
	score_term(r, "highest", "", scale->highest);
	if (!upstream)
		r->score = score_spread(r->raw, scale);
	else if (!equal)
		r->score = ((int64_t)r->raw - (int64_t)scale->lowest) * 100 /
			   ((int64_t)scale->highest - (int64_t)scale->lowest);
	if (equal)
		score_say(r, "all nodes have the same allocatable");
	else
		score_say(r, "%" PRId64 " %% of the way from the %s allocatable of these nodes",
			  r->score,
			  q->args->allocatable_mode == ALLOCATABLE_LEAST
				  ? "largest to the smallest"
				  : "smallest to the largest");
}
