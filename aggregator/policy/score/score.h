/* SPDX-License-Identifier: Apache-2.0 */
/* Score plugins: the score of a node for a pod, 0 to 100, with its terms. Pure and deterministic. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/model/pod_load.h"
#include "aggregator/model/pod_spec.h"
#include "aggregator/policy/score/score_tables.h"
#include "aggregator/state/view.h"
#include "shared/error.h"

enum score_variant { SCORE_CORRECTED, SCORE_UPSTREAM, SCORE_KEP };

enum score_plugin_id {
#define X(id, ...) PLUGIN_##id,
	SCORE_PLUGIN_ROWS(X)
#undef X
		SCORE_PLUGINS
};

enum score_resource { SCORE_CPU, SCORE_MEMORY, SCORE_RESOURCES };

static inline enum resource_id score_resource_id(enum score_resource resource)
{
	return resource == SCORE_CPU ? RESOURCE_CPU : RESOURCE_MEMORY;
}

/* Resources beyond CPU and memory in one query of LimitAware. */
enum { SCORE_OTHERS_MAX = 8 };

enum allocatable_mode { ALLOCATABLE_LEAST, ALLOCATABLE_MOST };

/* Power of a node at x percent of its CPU in watts: k0 + k1 * exp(k2 * x). */
struct power_model {
	const char *node; /* borrowed */
	double k0, k1, k2;
};

/* Plugin arguments, named and set as in scheduler-plugins' apis/config/v1. */
struct score_args {
	/* TargetLoadPacking */
	double target_utilization; /* percent, 40 */
	/* Expected use of a pod; corrected: for all plugins (expected_use.h) */
	double default_requests_multiplier; /* upstream 1.5, else 1 */
	int64_t default_requests_cpu_milli; /* upstream 1000 per container, else 100 per pod */
	int64_t guess_cpu_milli; /* 500: least cpu_high_milli of an unmeasured pod */
	bool use_limits; /* corrected: limits before requests, false */
	/* LoadVariationRiskBalancing */
	double safe_variance_margin; /* 1 */
	double safe_variance_sensitivity; /* 1 */
	/* LowRiskOverCommitment */
	int64_t smoothing_window_size; /* upstream 5; else 1, as samples are raw */
	double risk_limit_weights[SCORE_RESOURCES]; /* 0.5 */
	/* Peaks: sorted by node, borrowed; see score_nodes_power() */
	const struct power_model *power_models;
	size_t power_model_count;
	/* NodeResourcesAllocatable; a weight of 0 leaves the resource out */
	int64_t allocatable_weights[SCORE_RESOURCES]; /* 2^20, 1 */
	enum allocatable_mode allocatable_mode; /* least */
	/* LimitAware */
	int64_t limit_weights[SCORE_RESOURCES]; /* 1, 1 */
	size_t limit_other_count; /* 0 */
	struct {
		const char *name; /* borrowed */
		int64_t weight;
	} limit_others[SCORE_OTHERS_MAX];
	/* Of a container without a limit, at least its request. 0: expected use; < 0: allocatable. */
	int64_t unlimited[SCORE_RESOURCES], unlimited_storage;
	bool init_ignored; /* false; corrected: without limits of init containers */
	bool quantiles; /* scale between the 5 % and 95 % quantiles */
	/* All plugins, corrected: greatest share of a score that OOM kills cost, 0.1 */
	double oom_cost;
};

/* An argument that is a number; the columns are those of SCORE_NUMBER_ROWS() in score_tables.h. */
struct score_number {
	enum score_plugin_id plugin;
	const char *name;
	size_t offset; /* of the member: an int64_t of SCORE_WHOLE, else a double */
	/* a number; a whole one; a whole one in a double; a number that may stand as text */
	enum { SCORE_REAL, SCORE_WHOLE, SCORE_PERCENT, SCORE_TEXT } type;
	double usual, upstream;
	bool zero;
	double most;
	enum { REPLACED_NONE, REPLACED_NEGATIVE, REPLACED_TO_ZERO, REPLACED_OUTSIDE } replaced;
};

enum {
#define X(id, name, ...) +1
	SCORE_NUMBERS = 0 SCORE_NUMBER_ROWS(X)
#undef X
};

extern const struct score_number score_numbers[SCORE_NUMBERS];

double score_number_get(const struct score_number *n, const struct score_args *args);
void score_number_set(const struct score_number *n, struct score_args *args, double value);

/* Measured use in percent of the capacity, as load-watcher: upstream's scores depend on the bits. */
struct score_metric {
	bool known;
	double mean, stddev;
};

/* Sums over the pods of the node and assumed ones (score_node_assume()). */
struct score_load {
	bool requests_known, limits_known;
	struct pod_load of[SCORE_RESOURCES];
};

