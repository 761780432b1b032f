/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scores of nodes of a view for one pod: the one way from a view and the reservations to numbers, for
 * /v1/scores and the extender.
 */
#pragma once

#include <stddef.h>

#include "aggregator/policy/score/score.h"
#include "aggregator/state/reservations.h"
#include "aggregator/state/view.h"

/* --- reservations by node: pods that the view does not show yet */

struct assumed_node {
	uint64_t node; /* its place in the view */
	struct score_assumed sums;
};

/* Nodes that the view has, by their place in it. */
struct assumed {
	size_t count;
	struct assumed_node *of; /* owned */
};

/*
 * The copy must have been taken before the view, and be held as long as this is used, since names
 * point into it; NULL: nothing is reserved. Left out is the pod of that uid: it is asked about, and
 * does not compete with itself ("": none).
 */
void assumed_read(struct assumed *a, const struct view *v, const struct reservations_copy *copy,
		  const char *except_uid);
void assumed_fini(struct assumed *a);
/* The reservations on the node at that place, or NULL. */
const struct score_assumed *assumed_find(const struct assumed *a, uint64_t node);
/* Of all that is assumed; 0 where nothing is. */
uint64_t assumed_hash(const struct assumed *a);

/* --- scores */

/* A blend of plugins: at least one plugin, all of which have the variant. */
struct score_blend {
	enum score_variant variant;
	size_t count;
	enum score_plugin_id plugins[SCORE_PLUGINS];
	double weights[SCORE_PLUGINS];
};

/*
 * The blend when no plugins are named: those with a score_plugin_weight() that have the variant.
 */
void score_blend_default(struct score_blend *b, enum score_variant variant);

/* The question. All borrowed. */
struct score_ask {
	const struct view *view;
	const struct reservations_copy
		*reservations; /* taken before the view; NULL: nothing is reserved */
	int64_t now_ns;
	const struct score_blend *blend;
	const struct score_args *args;
	const struct pod_spec *pod;
	const struct pod_sums *sums; /* of it; read where args names other resources */
	const char *pod_uid, *owner_uid; /* "" where there are none, as of the next */
	const char *workload; /* workload_key() */
};

struct score_job {
	const struct score_ask *ask; /* borrowed */
	struct score_query query;
	size_t node_count;
	struct score_node *nodes; /* owned; in the order of the view */
	struct score_other *others; /* owned: of each node, as args->limit_others */
	struct score_scale scales[SCORE_PLUGINS]; /* by place in the blend */
	struct score_pod pod; /* what the query's sums are: a job stays where it is */
	int64_t *scores; /* owned; as score_columns() lays them out, by place in the blend */
};

struct expected_use score_ask_expected(const struct score_ask *ask); /* of the pod */
/* Reads and prepares the nodes that are chosen, by place in the view; NULL: all. */
void score_job_init(struct score_job *job, const struct score_ask *ask, const bool *chosen);
void score_job_fini(struct score_job *job);
/* The blended score of the i-th node, unrounded; also that of each plugin. */
double score_job_score(const struct score_job *job, size_t i, int64_t scores[SCORE_PLUGINS]);
/* All that is to be told of its score by the plugin at that place in the blend. */
void score_job_tell(const struct score_job *job, size_t i, size_t plugin, enum score_detail detail,
		    struct score_result *result);
