/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between score.c and the plugins, and what plugins write their results with. */
#pragma once

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/score.h"
#include "aggregator/policy/textbuf.h"

/* Sets the score, or the raw value or `outside` of a plugin that normalises; detail is given. */
typedef void score_plugin(const struct score_query *q, const struct score_node *node,
			  struct score_result *result);
/* Sets the score from the raw value. */
typedef void score_normalizer(const struct score_query *q, const struct score_scale *scale,
			      struct score_result *result);

/* Nodes of a column, for a query of the corrected variant with sums. */
struct score_batch {
	const struct score_query *q;
	const struct score_node *nodes;
	const uint8_t *which; /* of the nodes: ordinary ones */
	size_t count;
};

/* Sets the score of each node, or the raw value of a plugin that normalises (NaN: `outside`). */
typedef void score_column(const struct score_batch *b, double *restrict values);

#define X(id, name, heading, function, ...)                                                        \
	score_plugin function;                                                                     \
	score_column function##_column;
SCORE_PLUGIN_ROWS(X)
#undef X
score_normalizer peaks_normalize, node_resources_allocatable_normalize, limit_aware_normalize;

/*
 * Upstream's prediction of a pod's use in millicores, with overhead: per container the limit, else
 * the request times the multiplier, else the default; without init containers.
 */
int64_t target_load_packing_predict(const struct pod_spec *pod, const struct score_args *args);

/* --- between score.c and score_scale.c */

/* The part without the scale. False: the node is unknown, and the result says so. */
bool score_before_scale(const struct score_query *q, enum score_plugin_id plugin,
			const struct score_node *node, enum score_detail detail,
			struct score_result *result);
/* The part with the scale, after true. */
void score_after_scale(const struct score_query *q, enum score_plugin_id plugin,
		       const struct score_scale *scale, const struct score_node *node,
		       struct score_result *result);
void score_result_start(struct score_result *result, enum score_detail detail);
/* Adds a raw value to the extremes. */
void score_scale_add(struct score_scale *scale, double raw);
/* Whether the node is scored by requests instead of by the plugin. */
bool score_plugin_estimates(enum score_plugin_id plugin, enum score_variant variant,
			    const struct score_node *node);

/* Whether all inputs of plugins are known, so that only the strain is applied beside the plugin. */
bool score_is_ordinary(const struct score_node *node);
/* The factor of contention and OOM kills, at most 1. */
double score_strain(const struct score_args *args, const struct score_node *node);
/* The normalizer is NULL for a plugin that does not normalise. */
score_column *score_plugin_column(enum score_plugin_id plugin);
score_normalizer *score_plugin_normalizer(enum score_plugin_id plugin);

/* --- for plugins */

/* Arithmetic that is compiled twice: with terms and reasons, and without them for columns. */
#define SCORE_ARITHMETIC static inline __attribute__((always_inline))

/* One resource of a node. */
struct score_side {
	int64_t capacity, allocatable, pending;
	const struct score_metric *metric;
	const struct pod_load *sums;
};

static inline struct score_side score_side(const struct score_node *n, enum score_resource resource)
{
	if (resource == SCORE_CPU)
		return (struct score_side){n->cpu_capacity_milli, n->cpu_allocatable_milli,
					   n->pending_cpu_milli, &n->cpu, &n->load.of[SCORE_CPU]};
	return (struct score_side){n->mem_capacity_bytes, n->mem_allocatable_bytes,
				   n->pending_mem_bytes, &n->mem, &n->load.of[SCORE_MEMORY]};
}

/* Requests of the pod by the rules of the variant. */
static inline int64_t score_request(const struct score_query *q, enum score_resource resource)
{
	return q->sums ? q->sums->of[resource].request
		       : pod_spec_need(q->pod, score_resource_id(resource), false,
				       q->variant == SCORE_UPSTREAM);
}

/* Expected use of the pod by the rules of the variant. */
static inline struct expected_use score_expected(const struct score_query *q)
{
	struct score_pod sums;

	if (q->sums)
		return q->sums->expected;
	score_pod_read(q, &sums);
	return sums.expected;
}

static inline void score_term(struct score_result *r, const char *name, const char *unit,
			      double value)
{
	if (r->detail < SCORE_TERMS)
		return;
	assert(r->term_count < SCORE_TERMS_MAX);
	r->terms[r->term_count++] = (struct score_term){name, unit, value, NULL};
}

/* Whether a reason is wanted. */
static inline bool score_tells(const struct score_result *r)
{
	return r->detail >= SCORE_REASON;
}

/* Appends to the reason: textbuf_add(). */
#define score_write(r, ...)                                                                        \
	((r)->reason_len =                                                                         \
		 textbuf_add((r)->reason, sizeof((r)->reason), (r)->reason_len, __VA_ARGS__))

/* Appends to the reason if one is wanted. */
#define score_say(r, ...)                                                                          \
	do {                                                                                       \
		if (score_tells(r))                                                                \
			score_write(r, __VA_ARGS__);                                               \
	} while (0)

/* Keeps the node out of the normalisation. */
static inline void score_keep_out(const char *why, struct score_result *r)
{
	r->outside = true;
	score_say(r, "%s: the least score", why);
}

/* Rounds to nine digits, so that sums of decimal fractions which end on a half are halves. */
static inline double score_on_paper(double score)
{
	return round_half(score * 1e9) / 1e9;
}

/* round_away(score_on_paper(score)), by integers if possible. */
static inline int64_t score_round(double score)
{
	const int64_t paper = 1000000000;

	if (!(score >= 0 && score < 1e6))
		return round_away(score_on_paper(score));
	return ((int64_t)round_half(score * 1e9) + paper / 2) / paper;
}

/* Position of raw between lowest and highest, 0..100; 100 if all are equal. */
static inline int64_t score_spread(double raw, const struct score_scale *scale)
{
	if (raw >= scale->highest)
		return 100;
	if (raw <= scale->lowest)
		return 0;
	return score_round(100 * (raw - scale->lowest) / (scale->highest - scale->lowest));
}

static inline int64_t score_strained(int64_t score, double factor)
{
	return factor >= 1 || score == 0 ? score : score_round((double)score * factor);
}

/* The loop of every column. */
SCORE_ARITHMETIC void score_column_by(score_plugin *judge, bool normalizes,
				      const struct score_batch *b, double *restrict values)
{
	struct score_query q = *b->q;

	assert(q.sums);
	q.variant = SCORE_CORRECTED;
	for (size_t i = 0; i < b->count; i++) {
		struct score_result r;

		r.detail = SCORE_BARE;
		r.score = 0;
		r.raw = 0;
		r.outside = false;
		judge(&q, &b->nodes[b->which[i]], &r);
		values[i] = !normalizes ? (double)r.score : r.outside ? NAN : r.raw;
	}
}

/* The two functions of a plugin, by its judge(). */
#define SCORE_PLUGIN_FUNCTIONS(function, normalizes)                                               \
	void function(const struct score_query *q, const struct score_node *node,                  \
		      struct score_result *r)                                                      \
	{                                                                                          \
		judge(q, node, r);                                                                 \
	}                                                                                          \
	void function##_column(const struct score_batch *b, double *restrict values)               \
	{                                                                                          \
		score_column_by(judge, normalizes, b, values);                                     \
	}