/* A resource of args->limit_others on a node. */
struct score_other {
	int64_t allocatable;
	struct pod_load load;
};

/* Source of the numbers of a node, from worst to best. See score_input.c. */
enum score_fallback {
	FALLBACK_NONE,
	FALLBACK_EXPIRED,
	FALLBACK_ALLOCATION, /* no node is measured, but the requests of its pods are known */
	FALLBACK_LATE,
	FALLBACK_SINCE_START,
	FALLBACK_WINDOW_5M,
	FALLBACK_WINDOW_10M,
	FALLBACK_WINDOW_15M,
};

struct score_node {
	const char *name;
	int64_t cpu_capacity_milli, mem_capacity_bytes;
	int64_t cpu_allocatable_milli, mem_allocatable_bytes;
	bool measured; /* there is any measurement */
	struct score_metric cpu, mem;
	enum score_fallback fallback;
	const char *window; /* "15m", "10m", "5m", or "" */
	double age_seconds; /* of the newest measurement */
	/* Expected use of new pods that the measurements do not show yet. */
	int64_t pending_cpu_milli, pending_mem_bytes;
	int64_t pending_high_cpu_milli; /* the same by expected_use.cpu_high_milli */
	/* Of these, assumed pods (score_node_assume()). */
	uint32_t assumed_pods;
	int64_t assumed_cpu_milli;
	const char *assumed_namespace, *assumed_name; /* of the first; borrowed */
	/* 99th percentile of recent use in percent of the capacity (NaN: not known), which does
	 * not show the expected use `unseen`, with what pods hold unseen (node_stats.h). */
	double p99[SCORE_RESOURCES];
	int64_t unseen[SCORE_RESOURCES];
	double widening; /* factor of the deviations for their age, at least 1 */
	bool estimated; /* not measured, but requests are known */
	struct score_load load;
	const struct score_other *others; /* as args->limit_others, borrowed; NULL: not known */
	double contention; /* share of time that tasks waited for CPU or memory; NaN: not measured */
	double oom_kills; /* of the last 5 minutes; earlier ones count less */
	const struct power_model *power; /* borrowed; NULL: none */
	/* LowRiskOverCommitment's risk of load (corrected), computed beforehand (score_rows.h). */
	bool load_risk_known;
	double load_risk[SCORE_RESOURCES];
};

/* Mean use of the measured pods of a workload. */
struct score_owner {
	bool known;
	double cpu_milli, cpu_p95_milli, working_set_bytes;
};

enum use_source { USE_OF_WORKLOAD, USE_OF_LIMITS, USE_OF_REQUESTS, USE_OF_DEFAULT };

/* Expected use of one pod (expected_use.h). */
struct expected_use {
	int64_t cpu_milli, mem_bytes; /* most likely */
	int64_t cpu_high_milli; /* a high estimate, for spreading */
	enum use_source source; /* of the CPU */
};

/* Values of the pod that are the same for every node. */
struct score_pod {
	struct {
		int64_t request; /* as the variant counts it */
		struct pod_bound bound;
	} of[SCORE_RESOURCES];
	struct expected_use expected; /* corrected: expected_use_read(), else of the CPU alone */
};

/* Rules and pod. Borrowed. */
struct score_query {
	enum score_variant variant;
	const struct score_args *args;
	const struct pod_spec *pod;
	const struct pod_sums *all; /* of the pod, for args->limit_others; NULL: none */
	struct score_owner owner;
	bool others_heard; /* other nodes are measured: silence of EXPIRED_NS ends a measurement */
	const struct score_pod *sums; /* by score_pod_read(); NULL: computed for each node */
};

/* q->sums is not read. */
void score_pod_read(const struct score_query *q, struct score_pod *sums);

/* Values over all nodes that a plugin needs for one. */
struct score_scale {
	size_t count; /* nodes in the normalisation */
	double lowest, highest; /* of their raw values */
	int64_t estimated_most; /* below the score of every measured node */
	int64_t measured_least; /* 1 if some nodes are not measured, else 0 */
};

enum { SCORE_TERMS_MAX = 45 + 9 * SCORE_OTHERS_MAX, SCORE_FALLBACK_LEN = 32 };

/* One input or intermediate of the arithmetic, in order of evaluation. */
struct score_term {
	const char *name; /* static */
	const char *unit; /* static: "millicores", "bytes", "percent", "fraction", "seconds", "" */
	double value;
	const char *resource; /* of args->limit_others, part of the name; NULL: none */
};

/* Output beside the score; each includes those before. */
enum score_detail { SCORE_BARE, SCORE_REASON, SCORE_TERMS };

