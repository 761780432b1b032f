/* SPDX-License-Identifier: Apache-2.0 */
/* What a score plugin is to score.c, and what it tells its result with. */
#ifndef EVENKEEL_AGGREGATOR_POLICY_SCORE_PLUGIN_H
#define EVENKEEL_AGGREGATOR_POLICY_SCORE_PLUGIN_H

#include <assert.h>
#include <math.h>
#include <string.h>

#include "aggregator/policy/arith.h"
#include "aggregator/policy/score/score.h"
#include "aggregator/policy/textbuf.h"

/*
 * result is empty but for its detail. Sets the score, or of a plugin that normalises the raw value
 * or `outside`.
 */
typedef void score_plugin(const struct score_query *q, const struct score_node *node,
			  struct score_result *result);
/* Sets the score from the raw value; there is at least one node in the normalisation. */
typedef void score_normalizer(const struct score_query *q, const struct score_scale *scale,
			      struct score_result *result);

/* Nodes that a column is about, of a query of the corrected variant whose sums are read. */
struct score_batch {
	const struct score_query *q;
	const struct score_node *nodes;
	const uint8_t *which; /* of the nodes: ordinary ones */
	size_t count;
};

/*
 * What the plugin says of each of them where nothing is to be told: the score, or of a plugin that
 * normalises the raw value, NaN where it is `outside`.
 */
typedef void score_column(const struct score_batch *b, double *restrict values);

#define X(id, name, heading, function, ...)                                                        \
	score_plugin function;                                                                     \
	score_column function##_column;
SCORE_PLUGIN_ROWS(X)
#undef X
score_normalizer peaks_normalize, node_resources_allocatable_normalize, limit_aware_normalize;

/*
 * What upstream's TargetLoadPacking expects a pod to use, in millicores, overhead included: per
 * container its limit, else its request times the multiplier, else the default; init containers
 * count nothing.
 */
int64_t target_load_packing_predict(const struct pod_spec *pod, const struct score_args *args);

/* --- between score.c and score_scale.c */

/* All but what needs the scale: false where the node cannot be judged, and the result says so. */
bool score_before_scale(const struct score_query *q, enum score_plugin_id plugin,
			const struct score_node *node, enum score_detail detail,
			struct score_result *result);
/* The rest, of one that was judged. */
void score_after_scale(const struct score_query *q, enum score_plugin_id plugin,
		       const struct score_scale *scale, const struct score_node *node,
		       struct score_result *result);
void score_result_start(struct score_result *result, enum score_detail detail);
/* Takes a raw value into the extremes. */
void score_scale_add(struct score_scale *scale, double raw);
/* Whether this node is scored by requests in the plugin's place. */
bool score_plugin_estimates(enum score_plugin_id plugin, enum score_variant variant,
			    const struct score_node *node);

/*
 * A node of which all that plugins read by themselves is known: what score_before_scale() and
 * score_after_scale() do with it beside the plugin is to apply its strain.
 */
bool score_is_ordinary(const struct score_node *node);
/* What contention and OOM kills leave of a score: a factor of at most 1. */
double score_strain(const struct score_args *args, const struct score_node *node);
/* The plugin's, and NULL where it does not normalise. */
score_column *score_plugin_column(enum score_plugin_id plugin);
score_normalizer *score_plugin_normalizer(enum score_plugin_id plugin);

/* --- for plugins */

/*
 * The arithmetic of a plugin is written once, and compiled twice: with all that it can tell, and
 * for columns, where the compiler knows that nothing is.
 */
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

static inline int64_t score_pod_need(const struct pod_spec *pod, enum score_resource resource,
				     bool limits, bool upstream)
{
	return resource == SCORE_CPU ? pod_spec_cpu_milli(pod, limits, upstream)
				     : pod_spec_mem_bytes(pod, limits, upstream);
}

/* What the pod requests, as the variant counts it. */
static inline int64_t score_request(const struct score_query *q, enum score_resource resource)
{
	return q->sums ? q->sums->of[resource].request
		       : score_pod_need(q->pod, resource, false, q->variant == SCORE_UPSTREAM);
}

/* What the pod is expected to use, as the variant predicts it. */
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

/* Whether a reason is asked for: only then may score_reason() be called. */
static inline bool score_tells(const struct score_result *r)
{
	return r->detail >= SCORE_REASON;
}

static inline struct textbuf score_reason(struct score_result *r)
{
	struct textbuf s;

	textbuf_start(&s, r->reason, sizeof(r->reason));
	return s;
}

/* Not judged by this plugin, for a reason of the node. */
static inline void score_keep_out(const char *why, struct score_result *r)
{
	struct textbuf s;

	r->outside = true;
	if (!score_tells(r))
		return;
	s = score_reason(r);
	textbuf_add(&s, why);
	textbuf_add(&s, ": the least score");
}

/* Goes on where the reason ends. */
static inline struct textbuf score_reason_more(struct score_result *r)
{
	return (struct textbuf){r->reason, sizeof(r->reason), strlen(r->reason)};
}

/*
 * Sums of decimal fractions that end on a half are halves on paper; binary64 may miss them by an
 * ulp.
 */
static inline double score_on_paper(double score)
{
	return round_half(score * 1e9) / 1e9;
}

/* round_away(score_on_paper(score)), without a division where there is an integer for it. */
static inline int64_t score_round(double score)
{
	const int64_t paper = 1000000000;

	if (!(score >= 0 && score < 1e6))
		return round_away(score_on_paper(score));
	return ((int64_t)round_half(score * 1e9) + paper / 2) / paper;
}

/*
 * How far raw lies from the lowest to the highest, 0..100; where all are equal none is worse than
 * another: 100.
 */
static inline int64_t score_spread(double raw, const struct score_scale *scale)
{
	if (raw >= scale->highest)
		return 100;
	if (raw <= scale->lowest)
		return 0;
	return score_round(100 * (raw - scale->lowest) / (scale->highest - scale->lowest));
}

/* What a strain leaves of the score. */
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

#endif