struct score_result {
	enum score_detail detail;
	int64_t score;
	double raw; /* before the normalisation, of plugins that normalise */
	bool outside; /* not judged, or kept out of the normalisation */
	bool unknown; /* not judged: the node is not known well enough */
	size_t term_count;
	char reason[256]; /* one sentence with the deciding numbers */
	size_t reason_len;
	struct score_term terms[SCORE_TERMS_MAX];
};

const char *score_plugin_name(enum score_plugin_id plugin); /* "TargetLoadPacking" */
/* -ENOENT for an unknown name (the list of names is in score_plugin_names()). Case counts. */
int score_plugin_find(const char *name, enum score_plugin_id *plugin);
const char *score_plugin_names(void); /* for messages: "A, B" */
/* safeVarianceMargin of LoadVariationRiskBalancing in the default blend; alone: score_tables.h. */
#define SCORE_BLEND_MARGIN 0.1

/* Weight in the default blend; 0: not in it. */
double score_plugin_weight(enum score_plugin_id plugin, enum score_variant variant);
const char *score_variant_name(enum score_variant variant); /* "corrected", "upstream", "kep" */
int score_variant_find(const char *name, enum score_variant *variant);
const char *score_variant_names(void);
/* kep exists for LoadVariationRiskBalancing only. */
bool score_plugin_has(enum score_plugin_id plugin, enum score_variant variant);

void score_args_default(struct score_args *args, enum score_variant variant);
/* Containers without a limit count as the allocatable of their node. */
void score_args_unlimited_allocatable(struct score_args *args);
/*
 * Checks the plugin's arguments. upstream: replaces a value by the default where upstream does.
 * Otherwise -EINVAL, with upstream's name of the argument in *field and the range in the reason.
 */
int score_args_check(struct score_args *args, enum score_plugin_id plugin,
		     enum score_variant variant, const char **field, struct error *reason);

/*
 * Second pass of score_columns() for one node, by the plugin's scale. But for upstream, a measured
 * node scores at least 1 and above every unmeasured one, and missing or absurd numbers never score
 * above a known good node.
 */
void score_node_by(const struct score_query *q, enum score_plugin_id plugin,
		   const struct score_scale *scale, const struct score_node *node,
		   enum score_detail detail, struct score_result *result);

/*
 * Both passes over all nodes, in any order, by plugins that have the variant: scores[p * count + i]
 * of the i-th node by the p-th plugin, and scales[p]. Equal to score_node_by() of each.
 */
void score_columns(const struct score_query *q, const enum score_plugin_id *plugins,
		   size_t plugin_count, const struct score_node *nodes, size_t count,
		   struct score_scale *scales, int64_t *scores);

/*
 * The inputs of one node as of now: the longest covered window (windows.h), else the last 5 minutes
 * ("since start"). The most recent use (struct window_recent) replaces that of the window if it is
 * higher. From 30 s after the last measurement, sigma is widened by (1 + age / 60 s), except for
 * upstream; after 15 minutes (5 with q->others_heard or upstream) the node is unknown. Requests and
 * limits are the API's if it knows all pods, else limits are the kernel's and requests unknown. New
 * pods are pending (recent_pods.h). Reads variant, arguments and others_heard of the query.
 */
void score_node_from_view(const struct view *v, const struct view_node *n, int64_t now_ns,
			  const struct score_query *q, struct score_node *node);
/* Sums args->limit_others over the pods of a node; false: the API does not know all pods. */
bool score_others_read(const struct view *v, const struct view_node *n,
		       const struct score_args *args, struct score_other others[SCORE_OTHERS_MAX]);
/* Pods assumed on a node, before the API shows them there. */
struct score_assumed {
	uint32_t pods; /* above 0 */
	int64_t request_cpu_milli, request_mem_bytes; /* sums */
	int64_t cpu_milli, cpu_high_milli, mem_bytes; /* expected use, sums */
	const char *namespace, *name; /* of one of them; borrowed */
};

/* Adds assumed pods to all sums of the node, once. Not for upstream. */
void score_node_assume(struct score_node *node, const struct score_assumed *assumed);
/*
 * Estimates nodes without a measurement by requests where those are known: on FALLBACK_ALLOCATION
 * if none of these nodes is measured, else below every node that is. Not for upstream.
 */
void score_nodes_estimate(struct score_node *nodes, size_t count);
/* Gives nodes their power models; both sorted by name. */
void score_nodes_power(struct score_node *nodes, size_t count, const struct score_args *args);
/* "window 15m", "late 42s", "since start", "allocation", "expired", "none" */
void score_fallback_text(const struct score_node *node, char text[SCORE_FALLBACK_LEN]);

/* Weighted mean of plugin scores. Weights > 0. */
double score_blend(const int64_t *scores, const double *weights, size_t count);
